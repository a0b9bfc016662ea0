"""Every command in docs/cli.md runs and prints what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "cli.md"


def commands() -> list[tuple[str, str]]:
    """Each command of the page with the output that is shown, ``""`` for none."""
    text = PAGE.read_text(encoding="utf-8")
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
@pytest.mark.skipif(sys.platform == "win32", reason="the page is written for a POSIX shell")
def test_the_page(tmp_path: Path) -> None:
    (tmp_path / "shaders").symlink_to(ROOT / "shaders")
    folder = tmp_path / "bin"
    folder.mkdir()
    program = "from pumice.tools.cli import main; main(prog_name='pumice')"
    for name, arguments in (("pumice", f'-c "{program}"'), ("python", "")):
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    assert len(commands()) > 15
    for command, output in commands():
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        assert "Traceback" not in done.stderr
        # A command without output on the page may print what differs from machine to machine.
        if output:
            assert done.stdout == output, command
        elif "run shaders" in command:
            assert done.stdout == "", command
