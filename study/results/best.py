"""Which points of a study are best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from .analysis import PointAnalysis

RATES: Final = ("GFLOP/s", "GB/s")
"""Figures that compare points of different work, the first that points have."""


def best_points(points: Sequence[PointAnalysis]) -> dict[int, str]:
    """The best point of those of one device and measure, if they are several, and what it is best by, by index: the
    highest of ``RATES`` if all have it, else the lowest median of a dispatch.
    """
    groups: dict[tuple[str, str], list[PointAnalysis]] = {}
    for one in points:
        if one.median is not None and not (one.point.is_baseline or one.point.is_against):
            groups.setdefault((one.point.device, one.point.measure), []).append(one)
    found = {}
    for mine in groups.values():
        if len(mine) < 2:
            continue
        rate = next((name for name in RATES if all(_is_known(one.figures.get(name)) for one in mine)), None)
        if rate is None:
            best, why = min(mine, key=lambda one: one.per_dispatch or math.inf), "lowest median"
            why += " of a dispatch" if any(one.dispatches > 1 for one in mine) else ""
        else:
            best, why = max(mine, key=lambda one: one.figures[rate]), f"highest {rate}"
        found[best.point.index] = f"{why} of {len(mine)} points"
    return found


def _is_known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
