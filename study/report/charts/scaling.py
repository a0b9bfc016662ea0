"""The headline over each axis: curves with fitted lines over numbers, bars over names."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from plotly import graph_objects as go
from plotly.basedatatypes import BaseTraceType
from plotly.subplots import make_subplots

from ...definition.point import AxisValue
from ...results.analysis import PointAnalysis, StudyAnalysis
from ...results.comparison.series import Key, axis_number, numeric_axes, series_over
from .chart import (
    MAX_ROWS,
    Chart,
    error_bars,
    evenly,
    headline_caption,
    interval_in,
    is_wide,
    label,
    name_rows,
    new_figure,
    point_hover,
    point_label,
    style_log_axis,
    style_value_axis,
)
from .palette import INK, MUTED, SERIES, line_style
from .series import fit_series, key_text
from .units import TimeUnit, count_text, time_unit

_MAX_PANELS: Final = 9
_COLUMNS: Final = 3
_FARTHEST: Final = 3.0


def headline_charts(analysis: StudyAnalysis) -> list[Chart]:
    """Draws a chart for each numeric axis with several values, and bars for points that no such axis distinguishes."""
    numeric = [
        axis
        for axis in numeric_axes(analysis.measured)
        if any(len(point) > 1 for point in series_over(analysis.measured, axis).values())
    ]
    order = dict.fromkeys((*(axis for axis in analysis.study.fit if axis in numeric), *numeric))
    charts = []
    for axis in order:
        every = series_over(analysis.measured, axis)
        for measure in dict.fromkeys(points[0].point.measure for points in every.values()):
            series = {key: points for key, points in every.items() if points[0].point.measure == measure}
            charts.append(_curve_chart(analysis, axis, measure, series))
    alone = [point for point in analysis.measured if not any(axis in point.axes for axis in numeric)]
    for measure in dict.fromkeys(point.point.measure for point in alone):
        mine = [point for point in alone if point.point.measure == measure]
        if len(mine) > 1 or not charts:
            charts.append(_bar_chart(mine, measure))
    return charts


def _varying(keys: Sequence[Key]) -> list[str]:
    """Returns the names that distinguish series, the name with the most values last."""
    values: dict[str, set[AxisValue | None]] = {}
    names = dict.fromkeys(name for key in keys for name, _ in key)
    for name in names:
        values[name] = {dict(key).get(name) for key in keys}
    return sorted((name for name in names if len(values[name]) > 1), key=lambda name: len(values[name]))


def _panels(series: Mapping[Key, list[PointAnalysis]]) -> tuple[dict[str, list[Key]], list[str], str]:
    """Returns the lines of each panel, the names that distinguish lines within a panel, and a sentence if some are left
    out.
    """
    keys = list(series)
    names = _varying(keys)
    if len(names) == 1 and len(keys) > len(SERIES):
        # Panels with one line each would show no more than one panel with all.
        lines, cut = evenly(keys, len(SERIES), f"values of {names[0]}")
        return {"": lines}, names, cut
    # Names move from lines to panels, the name with the most values first, until each panel has enough colours.
    facets: list[str] = []
    while names and max(len(group) for group in _grouped(keys, facets).values()) > len(SERIES):
        facets.append(names.pop())
    groups = _grouped(keys, facets)
    chosen, cut = evenly(list(groups), _MAX_PANELS, "panels")
    return {name: groups[name] for name in chosen}, names, cut


def _grouped(keys: Sequence[Key], names: Sequence[str]) -> dict[str, list[Key]]:
    groups: dict[str, list[Key]] = {}
    for key in keys:
        groups.setdefault(key_text(tuple(pair for pair in key if pair[0] in names)), []).append(key)
    return groups


def _curve_chart(analysis: StudyAnalysis, axis: str, measure: str, series: Mapping[Key, list[PointAnalysis]]) -> Chart:
    groups, names, left_out = _panels(series)
    shown = [point for group in groups.values() for key in group for point in series[key]]
    fits = axis in analysis.study.fit
    unit = time_unit(point.median for point in shown)
    columns = min(len(groups), _COLUMNS)
    rows = math.ceil(len(groups) / columns)
    figure = make_subplots(
        rows=rows,
        cols=columns,
        shared_xaxes="all",
        shared_yaxes="all",
        horizontal_spacing=0.03,
        vertical_spacing=min(0.2 / rows, 0.1),
        subplot_titles=[label(name) for name in groups] if len(groups) > 1 else None,
    )
    colours: dict[str, int] = {}
    for panel, group in enumerate(groups.values()):
        subplot = {"row": panel // columns + 1, "col": panel % columns + 1}
        for key in group:
            name = key_text(tuple(pair for pair in key if pair[0] in names)) or series[key][0].point.target
            new = name not in colours
            style = colours.setdefault(name, len(colours))
            for trace in _line_traces(series[key], axis, unit, name, style, new, fits):
                figure.add_trace(trace, **subplot)
    baselines = any(point.baseline_median is not None for point in shown)
    if baselines:
        figure.add_trace(_legend_only("empty kernel", "dot", MUTED))
    if fits:
        figure.add_trace(_legend_only("fitted line", "dash", INK))
    legend = len(figure.data) > sum(len(group) for group in groups.values()) or len(colours) > 1
    new_figure(figure, 420 if rows == 1 and columns == 1 else 90 + 280 * rows, legend=legend)
    _style_axes(figure, axis, measure, unit, shown, columns, len(groups))
    if len(groups) > 1:
        figure.update_layout(margin_t=68)
    return Chart(f"{measure.capitalize()} over {axis}", headline_caption(shown, baselines, fits) + left_out, figure)


def _line_traces(
    points: Sequence[PointAnalysis],
    axis: str,
    unit: TimeUnit,
    name: str,
    style: int,
    in_legend: bool,
    fits: bool,
) -> Iterator[BaseTraceType]:
    colour, symbol = line_style(style)
    x = [axis_number(point, axis) for point in points]
    y = [(point.median or 0.0) / unit.ns for point in points]
    line = fit_series(points, axis) if fits else None
    if line is not None:
        ends = np.geomspace(x[0], x[-1], 60) if x[0] > 0 else np.linspace(x[0], x[-1], 60)
        fitted = (line.intercept + line.slope * ends) / unit.ns
        yield go.Scatter(
            x=ends.tolist(),
            y=[value if value > 0 else None for value in fitted.tolist()],
            mode="lines",
            line={"color": colour, "width": 1.6, "dash": "dash"},
            hoverinfo="skip",
            showlegend=False,
        )
    base = [None if point.baseline_median is None else point.baseline_median / unit.ns for point in points]
    if any(value is not None for value in base):
        yield go.Scatter(
            x=x,
            y=base,
            mode="lines",
            line={"color": colour, "width": 1.4, "dash": "dot"},
            opacity=0.75,
            name=f"empty kernel, {label(name)}",
            hovertemplate=f"{_axis_text(axis)} %{{x}}: %{{y:.4g}} {unit.name}",
            showlegend=False,
        )
    yield go.Scatter(
        x=x,
        y=y,
        mode="markers" if line is not None else "lines+markers",
        name=label(name),
        legendgroup=label(name),
        showlegend=in_legend,
        line={"color": colour, "width": 1.8},
        marker={"color": colour, "size": 8, "symbol": symbol, "line": {"width": 0}},
        error_y=error_bars(y, [interval_in(point, unit) for point in points], colour),
        text=[point_hover(point) for point in points],
        hovertemplate="%{text}<extra></extra>",
    )


def _axis_text(name: str) -> str:
    """Escapes an axis name for a hover template, where braces have a meaning."""
    return label(name).replace("%", "%%").replace("{", "(").replace("}", ")")


def _legend_only(name: str, dash: str, colour: str) -> BaseTraceType:
    return go.Scatter(x=[None], y=[None], mode="lines", name=name, line={"color": colour, "dash": dash, "width": 1.6})


def _style_axes(
    figure: go.Figure,
    axis: str,
    measure: str,
    unit: TimeUnit,
    shown: Sequence[PointAnalysis],
    columns: int,
    panels: int,
) -> None:
    x = sorted({axis_number(point, axis) for point in shown})
    if is_wide(x):
        values = sorted({value for point in shown if isinstance(value := point.axes[axis], (int, float))})
        most = 12 if columns == 1 else 7
        figure.update_xaxes(
            style_log_axis(x[0], x[-1], values if len(values) <= most else values[:: math.ceil(len(values) / most)])
        )
    else:
        margin = 0.04 * (x[-1] - x[0])
        ticks = {
            "tickmode": "array",
            "tickvals": x,
            "ticktext": [count_text(int(v) if v.is_integer() else v) for v in x],
        }
        figure.update_xaxes(
            range=[x[0] - margin, x[-1] + margin], **(ticks if len(x) <= (12 if columns == 1 else 6) else {})
        )
    medians = [(point.median or 0.0) / unit.ns for point in shown]
    medians += [point.baseline_median / unit.ns for point in shown if point.baseline_median]
    # An interval of few samples may be very wide; it is cut at the edge.
    low, high = min(medians) / _FARTHEST, max(medians) * _FARTHEST
    ends = [min(max(end, low), high) for point in shown for end in interval_in(point, unit)]
    figure.update_yaxes(style_value_axis([*medians, *ends]))
    for index in range(panels):
        row, column = index // columns + 1, index % columns + 1
        # The lowest panel of each column has the name and the ticks.
        lowest = index + columns >= panels
        figure.update_xaxes(showticklabels=lowest, title_text=label(axis) if lowest else None, row=row, col=column)
        if column == 1:
            figure.update_yaxes(title_text=f"{measure}, {unit.name}", row=row, col=column)
    figure.update_annotations(font={"size": 12.5, "color": INK}, yshift=2)


def _bar_chart(points: Sequence[PointAnalysis], measure: str) -> Chart:
    unit = time_unit(point.median for point in points)
    several = len({point.point.device for point in points}) > 1
    shown = points[:MAX_ROWS]
    y = [(point.median or 0.0) / unit.ns for point in shown]
    figure = go.Figure(
        go.Bar(
            y=list(range(len(shown))),
            x=y,
            orientation="h",
            width=0.62,
            marker={"color": SERIES[0], "line": {"width": 0}},
            error_x=error_bars(y, [interval_in(point, unit) for point in shown], INK),
            text=[point_hover(point) for point in shown],
            textposition="none",
            hovertemplate="%{text}<extra></extra>",
        )
    )
    new_figure(figure, 90 + 30 * len(shown), legend=False)
    # Bars show lengths, so their axis begins at 0.
    figure.update_xaxes(title_text=f"{measure}, {unit.name}", rangemode="tozero")
    name_rows(figure, [point_label(point.point, device=several) for point in shown])
    left = f" The first {len(shown)} of {len(points)} are shown." if len(shown) < len(points) else ""
    return Chart(f"{measure.capitalize()} of each point", headline_caption(shown, False, False) + left, figure)
