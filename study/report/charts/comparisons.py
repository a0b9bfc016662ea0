"""Comparisons of points across the study's ``compare`` axis, with an earlier run, or with the other side of the study:
verdicts, a forest plot, and the ratio of each pair of blocks over the run.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from ....base.lazy_dataclass import dataclass
from ....status import PumiceError
from ...definition.point import AxisValue, Point
from ...results.analysis import PointAnalysis, StudyAnalysis
from ...results.comparison.machine_record import Part
from ...results.comparison.point_comparison import PairedBlocks, compare_points, pairs_in_turns
from ...results.comparison.results_comparison import PointComparison, compare_results, compare_sides
from ...results.comparison.revision import revision_of
from ...results.storage.stored_results import StoredResults
from ...statistics.comparison import Comparison, Verdict
from .chart import (
    Chart,
    error_bars,
    evenly,
    label,
    lines,
    name_rows,
    new_figure,
    point_label,
    style_ratio_axis,
    value_text,
)
from .palette import INK, MUTED, SERIES, VERDICT, faded
from .units import number_text

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


_MAX_ROWS: Final = 80
_FARTHEST: Final = 1.6


@dataclass(frozen=True, slots=True)
class ComparedPoints:
    """A comparison of two points: the second point's name, the first point's name, and the result."""

    name: str
    reference: str
    comparison: Comparison


def compare_across(analysis: StudyAnalysis) -> list[ComparedPoints]:
    """Compares each value of the study's ``compare`` axis with the reference, other axes being equal."""
    study = analysis.study
    name = study.compare
    if name is None:
        return []
    groups: dict[str, list[tuple[AxisValue, PointAnalysis]]] = {}
    for member in analysis.measured:
        point = member.point
        value = point.target if name == "target" else point.device if name == "device" else point.axes.get(name)
        if value is not None:
            rest = {axis: axis_value for axis, axis_value in point.axes.items() if axis != name}
            shared = [name == "target" or point.target, name == "device" or point.device, sorted(rest.items())]
            groups.setdefault(json.dumps(shared), []).append((value, member))
    compared = []
    for members in groups.values():
        reference = study.reference if study.reference is not None else members[0][0]
        first = next((point for value, point in members if value == reference), None)
        for value, member in members:
            if first is not None and member is not first and member.point.measure == first.point.measure:
                against = f"{name} {value_text(value)}" if name not in ("target", "device") else value_text(value)
                without = () if name in ("target", "device") else (name,)
                others = point_label(member.point, without, target=name != "target")
                text = f"{others}: {against}" if others != against else against
                comparison = compare_points(analysis.results, first.result, member.result)
                compared.append(ComparedPoints(text, f"{name} {value_text(reference)}", comparison))
    return compared


def compare_with_run(
    results: StoredResults, earlier: StoredResults, across: Collection[Part] = ()
) -> list[ComparedPoints]:
    """Compares each point with the same point of an earlier run; see ``compare_results``."""
    comparison = compare_results(earlier, results, across=across)
    return [
        ComparedPoints(
            point_label(compared.b.point, device=comparison.by_device), "the earlier run", compared.comparison
        )
        for compared in comparison.points
        if compared.comparison is not None
    ]


def ratio_text(comparison: Comparison) -> str:
    if not math.isfinite(comparison.ratio):
        return "no ratio"
    low, high = comparison.interval
    ends = f"[{_end_text(low)}, {_end_text(high)}]" if math.isfinite(low) else "without interval"
    return f"{number_text(comparison.ratio)} {ends}"


def _end_text(value: float) -> str:
    """Formats an end of an interval, without digits if it is extreme."""
    return "< 0.001" if value < 0.001 else "> 1000" if value > 1000 else number_text(value)


