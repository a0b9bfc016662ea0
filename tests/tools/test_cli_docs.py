"""Every command in docs/cli.md runs and prints what the page says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from support.commands import run_command
from support.peer import compile_module

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "cli.md"


def commands(page: Path = PAGE) -> list[tuple[str, str]]:
    """Each command of a page with the output that is shown, ``""`` for none."""
    text = page.read_text(encoding="utf-8")
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def compile_programs(folder: Path) -> None:
    """Makes the modules that the page shows the sources of, by the commands that it shows."""
    text = PAGE.read_text(encoding="utf-8")
    sources = re.findall(r"^```mlir\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    compilations = re.findall(r"^```sh\n(iree-compile .*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(sources) == 2 and len(compilations) == 1
    for source in sources:
        name = re.findall(r"func\.func @(\w+)", source)[0]
        (folder / f"{name}.mlir").write_text(source, encoding="utf-8")
    for source, compilation in zip(sources, compilations, strict=False):
        words = shlex.split(compilation)
        flags = [word for word in words if word.startswith("--")]
        (name,) = (word for word in words if word.endswith(".mlir"))
        assert ["iree-compile", *flags, name, "-o", words[-1]] == words
        shutil.copy(compile_module(source, device=flags, name=name), folder / words[-1])


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
@pytest.mark.skipif(sys.platform == "win32", reason="the page is written for a POSIX shell")
@pytest.mark.parametrize("kind", ["kernels", pytest.param("programs", marks=pytest.mark.peer)])
def test_the_page(kind: str, tmp_path: Path) -> None:
    page = [one for one in commands() if (".vmfb" in one[0] or "doubles" in one[0]) == (kind == "programs")]
    if kind == "programs":
        compile_programs(tmp_path)
    for name in ("examples", "shaders"):
        (tmp_path / name).symlink_to(ROOT / name)
    folder = tmp_path / "bin"
    folder.mkdir()
    program = "from pumice.tools.cli import main; main(prog_name='pumice')"
    for name, arguments in (("pumice", f'-c "{program}"'), ("python", "")):
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    assert len(page) >= 10
    for command, output in page:
        status, stdout, stderr = run_command(command, tmp_path, environment)
        # Whether it is too noisy to tell depends on the machine.
        assert status in ((0, 3) if " bench " in command or " study run " in command else (0,)), f"{command}: {stderr}"
        assert "Traceback" not in stderr
        # A command without output on the page may print what differs from machine to machine.
        if output:
            assert stdout == output, command
        elif "run shaders" in command:
            assert stdout == "", command


def test_the_page_of_the_reference_device(tmp_path: Path) -> None:
    """Without any device of Vulkan's."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shown = commands(ROOT / "docs" / "reference-device.md")
    assert len(shown) == 3
    for command, output in shown:
        status, stdout, stderr = run_command(command, tmp_path, {})
        assert (status, stdout) == (0, output), (command, stderr)
