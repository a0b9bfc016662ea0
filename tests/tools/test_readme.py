"""The shell commands that README.md shows for the command line run as they are written."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.commands import run_command
from support.import_graph import source_files

from pumice.spirv.sources.glsl import find_compiler
from pumice.status import UnavailableError
from pumice.switches import SETTINGS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FOLDER = ".venv/bin/"


def commands(heading: str) -> list[str]:
    """The lines of the shell block under a heading."""
    section = README.partition(f"\n### {heading}\n")[2]
    block = re.match(r"\s*```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert block is not None
    return block[1].splitlines()


def run_line(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        line,
        shell=True,
        cwd=folder,
        env={k: v for k, v in os.environ.items() if k != "PUMICE_DEVICE"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
@pytest.mark.skipif(sys.platform == "win32", reason="the page is written for a POSIX shell")
def test_the_commands_about_timing(tmp_path: Path) -> None:
    try:
        find_compiler()
    except UnavailableError as error:
        pytest.skip(error.message)
    for folder in ("shaders", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    lines = [line.partition("  #")[0].strip() for line in commands("Timing")]
    assert lines[0] == f"{FOLDER}pip install -e '.[study]'"  # which the environment of the tests has
    for line in lines[1:]:
        assert line.startswith(f"{FOLDER}pumice ")
        # What measures gets less time for a point than the page gives it: what comes out is the same, less certain.
        shorter = " --set time_limit=0.1" if re.search(r" bench | study run ", line) else ""
        status, _, stderr = run_command(line.removeprefix(FOLDER) + shorter, tmp_path, os.environ)
        # What is too noisy, slower or not depends on the machine; all else does not.
        noisy = (0, 3, 4) if " compare " in line else (0, 3) if " run batch" in line or " bench " in line else (0,)
        assert status in noisy, f"{line}: {status} {stderr}"
        assert "internal error" not in stderr
    assert (tmp_path / "after" / "report.html").stat().st_size > 1e6
    assert (tmp_path / "after.csv").read_text().count("\n") > 10


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
@pytest.mark.skipif(sys.platform == "win32", reason="the page is written for a POSIX shell")
def test_the_commands(tmp_path: Path) -> None:
    try:
        find_compiler()
    except UnavailableError as error:
        pytest.skip(error.message)
    for folder in ("shaders", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    # The environment that runs the tests stands for the one that `make demo` makes.
    installed = Path(sys.executable).parent
    printed = []
    for line in commands("Command line"):
        command = line.partition("#")[0].strip()
        words = shlex.split(command)
        assert command.startswith(FOLDER) and words[0] in (f"{FOLDER}pumice", f"{FOLDER}python")
        program = words[0].removeprefix(FOLDER)
        script = shlex.quote(str(installed / program if program == "pumice" else sys.executable))
        done = run_line(script + command.removeprefix(words[0]), tmp_path)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        if " run " in command:
            printed.append(done.stdout)
    # What the page says of the first of them, and the files of the second.
    promise = re.search(r"prints `(.*?)` for the first `run`", README)
    assert promise is not None and printed[0] == promise[1] + "\n"
    assert printed[1] == ""
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), np.arange(1024, dtype=np.float32) ** 2)


def test_every_variable_is_in_the_settings_table() -> None:
    """Every environment variable that the package reads, by its name in the code."""
    table = README.partition("\n## Settings\n")[2].partition("\n## ")[0]
    listed = set(re.findall(r"PUMICE_[A-Z_]+", "".join(re.findall(r"^\|([^|]*)\|", table, re.MULTILINE))))
    read = set()
    for path in source_files(ROOT):
        if path != ROOT / "switches.py":
            read |= set(re.findall(r'"(PUMICE_[A-Z_]+)"', path.read_text(encoding="utf-8")))
    assert listed == read == SETTINGS
