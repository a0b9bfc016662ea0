"""Every example runs."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.peer import compile_module

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

pytestmark = pytest.mark.vulkan


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_there_are_examples() -> None:
    assert EXAMPLES


def lacks_jax(text: str) -> bool:
    """Whether a program needs JAX, which is not installed."""
    return "import jax\n" in text and importlib.util.find_spec("jax") is None


@pytest.mark.sample(3)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example: Path, tmp_path: Path) -> None:
    if lacks_jax(example.read_text(encoding="utf-8")):
        pytest.skip("needs jax: pip install -e '.[dev]'")
    result = run([str(example)], tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout


def test_mandelbrot_writes_a_picture(tmp_path: Path) -> None:
    result = run([str(ROOT / "examples" / "mandelbrot.py"), "m.pgm"], tmp_path)
    assert result.returncode == 0, result.stderr
    data = (tmp_path / "m.pgm").read_bytes()
    assert data.startswith(b"P5 320 240 255\n")
    assert len(data) == len(b"P5 320 240 255\n") + 320 * 240


COMPILED = {
    "digits/digits": (),
    "chain/smooth": ("--iree-execution-model=async-external",),
    "chain/energy": ("--iree-execution-model=async-external",),
    "pool/total": (),
}


def test_every_module_that_ships_is_compiled_again() -> None:
    folder = ROOT / "examples"
    assert {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.vmfb")} == set(COMPILED)


@pytest.mark.peer
@pytest.mark.parametrize("name", COMPILED)
def test_a_module_is_what_its_source_gives(name: str) -> None:
    flags = [
        "--iree-hal-executable-debug-level=0",
        "--iree-vm-bytecode-module-strip-source-map=true",
        *COMPILED[name],
    ]
    built = compile_module((ROOT / "examples" / f"{name}.mlir").read_text(encoding="utf-8"), *flags)
    assert built.read_bytes() == (ROOT / "examples" / f"{name}.vmfb").read_bytes()
