"""The table of points: a row per point; each cell has the number that it sorts by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ....base.lazy_dataclass import dataclass
from ...definition.point import is_number
from ...results.analysis import PointAnalysis, RoofPlace, StudyAnalysis
from ...results.best import HEADLINE, Best, find_best
from ...statistics.samples import fewest_samples
from ...statistics.summary import Summary
from .chart import point_label, value_text
from .units import TimeUnit, number_text, percent_text, time_text, time_unit

_AT_THE_RIDGE: Final = 1.05
_MAX_TIES: Final = 3


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading and explanation, whether its cells are numbers, and whether their texts wrap."""

    name: str
    help: str = ""
    numeric: bool = True
    wraps: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its text, the number that it sorts by (None for the text), and a hint on hover."""

    text: str
    sort: float | None = None
    hint: str = ""


@dataclass(frozen=True, slots=True)
class PointTable:
    """The table of points: its unit of time, its columns, the cells of each point, and the best points of groups of
    several.
    """

    unit: TimeUnit
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    points: tuple[PointAnalysis, ...]
    best: tuple[Best, ...]

    @property
    def is_best(self) -> frozenset[int]:
        """The indices of the best points."""
        return frozenset(best.point.point.index for best in self.best)

    @property
    def overlapping(self) -> bool:
        return any(result.overlapping for result in self.points)


def point_table(
    analysis: StudyAnalysis, points: Sequence[PointAnalysis] | None = None, best: Sequence[Best] | None = None
) -> PointTable:
    """Returns the table of all points, or of some; times are in one unit. ``best`` points are marked, by default those
    of each device.
    """
    shown = tuple(analysis.points if points is None else points)
    # The unit of the middle point, so that neither small nor large times get too many digits.
    medians = sorted(point.median for point in shown if point.median is not None)
    unit = time_unit(medians[len(medians) // 2 : len(medians) // 2 + 1])
    axes = axes_of(shown)
    several = len({point.point.device for point in shown}) > 1 and "device" not in axes
    varied = [point for point in shown if not point.point.is_baseline]
    figures = tuple(dict.fromkeys(name for point in shown for name in point.figures))
    baselines = any(point.baseline_median is not None for point in shown)
    batches = any(point.dispatches > 1 for point in shown)
    roofs = any(point.roof is not None for point in shown)
    u = unit.name
    columns = [
        Column("target", "what was measured", numeric=False),
        Column("status", "how sampling ended; see the reasons below", numeric=False),
        *([Column("device", "its URI", numeric=False)] if several else []),
        *(
            Column(axis, f"the axis {axis}", numeric=all(is_number(point.axes.get(axis, 0)) for point in varied))
            for axis in axes
        ),
        Column("measure", "the headline: all times of the row are of this segment", numeric=False),
        Column(f"median, {u}", "of a sample, with all of its dispatches"),
        Column("interval", "of the median, by bootstrap"),
        *(
            [Column(f"per dispatch, {u}", "median divided by the dispatches of a sample; ‖ where they may overlap")]
            if batches
            else []
        ),
        *([Column(f"baseline, {u}", "the same of the empty kernel in this setting")] if baselines else []),
        Column("rel. error", "relative standard error of the median, by bootstrap"),
        Column(f"IQR, {u}", "interquartile range"),
        Column(f"min, {u}"),
        Column(f"mean, {u}"),
        Column(f"max, {u}"),
        Column(f"st. dev., {u}", "standard deviation"),
        Column(f"p99, {u}", f"given from {fewest_samples('p99'):,} samples on"),
        Column("n", "samples in the statistics, of those measured"),
        Column("outliers", "mild + severe, by Tukey's fences"),
        Column(f"first call, {u}", "the headline of the very first call of the point"),
        *(Column(name, "derived figure, of the median") for name in figures),
        *([Column("limited by", "the side of the ridge, and the distance from it", numeric=False)] if roofs else []),
        *([Column("of the roof", "GFLOP/s over what memory and arithmetic allow")] if roofs else []),
    ]
    layout = (several, axes, batches, baselines, figures, roofs)
    marked = tuple(candidate for candidate in (find_best(analysis) if best is None else best) if candidate.count > 1)
    whys = {candidate.point.point.index: best_text(candidate) for candidate in marked}
    rows = tuple(_row(point, unit, whys.get(point.point.index, ""), *layout) for point in shown)
    return PointTable(unit, tuple(columns), rows, shown, marked)


def axes_of(points: Sequence[PointAnalysis]) -> tuple[str, ...]:
    """Returns the axis names of points, without baselines, in order."""
    return tuple(dict.fromkeys(axis for point in points if not point.point.is_baseline for axis in point.axes))


def best_text(best: Best) -> str:
    """Explains why a point is the best:

    ``12.3 GFLOP/s, the highest of 8 points; not distinguishable from mul batch=4``.
    """
    value = time_text(best.value) if best.by == HEADLINE else f"{number_text(best.value)} {best.by}"
    text = f"{value}, the {'highest' if best.is_highest else 'lowest'} of {best.count} points"
    names = [point_label(tie.point) for tie in best.ties[:_MAX_TIES]]
    if len(best.ties) > _MAX_TIES:
        names.append(f"{len(best.ties) - _MAX_TIES} more")
    return f"{text}; not told apart from {', '.join(names)}" if names else text


def _row(
    analysis: PointAnalysis,
    unit: TimeUnit,
    best: str,
    several: bool,
    axes: Sequence[str],
    batches: bool,
    baselines: bool,
    figures: Sequence[str],
    roofs: bool,
) -> tuple[Cell, ...]:
    point, summary = analysis.point, analysis.summary()
    # The axes of a baseline are its settings, which are not the table's columns.
    name = point_label(point, () if point.is_baseline else point.axes)
    named = Cell(f"{name} ★", hint=f"{point.label}: {best}") if best else Cell(name, hint=point.label)
    cells = [named, Cell(analysis.status_text, hint=analysis.result.reason)]
    if several:
        cells.append(Cell(point.device))
    for axis in axes:
        value = None if point.is_baseline else analysis.axes.get(axis)
        number = float(value) if isinstance(value, (int, float)) else None
        cells.append(Cell("" if value is None else value_text(value), number))
    cells.append(Cell(point.measure))

    def time(ns: float | None) -> Cell:
        return Cell(unit.text(ns), ns if ns is not None and math.isfinite(ns) else None)

    if summary is None:
        blank = Cell("—")
        cells += [blank] * (2 + batches + baselines + 7)
        cells += [Cell(f"0 / {analysis.total}", 0.0), blank, time(analysis.first_call)]
    else:
        low, high = summary.median_interval
        width = high - low
        cells += [
            time(summary.median),
            Cell(f"[{unit.text(low)}, {unit.text(high)}]", width if math.isfinite(width) else None),
        ]
        if batches:
            mark = " ‖" if analysis.overlapping else ""
            cells.append(
                Cell(
                    unit.text(analysis.per_dispatch) + mark, analysis.per_dispatch, f"{analysis.dispatches} dispatches"
                )
            )
        if baselines:
            cells.append(time(analysis.baseline_median))
        counts = summary.outliers
        mild, severe = counts.low_mild + counts.high_mild, counts.low_severe + counts.high_severe
        error = summary.relative_error
        cells += [
            Cell(percent_text(error), error if math.isfinite(error) else None),
            time(summary.iqr),
            time(summary.minimum),
            time(summary.mean),
            time(summary.maximum),
            time(summary.standard_deviation),
            _p99(summary, unit),
            Cell(f"{analysis.kept} / {analysis.total}", float(analysis.kept), analysis.samples_used),
            Cell(f"{mild} + {severe}", float(mild + severe)),
            time(analysis.first_call),
        ]
    for figure in figures:
        number = analysis.figures.get(figure)
        cells.append(Cell(_figure_text(number), number if number is not None and math.isfinite(number) else None))
    if roofs:
        roof = analysis.roof
        cells += (
            [Cell("—"), Cell("—")]
            if roof is None
            else [Cell(roof_text(roof), roof.distance), Cell(percent_text(roof.share, 3), roof.share)]
        )
    return tuple(cells)


def roof_text(roof: RoofPlace) -> str:
    """Names the limit of a point, and the distance of its intensity from the ridge: ``memory, by a factor of 7.4``."""
    times = roof.distance if roof.distance >= 1 else 1 / roof.distance
    if times < _AT_THE_RIDGE:
        return f"{roof.limit}, at the ridge"
    return f"{roof.limit}, by a factor of {number_text(times, 2)}"


def _p99(summary: Summary, unit: TimeUnit) -> Cell:
    value = summary.quantiles.get("p99")
    if value is not None:
        return Cell(unit.text(value), value)
    return Cell(
        few_text("p99"), hint=f"p99 takes {fewest_samples('p99'):,} samples, of which there are {summary.count}"
    )


def few_text(quantile: str) -> str:
    """Returns the text for a quantile without enough samples: the number that it needs."""
    return f"n < {fewest_samples(quantile)}"


def _figure_text(value: float | None) -> str:
    if value is None:
        return "—"
    # Counts such as bytes are exact.
    return f"{int(value)}" if value.is_integer() and abs(value) < 1e12 else number_text(value)
