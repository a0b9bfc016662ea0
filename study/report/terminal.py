"""The report for a terminal: Rich's renderables, which the caller prints in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...base.terminal import facts_grid, new_table, printable, said_once
from ..definition.sample import SEGMENTS
from ..results.analysis import STACK, PointAnalysis, StudyAnalysis
from ..results.best import Best, find_best, sorted_points
from ..results.results import Results
from ..results.storage.records import PointStatus, SampleFlag
from ..statistics.comparison import Verdict
from .charts.chart import point_label
from .charts.comparisons import ComparedPoints, compare_across, compared_sides, ratio_text, side_text
from .charts.palette import SEGMENT_COLOURS
from .charts.point_rows import axes_of, best_text, few_text, point_table
from .charts.series import fitted_lines
from .charts.units import number_text, percent_text, time_text, time_unit
from .overview import clock_qualities, disturbance_text, facts, observation_facts, problems, verdict, warnings

_STATUS: Final[Mapping[str, str]] = {
    PointStatus.DONE: "green",
    PointStatus.NOISY: "yellow",
    PointStatus.FAILED: "red",
    PointStatus.SKIPPED: "dim",
}
_VERDICTS: Final[Mapping[Verdict, str]] = {
    Verdict.SAME: "dim",
    Verdict.FASTER: "green",
    Verdict.SLOWER: "red",
    Verdict.UNCLEAR: "yellow",
}
# Shades distinguish segments without colour.
_SHADES: Final[Mapping[str, str]] = {
    "create": "░",
    "update": "▒",
    "record": "▓",
    "submit": "▒",
    "call": "█",
    "queue": "░",
    "execute": "█",
    "wake": "▓",
    "device": "█",
    "read": "░",
}
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
_FEW: Final = 3
_MANY: Final = 12
_MAX_ROWS: Final = 200
# The columns that fit a terminal, by the first word of their heading; the page has all.
_COLUMNS: Final = (
    *("status", "device", "median", "interval", "per", "baseline", "rel.", "IQR", "p99", "n", "outliers", "first"),
)
_FIGURES: Final = ("GB/s", "GFLOP/s")


def terminal_report(
    results: Results,
    *,
    baselines: bool = False,
    sort: str | None = None,
    best: bool = False,
    per: Sequence[str] = ("device",),
    verdicts: bool = True,
) -> list[RenderableType]:
    """Returns the report of a study. Up to three points are summarized, more are tabulated.

    Args:
        results: the results of a study.
        baselines: whether points of the empty kernel have rows, too.
        sort: a figure, ``"headline"`` or an axis that the points are sorted by.
        best: whether to show only the best points, and those that are not distinguishable from them.
        per: the names by which points are grouped; each group has a best point; see ``Results.best``.
        verdicts: whether two sides that were measured in turns are compared.

    Raises:
        InvalidArgumentError: there is no such name.
    """
    analysis = StudyAnalysis(results)
    points = analysis.points if sort is None else sorted_points(analysis, sort)
    best_points = find_best(analysis, sort if sort not in analysis.axes else None, per)
    if best:
        chosen = {result.point.index for group in best_points for result in (group.point, *group.ties)}
        points = tuple(point for point in points if point.point.index in chosen)
    study = analysis.study
    parts: list[RenderableType] = [Text(printable(study.title or study.name), style="bold")]
    if question := " ".join(study.question.split()):
        parts.append(Text(printable(question), style="italic"))
    parts.append(Text(printable(f"{verdict(analysis)}.")))
    parts += [Text.assemble(("! ", "bold yellow"), printable(text)) for text in warnings(analysis)]
    parts.append(facts_grid(facts(analysis)))
    shown = [point for point in points if baselines or not point.point.is_baseline]
    if 0 < len(shown) <= _FEW and not best:
        for point in shown:
            parts += ["", *_point(analysis, point)]
        parts += _best_rows(best_points)
    else:
        parts += ["", *_table_and_stacks(analysis, shown, best_points)]
    if best:
        return parts
    parts += _fits(analysis)
    parts += _comparisons(compare_across(analysis))
    sides = compared_sides(analysis) if verdicts else None
    if sides is not None:
        parts += ["", Text(printable(f"{sides.verdict}."), style="bold"), *_comparisons(sides.rows)]
    parts += _problems(analysis)
    return parts


def terminal_summary(results: Results, *, subtract_baseline: bool = False) -> list[RenderableType]:
    """Returns a summary of each point, or a table of many.

    On request with a row for the difference from the empty kernel's median. A pair without samples is left out: its
    verdict explains this.
    """
    analysis = StudyAnalysis(results)
    shown = [point for point in analysis.points if not point.point.is_baseline]
    parts: list[RenderableType] = [Text.assemble(("! ", "bold yellow"), printable(text)) for text in warnings(analysis)]
    if len(shown) > _MANY:
        return [*parts, *_table_and_stacks(analysis, shown), *_fits(analysis), *_problems(analysis)]
    paired = {
        index
        for point in shown
        if point.point.against is not None
        for index in (point.point.index, point.point.against)
    }
    for number, analysed in enumerate(point for point in shown if point.total or point.point.index not in paired):
        parts += [*([""] if number else []), *_point(analysis, analysed, subtract_baseline)]
    return [*parts, *_fits(analysis)]


def _point(analysis: StudyAnalysis, shown: PointAnalysis, subtract_baseline: bool = False) -> list[RenderableType]:
    point = shown.point
    side = side_text(analysis, point)
    name = point_label(replace(point, is_against=False), device=True) + (f" ({side})" if side else "")
    head = Text.assemble((printable(name), "bold"), "  ", (shown.status_text, _STATUS.get(shown.status, "cyan")))
    parts: list[RenderableType] = [head]
    if shown.result.reason and not point.is_against:  # of both sides
        parts.append(Text(printable(shown.result.reason), style="dim"))
    if not shown.medians:
        return parts
    bar = stack_bar(shown.stack, 60)
    parts += [Padding(Group(bar, _legend([shown])), (0, 0, 0, 2)), _segments(analysis, shown, subtract_baseline)]
    rows = [("samples", f"in this table: {shown.samples_used}" if shown.is_paired else shown.samples_used)]
    said = disturbance_text(max(shown.total, 1), {flag: shown.flagged(flag) for flag in SampleFlag})
    rows.append(("disturbance", f"of the samples {said}" if said else "none"))
    summary = shown.summary()
    if summary is not None:
        counts = summary.outliers
        mild, severe = counts.low_mild + counts.high_mild, counts.low_severe + counts.high_severe
        of = "this side's" if shown.is_paired else "the"
        noise = f"relative standard error of {of} median {percent_text(summary.relative_error)}"
        rows.append(("noise", f"{noise}; {mild} mild and {severe} severe outliers"))
    if shown.dispatches > 1:
        note = ", which may overlap: the marginal cost of a dispatch, not its duration" if shown.overlapping else ""
        rows.append(("per dispatch", f"{time_text(shown.per_dispatch)} of {shown.dispatches} dispatches{note}"))
    if shown.baseline_median is not None and shown.median is not None:
        more = f"this point takes {time_text(shown.median - shown.baseline_median)} more"
        rows.append(("empty kernel", f"{time_text(shown.baseline_median)} in the same setting; {more}"))
    if shown.first_call is not None and shown.median:
        times = number_text(shown.first_call / shown.median, 3)
        rows.append(("first call", f"{time_text(shown.first_call)}, {times} times the median"))
    rows += [(name, number_text(value)) for name, value in shown.figures.items()]
    runs = set(shown.result.runs.tolist())
    clocks = [
        quality.text for quality in clock_qualities(analysis) if quality.device == point.device and quality.run in runs
    ]
    rows += [("clocks", text) for text in dict.fromkeys(clocks)]
    mine = [observation for observation in analysis.results.observations if observation.point == point.index]
    rows += [(printable(subject), printable(text)) for subject, text in observation_facts(mine)]
    parts.append(facts_grid(rows))
    return parts


def stack_bar(medians: Mapping[str, float], width: int, *, scale: float | None = None) -> Text:
    """Draws a latency stack as one line, each segment in its colour; ``scale`` nanoseconds fill the width, by default
    the sum of all.
    """
    scale = scale or sum(medians.get(name, 0.0) for name in STACK)
    text = Text()
    if not scale > 0:
        return text
    # Rounding ends, not lengths, keeps the total length right.
    end, filled = 0.0, 0
    for name in STACK:
        end += medians.get(name, 0.0)
        cells = round(width * end / scale) - filled
        if cells > 0:
            text.append(_SHADES[name] * cells, style=SEGMENT_COLOURS[name])
            filled += cells
    if not filled:
        text.append(_EIGHTHS[max(1, round(8 * width * end / scale))], style=SEGMENT_COLOURS["execute"])
    return text


def _legend(points: Iterable[PointAnalysis]) -> Text:
    names = {name for point in points for name in point.stack}
    text = Text()
    for name in STACK:
        if name in names:
            text.append(f"{_SHADES[name] * 2} ", style=SEGMENT_COLOURS[name])
            text.append("queue, execute and wake  " if name == "device" else f"{name}  ")
    return text


def _segment_names(shown: PointAnalysis) -> list[str]:
    names = [name for name in (*SEGMENTS, "overlap", "device", "total") if name in shown.medians]
    if "execute" in names and "device" in names and shown.point.measure != "device":
        names.remove("device")  # an upper bound of segments that are known
    return names


def _segments(analysis: StudyAnalysis, shown: PointAnalysis, subtract_baseline: bool) -> Table:
    names, index = _segment_names(shown), shown.point.index
    pair = [point for point in analysis.points if index in (point.point.index, point.point.against)]
    pair += [point for point in analysis.points if point.point.index == shown.point.against]
    # Both sides of a pair use one unit.
    unit = time_unit([side.medians[name] for side in pair for name in _segment_names(side)])
    whole = shown.medians.get("total") or sum(shown.medians.get(name, 0.0) for name in SEGMENTS)
    headings = (f"median, {unit.name}", "interval", "IQR", "min", "mean", "max", "p99", "of total")
    table = new_table(("segment", *headings), right=headings)
    for column in table.columns[1:]:
        column.no_wrap = True
    for name in names:
        summary = shown.summary(name)
        if summary is None:
            continue
        low, high = summary.median_interval
        values = (summary.iqr, summary.minimum, summary.mean, summary.maximum)
        p99 = summary.quantiles.get("p99")
        share = percent_text(summary.median / whole, 3) if whole else "—"
        table.add_row(
            Text(
                f"{name} ◂" if name == shown.point.measure else name,
                style="bold" if name == shown.point.measure else "",
            ),
            unit.text(summary.median),
            f"[{unit.text(low)}, {unit.text(high)}]",
            *(unit.text(value) for value in values),
            few_text("p99") if p99 is None else unit.text(p99),
            share,
        )
    summary, base = shown.summary(), shown.baseline_median
    if subtract_baseline and summary is not None and base is not None:
        low, high = summary.median_interval
        numbers = (summary.minimum, summary.mean, summary.maximum, summary.quantiles.get("p99"))
        table.add_row(
            Text(f"{shown.point.measure} less the empty kernel's median", style="bold"),
            unit.text(summary.median - base),
            f"[{unit.text(low - base)}, {unit.text(high - base)}]",
            unit.text(summary.iqr),
            *(unit.text(None if number is None else number - base) for number in numbers),
            "—",
        )
    return table


def _points(analysis: StudyAnalysis, shown: Sequence[PointAnalysis], best: Sequence[Best]) -> Table:
    data = point_table(analysis, shown, best)
    named = {"target", *axes_of(shown), *_FIGURES, *(group.by for group in best)}
    kept = [
        index
        for index, column in enumerate(data.columns)
        if column.name in named or column.name.split(",")[0].split(" ")[0] in _COLUMNS
    ]
    columns = [data.columns[index] for index in kept]
    table = new_table([column.name for column in columns], right={column.name for column in columns if column.numeric})
    for row, point in zip(data.rows, data.points, strict=True):
        cells = [Text(printable(row[index].text)) for index in kept]
        cells[1].stylize(_STATUS.get(point.status, "cyan"))
        table.add_row(*cells)
    return table


def _table_and_stacks(
    analysis: StudyAnalysis, points: Sequence[PointAnalysis], best: Sequence[Best] | None = None
) -> list[RenderableType]:
    shown = points[:_MAX_ROWS]
    best = find_best(analysis) if best is None else best
    parts: list[RenderableType] = [_points(analysis, shown, best)]
    if len(points) > len(shown):
        parts.append(
            Text(f"{len(shown)} of {len(points)} points are shown; an export or the HTML report has all.", style="dim")
        )
    return [*parts, *_best_rows(best), *_stacks([point for point in shown if point.medians])]


def _best_rows(best: Sequence[Best]) -> list[RenderableType]:
    rows = [(point_label(group.point.point, device=True), best_text(group)) for group in best if group.count > 1]
    return ["", facts_grid((f"best ★ {name}", why) for name, why in rows)] if rows else []


def _stacks(shown: Sequence[PointAnalysis]) -> list[RenderableType]:
    if not shown:
        return []
    stacks = [_total_stack(point) for point in shown]
    scale = max(sum(stack.values()) for stack in stacks)
    if not scale > 0:
        return []
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    for point, stack in zip(shown, stacks, strict=True):
        bar = stack_bar(stack, 48, scale=scale)
        grid.add_row(Text(printable(point_label(point.point))), bar, time_text(point.medians.get("total")))
    title = "Where the time goes: median totals, divided as the medians of their segments"
    return ["", Text(title, style="bold"), _legend(shown), grid]


def _total_stack(point: PointAnalysis) -> dict[str, float]:
    """Scales the segments' medians to add up to the median total, if that is known."""
    known = sum(point.stack.values())
    scale = point.medians.get("total", known) / known if known > 0 else 1.0
    return {name: scale * value for name, value in point.stack.items()}


