"""The best points of a study, and the points that are not distinguishable from them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError, shown
from ..definition.messages import did_you_mean
from ..definition.point import AxisValue
from .analysis import PointAnalysis, StudyAnalysis
from .comparison.point_comparison import compare_points
from .storage.point_result import PointResult

RATES: Final = ("GFLOP/s", "GB/s")
"""Figures that compare points of different work, in order of preference."""

HEADLINE: Final = "headline"

_THRESHOLD: Final = 0.01
_MAX_COMPARED: Final = 50
_APART: Final = 3  # after this many distinguishable points in succession, the rest are assumed to be distinguishable
_STEP: Final = 1.01
# The largest ratio that states of the machine cause, for points without an interval: equal points, measured separately
# on a shared machine, were up to 6.2 times apart (docs/design/study.md).
_STATES: Final = 6.2


@dataclass(frozen=True, slots=True)
class Best:
    """The best point of a group.

    Attributes:
        group: the settings that its points share, by name: target, device, axes.
        point: the best point.
        by: the figure, or ``"headline"`` for the median of the headline per dispatch, in ns.
        value: the value of the best point.
        is_highest: whether the highest value is best, as for rates, which fall as times grow.
        count: the points of the group that have a value.
        ties: the other points of the group that are not distinguishable from the best point, nearest first. At most the
            next 50 points are examined, until three in succession are distinguishable.
    """

    group: Mapping[str, AxisValue]
    point: PointResult
    by: str
    value: float
    is_highest: bool
    count: int
    ties: Sequence[PointResult] = ()

    @property
    def why(self) -> str:
        """The reason as text: ``highest GFLOP/s of 12 points``."""
        name = "median of a dispatch" if self.by == HEADLINE else self.by
        return f"{'highest' if self.is_highest else 'lowest'} {name} of {self.count} points"


def find_best(
    analysis: StudyAnalysis, by: str | None = None, per: str | Sequence[str] = ("device",), *, ties: bool = True
) -> tuple[Best, ...]:
    """Finds the best point of each group; see ``Results.best``. Without ``ties`` no comparisons are made."""
    per = (per,) if isinstance(per, str) else per
    groups: dict[tuple[AxisValue | None, ...], list[PointAnalysis]] = {}
    for point in analysis.measured:
        at = _places(point)
        groups.setdefault((point.point.measure, *(at.get(name) for name in per)), []).append(point)
    _check_names(analysis, by, per)
    winners = []
    for (_, *values), members in groups.items():
        group = {name: value for name, value in zip(per, values, strict=True) if value is not None}
        best = _best(analysis, members, by, group, ties)
        if best is not None:
            winners.append(best)
    return tuple(winners)


def figure_of(point: PointAnalysis, by: str, times: float = 1.0) -> float | None:
    """Returns a figure of a point, or its headline per dispatch in ns, as if all times were multiplied by ``times``.

    None if it is not known.
    """
    if by == HEADLINE:
        value = None if point.per_dispatch is None else point.per_dispatch * times
    else:
        value = point.figures.get(by) if times == 1 else point.figures_at(times).get(by)
    return value if value is not None and math.isfinite(value) else None


def is_rate(point: PointAnalysis, by: str) -> bool | None:
    """Whether a figure falls as times grow; ``None`` if it does not depend on them."""
    if by == HEADLINE:
        return False
    now, later = figure_of(point, by), figure_of(point, by, _STEP)
    return None if now is None or later is None or now == later else later < now


def sorted_points(analysis: StudyAnalysis, by: str) -> tuple[PointAnalysis, ...]:
    """Sorts all points by an axis or a figure, the best first, points without it last. InvalidArgumentError: no such
    name.
    """
    axes = analysis.axes
    if by not in axes:
        _check_names(analysis, by, ())
    keys: dict[int, tuple[bool, AxisValue]] = {}
    for point in analysis.points:
        if by in axes:
            value = None if point.point.is_baseline else point.point.axes.get(by)
        else:
            value = figure_of(point, by)
            value = -value if value is not None and is_rate(point, by) else value
        if value is not None:
            keys[point.point.index] = isinstance(value, str), value
    known = [point for point in analysis.points if point.point.index in keys]
    unknown = [point for point in analysis.points if point.point.index not in keys]
    return (*sorted(known, key=lambda analysed: keys[analysed.point.index]), *unknown)


def _best(
    analysis: StudyAnalysis,
    members: Sequence[PointAnalysis],
    by: str | None,
    group: Mapping[str, AxisValue],
    with_ties: bool,
) -> Best | None:
    if by is None:
        shared = (name for name in RATES if all(figure_of(point, name) is not None for point in members))
        by = next(shared, HEADLINE)
    values = {point.point.index: value for point in members if (value := figure_of(point, by)) is not None}
    known = [point for point in members if point.point.index in values]
    if not known:
        return None
    highest = is_rate(known[0], by)
    if highest is None:
        raise InvalidArgumentError(f"no point is best by {shown(by)}, which does not depend on the times")
    known.sort(key=lambda analysed: values[analysed.point.index], reverse=highest)
    best, *others = known
    value = values[best.point.index]
    ties: list[PointResult] = []
    apart = 0
    for analysed in others[: _MAX_COMPARED if with_ties else 0]:
        if _is_tie(analysis, best, analysed, by, value, highest):
            ties.append(analysed.result)
            apart = 0
        elif (apart := apart + 1) == _APART:
            break
    return Best(group, best.result, by, value, highest, len(known), tuple(ties))


def _is_tie(
    analysis: StudyAnalysis, best: PointAnalysis, other: PointAnalysis, by: str, value: float, highest: bool
) -> bool:
    """Whether the other point's figure may be as good as the best one's ``value``, as far as their headlines' ratio is
    known.
    """
    now = figure_of(other, by)
    if now is not None and abs(now - value) <= _THRESHOLD * abs(value):
        return True
    comparison = compare_points(analysis.results, best.result, other.result)
    if not comparison.ratio > 0:
        return True
    low = comparison.interval.low / comparison.ratio
    least = figure_of(other, by, 1 / _STATES if math.isnan(low) else low)
    return least is None or (least >= value if highest else least <= value)


def _places(analysis: PointAnalysis) -> Mapping[str, AxisValue]:
    return {**analysis.point.axes, "target": analysis.point.target, "device": analysis.point.device}


def _check_names(analysis: StudyAnalysis, by: str | None, per: Sequence[str]) -> None:
    names = ("target", "device", *(name for name in analysis.axes if name != "device"))
    for name in per:
        if name not in names:
            raise InvalidArgumentError(
                f"points have no {shown(name)}{did_you_mean(name, names)}; they are grouped by {', '.join(names)}"
            )
    figures = (HEADLINE, *dict.fromkeys(name for point in analysis.measured for name in point.figures))
    if by is not None and by not in figures and analysis.measured:
        raise InvalidArgumentError(
            f"no point has the figure {shown(by)}{did_you_mean(by, figures)}; there are {', '.join(figures)}"
        )
