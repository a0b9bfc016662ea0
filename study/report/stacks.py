"""Latency stacks: where the time of a sample goes, segment by segment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..results.analysis import STACK, PointAnalysis, StudyAnalysis
from .captions import samples_text
from .chart import Chart, label, new_figure, point_label
from .palette import INK, SEGMENT_COLOURS
from .units import time_text, time_unit

__all__ = ["MAX_ROWS", "evenly", "stack_charts"]

MAX_ROWS: Final = 60
"""The most points that a chart has a row for."""


_NAMES: Final = {"device": "queue, execute and wake"}


def evenly(points: Sequence[PointAnalysis], most: int) -> list[PointAnalysis]:
    """At most so many points, taken evenly from all of them, the first and the last included."""
    if len(points) <= most:
        return list(points)
    return [points[round(place * (len(points) - 1) / (most - 1))] for place in range(most)]


def stack_charts(analysis: StudyAnalysis) -> list[Chart]:
    """One chart of all points: bars in time, and in shares; none where samples have no segments."""
    points = [one for one in analysis.points if any(one.stack.values())]
    shown = evenly(points, MAX_ROWS)
    return [_chart(points, shown)] if shown else []


def _chart(points: Sequence[PointAnalysis], shown: Sequence[PointAnalysis]) -> Chart:
    from plotly import graph_objects as go
    from plotly.subplots import make_subplots

    several = len({one.point.device for one in shown}) > 1
    sums = [sum(one.stack.values()) for one in shown]
    unit = time_unit([*sums, *(one.medians.get("total") for one in shown)])
    places = list(range(len(shown)))
    figure = make_subplots(rows=1, cols=2, shared_yaxes=True, horizontal_spacing=0.03, column_widths=[0.58, 0.42])
    for name in STACK:
        times = [one.stack.get(name, 0.0) for one in shown]
        if not any(times):
            continue
        hover = [
            f"<b>{label(point_label(one.point, device=several))}</b><br>{_NAMES.get(name, name)} {time_text(time)}, {100 * time / whole if whole else 0:.3g} % "
            f"of the segments' sum<br>total {time_text(one.medians.get('total'))}"
            + (f"<br>overlap {time_text(one.medians['overlap'])}" if one.medians.get("overlap") else "")
            for one, time, whole in zip(shown, times, sums, strict=True)
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
        figure.add_trace(go.Bar(x=[time / unit.ns for time in times], **common), row=1, col=1)
        shares = [100 * time / whole if whole else 0.0 for time, whole in zip(times, sums, strict=True)]
        figure.add_trace(go.Bar(x=shares, showlegend=False, **common), row=1, col=2)
    totals = [one.medians.get("total") for one in shown]
    figure.add_trace(
        go.Scatter(
            x=[None if total is None else total / unit.ns for total in totals],
            y=places,
            mode="markers",
            name="total",
            marker={"symbol": "line-ns", "size": 12, "line": {"width": 2, "color": INK}, "color": INK},
            hovertemplate=f"total %{{x:.4g}} {unit.name}<extra></extra>",
        ),
        row=1,
        col=1,
    )
    new_figure(figure, 110 + (22 if len(shown) > 20 else 26) * len(shown), left=80)
    figure.update_layout(barmode="stack", bargap=0, legend_traceorder="normal")
    figure.update_xaxes(title_text=f"medians of segments, {unit.name}", rangemode="tozero", row=1, col=1)
    figure.update_xaxes(title_text="share of their sum, %", range=[0, 100], row=1, col=2)
    figure.update_yaxes(
        tickmode="array",
        tickvals=places,
        ticktext=[label(point_label(one.point, device=several)) for one in shown],
        range=[len(shown) - 0.4, -0.6],
        showgrid=False,
        ticks="",
    )
    return Chart("Where the time goes", _caption(points, shown), figure)


def _caption(points: Sequence[PointAnalysis], shown: Sequence[PointAnalysis]) -> str:
    text = f"Medians of each segment, side by side in the order of time; {samples_text(shown)}. "
    overlaps = [one.medians["overlap"] for one in shown if one.medians.get("overlap")]
    if overlaps:
        text += (
            f"The device began before the submit call had returned at {len(overlaps)} of {len(shown)} points (median overlap "
            f"up to {time_text(max(overlaps))}): there the segments add up to more than the total. "
        )
    text += "The bar marks the median total. Medians do not add up exactly."
    bounded = [one for one in shown if "device" in one.stack]
    if bounded:
        text += f" {len(bounded)} of {len(shown)} points have no device timestamps: nothing tells their queue, execute and wake apart."
    if len(shown) < len(points):
        text += f" {len(shown)} of {len(points)} points are shown, evenly chosen."
    return text
