"""Series of points that differ on one axis only."""

from __future__ import annotations

from ..definition.point import AxisValue
from .analysis import PointAnalysis, StudyAnalysis

Key = tuple[tuple[str, AxisValue], ...]
"""What the points of a series share: target, device, and the values of all other axes."""


def numeric_axes(analysis: StudyAnalysis) -> list[str]:
    values: dict[str, set[AxisValue]] = {}
    for one in analysis.measured:
        for name, value in one.axes.items():
            values.setdefault(name, set()).add(value)
    return [
        name
        for name, found in values.items()
        if len(found) > 1 and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in found)
    ]


def series_over(analysis: StudyAnalysis, axis: str) -> dict[Key, list[PointAnalysis]]:
    """The points that differ on one axis only, by what they share, in ascending order of the axis."""
    series: dict[Key, list[PointAnalysis]] = {}
    for one in analysis.measured:
        if axis in one.axes:
            rest = ((name, value) for name, value in one.axes.items() if name != axis)
            key = (("target", one.point.target), ("device", one.point.device), *rest)
            series.setdefault(key, []).append(one)
    for points in series.values():
        points.sort(key=lambda one: axis_number(one, axis))
    return series


def axis_number(one: PointAnalysis, axis: str) -> float:
    return float(one.axes[axis])
