"""The roofline: the rates of points, and the limits of the device's memory and arithmetic at their intensity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from plotly import graph_objects as go

from ...results.analysis import PointAnalysis, StudyAnalysis
from .chart import Chart, label, new_figure, point_label, samples_text, style_log_axis
from .palette import INK, MUTED, SERIES, line_style
from .point_rows import roof_text
from .units import number_text


def roofline_charts(analysis: StudyAnalysis) -> list[Chart]:
    """Draws a chart for each device with known peaks and points of known bytes and flops."""
    charts = []
    for device in dict.fromkeys(point.point.device for point in analysis.measured):
        points = [point for point in analysis.measured if point.point.device == device and point.roof is not None]
        if points:
            charts.append(_chart(device, points, analysis.results.peaks_of(device)))
    return charts


def _chart(device: str, points: Sequence[PointAnalysis], peaks: Mapping[str, float]) -> Chart:
    memory, arithmetic = peaks["GB/s"], peaks["GFLOP/s"]
    ridge = arithmetic / memory
    intensity = [point.figures["flops"] / point.figures["bytes"] for point in points]
    reached = [point.figures["GFLOP/s"] for point in points]
    left, right = min(*intensity, ridge) / 2, max(*intensity, ridge) * 2
    x = np.unique([*np.geomspace(left, right, 60), ridge])
    figure = go.Figure()
    figure.add_scatter(
        x=x,
        y=np.minimum(memory * x, arithmetic),
        mode="lines",
        name="roof: measured peaks",
        line={"color": INK, "width": 2},
        hovertemplate="at %{x:.3g} flop/byte: %{y:.4g} GFLOP/s<extra>roof</extra>",
    )
    groups: dict[str, list[int]] = {}
    varied = list(dict.fromkeys(a for point in points for a in point.axes))
    # A colour for each target and each value of the axis with the fewest values, if these are few.
    counts = {axis: len({point.axes.get(axis) for point in points}) for axis in varied}
    axis = min((a for a in varied if 1 < counts[a] <= len(SERIES)), key=lambda a: counts[a], default=None)
    for index, point in enumerate(points):
        name = point.point.target if axis is None else f"{point.point.target} {axis}={point.axes.get(axis)}"
        groups.setdefault(name, []).append(index)
    for style, (name, places) in enumerate(groups.items()):
        colour, symbol = line_style(style)
        figure.add_scatter(
            x=[intensity[index] for index in places],
            y=[reached[index] for index in places],
            mode="markers",
            name=label(name),
            marker={"color": colour, "symbol": symbol, "size": 9},
            text=[_hover(points[index]) for index in places],
            hovertemplate="%{text}<extra></extra>",
        )
    new_figure(figure, 440, left=72)
    lowest = min(*reached, memory * left)
    figure.update_xaxes(title_text="arithmetic intensity, flop/byte")
    figure.update_xaxes(style_log_axis(left, right))
    figure.update_yaxes(title_text="GFLOP/s")
    figure.update_yaxes(style_log_axis(lowest / 1.3, arithmetic * 1.6))
    note = {"xref": "x", "yref": "y", "showarrow": False, "font": {"size": 12, "color": MUTED}}
    figure.add_annotation(
        x=math.log10(right),
        y=math.log10(arithmetic),
        xanchor="right",
        yanchor="bottom",
        text=f"{number_text(arithmetic)} GFLOP/s",
        **note,
    )
    low = math.sqrt(left * ridge)
    figure.add_annotation(
        x=math.log10(low),
        y=math.log10(memory * low),
        xanchor="right",
        yanchor="bottom",
        text=f"{number_text(memory)} GB/s&nbsp;&nbsp;",
        **note,
    )
    figure.add_vline(x=ridge, line={"color": MUTED, "width": 1, "dash": "dot"})
    for side, end in (("memory-bound", 0.0), ("compute-bound", 1.0)):
        figure.add_annotation(
            x=end,
            xref="paper",
            y=0,
            yref="paper",
            yanchor="bottom",
            xanchor="right" if end else "left",
            showarrow=False,
            text=f"&nbsp;{side}&nbsp;",
            font=note["font"],
        )
    roofs = [(point.roof, point) for point in points if point.roof is not None]
    bound = sum(roof.limit == "memory" for roof, _ in roofs)
    sides = f"Memory limits {bound} of {len(roofs)} points, arithmetic {len(roofs) - bound}."
    nearest, nearest_point = max(roofs, key=lambda pair: pair[0].share)
    share, best = nearest.share, point_label(nearest_point.point)
    text = (
        f"Peaks were measured on this device, in this run ({number_text(memory)} GB/s, {number_text(arithmetic)} "
        f"GFLOP/s of 32-bit floats, ridge at {number_text(ridge, 3)} flop/byte): left of the ridge memory limits, "
        f"right of it arithmetic. {sides} Points are medians; {samples_text(points)}. Closest to the roof: "
        f"{best}, {number_text(100 * share, 3)} % of it."
    )
    if share > 1:
        text += " Points above the roof are served by caches, which the peaks exclude, or move less than their bytes."
    return Chart(f"Roofline of {device}", text, figure)


def _hover(point: PointAnalysis) -> str:
    figures, roof = point.figures, point.roof
    assert roof is not None
    return (
        f"<b>{label(point_label(point.point))}</b><br>{number_text(figures['flops'] / figures['bytes'])} flop/byte, "
        f"{number_text(figures['GFLOP/s'])} GFLOP/s<br>{number_text(figures.get('GB/s'))} "
        f"GB/s<br>{number_text(100 * roof.share, 3)} % of the roof<br>limited by {roof_text(roof)}"
    )
