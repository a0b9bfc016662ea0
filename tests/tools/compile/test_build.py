"""``pumice build``: modules and their reflection; wrong usage writes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pumice import shaders
from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.sources.glsl import find_compiler
from pumice.status import UnavailableError
from pumice.tools.cli import main

KERNEL = """#version 450
#include "width.glsl"
layout(local_size_x = WIDTH) in;
layout(binding = 0) buffer B { float x[]; };
void main() { float value = VALUE; x[gl_GlobalInvocationID.x] = value; }
"""


def build(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["build", *map(str, arguments)], prog_name="pumice")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    try:
        find_compiler()
    except UnavailableError as error:
        pytest.skip(error.message)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "width.glsl").write_text("#define WIDTH 16\n")
    (tmp_path / "k.comp").write_text(KERNEL)
    return tmp_path


@pytest.mark.slow
def test_module_and_reflection(folder: Path) -> None:
    done = build("k.comp", "-o", "out.spv", "--reflect", "out.json", "-I", "inc", "-D", "VALUE=2.0")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    code = (folder / "out.spv").read_bytes()
    spirv_tools.validate(code)
    assert json.loads((folder / "out.json").read_text()) == json.loads(json.dumps(reflect(code).to_json()))
    shown = CliRunner().invoke(main, ["info", "out.spv", "--json"])
    assert shown.stdout.rstrip("\n") == (folder / "out.json").read_text()


@pytest.mark.slow
def test_names_and_options(folder: Path) -> None:
    (folder / "k.comp").rename(folder / "k.txt")
    arguments = ("k.txt", "--language", "glsl", "-Iinc", "-DVALUE=1", "--target-env", "vulkan1.1")
    assert build(*arguments).exit_code == 0
    plain = (folder / "k.spv").read_bytes()
    assert plain[4:8] == (0x10300).to_bytes(4, "little")
    assert build(*arguments, "-g", "-o", "debug.spv").exit_code == 0
    assert b"k.txt" in (folder / "debug.spv").read_bytes() and b"k.txt" not in plain
    assert build(*arguments, "-O", "-o", "small.spv").exit_code == 0
    assert len((folder / "small.spv").read_bytes()) < len(plain)


def test_several_files(folder: Path) -> None:
    (folder / "out").mkdir()
    done = build(shaders.source_path("mul"), shaders.source_path("examples/matmul"), "-o", "out", "--reflect", "out")
    assert (done.exit_code, done.stderr) == (0, "")
    assert sorted(path.name for path in (folder / "out").iterdir()) == [
        "matmul.json",
        "matmul.spv",
        "mul.json",
        "mul.spv",
    ]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["k.comp", "-Iinc"], 1, "k.comp:5: 'VALUE' : undeclared identifier"),
        (["k.comp", "-DVALUE=1"], 1, "width.glsl"),
        (["none.comp"], 1, "no such file: none.comp"),
        (["k.comp", "-I", "none"], 2, "none"),
        (["k.comp", "-D", "1X"], 2, "--define: expected NAME or NAME=VALUE, got '1X'"),
        (["k.comp", "-D", "X", "-D", "X=1"], 2, "X is given twice"),
        (["k.comp", "--language", "cuda"], 2, "cuda"),
        (["k.comp", "--target-env", "vulkan9"], 2, "vulkan9"),
        (["k.comp", "k.comp", "-Iinc", "-DVALUE=1"], 2, "k.spv is written twice"),
        (["k.comp", "-Iinc", "-DVALUE=1", "-o", "k.comp"], 2, "k.comp is written twice, or is a source"),
        (["k.comp", "-Iinc", "-DVALUE=1", "-o", "x", "--reflect", "x"], 2, "written twice"),
        (["k.comp", "inc/width.glsl", "-o", "x.spv"], 2, "expected a folder for 2 files, got x.spv"),
        (["k.comp", "-Iinc", "-DVALUE=1", "-o", "none/x.spv"], 1, "there is no folder none"),
        (["k.spv"], 2, "k.spv is a SPIR-V module; expected a source"),
        (["k.what"], 1, "expected SPIR-V (.spv), GLSL (.comp, .glsl), HLSL (.hlsl), Slang (.slang), WGSL (.wgsl)"),
        (["k.wgsl", "-DA"], 2, "--define: WGSL has no preprocessor"),
        ([], 2, "FILE"),
    ],
)
def test_wrong_usage(folder: Path, arguments: list[str], status: int, message: str) -> None:
    for name in ("k.spv", "k.what", "k.wgsl"):
        if name in arguments:
            (folder / name).write_text("nothing of these\n")
    before = sorted(folder.rglob("*"))
    done = build(*arguments)
    assert (done.exit_code, done.stdout) == (status, "")
    assert message in done.stderr, done.stderr
    assert sorted(path for path in folder.rglob("*") if "cache" not in path.parts) == before
