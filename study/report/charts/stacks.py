"""Latency stacks: the division of a sample's time by segment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from plotly.subplots import make_subplots

from ...results.analysis import STACK, PointAnalysis, StudyAnalysis
from .chart import MAX_ROWS, Chart, evenly, label, name_rows, new_figure, point_label, samples_text
from .palette import INK, SEGMENT_COLOURS
from .units import time_text, time_unit

_NAMES: Final = {"device": "queue, execute and wake"}


def stack_charts(analysis: StudyAnalysis) -> list[Chart]:
    """Draws one chart of all points, bars of times and of shares; none if samples have no segments."""
    shown, cut = evenly([point for point in analysis.points if any(point.stack.values())], MAX_ROWS, "points")
    return [_chart(shown, cut)] if shown else []


def _chart(shown: Sequence[PointAnalysis], cut: str) -> Chart:
    several = len({point.point.device for point in shown}) > 1
    sums = [sum(point.stack.values()) for point in shown]
    unit = time_unit([*sums, *(point.medians.get("total") for point in shown)])
    places = list(range(len(shown)))
    figure = make_subplots(rows=1, cols=2, shared_yaxes=True, horizontal_spacing=0.03, column_widths=[0.58, 0.42])
    for name in STACK:
        times = [point.stack.get(name, 0.0) for point in shown]
        if not any(times):
            continue
        hover = [
            f"<b>{label(point_label(point.point, device=several))}</b><br>{_NAMES.get(name, name)} {time_text(time)}, "
            f"{100 * time / whole if whole else 0:.3g} % of the segments' sum<br>"
            f"total {time_text(point.medians.get('total'))}"
            + (f"<br>overlap {time_text(point.medians['overlap'])}" if point.medians.get("overlap") else "")
            for point, time, whole in zip(shown, times, sums, strict=True)
        ]
        common = {
            "y": places,
            "orientation": "h",
            "name": _NAMES.get(name, name),
            "legendgroup": name,
            "width": 0.72,
            "marker": {"color": SEGMENT_COLOURS[name], "line": {"width": 0}},
            "text": hover,
            "textposition": "none",
            "hovertemplate": "%{text}<extra></extra>",
        }
        figure.add_bar(x=[time / unit.ns for time in times], **common, row=1, col=1)
        shares = [100 * time / whole if whole else 0.0 for time, whole in zip(times, sums, strict=True)]
        figure.add_bar(x=shares, showlegend=False, **common, row=1, col=2)
    totals = [point.medians.get("total") for point in shown]
    figure.add_scatter(
        x=[None if total is None else total / unit.ns for total in totals],
        y=places,
        mode="markers",
        name="total",
        marker={"symbol": "line-ns", "size": 12, "line": {"width": 2, "color": INK}, "color": INK},
        hovertemplate=f"total %{{x:.4g}} {unit.name}<extra></extra>",
        row=1,
        col=1,
    )
    new_figure(figure, 110 + (22 if len(shown) > 20 else 26) * len(shown), left=80)
    figure.update_layout(barmode="stack", bargap=0, legend_traceorder="normal")
    figure.update_xaxes(title_text=f"medians of segments, {unit.name}", rangemode="tozero", row=1, col=1)
    figure.update_xaxes(title_text="share of their sum, %", range=[0, 100], row=1, col=2)
    name_rows(figure, [point_label(point.point, device=several) for point in shown])
    return Chart("Where the time goes", _caption(shown, cut), figure)


def _caption(shown: Sequence[PointAnalysis], cut: str) -> str:
    text = f"Medians of the segments in the order of time; {samples_text(shown)}. "
    overlaps = [point.medians["overlap"] for point in shown if point.medians.get("overlap")]
    if overlaps:
        text += (
            f"At {len(overlaps)} of {len(shown)} points the device began before the submit call returned (median "
            f"overlap up to {time_text(max(overlaps))}): their segments add up to more than the total. "
        )
    text += "The bar marks the median total. Medians do not add up exactly."
    bounded = [point for point in shown if "device" in point.stack]
    if bounded:
        text += (
            f" {len(bounded)} of {len(shown)} points have no device timestamps: queue, execute and wake are one bar."
        )
    return text + cut
