"""The programs of docs/calling-conventions.md run and print what the page says."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from pumice.compiler.calling_convention import named_convention
from pumice.compiler.type_converter import parse_type
from pumice.tools.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "calling-conventions.md"
TEXT = PAGE.read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_the_commands(tmp_path: Path) -> None:
    (tmp_path / "step.mlir").write_text(blocks("mlir")[0])
    parts = [part for block in blocks("console") for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    assert len(parts) == 4
    for part in parts:
        command, _, output = part.partition("\n")
        with contextlib.chdir(tmp_path):
            result = CliRunner().invoke(main, command.split()[1:], prog_name="pumice")
        assert result.exit_code == 0, result.stderr
        assert result.stdout == output or not output
    # The last one shows the types before and after.
    row = next(line for line in result.stdout.splitlines() if "outs,values" in line)
    assert "(tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)" in row
    assert "(!rt.kernel_context, memref<4xf32>, memref<4xf32>, f32, memref<4xf32>, memref<f32>) -> ()" in row


def test_the_python_blocks(tmp_path: Path) -> None:
    (tmp_path / "step.mlir").write_text(blocks("mlir")[0])
    script = "\n".join(blocks("python"))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=tmp_path,
        env={"PUMICE_DEVICE": "reference", "PUMICE_CACHE": "0", "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"# (.*)", script)
    printed = [line for line in done.stdout.splitlines() if line.startswith(("[", "(", "INV"))]
    assert len(shown) == len(printed) == 4
    for one, other in zip(shown, printed, strict=True):
        assert other.startswith(one.removesuffix(" …"))


def test_the_table_of_types() -> None:
    (before,) = re.findall(r"\| name \| `([^`]*)` becomes", TEXT)
    rows = re.findall(r"^\| `([a-z,]+)` \| `([^`]*)` +\|$", TEXT, re.MULTILINE)
    assert len(rows) == 5
    for names, after in rows:
        assert str(named_convention(names)(parse_type(before))) == after  # type: ignore[arg-type]
