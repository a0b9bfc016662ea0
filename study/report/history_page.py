"""The page of a history: a plot for each point over commits, with change points."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ...base.files import write_whole
from ..results.history import History, HistoryEntry, PointHistory
from ..statistics.change_points import Change
from ..statistics.comparison import Verdict
from .charts.chart import MAX_ROWS, Chart, error_bars, evenly, label, new_figure
from .charts.palette import INK, SERIES, VERDICT
from .charts.point_rows import Column
from .charts.units import number_text, time_text, time_unit
from .template import Section, Table, render_page

_TICKS: Final = 10


def write_history(history: History, path: str | os.PathLike[str]) -> Path:
    """Writes the page of a history to one HTML file, atomically; returns its path.

    Raises:
        NotFoundError, PermissionDeniedError, ResourceExhaustedError: there is no such folder, it is not writable, or
            the disk is full.
    """
    text = render_history(history)
    write_whole(path, lambda file: file.write(text.encode("utf-8", errors="replace")))
    return Path(path)


def render_history(history: History) -> str:
    sections = []
    for index, study in enumerate(dict.fromkeys(point.study for point in history.points)):
        points = [point for point in history.points if point.study == study]
        shown, cut = evenly(points, MAX_ROWS, "points")
        changes = [(point, change) for point in points for change in point.changes]
        tables = [_change_table(changes)] if changes else []
        sections.append(Section(f"study-{index}", study, [_chart(point) for point in shown], tables, cut.strip()))
    count = sum(len(point.changes) for point in history.points)
    folders = {entry.folder for point in history.points for entry in point.entries}
    return render_page(
        "history.html.j2",
        title="History of " + ", ".join(section.title for section in sections),
        verdict=f"{len(folders)} results in the order of {history.order}; change points: {count or 'none'}",
        warnings=[f"{folder} is left out: {reason}" for folder, reason in history.unread],
        sections=sections,
        source=f"{len(folders)} results",
    )


def _name(entry: HistoryEntry) -> str:
    return entry.revision.name if entry.revision else entry.folder.name


def _chart(history: PointHistory) -> Chart:
    from plotly import graph_objects as go

    unit = time_unit([entry.level for entry in history.entries])
    scale = 1.0 if history.by == "ratios" else unit.ns
    values = [entry.level / scale for entry in history.entries]
    ends = [
        (low / scale, high / scale) if math.isfinite(low) else (value, value)
        for value, (low, high) in zip(values, (entry.level_interval for entry in history.entries), strict=True)
    ]
    places = list(range(len(values)))
    marked = {change.start: change for change in history.changes}
    colours = [_colour(marked[index]) if index in marked else SERIES[0] for index in places]
    figure = go.Figure(
        go.Scatter(
            x=places,
            y=values,
            mode="lines+markers",
            line={"color": SERIES[0], "width": 1.4},
            marker={"color": colours, "size": [12 if index in marked else 7 for index in places]},
            error_y=error_bars(values, ends, SERIES[0]),
            text=[_hover(history, entry, marked.get(index)) for index, entry in enumerate(history.entries)],
            hovertemplate="%{text}<extra></extra>",
        )
    )
    new_figure(figure, 300, legend=False)
    for index, change in marked.items():
        figure.add_vline(x=index - 0.5, line={"color": _colour(change), "width": 1.4, "dash": "dash"})
        figure.add_annotation(
            x=index - 0.5,
            y=1,
            yref="paper",
            yanchor="bottom",
            text=f"{100 * (change.ratio - 1):+.1f} %",
            showarrow=False,
            font={"size": 11.5, "color": INK},
        )
    ticks, _ = evenly(places, _TICKS, "")
    names = [label(_name(history.entries[index])) for index in ticks]
    figure.update_xaxes(tickmode="array", tickvals=ticks, ticktext=names, range=[-0.6, len(places) - 0.4])
    figure.update_yaxes(
        title_text="relative to the first" if history.by == "ratios" else f"{history.measure}, {unit.name}"
    )
    how = (
        "Each version relative to the first one: the product of ratios that were measured in turns"
        if history.by == "ratios"
        else "Medians of separate runs, whose intervals do not tell what differs from run to run"
    )
    return Chart(f"{history.point} on {history.device}", f"{how}. A dashed line is a change point.", figure)


def _colour(change: Change) -> str:
    return VERDICT[Verdict.SLOWER if change.ratio > 1 else Verdict.FASTER]


def _hover(history: PointHistory, entry: HistoryEntry, change: Change | None) -> str:
    revision = entry.revision
    lines = [f"<b>{label(_name(entry))}</b> {label(revision.subject) if revision else ''}"]
    lines.append(f"{label(revision.time)}" if revision else label(entry.started))
    if history.by == "ratios":
        lines.append(f"{_ratio_text(entry)} of the other side; {number_text(entry.level)} of the first version")
    lines.append(f"median {time_text(entry.median)}, {label(entry.status)}")
    if change is not None:
        lines.append(f"changed by {100 * (change.ratio - 1):+.1f} %")
    if not entry.related:
        lines.append("another baseline, of unknown relation to the earlier")
    return "<br>".join(lines)


def _ratio_text(entry: HistoryEntry) -> str:
    low, high = entry.ratio_interval
    return number_text(entry.ratio) + (f" [{number_text(low)}, {number_text(high)}]" if math.isfinite(low) else "")


def _change_table(changes: Sequence[tuple[PointHistory, Change]]) -> Table:
    columns = (
        *(Column("point", numeric=False), Column("change"), Column("interval"), Column("since", numeric=False)),
        *(Column("subject", numeric=False, wraps=True), Column("by", numeric=False)),
    )
    rows = []
    for history, change in changes:
        entry = history.entries[change.start]
        low, high = change.interval
        ends = f"[{100 * (low - 1):+.1f}, {100 * (high - 1):+.1f}]" if math.isfinite(low) else "—"
        subject = entry.revision.subject if entry.revision else ""
        rows.append((history.point, f"{100 * (change.ratio - 1):+.1f} %", ends, _name(entry), subject, history.by))
    return Table("Change points: how much slower (+) or faster (-) from which commit on.", columns, rows)