def forest_chart(rows: Sequence[ComparedPoints], title: str) -> Chart:
    """Draws the ratio of medians with its interval, a row per comparison, coloured by verdict."""
    from plotly import graph_objects as go

    known = [row for row in rows if math.isfinite(row.comparison.ratio) and row.comparison.ratio > 0]
    # Readers look for the ratios farthest from 1.
    shown = known
    if len(known) > _MAX_ROWS:
        kept = sorted(known, key=lambda compared: -abs(math.log(compared.comparison.ratio)))[:_MAX_ROWS]
        shown = [point for point in known if point in kept]
    figure = go.Figure()
    for verdict in Verdict:
        mine = [(index, point) for index, point in enumerate(shown) if point.comparison.verdict is verdict]
        if not mine:
            continue
        ratios = [point.comparison.ratio for _, point in mine]
        figure.add_scatter(
            x=ratios,
            y=[index for index, _ in mine],
            mode="markers",
            name=f"{verdict} ({len(mine)})",
            marker={
                "color": VERDICT[verdict],
                "size": 9,
                "symbol": "circle-open" if verdict is Verdict.UNCLEAR else "circle",
                "line": {"width": 2 if verdict is Verdict.UNCLEAR else 0, "color": VERDICT[verdict]},
            },
            error_x=error_bars(ratios, [_ends(point.comparison) for _, point in mine], VERDICT[verdict], 1.6),
            text=[f"<b>{label(point.name)}</b><br>{lines(point.comparison.explanation)}" for _, point in mine],
            hovertemplate="%{text}<extra></extra>",
        )
    new_figure(figure, 110 + 24 * len(shown), left=80)
    ratios = [1.0, *(point.comparison.ratio for point in shown)]
    # An interval of few samples may be very wide; it is cut at the edge.
    ends = [1.0, *(value for point in shown for value in _ends(point.comparison))]
    ends = [min(max(end, min(ratios) / _FARTHEST), max(ratios) * _FARTHEST) for end in ends]
    figure.update_layout(margin_r=190)
    figure.update_xaxes(style_ratio_axis(min(ends), max(ends), 0.05), title_text="median over the reference's median")
    name_rows(figure, [point.name for point in shown])
    figure.add_vline(x=1, line={"color": INK, "width": 1.4})
    for index, point in enumerate(shown):
        figure.add_annotation(
            name="beside",  # narrow pages have no room for it
            x=1.0,
            xref="paper",
            y=index,
            yref="y",
            text=f"&nbsp;{ratio_text(point.comparison)}",
            xanchor="left",
            showarrow=False,
            font={"size": 11.5, "color": MUTED},
        )
    return Chart(title, _caption(rows, shown), figure)


def _ends(comparison: Comparison) -> tuple[float, float]:
    low, high = comparison.interval
    low = low if math.isfinite(low) and low > 0 else comparison.ratio
    high = high if math.isfinite(high) else comparison.ratio
    return low, high


def _caption(rows: Sequence[ComparedPoints], shown: Sequence[ComparedPoints]) -> str:
    counts = {verdict: sum(1 for row in rows if row.comparison.verdict is verdict) for verdict in Verdict}
    said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    references = list(dict.fromkeys(row.reference for row in rows))
    of = references[0] if len(references) == 1 else "the reference"
    text = (
        f"Compared with {of}: {said}. Ratios of medians with {100 * rows[0].comparison.confidence:g} % intervals; "
        "left of 1 is faster. SAME requires an interval narrow enough to exclude a change; why others are UNCLEAR, "
        "and what to do, is in the table's notes."
    )
    if len(shown) < len(rows):
        text += f" {len(shown)} of {len(rows)} are drawn: those with ratios farthest from 1."
    return text


