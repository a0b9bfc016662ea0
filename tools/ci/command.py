"""``pumice ci init`` and ``pumice ci doctor``."""

from __future__ import annotations

from pathlib import Path

import click

from ..errors import usage_error
from ..streams import note, put


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
    from .workflows import host_of, install_command, workflow

    files, hints = {}, []
    for host in hosts or (host_of(folder),):
        path, text, hint = workflow(
            host, folder, python=python, install=install or install_command(folder), tests=tests
        )
        if path.exists() and not force:
            raise usage_error(f"{path} is there already; --force overwrites it")
        files[path] = text.encode()
        hints.append(hint)
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
    store_all(files, where="ci init")
    for path in files:
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
