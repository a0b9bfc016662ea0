"""``pumice check``: tries everything that pumice uses of a device, and writes a report."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ...status import UnavailableError
from ..errors import usage_error
from ..streams import note, put
from .case import AREAS

if TYPE_CHECKING:
    from .report import Report

CATALOGUE: Final = f"{__package__}.catalogue"
_INTERRUPTED: Final = 130


@click.command()
@click.option("--device", "uri", metavar="URI", help="The device; else PUMICE_DEVICE, or the best.")
@click.option(
    "--minutes",
    type=click.FloatRange(0.05, 600),
    default=8.0,
    show_default=True,
    help="Time for all; cases that it does not suffice for are listed as not run.",
)
@click.option(
    "--case-time",
    type=click.FloatRange(0.1, 3600),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Time for a case; one that takes longer hangs.",
)
@click.option("--only", multiple=True, metavar="AREA[/TEXT]", help="Only cases whose names begin so; several add up.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("pumice-check"),
    show_default=True,
    metavar="NAME",
    help="Write NAME.html and NAME.json.",
)
@click.option("--list", "is_list", is_flag=True, help="List the cases and run none.")
@click.pass_context
def check(
    ctx: click.Context,
    uri: str | None,
    minutes: float,
    case_time: float,
    only: tuple[str, ...],
    output: Path,
    is_list: bool,
) -> None:
    """Find out whether pumice works on a device: results, waits, clocks, memory and speed, in ten minutes.

    Each case runs in a process apart: one that crashes or hangs is a finding. The verdict by area goes to stdout, and
    all that was found into an HTML file and a JSON file to attach to an issue.

    Exit status: 0 all good, 1 a case failed, crashed or hung, 3 nothing was wrong but an area was not looked at, as the
    time was up.
    """
    from ..output_files import store_all
    from ..tables import json_text
    from .page import render
    from .progress import CheckProgress
    from .report import Assessment, Report
    from .trial import try_device

    names = [case.name for case in importlib.import_module(CATALOGUE).cases()]
    if only:
        names = [name for name in names if name.startswith(only)]
        if not names:
            raise usage_error(f"--only: no case begins with {' or '.join(only)}; the areas are {', '.join(AREAS)}")
    if is_list:
        for name in sorted(names, key=lambda name: [*AREAS].index(name.partition("/")[0])):
            put(name)
        return
    try:
        with CheckProgress(len(names)) as progress:
            trial = try_device(
                uri,
                names,
                CATALOGUE,
                seconds=60 * minutes,
                case_seconds=case_time,
                began=progress.began,
                ended=progress.ended,
            )
    except UnavailableError as error:
        raise UnavailableError(
            f"{error.message}\n`pumice ci doctor` says what is wrong with this machine's Vulkan"
        ) from error
    report = Report.of(trial)
    paths = [output.with_name(f"{output.name}.{suffix}") for suffix in ("html", "json")]
    texts = [render(report), json_text(report.to_json()) + "\n"]
    store_all({path: text.encode() for path, text in zip(paths, texts, strict=True)}, where="--output")
    _show(report)
    note(f"written: {', '.join(map(str, paths))}")
    if trial.is_interrupted:
        ctx.exit(_INTERRUPTED)
    ctx.exit({Assessment.GOOD: 0, Assessment.BAD: 1, Assessment.UNKNOWN: 3}[report.assessment])


def _show(report: Report) -> None:
    from ..tables import heading, print_table

    heading(f"{report.trial.device['name']}: {report.assessment.value}")
    rows = [
        (
            area.title,
            area.assessment.value,
            ", ".join(f"{count} {ending.value}" for ending, count in area.counts().items()),
        )
        for area in report.areas
    ]
    print_table(("area", "verdict", "cases"), rows)
