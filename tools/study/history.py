"""``pumice study history``: the points of results over commits, on the terminal, as a page or as JSON."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ...base.terminal import printable
from ..errors import needs_study_extra, usage
from ..streams import note, put

if TYPE_CHECKING:
    from rich.text import Text

    from ...study.results.history import History, PointHistory
    from ...study.statistics.bootstrap import Interval
    from ...study.statistics.change_points import Change

_BARS: Final = "▁▂▃▄▅▆▇█"
# The number of newest entries that fit a table's line.
_MAX_BARS: Final = 60


@click.command("history", short_help="Show points over commits, with change points.")
@click.argument("folders", metavar="[DIR]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--measure", default="headline", metavar="NAME", help="A segment or total, instead of each headline.")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write a page with plots.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@needs_study_extra()
def history(folders: tuple[Path, ...], measure: str, html: Path | None, as_json: bool) -> None:
    """Show the results in and below each DIR (here, without one) over commits: a line a point, with change points.

    Results of two sides that were measured in turns (--against) are chains of ratios, in which a change of a few
    percent shows at the commit that made it; times of separate runs show large changes, after several commits.
    """
    from ...status import NotFoundError
    from ...study.results.history import read_history

    places = folders or (Path(),)
    for index in places:
        if not index.is_dir():
            raise NotFoundError(f"there is no folder {index}")
    with usage("--measure"):
        read = read_history(places, measure=measure)
    for folder, reason in read.unread:
        note(printable(f"{folder} is left out: {reason}"))
    if not read.points:
        raise NotFoundError(f"there are no results with samples in {', '.join(map(str, places))} or below")
    if as_json:
        from ..tables import print_json

        print_json(_json(read))
    else:
        _print(read)
    if html is not None:
        from ...study.report.history_page import write_history

        put(str(write_history(read, html))) if not as_json else write_history(read, html)


def _print(read: History) -> None:
    from ...base.terminal import new_table
    from ..tables import heading, print_renderables

    for study in dict.fromkeys(compared.study for compared in read.points):
        points = [compared for compared in read.points if compared.study == study]
        count = len({entry.folder for point in points for entry in point.entries})
        heading(f"{study}: {count} results, in the order of {read.order}")
        table = new_table(("point", "device", "by", "latest", "interval", "history", "changes"), right=("latest",))
        for point in points:
            last = point.entries[-1]
            table.add_row(
                *(printable(point.point), printable(point.device), point.by, _level(point, last.level)),
                *(_interval(point, last.level_interval), sparkline(point), str(len(point.changes) or "-")),
            )
        print_renderables([table])
        for point in points:
            for change in point.changes:
                put(printable(f"{point.point}: {change_text(point, change)}"))
            for entry in point.entries:
                if not entry.related:
                    name = entry.revision.name if entry.revision else str(entry.folder)
                    put(printable(f"{point.point}: another baseline begins at {name}, unrelated to the earlier"))


def sparkline(point: PointHistory) -> Text:
    """Returns a bar for each entry, from the smallest level to the largest; entries with changes are coloured."""
    from rich.text import Text

    text = Text("…" if len(point.entries) > _MAX_BARS else "")
    begin = max(0, len(point.entries) - _MAX_BARS)
    logs = [math.log(entry.level) for entry in point.entries[begin:]]
    low, span = min(logs), max(logs) - min(logs)
    changed = {change.start: change.ratio for change in point.changes}
    for index, value in enumerate(logs, begin):
        ratio = changed.get(index)
        style = "" if ratio is None else "bold red" if ratio > 1 else "bold green"
        height = round((value - low) / span * (len(_BARS) - 1)) if span else 0
        text.append(_BARS[height], style)
    return text


def change_text(point: PointHistory, change: Change) -> str:
    """Formats a change: ``+5.2 % [+4.1, +6.3] since 1a2b3c4d5 "The subject"``."""
    entry = point.entries[change.start]
    low, high = change.interval
    ends = f" [{100 * (low - 1):+.1f}, {100 * (high - 1):+.1f}]" if math.isfinite(low) else ""
    since = f'{entry.revision.name} "{entry.revision.subject}"' if entry.revision else str(entry.folder)
    return f"{100 * (change.ratio - 1):+.1f} %{ends} since {since}"


def _level(point: PointHistory, level: float) -> str:
    from ...study.report.charts.units import time_text

    return time_text(level) if point.by == "times" else f"{level:.3f}"


def _interval(point: PointHistory, interval: Interval) -> str:
    low, high = interval
    return f"[{_level(point, low)}, {_level(point, high)}]" if math.isfinite(low) else "-"


# Names of fields that differ in JSON.
_JSON_NAMES: Final = {"median": "median_ns", "median_interval": "median_interval_ns", "start": "entry"}


def _json(read: History) -> dict[str, object]:
    """Returns a history as JSON values: its fields by name, NaN and infinity as null."""
    unread = [{"folder": str(folder), "error": reason} for folder, reason in read.unread]
    return {"order": read.order, "points": _plain(read.points), "unread": unread}


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value):
        fields = {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {_JSON_NAMES.get(name, name): plain for name, plain in fields.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value) if isinstance(value, Path) else value