OTHER: Final = "the other side"
_NONE: Final = "not compared"
_MAX_CHARTS: Final = 24
_MAX_PAIRS: Final = 1500
_BINS: Final = 24
_LEAST_SPREAD: Final = 0.02

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ComparedSides:
    """The points of both sides with their comparisons, or the reason for none; sentences on unpaired points; or an
    error.
    """

    points: Sequence[PointComparison]
    by_device: bool
    unpaired: Sequence[str] = ()
    error: str = ""

    @property
    def rows(self) -> list[ComparedPoints]:
        return [
            ComparedPoints(point_label(result.b.point, device=self.by_device), OTHER, result.comparison)
            for result in self.points
            if result.comparison is not None
        ]

    @property
    def verdict(self) -> str:
        """A sentence such as ``2 SLOWER, 1 SAME against the other side; only on the old side: mul n=8``."""
        counts = Counter(str(result.comparison.verdict) if result.comparison else _NONE for result in self.points)
        order = (Verdict.SLOWER, Verdict.FASTER, Verdict.UNCLEAR, _NONE, Verdict.SAME)
        said = ", ".join(f"{counts[str(name)]} {name}" for name in order if counts[str(name)])
        return self.error or "; ".join([f"{said} against {OTHER}", *self.unpaired])


def compared_sides(analysis: StudyAnalysis) -> ComparedSides | None:
    """Compares both sides; None if the study has only one."""
    if all(point.result.against is None for point in analysis.points):
        return None
    try:
        comparison = compare_sides(analysis.results)
    except PumiceError as error:
        return ComparedSides((), False, error=error.message)
    return ComparedSides(comparison.points, comparison.by_device, comparison.unpaired)


def side_text(analysis: StudyAnalysis, point: Point) -> str:
    """Names the side of a point of a pair, and what was measured there:

    ``new: mul.comp, commit 1a2b3c4d5``, with the earlier results that have it, if any. Empty for a point without a
    pair.
    """
    if point.against is None and not point.is_against:
        return ""
    name, prefix = ("old", "against_") if point.is_against else ("new", "")
    facts = analysis.results.runs[-1].environment if analysis.results.runs else {}
    revision = revision_of(facts.get(f"{prefix}revision"))
    parts = [point.settings.get("source"), facts.get(f"{prefix}origin"), revision and f"commit {revision.name}"]
    known = ", ".join(str(part) for part in parts if part)
    return f"{name}: {known}" if known else name


def pair_charts(sides: ComparedSides) -> tuple[list[Chart], str]:
    """Draws a small chart per point, of the pairs' ratios; returns also a sentence if some are left out."""
    compared = [(compared, compared.comparison) for compared in sides.points if compared.comparison is not None]
    shown, cut = evenly(compared, _MAX_CHARTS, "points")
    charts = [_chart(point, comparison, sides.by_device) for point, comparison in shown]
    return [chart for chart in charts if chart is not None], cut