def _fits(analysis: StudyAnalysis) -> list[RenderableType]:
    lines = fitted_lines(analysis)
    if not lines:
        return []
    table = new_table(("over", "line", "fit", "misfit"))
    for line in lines:
        texts = (Text(printable(text)) for text in (line.axis, line.series, line.text))
        table.add_row(*texts, number_text(line.line.misfit, 2))
    return ["", Text("Fitted lines", style="bold"), table]


def _comparisons(rows: Sequence[ComparedPoints]) -> list[RenderableType]:
    if not rows:
        return []
    table = new_table(("point", "against", "verdict", "ratio of medians", "effect"))
    for row in rows:
        comparison = row.comparison
        table.add_row(
            Text(printable(row.name)),
            Text(printable(row.reference)),
            Text(str(comparison.verdict), style=_VERDICTS[comparison.verdict]),
            ratio_text(comparison),
            number_text(comparison.effect, 2),
        )
    unclear = [row for row in rows if row.comparison.verdict is Verdict.UNCLEAR]
    whys = [Text(line, style="dim") for line in said_once((row.name, row.comparison.remarks[0]) for row in unclear)]
    return ["", Text("Comparison", style="bold"), table, *whys]


def _problems(analysis: StudyAnalysis) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for problem in problems(analysis):
        more = f"; and {len(problem.points) - 4} more" if len(problem.points) > 4 else ""
        names = "; ".join(problem.points[:4]) + more
        parts.append(
            Text.assemble(
                (f"{problem.status} ", _STATUS.get(problem.status, "cyan")),
                printable(problem.reason or "no reason was given"),
                (f"  {printable(names)}", "dim"),
            )
        )
    return ["", *parts] if parts else []
