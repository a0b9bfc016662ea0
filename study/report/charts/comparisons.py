"""Comparisons of points across the study's ``compare`` axis or with an earlier run: verdicts and a forest plot."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from typing import Final

from ....base.lazy_dataclass import dataclass
from ...definition.point import AxisValue
from ...results.analysis import PointAnalysis, StudyAnalysis
from ...results.comparison.machine_record import Part
from ...results.comparison.point_comparison import compare_points
from ...results.comparison.results_comparison import compare_results
from ...results.storage.stored_results import StoredResults
from ...statistics.comparison import Comparison, Verdict
from .chart import Chart, error_bars, label, lines, name_rows, new_figure, point_label, style_ratio_axis, value_text
from .palette import INK, MUTED, VERDICT
from .units import number_text

_MAX_ROWS: Final = 80
_FARTHEST: Final = 1.6


@dataclass(frozen=True, slots=True)
class ComparedPoints:
    """A comparison of two points: the second one's name, the name of what it is compared with, and the result."""

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
        figure.add_trace(
            go.Scatter(
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
