"""Graphs of TensorFlow, compiled by pumice and run on Vulkan, against TensorFlow's own results.

The cases are recorded by TensorFlow where it is installed, or come from the folder that ``PUMICE_GRAPHDEF_CASES``
names, which ``python tests/conformance/tensorflow/cases.py FOLDER`` writes in an environment that has TensorFlow.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conformance.tensorflow import cases as graphdef_cases
from support.source_trees import named_tree

import pumice
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.origin import Origin
from pumice.compiler.pipeline import compile_data

pytest.importorskip("tensorboardX", reason="needs the messages of a GraphDef: pip install 'pumice[graphdef]'")
pytestmark = [pytest.mark.vulkan, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the cases."""
    named = named_tree("PUMICE_GRAPHDEF_CASES")
    if named is not None:
        return named
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("needs TensorFlow, or PUMICE_GRAPHDEF_CASES with cases that it recorded")
    folder = tmp_path_factory.mktemp("cases")
    subprocess.run([sys.executable, graphdef_cases.__file__, str(folder)], check=True, capture_output=True)
    return folder


@pytest.fixture
def opened() -> Iterator[pumice.Device]:
    with pumice.open_device() as device:
        yield device


def check(folder: Path, device: pumice.Device) -> None:
    """Checks one case: types and shapes exactly, floats as far as sums in another order may differ."""
    case = graphdef_cases.read(folder)
    module = compile_data(
        case.graph, "main.pb", Target(), Origin("graphdef", tuple(case.feeds), tuple(case.fetches))
    ).module
    with pumice.Session(device=device) as session:
        loaded = session.load(module)
        given = session.call(f"{loaded.name}.main", *case.feeds.values(), timeout=60)
        results = given if isinstance(given, tuple | list) else [given]
        found = [np.asarray(value.numpy() if hasattr(value, "numpy") else value) for value in results]
    for (name, wanted), array in zip(case.fetches.items(), found, strict=True):
        assert (array.dtype, array.shape) == (wanted.dtype, wanted.shape), name
        if wanted.dtype.kind not in "fc":
            np.testing.assert_array_equal(array, wanted)
        else:
            tolerance = 2e-3 if wanted.dtype == np.float16 else 2e-5
            np.testing.assert_allclose(array, wanted, tolerance, tolerance / 10)


@pytest.mark.parametrize("kind", ["operations", "models", "open"])
def test_results_are_tensorflows(kind: str, recorded: Path, opened: pumice.Device) -> None:
    folders = sorted((recorded / kind).iterdir())
    assert folders
    failures = []
    for folder in folders:
        try:
            check(folder, opened)
        except (AssertionError, pumice.PumiceError) as error:
            failures.append(f"{folder.name}: {error}")
    print(f"{kind}: {len(folders) - len(failures)} of {len(folders)} are TensorFlow's")
    assert not failures, "\n".join(failures)
