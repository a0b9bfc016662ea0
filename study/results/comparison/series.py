"""Series of points that differ on one axis only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, Protocol, TypeVar

from ....base.notebook import MAX_LINES, Mark, svg_plot
from ...definition.point import AxisValue, Point

_NAMES: Final = ("target", "device")  # which say by themselves what they are

Key = tuple[tuple[str, AxisValue], ...]
"""What the points of a series share: target, device, and the values of all other axes."""


class OnAxes(Protocol):
    """What is known of a point.

    Attributes:
        point: the point.
        axes: its value on each axis.
    """

    @property
    def point(self) -> Point: ...
    @property
    def axes(self) -> Mapping[str, AxisValue]: ...


T = TypeVar("T", bound=OnAxes)


def numeric_axes(points: Iterable[OnAxes]) -> list[str]:
    values: dict[str, set[AxisValue]] = {}
    for one in points:
        for name, value in one.axes.items():
            values.setdefault(name, set()).add(value)
    return [
        name
        for name, found in values.items()
        if len(found) > 1 and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in found)
    ]


def series_over(points: Iterable[T], axis: str) -> dict[Key, list[T]]:
    """The points that differ on one axis only, by what they share, in ascending order of the axis."""
    series: dict[Key, list[T]] = {}
    for one in points:
        if axis in one.axes:
            rest = ((name, value) for name, value in one.axes.items() if name != axis)
            key = (("target", one.point.target), ("device", one.point.device), *rest)
            series.setdefault(key, []).append(one)
    for found in series.values():
        found.sort(key=lambda one: axis_number(one, axis))
    return series


def axis_number(one: OnAxes, axis: str) -> float:
    return float(one.axes[axis])


def series_plot(
    points: Collection[T], mark: Callable[[T, float], Mark], title: Callable[[T], str], first: Collection[str] = ()
) -> str:
    """A plot for notebooks: a line for each series over a numeric axis; nothing without such an axis.

    Args:
        points: what is shown, if it is on a line.
        mark: the mark of a point at a place of the axis.
        title: of the axis of the marks, for a point; lines with another title than the first line are left out.
        first: axes to be taken before others.
    """
    for axis in sorted(numeric_axes(points), key=lambda axis: axis not in first):
        lines = {key: found for key, found in series_over(points, axis).items() if len(found) > 1}
        if not lines:
            continue
        above = title(next(iter(lines.values()))[0])
        keys = [key for key, found in lines.items() if title(found[0]) == above]
        same = set.intersection(*(set(key) for key in keys))
        marks = {}
        for key in keys[:MAX_LINES]:
            parts = [
                str(value) if name in _NAMES else f"{name}={value}" for name, value in key if (name, value) not in same
            ]
            marks[", ".join(parts)] = [mark(one, axis_number(one, axis)) for one in lines[key]]
        left = f"<p>{MAX_LINES} of {len(keys)} lines</p>" if len(keys) > MAX_LINES else ""
        return svg_plot(marks, x=axis, y=above) + left
    return ""
