"""Every example and every Python block of the README runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example: Path, tmp_path: Path) -> None:
    result = run([str(example)], tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout


def test_mandelbrot_writes_a_picture(tmp_path: Path) -> None:
    result = run([str(ROOT / "examples" / "mandelbrot.py"), "m.pgm"], tmp_path)
    assert result.returncode == 0, result.stderr
    data = (tmp_path / "m.pgm").read_bytes()
    assert data.startswith(b"P5 320 240 255\n")
    assert len(data) == len(b"P5 320 240 255\n") + 320 * 240


def test_readme_blocks(tmp_path: Path) -> None:
    """The Python blocks, one after another as a reader would type them, in a checkout."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) >= 3
    script = tmp_path / "readme.py"
    script.write_text("\n".join(blocks))
    result = run([str(script)], ROOT)
    assert result.returncode == 0, result.stderr
    assert "[ 2.  6. 12. 20.]" in result.stdout


@pytest.mark.peer
def test_the_digits_module_is_what_its_source_gives(tmp_path: Path) -> None:
    compiler = Path(sys.executable).parent / "iree-compile"
    if not compiler.exists():
        pytest.skip("needs iree-compile: pip install -e '.[peer]'")
    folder = ROOT / "examples" / "digits"
    flags = [
        "--iree-hal-target-device=vulkan",
        "--iree-hal-executable-debug-level=0",
        "--iree-vm-bytecode-module-strip-source-map=true",
    ]
    with (folder / "digits.mlir").open("rb") as source:
        subprocess.run([compiler, *flags, "-", "-o", tmp_path / "digits.vmfb"], stdin=source, check=True, timeout=120)
    assert (tmp_path / "digits.vmfb").read_bytes() == (folder / "digits.vmfb").read_bytes()