def _chart(compared: PointComparison, comparison: Comparison, by_device: bool) -> Chart | None:
    pairs = pairs_in_turns(compared.a, compared.b, "headline", None)
    ratios = _ratios(pairs)
    known = np.flatnonzero(np.isfinite(ratios))
    if not known.size:
        return None
    every = max(1, -(-known.size // _MAX_PAIRS))
    figure = _figure(pairs, ratios, known[::every], comparison)
    counts = f"{known.size} pairs in {np.unique(pairs.rounds).size} rounds"
    runs = np.unique(pairs.runs).size
    text = f"{counts}{f' of {runs} runs' if runs > 1 else ''}. {comparison.explanation}."
    return Chart(point_label(compared.b.point, device=by_device), text, figure, small=True)


def _ratios(pairs: PairedBlocks) -> Array:
    """Returns the ratio of the medians of each pair's blocks, new over old; NaN where a block has no sample."""
    middles = [
        np.array([np.median(row[np.isfinite(row)]) if np.isfinite(row).any() else np.nan for row in table])
        for table in (pairs.old, pairs.new)
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios: Array = middles[1] / middles[0]
    return np.where(ratios > 0, ratios, np.nan)


def _figure(pairs: PairedBlocks, ratios: Array, shown: npt.NDArray[np.int64], comparison: Comparison) -> Figure:
    from plotly import graph_objects as go

    figure = go.Figure()
    logs = np.log(ratios[shown])
    low, high = np.quantile(logs, [0.02, 0.98])
    ends = [end for end in (comparison.ratio, *comparison.interval) if np.isfinite(end) and end > 0]
    low, high = min(low, 0.0, *np.log(ends)), max(high, 0.0, *np.log(ends))
    margin = max(0.15 * (high - low), _LEAST_SPREAD / 2)
    low, high = float(low - margin), float(high + margin)
    counts, edges = np.histogram(np.clip(logs, low, high), bins=_BINS, range=(low, high))
    figure.add_bar(
        y=np.exp((edges[1:] + edges[:-1]) / 2),
        x=counts,
        base=0,
        width=np.diff(np.exp(edges)),
        xaxis="x2",
        orientation="h",
        marker={"color": MUTED, "opacity": 0.28, "line": {"width": 0}},
        hoverinfo="skip",
    )
    # Rounds alternate in colour; both sides were reopened between them.
    rounds = np.unique(pairs.rounds, return_inverse=True)[1].reshape(-1)
    for parity in (0, 1):
        mine = shown[rounds[shown] % 2 == parity]
        if mine.size:
            figure.add_scatter(
                x=mine,
                y=np.exp(np.clip(np.log(ratios[mine]), low, high)),
                mode="markers",
                marker={"color": SERIES[(0, 5)[parity]], "size": 4, "opacity": 0.75, "line": {"width": 0}},
                customdata=np.stack([ratios[mine], rounds[mine] + 1], axis=1),
                hovertemplate="pair %{x}, round %{customdata[1]}: %{customdata[0]:.4g}<extra></extra>",
            )
    x, y = _round_medians(ratios, rounds)
    figure.add_scatter(
        x=x,
        y=y,
        mode="lines",
        line={"color": INK, "width": 1.6},
        hovertemplate="median of a round: %{y:.4g}<extra></extra>",
    )
    new_figure(figure, 236, legend=False, left=48)
    figure.update_layout(
        margin={"l": 48, "r": 12, "t": 8, "b": 42},
        barmode="overlay",
        xaxis2={
            "overlaying": "x",
            "anchor": "y",
            "side": "top",
            "range": [3.5 * int(counts.max()), 0],
            "visible": False,
            "fixedrange": True,
        },
    )
    figure.update_xaxes(title_text="pair", showgrid=False, nticks=6, selector={"overlaying": None})
    figure.update_yaxes(style_ratio_axis(math.exp(low), math.exp(high)))
    start, end = comparison.interval
    if np.isfinite(start) and np.isfinite(end):
        figure.add_hrect(start, end, line_width=0, layer="below", fillcolor=faded(VERDICT[comparison.verdict], 0.25))
    figure.add_hline(1.0, line={"color": INK, "width": 1.1, "dash": "dot"})
    return figure


def _round_medians(ratios: Array, rounds: npt.NDArray[np.int64]) -> tuple[list[float | None], list[float | None]]:
    """Returns a line at the median of each round, with gaps between the lines."""
    x: list[float | None] = []
    y: list[float | None] = []
    for round_ in np.unique(rounds):
        places = np.flatnonzero((rounds == round_) & np.isfinite(ratios))
        if places.size:
            middle = float(np.median(ratios[places]))
            x += [int(places[0]) - 0.5, int(places[-1]) + 0.5, None]
            y += [middle, middle, None]
    return x, y


def side_rows(sides: ComparedSides) -> list[tuple[str, ...]]:
    """Returns the table's rows: point, verdict, ratio, samples of either side, and notes."""
    rows: list[tuple[str, ...]] = []
    for compared in sides.points:
        name, comparison = point_label(compared.b.point, device=sides.by_device), compared.comparison
        if comparison is None:
            rows.append((name, _NONE, "—", "—", compared.why_not))
        else:
            notes = "; ".join(comparison.remarks)
            samples = f"{comparison.count_a} and {comparison.count_b}"
            rows.append((name, str(comparison.verdict), ratio_text(comparison), samples, notes))
    return rows
