"""The workflows that ``pumice ci init`` writes, from the templates beside this file."""

from __future__ import annotations

import re
import shlex
import string
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Final

from ...base.install_hints import Component, packages
from ..errors import usage_error

_COMPONENTS: Final[tuple[Component, ...]] = ("loader", "driver", "validation", "glslang", "spirv-tools")
_VERSION: Final = re.compile(r"3\.[0-9]{1,2}")


def host_of(folder: Path) -> str:
    """Returns ``"gitlab"`` if the git remote, or a file, says so; else ``"github"``."""
    if (folder / ".gitlab-ci.yml").exists():
        return "gitlab"
    try:
        command = ["git", "-C", str(folder), "remote", "get-url", "origin"]
        remote = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:  # no git
        remote = ""
    return "gitlab" if "gitlab" in remote else "github"


def install_command(folder: Path) -> str:
    """Returns the pip command for a project and its test dependencies, judged by its files."""
    words = ["python -m pip install"]
    words += [f"-r {name}" for name in ("requirements.txt", "requirements-test.txt") if (folder / name).is_file()]
    if (folder / "pyproject.toml").is_file() or (folder / "setup.py").is_file():
        words.append(".")
    return " ".join([*words, "'pumice[pytest]'"])


def workflow(host: str, folder: Path, *, python: str, install: str, tests: str) -> tuple[Path, str, str]:
    """Returns a workflow's path and text, and the next step for the user.

    Raises:
        UsageError: not a version of Python.
    """
    if not _VERSION.fullmatch(python):
        raise usage_error(f"--python: expected a version such as 3.12, got {python}")
    template = string.Template((files(__package__) / "templates" / f"{host}.yml").read_text(encoding="utf-8"))
    text = template.substitute(
        packages=" ".join(package for component in _COMPONENTS for package in packages(component, "debian")),
        python=python,
        install=install,
        tests=f" {shlex.quote(tests)}" if tests else "",
    )
    if host == "github":
        return folder / ".github" / "workflows" / "gpu-tests.yml", text, "commit it, and the tests run with every push"
    path = folder / ".gitlab-ci.yml"
    if path.exists():  # with jobs of its own
        path = folder / ".gitlab" / "gpu-tests.yml"
        hint = "add to .gitlab-ci.yml:\ninclude:\n  - local: .gitlab/gpu-tests.yml"
        return path, text, hint
    return path, text, "commit it, and the tests run with every push"
