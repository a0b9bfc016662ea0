"""``pumice ci init`` and ``pumice ci doctor``."""

from __future__ import annotations

import re
import shlex
import string
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Final

import click

from ...base.install_hints import Component, packages
from ..errors import usage_error
from ..streams import note, put

_COMPONENTS: Final[tuple[Component, ...]] = ("loader", "driver", "validation", "glslang", "spirv-tools")
_VERSION: Final = re.compile(r"3\.[0-9]{1,2}")


@click.group()
def ci() -> None:
    """Run tests on Vulkan in CI, and find out what is wrong with a machine's Vulkan."""


@ci.command()
@click.option(
    "--for",
    "hosts",
    type=click.Choice(["github", "gitlab"]),
    multiple=True,
    help="For GitHub Actions or GitLab; both may be given. Without it, as the folder's git remote says.",
)
@click.option("--python", default="3.12", show_default=True, metavar="X.Y", help="The version of Python.")
@click.option("--install", metavar="COMMAND", help="What installs the project; else pip with what the folder has.")
@click.option("--tests", default="", metavar="PATH", help="Which tests; all.")
@click.option("--force", is_flag=True, help="Overwrite files that are there.")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False), default=Path())
def init(folder: Path, hosts: tuple[str, ...], python: str, install: str | None, tests: str, force: bool) -> None:
    """Write a workflow that runs the tests of the project in FOLDER on Mesa's software driver, with validation.

    It installs lavapipe and keeps its packages, so that Mesa does not change under the tests, and uploads failures with
    what reproduces them, and a timing report.
    """
    from ..output_files import store_all

    written, hints = {}, []
    for host in hosts or (_host_of(folder),):
        path, text, hint = _workflow(
            host, folder, python=python, install=install or _install_command(folder), tests=tests
        )
        if path.exists() and not force:
            raise usage_error(f"{path} is there already; --force overwrites it")
        written[path] = text.encode()
        hints.append(hint)
    for path in written:
        path.parent.mkdir(parents=True, exist_ok=True)
    store_all(written, where="ci init")
    for path in written:
        put(str(path))
    for hint in hints:
        note(hint)


@ci.command()
@click.option("--device", metavar="URI", help="The device that tests are to run on; else PUMICE_DEVICE, or the best.")
@click.option("--validation", is_flag=True, help="The validation layers have to be there.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def doctor(ctx: click.Context, device: str | None, validation: bool, as_json: bool) -> None:
    """Say what is wrong with this machine's Vulkan, and how to mend it: loader, drivers, layers, tools, a kernel's run.

    Exit status 1 if something has to be mended.
    """
    from ..tables import print_json
    from .doctor import State, examine

    findings = []
    for finding in examine(device, validation=validation):
        findings.append(finding)
        if not as_json:
            put(finding.text())
    if as_json:
        print_json([finding.to_json() for finding in findings])
    broken = sum(finding.state is State.BROKEN for finding in findings)
    if not as_json:
        put(f"{broken} to be mended" if broken else "nothing has to be mended")
    if broken:
        ctx.exit(1)


def _host_of(folder: Path) -> str:
    """Returns ``"gitlab"`` if the git remote or a file indicates it; else ``"github"``."""
    if (folder / ".gitlab-ci.yml").exists():
        return "gitlab"
    try:
        command = ["git", "-C", str(folder), "remote", "get-url", "origin"]
        remote = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:  # no git
        remote = ""
    return "gitlab" if "gitlab" in remote else "github"


def _install_command(folder: Path) -> str:
    """Returns the pip command for a project and its test dependencies, based on its files."""
    words = ["python -m pip install"]
    words += [f"-r {name}" for name in ("requirements.txt", "requirements-test.txt") if (folder / name).is_file()]
    if (folder / "pyproject.toml").is_file() or (folder / "setup.py").is_file():
        words.append(".")
    return " ".join([*words, "'pumice[pytest]'"])


def _workflow(host: str, folder: Path, *, python: str, install: str, tests: str) -> tuple[Path, str, str]:
    """Returns a workflow's path and text, and the next step for the user.

    Raises:
        UsageError: the text is no version of Python.
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
    if path.exists():  # with its own jobs
        path = folder / ".gitlab" / "gpu-tests.yml"
        hint = "add to .gitlab-ci.yml:\ninclude:\n  - local: .gitlab/gpu-tests.yml"
        return path, text, hint
    return path, text, "commit it, and the tests run with every push"
