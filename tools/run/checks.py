"""``pumice run-checks``: runs the check functions of compiled modules like a test framework."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...base.terminal import printable
from ..errors import usage_error
from ..options import device_option, parameters_option, seconds, validation_option
from ..streams import note, put

if TYPE_CHECKING:
    from ...runtime.modules.check.report import CheckResult


@click.command("run-checks")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@device_option
@click.option(
    "--filter",
    "-k",
    "filters",
    multiple=True,
    metavar="GLOB",
    help="Only functions whose names match, with or without the module's before it; repeatable.",
)
@click.option(
    "--timeout", type=seconds, metavar="SECONDS", help="For each function, and for its module's initializers; 60."
)
@parameters_option()
@click.option("--junit-xml", type=click.Path(path_type=Path), metavar="PATH", help="Write the report there as well.")
@click.option("--verbose", "-v", is_flag=True, help="A line for each function.")
@validation_option
def run_checks(
    files: tuple[Path, ...],
    device: str | None,
    filters: tuple[str, ...],
    timeout: float | None,
    parameters: tuple[str, ...],
    junit_xml: Path | None,
    verbose: bool,
    validation: bool | None,
) -> None:
    """Run every check function of the FILEs: the exports without arguments of compiled programs (.vmfb), or of programs
    that are compiled first (.mlir), which state expectations with the check dialect of IREE or of StableHLO.

    Each function runs in a context of its own. All failed expectations are reported, with the values that differ.
    Exit status: 0 all passed, 1 some failed, 2 wrong usage, or no function to run.

    \b
      pumice run-checks abs.vmfb
      abs.vmfb ..
      ================== 2 passed, 2 expectations in 0.05 s ==================
    """
    from ...runtime.modules.check import checks
    from ...runtime.modules.check.report import Outcome
    from ...runtime.modules.parameters.module import io_parameters_module
    from ..output_files import store
    from ..programs import open_program
    from ..reports import open_asked
    from .module_arguments import load_parameters

    if junit_xml is not None and not junit_xml.absolute().parent.is_dir():
        raise usage_error(f"--junit-xml: no such folder: {junit_xml.parent}")
    scopes = load_parameters(parameters)
    progress = _Progress(verbose)
    with open_asked(device, validation) as opened:
        note(f"running on {printable(opened.name)}")
        report = checks.run_checks(
            *files,
            device=opened.hal,
            filters=filters,
            timeout=checks.DEFAULT_TIMEOUT if timeout is None else timeout,
            modules=[io_parameters_module(scopes)] if scopes else [],
            open_module=lambda path: open_program(path, [device]),
            on_result=progress.add,
        )
    progress.end()
    put(printable(report.format(), keep="\n"))
    if junit_xml is not None:
        text = report.to_junit_xml().encode("utf-8", "backslashreplace")
        store(junit_xml, lambda file: file.write(text), where="--junit-xml")
    if report.count(Outcome.FAILED) or report.count(Outcome.ERROR):
        click.get_current_context().exit(1)
    if not report.count(Outcome.PASSED):
        why = "no function matches --filter" if report.deselected else "there is no exported function without arguments"
        raise usage_error(f"nothing was run: {why}")


class _Progress:
    """The output while functions run: a line for each file with a character for each function, or a line for each
    function.
    """

    def __init__(self, verbose: bool) -> None:
        self._verbose = verbose
        self._path: str | None = None

    def add(self, path: str, result: CheckResult) -> None:
        if self._verbose:
            name = printable(f"{path}::{result.name}")
            put(f"{name} {result.outcome.value.upper()} ({result.duration:.2f} s)")
            return
        if path != self._path:
            self.end()
            self._path = path
            put(printable(path) + " ", end="")
        put(result.outcome.letter, end="")

    def end(self) -> None:
        if self._path is not None:
            put()
            self._path = None
