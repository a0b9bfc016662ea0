"""Commands as pages show them."""

from __future__ import annotations

import contextlib
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from click.testing import CliRunner

from pumice.tools.cli import main


def run_command(command: str, folder: Path, environment: Mapping[str, str]) -> tuple[int, str, str]:
    """Status and outputs of a command: in this process where it is one of pumice, by a shell where it needs one."""
    words = shlex.split(command)
    if words[0] == "pumice" and not set(";|>") & set(command):
        with contextlib.chdir(folder):
            result = CliRunner().invoke(main, words[1:], prog_name="pumice")
        return result.exit_code, result.stdout, result.stderr
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout, done.stderr
