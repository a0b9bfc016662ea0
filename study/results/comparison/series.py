"""Series of points that differ on one axis only."""

from __future__ import annotations

import html
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from ...definition.point import AxisValue, Point, is_number

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_NAMES: Final = ("target", "device")  # whose values need no name before them
_GREY: Final = "#808080"  # readable on light and dark pages
_WIDTH, _HEIGHT = 640, 360

Key = tuple[tuple[str, AxisValue], ...]
"""The common properties of the points of a series: target, device, and the values of all other axes."""


class OnAxes(Protocol):
    """An object with a point and its value on each axis."""

    @property
    def point(self) -> Point: ...
    @property
    def axes(self) -> Mapping[str, AxisValue]: ...


T = TypeVar("T", bound=OnAxes)


def numeric_axes(points: Iterable[OnAxes]) -> list[str]:
    """Returns the axes on which points have several values, all of them numbers."""
    axes: dict[str, set[AxisValue]] = {}
    for point in points:
        for name, value in point.axes.items():
            axes.setdefault(name, set()).add(value)
    return [name for name, values in axes.items() if len(values) > 1 and all(map(is_number, values))]


def series_over(points: Iterable[T], axis: str) -> dict[Key, list[T]]:
    """Groups points that differ on one axis only, by their common settings; each series is in ascending order."""
    series: dict[Key, list[T]] = {}
    for member in points:
        if axis in member.axes:
            rest = ((name, value) for name, value in member.axes.items() if name != axis)
            key = (("target", member.point.target), ("device", member.point.device), *rest)
            series.setdefault(key, []).append(member)
    for members in series.values():
        members.sort(key=lambda member: axis_number(member, axis))
    return series


def axis_number(member: OnAxes, axis: str) -> float:
    return float(member.axes[axis])


class Plotted(NamedTuple):
    """A point of a notebook's plot: its axis values, the title of the vertical axis, its value, and the interval."""

    point: Point
    axes: Mapping[str, AxisValue]
    title: str
    value: float
    interval: tuple[float, float]


def series_plot(points: Collection[Plotted], first: Collection[str] = ()) -> str:
    """Returns the HTML of ``series_figure``, or "" for None; it contains Plotly's script, so that it shows offline."""
    figure = series_figure(points, first)
    return "" if figure is None else figure.to_html(full_html=False, include_plotlyjs=True)


def series_figure(points: Collection[Plotted], first: Collection[str] = ()) -> Figure | None:
    """Plots a line for each series over a numeric axis, preferably one of ``first``; None without such an axis.

    Lines whose title differs from the first line's are left out.
    """
    for axis in sorted(numeric_axes(points), key=lambda axis: axis not in first):
        lines = {key: members for key, members in series_over(points, axis).items() if len(members) > 1}
        if lines:
            title = next(iter(lines.values()))[0].title
            return _figure({key: members for key, members in lines.items() if members[0].title == title}, axis, title)
    return None


def _figure(lines: Mapping[Key, Sequence[Plotted]], axis: str, title: str) -> Figure:
    from plotly import graph_objects as go  # takes a second to load

    figure = go.Figure()
    common = set.intersection(*map(set, lines))
    for key, members in lines.items():
        names = [
            str(value) if name in _NAMES else f"{name}={value}" for name, value in key if (name, value) not in common
        ]
        intervals = [(low, high) if math.isfinite(low + high) else (y, y) for *_, y, (low, high) in members]
        figure.add_scatter(
            x=[axis_number(member, axis) for member in members],
            y=[member.value for member in members],
            name=html.escape(", ".join(names)),
            error_y={
                "array": [high - member.value for member, (_, high) in zip(members, intervals, strict=True)],
                "arrayminus": [member.value - low for member, (low, _) in zip(members, intervals, strict=True)],
            },
        )
    transparent = {"paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)", "font_color": _GREY}
    figure.update_layout(width=_WIDTH, height=_HEIGHT, showlegend=len(lines) > 1, **transparent)
    x = [axis_number(member, axis) for members in lines.values() for member in members]
    y = [member.value for members in lines.values() for member in members]
    figure.update_xaxes(title_text=html.escape(axis), type=_scale(x))
    figure.update_yaxes(title_text=html.escape(title), type=_scale(y), rangemode="tozero")
    return figure


def _scale(values: Sequence[float]) -> str:
    return "log" if 0 < 10 * min(values) < max(values) else "linear"
