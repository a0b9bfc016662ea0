"""Bars: the headline of points that no numeric axis tells apart."""

from __future__ import annotations

from collections.abc import Sequence

from ..results.analysis import PointAnalysis
from .captions import headline_caption, interval_in, point_hover
from .chart import Chart, label, new_figure, point_label
from .palette import INK, SERIES
from .units import time_unit

__all__ = ["bar_chart"]


def bar_chart(points: Sequence[PointAnalysis], measure: str) -> Chart:
    from plotly import graph_objects as go

    unit = time_unit(one.median for one in points)
    several = len({one.point.device for one in points}) > 1
    shown = list(points)[:60]
    names = [label(point_label(one.point, device=several)) for one in shown]
    y = [(one.median or 0.0) / unit.ns for one in shown]
    ends = [interval_in(one, unit) for one in shown]
    figure = go.Figure(
        go.Bar(
            y=list(range(len(shown))),
            x=y,
            orientation="h",
            width=0.62,
            marker={"color": SERIES[0], "line": {"width": 0}},
            error_x={
                "type": "data",
                "array": [high - value for (_, high), value in zip(ends, y, strict=True)],
                "arrayminus": [value - low for (low, _), value in zip(ends, y, strict=True)],
                "thickness": 1.3,
                "width": 4,
                "color": INK,
            },
            text=[point_hover(one) for one in shown],
            textposition="none",
            hovertemplate="%{text}<extra></extra>",
        )
    )
    new_figure(figure, 90 + 30 * len(shown), legend=False)
    # Bars are lengths, so their axis begins at 0 whatever they span.
    figure.update_xaxes(title_text=f"{measure}, {unit.name}", rangemode="tozero")
    figure.update_yaxes(
        tickmode="array",
        tickvals=list(range(len(shown))),
        ticktext=names,
        range=[len(shown) - 0.4, -0.6],
        showgrid=False,
    )
    left = f" The first {len(shown)} of {len(points)} are shown." if len(shown) < len(points) else ""
    return Chart(f"{measure.capitalize()} of each point", headline_caption(shown, False, False) + left, figure)
