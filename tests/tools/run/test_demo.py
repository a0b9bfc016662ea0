"""``pumice demo`` and what ``pumice`` alone prints: every command that they show can be typed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.spirv.sources.find import find_compiler
from pumice.spirv.sources.language import Language
from pumice.status import UnavailableError
from pumice.tools.cli import main

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = "from pumice.tools.cli import main; main(prog_name='pumice')"
vulkan = pytest.mark.vulkan


@vulkan
@pytest.mark.usefixtures("driver")
def test_the_demo_runs_a_kernel_and_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["demo"])
    assert result.exit_code == 0, result.stderr
    cd, devices, run, classify, cat, python = re.findall(r"^\$ (.*)$", result.stdout, re.MULTILINE)
    assert shlex.split(cd) == ["cd", str(ROOT)]
    assert devices == "pumice devices" and run.startswith("pumice run shaders/mul.")
    assert classify.startswith("pumice run examples/digits/digits.vmfb ")
    assert "\nbinding[2]: 4xf32=2 6 12 20\n" in result.stdout and "dispatch:" in result.stderr
    assert "[SUCCESS]" in result.stdout
    example = ROOT / "examples" / "classify_digits.py"
    assert [cat, python] == [f"{word} {example.relative_to(ROOT).as_posix()}" for word in ("cat", "python")]
    assert example.read_text(encoding="utf-8") in result.stdout
    assert "three: a 3, with probability" in result.stdout and "seven: a 7, with probability" in result.stdout
    assert Path.cwd() == tmp_path
    # In that folder there is nowhere to go.
    monkeypatch.chdir(ROOT)
    assert CliRunner().invoke(main, ["demo"]).stdout.startswith("$ pumice devices\n")


@vulkan
@pytest.mark.usefixtures("driver")
def test_without_a_compiler_of_glsl_the_built_kernel_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUMICE_GLSLC", "/nonexistent")
    result = CliRunner().invoke(main, ["demo"])
    assert result.exit_code == 0, result.stderr
    assert "\n$ pumice run shaders/mul.spv " in result.stdout and "mul.comp" not in result.stdout
    assert "mul.spv, compiled from mul.comp, runs in its place: PUMICE_GLSLC" in result.stderr


@pytest.mark.slow
def test_without_vulkan_the_demo_says_what_to_install() -> None:
    command = [sys.executable, "-c", PROGRAM, "demo"]
    environment = {**os.environ, "PUMICE_VULKAN_LIBRARY": "/nonexistent"}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "$ pumice devices\n")
    assert done.stderr.startswith("error: no Vulkan loader") and "Install" in done.stderr


@vulkan
@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("uri", ["vulkan://77", "reference", "walk"])
def test_the_demo_on_a_device_that_cannot_run_it_is_an_error(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUMICE_DEVICE", uri)
    result = CliRunner().invoke(main, ["demo"])
    assert result.exit_code in (1, 2)
    assert uri in result.stderr and "internal error" not in result.stderr
    assert "three" not in result.stdout.partition("\n$ pumice run")[2].partition("\n")[2]


@vulkan
@pytest.mark.slow
@pytest.mark.usefixtures("driver")
def test_the_first_steps_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("PIL", reason="pictures need Pillow (the `view` extra has it)")
    try:
        find_compiler(Language.GLSL)
    except UnavailableError as error:
        pytest.skip(error.message)
    result = CliRunner().invoke(main, [])
    cd, *lines = [line.strip() for line in result.stderr.splitlines() if line.startswith("  ")]
    assert shlex.split(cd) == ["cd", str(ROOT)]
    monkeypatch.chdir(ROOT)
    names = [line.split()[1] for line in lines]
    assert names == ["run", "run", "bench", "view"]
    # Less time, and no window.
    picture = ["--offscreen", "--frames", "1", "--size", "32x18", "--gif", str(tmp_path / "waves.gif")]
    less = {"bench": ["--set", "time_limit=0.1"], "view": picture}
    for name, line in zip(names, lines, strict=True):
        done = CliRunner().invoke(main, [*shlex.split(line)[1:], *less.get(name, [])])
        assert done.exit_code in ((0, 3) if name == "bench" else (0,)), (line, done.stderr)
