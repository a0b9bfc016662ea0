"""Compares two results point by point: of two runs, devices or versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...records import dataclass
from ...status import FailedPreconditionError, InvalidArgumentError
from ..statistics.comparison import Comparison, compare
from .point_result import PointResult
from .results import Results


@dataclass(frozen=True, slots=True)
class PointComparison:
    """One point of both results.

    Attributes:
        key: identifies the point in both.
        a, b: the point in either.
        comparison: of the samples; ``None`` if one of them has none.
        why_not: the reason if there is no comparison.
    """

    key: str
    a: PointResult
    b: PointResult
    comparison: Comparison | None
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class ResultsComparison:
    """Two compared results.

    Attributes:
        points: those that both have, in the order of the first.
        only_a, only_b: labels of points that the other one lacks.
        by_device: whether points are compared only on the same device.
        notes: other differences: device, driver, versions, settings.
    """

    points: Sequence[PointComparison]
    only_a: Sequence[str]
    only_b: Sequence[str]
    by_device: bool
    notes: Sequence[str]


def compare_results(
    a: Results,
    b: Results,
    *,
    measure: str = "headline",
    confidence: float = 0.99,
    resolution: float = 0.025,
    threshold: float = 0.01,
) -> ResultsComparison:
    """Compares the points that both results have.

    Args:
        a, b: the first is what the second is compared with.
        measure: a segment, ``"total"``, or ``"headline"`` for what each point measures.
        confidence, resolution, threshold: see ``comparison.compare``.

    Raises:
        FailedPreconditionError: they have no point in common.
        InvalidArgumentError: a parameter out of range, or points that measure different things.
    """
    by_device = any(len({point.point.device for point in each.points}) > 1 for each in (a, b))
    first, second = _keyed(a, by_device), _keyed(b, by_device)
    common = [key for key in first if key in second]
    if not common:
        shown = ", ".join(point.point.label for point in a.points[:3]) or "none"
        other = ", ".join(point.point.label for point in b.points[:3]) or "none"
        raise FailedPreconditionError(
            f"the results have no point in common: the first has {shown}, …, the second {other}, …"
        )
    limits = {"confidence": confidence, "resolution": resolution, "threshold": threshold}
    points = []
    for key in common:
        one, two = first[key], second[key]
        if measure == "headline" and one.point.measure != two.point.measure:
            raise InvalidArgumentError(
                f"{one.point.label} measures {one.point.measure} in the first results and "
                f"{two.point.measure} in the second"
            )
        points.append(_compare(key, one, two, measure, limits))
    return ResultsComparison(
        points,
        [first[key].point.label for key in first if key not in second],
        [second[key].point.label for key in second if key not in first],
        by_device,
        _differences(a, b),
    )


def _keyed(results: Results, by_device: bool) -> dict[str, PointResult]:
    keyed = {}
    for one in results.points:
        if not one.point.is_baseline:
            keyed[f"{one.point.device} {one.point.key}" if by_device else one.point.key] = one
    return keyed


def _compare(key: str, a: PointResult, b: PointResult, measure: str, limits: Mapping[str, Any]) -> PointComparison:
    for name, one in (("first", a), ("second", b)):
        if not one.count:
            return PointComparison(key, a, b, None, f"no samples in the {name} results ({one.status}: {one.reason})")
    keep_a, keep_b = a.keep, b.keep
    first, second = a.values(measure, keep=keep_a), b.values(measure, keep=keep_b)
    for name, values in (("first", first), ("second", second)):
        if np.all(np.isnan(values)):
            return PointComparison(key, a, b, None, f"no {measure} in the {name} results")
    blocks_a, blocks_b = a.blocks_of(keep=keep_a), b.blocks_of(keep=keep_b)
    return PointComparison(key, a, b, compare(first, second, blocks_a=blocks_a, blocks_b=blocks_b, **limits))


def _differences(a: Results, b: Results) -> list[str]:
    notes = []
    for what, left, right in (
        ("device", {one.name for one in a.devices}, {one.name for one in b.devices}),
        ("driver", {one.driver for one in a.devices}, {one.driver for one in b.devices}),
        ("pumice", {one.pumice for one in a.runs}, {one.pumice for one in b.runs}),
        ("host", {one.host for one in a.runs}, {one.host for one in b.runs}),
    ):
        if left != right:
            notes.append(f"{what}: {', '.join(sorted(left)) or '-'} and {', '.join(sorted(right)) or '-'}")
    differ = [key for key in ("sampling", "targets") if a.study.get(key) != b.study.get(key)]
    if differ:
        notes.append(f"the studies differ in {' and '.join(differ)}")
    return notes
