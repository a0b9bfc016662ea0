"""Modules that pumice compiles give the same on the peer's runtime, in a process of its own, bit by bit, whether the
runtime calls ``main`` or gives ``main$async`` the storages of its results.

``pytest -s`` prints how many.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.soak import rounds

import pumice

jax = pytest.importorskip("jax", reason="needs jax: pip install -e '.[dev]'")
jax_functions = pytest.importorskip("conformance.jax.functions", reason="needs jax")
pytestmark = [pytest.mark.vulkan, pytest.mark.peer, pytest.mark.slow]

COUNT = rounds(48, len(jax_functions.FUNCTIONS))
WANTED = ("transformer", "lstm", "unet_step", "scan", "while_loop", "switch", "cholesky", "fft", "sort", "normal")
"""Functions that are among them; the others are spread over the list."""


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[pumice.Device]:
    """A device that runs kernels as the peer does: without the repairs of this driver's faults."""
    monkeypatch.setenv("PUMICE_REPAIRS", "0")
    with pumice.open_device() as device:
        yield device


def chosen() -> list[str]:
    """Names of functions, ``COUNT`` of them."""
    others = [name for name in jax_functions.FUNCTIONS if name not in WANTED]
    step = len(others) / (COUNT - len(WANTED))
    return [*WANTED, *(others[int(index * step)] for index in range(COUNT - len(WANTED)))]


def test_the_peer_gives_the_same(tmp_path: Path, opened: pumice.Device) -> None:
    pytest.importorskip("iree.runtime", reason="needs the peer extra")
    expected = {}
    for name in chosen():
        function, arguments = jax_functions.FUNCTIONS[name]
        module = pumice.compile(jax.jit(function).lower(*arguments).as_text(), file_name=name)
        (tmp_path / f"{name}.vmfb").write_bytes(module)
        np.savez(tmp_path / f"{name}.npz", *arguments)
        with pumice.Session(device=opened) as session:
            given = session.call(f"{session.load(module).name}.main", *arguments, timeout=60)
            results = given if isinstance(given, tuple | list) else [given]
            expected[name] = [np.asarray(each.numpy() if hasattr(each, "numpy") else each) for each in results]
    command = [sys.executable, str(Path(__file__).with_name("peer_batch.py")), str(tmp_path), "vulkan"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, done.stderr
    errors = {path.stem: path.read_text() for path in tmp_path.glob("*.error")}
    assert errors == {}
    for name, values in expected.items():
        for way in ("out", "storages"):
            with np.load(tmp_path / f"{name}.{way}.npz") as stored:
                found = [stored[f"arr_{index}"] for index in range(len(stored.files))]
            assert len(found) == len(values), name
            for one, other in zip(found, values, strict=True):
                np.testing.assert_array_equal(one, other, err_msg=f"{name}, {way}")
    print(f"\n{len(expected)} modules on the peer's runtime, all results equal, in storages of the caller too")
    assert len(expected) == COUNT
