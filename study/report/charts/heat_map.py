"""Heat maps: the headline or a figure over two numeric axes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from plotly import graph_objects as go

from ...results.analysis import PointAnalysis, StudyAnalysis
from ...results.comparison.series import Key, axis_number, numeric_axes
from .chart import Chart, evenly, label, new_figure, point_hover, samples_text, style_log_axis
from .palette import INK
from .series import key_text
from .units import count_text, number_text, time_unit

_MAX_CHARTS: Final = 6
_FEWEST: Final = 2
_MAX_LABELLED: Final = 12

Array = npt.NDArray[np.float64]


def heat_map_charts(analysis: StudyAnalysis) -> list[Chart]:
    """Draws a chart for each two numeric axes with several values each, and each combination of the other axes."""
    grids: dict[tuple[str, str, str, Key], list[PointAnalysis]] = {}
    for one_axis, other in itertools.combinations(numeric_axes(analysis.measured), 2):
        for point in analysis.measured:
            axes = point.axes
            if one_axis in axes and other in axes:
                rest = tuple((name, value) for name, value in axes.items() if name not in (one_axis, other))
                shared = (("target", point.point.target), ("device", point.point.device), *rest)
                grids.setdefault((one_axis, other, point.point.measure, shared), []).append(point)
    charts = []
    whole = {key: points for key, points in grids.items() if _is_grid(points, *key[:2])}
    chosen, cut = evenly(list(whole), _MAX_CHARTS, "heat maps")
    for key in chosen:
        one_axis, other, _, shared = key
        charts.append(_chart(whole[key], one_axis, other, key_text(shared), cut))
    return charts


def _is_grid(points: Sequence[PointAnalysis], *axes: str) -> bool:
    counts = [len({axis_number(point, axis) for point in points}) for axis in axes]
    # Half of the fields at least: two axes that change together do not span a plane.
    return min(counts) >= _FEWEST and len(points) >= 0.5 * math.prod(counts)


def _chart(points: Sequence[PointAnalysis], x_axis: str, y_axis: str, shared: str, cut: str) -> Chart:
    x, y = (sorted({axis_number(point, axis) for point in points}) for axis in (x_axis, y_axis))
    places = {(axis_number(point, x_axis), axis_number(point, y_axis)): point for point in points}
    cells = [[places.get((column, row)) for column in x] for row in y]
    unit = time_unit([float(np.median([point.median for point in points if point.median]))])
    measure = points[0].point.measure
    names = list(dict.fromkeys(name for point in points for name in point.figures))
    shown: dict[str, Array] = {
        f"{measure}, {unit.name}": _values(
            cells, {point.point.index: (point.median or math.nan) / unit.ns for point in points}
        )
    }
    shown |= {
        name: _values(cells, {point.point.index: point.figures.get(name, math.nan) for point in points})
        for name in names
    }
    # A constant figure shows nothing.
    shown = {
        name: grid
        for name, grid in shown.items()
        if name.startswith(f"{measure},") or np.nanmax(grid) > np.nanmin(grid)
    }
    traces = {name: _trace(name, grid, label_cells=len(x) <= _MAX_LABELLED) for name, grid in shown.items()}
    figure = go.Figure()
    figure.add_heatmap(
        **traces[f"{measure}, {unit.name}"],
        x=_edges(x),
        y=_edges(y),
        customdata=[["" if cell is None else point_hover(cell) for cell in row] for row in cells],
        hovertemplate="%{customdata}<br>%{z}<extra></extra>",
        colorscale="Cividis",
        xgap=1,
        ygap=1,
        textfont={"size": 11},
    )
    new_figure(figure, 130 + max(34 * len(y), 200), legend=False, left=72)
    figure.update_layout(margin_t=52 if len(traces) > 1 else 20)
    for axis, name, values in (("xaxis", x_axis, x), ("yaxis", y_axis, y)):
        figure.update_layout({axis: {"title": {"text": label(name)}, "showgrid": False, **_ticks(values)}})
    if len(traces) > 1:
        figure.update_layout(updatemenus=[_menu(traces)])
    text = f"Medians; {samples_text(points)}. "
    if len(traces) > 1:
        text += "The menu chooses what is shown: the headline or a figure. "
    text += "Colours of values that span more than a decade are logarithmic; empty fields were not measured."
    return Chart(f"{measure.capitalize()} over {x_axis} and {y_axis}: {shared}", text + cut, figure)


def _values(cells: Sequence[Sequence[PointAnalysis | None]], values: Mapping[int, float]) -> Array:
    return np.array([[math.nan if cell is None else values[cell.point.index] for cell in row] for row in cells])


def _trace(name: str, values: Array, *, label_cells: bool) -> dict[str, object]:
    """Returns the parts of the trace that depend on the figure: colours, their bar, and the numbers in the cells."""
    known = values[np.isfinite(values)]
    wide = bool(known.size) and known.min() > 0 and known.max() > 10 * known.min()
    colours = np.log10(values) if wide else values
    bar: dict[str, object] = {"title": {"text": label(name), "side": "right"}, "thickness": 12, "outlinewidth": 0}
    if wide:
        ticks = style_log_axis(float(known.min()), float(known.max()))
        pairs = zip(ticks["tickvals"], ticks["ticktext"], strict=True)  # type: ignore[call-overload]
        inside = [(math.log10(tick), text) for tick, text in pairs if known.min() <= tick <= known.max()]
        bar |= {
            "tickmode": "array",
            "tickvals": [position for position, _ in inside],
            "ticktext": [text for _, text in inside],
        }
    else:
        bar |= {"tickmode": "auto", "tickvals": None, "ticktext": None}
    texts = [["" if math.isnan(value) else number_text(value, 3) for value in row] for row in values]
    return {
        "z": [[None if math.isnan(value) else value for value in row] for row in colours.tolist()],
        "text": texts,
        "texttemplate": "%{text}" if label_cells else "",
        "colorbar": bar,
    }


def _menu(traces: Mapping[str, dict[str, object]]) -> dict[str, object]:
    buttons = [
        {"label": label(name), "method": "restyle", "args": [{key: [value] for key, value in trace.items()}]}
        for name, trace in traces.items()
    ]
    return {
        "buttons": buttons,
        "x": 0,
        "xanchor": "left",
        "y": 1,
        "yanchor": "bottom",
        "pad": {"b": 8},
        "bgcolor": "rgba(0,0,0,0)",
        "font": {"size": 12, "color": INK},
    }


def _is_geometric(values: Sequence[float]) -> bool:
    """Whether an axis is logarithmic: the ratios of its values are more alike than their differences."""
    if values[0] <= 0:
        return False
    ratios, steps = np.diff(np.log(values)), np.diff(values)
    return bool(np.std(ratios) / np.mean(ratios) < np.std(steps) / np.mean(steps))


def _places(values: Sequence[float]) -> Array:
    """Returns the positions of ascending values on their axis: their logarithms if the axis is geometric. (On Plotly's
    own logarithmic axis the texts of cells are off centre.)
    """
    return np.log2(values) if _is_geometric(values) else np.array(values)


def _edges(values: Sequence[float]) -> list[float]:
    """Returns the edges of cells around ascending values, half-way between these on the axis."""
    places = _places(values)
    middle = (places[1:] + places[:-1]) / 2
    return [float(2 * places[0] - middle[0]), *middle.tolist(), float(2 * places[-1] - middle[-1])]


def _ticks(values: Sequence[float]) -> dict[str, object]:
    texts = [count_text(int(value) if value.is_integer() else value) for value in values]
    edges = _edges(values)
    return {"range": [edges[0], edges[-1]], "tickvals": _places(values).tolist(), "ticktext": texts}
