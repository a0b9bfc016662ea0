"""Texts of charts: which samples and intervals they show, and a point's figures on hover."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..results.analysis import PointAnalysis
from .chart import label, point_label
from .units import TimeUnit, plain_text, time_text


def samples_text(points: Sequence[PointAnalysis]) -> str:
    """Which samples of several points are in the statistics."""
    kept, total = sum(one.kept for one in points), sum(one.total for one in points)
    mixed = sum(1 for one in points if one.uses_disturbed)
    if mixed == len(points):
        return f"all {total:,} samples, as more than half were disturbed" + (" at every point" if mixed > 1 else "")
    if mixed:
        return (
            f"{kept:,} of {total:,} samples: undisturbed ones only, except at {mixed} of {len(points)} points where "
            "more than half were disturbed, which have all"
        )
    return (
        f"undisturbed samples only: {kept:,} of {total:,}" if kept < total else f"all {total:,} samples, none disturbed"
    )


def headline_caption(shown: Sequence[PointAnalysis], baselines: bool, fits: bool) -> str:
    confidence = 100 * shown[0].sampling.confidence
    text = f"Medians with {plain_text(confidence)} % intervals of the median (bootstrap)"
    if any(one.dispatches > 1 for one in shown):
        text += ", of a sample with all its dispatches"
    text += f"; {samples_text(shown)}."
    if fits:
        text += (
            " The fitted line is weighted least squares through the medians: its slope is the marginal cost, its "
            "intercept the fixed one (table below). Logarithmic axes bend it."
        )
    if baselines:
        text += " Dotted: the empty kernel in the same setting."
    return text


def interval_in(one: PointAnalysis, unit: TimeUnit) -> tuple[float, float]:
    summary, median = one.summary(), one.median or 0.0
    low, high = summary.median_interval if summary is not None else (median, median)
    return tuple((value if math.isfinite(value) else median) / unit.ns for value in (low, high))  # type: ignore[return-value]


def point_hover(one: PointAnalysis) -> str:
    summary = one.summary()
    if summary is None:
        return label(one.point.label)
    low, high = summary.median_interval
    lines = [
        f"<b>{label(point_label(one.point, device=True))}</b>",
        f"median {time_text(summary.median)} [{time_text(low)}, {time_text(high)}]",
        f"quartiles {time_text(summary.q1)} to {time_text(summary.q3)}",
        one.samples_used,
    ]
    if one.dispatches > 1:
        lines.insert(2, f"{time_text(one.per_dispatch)} a dispatch, {one.dispatches} dispatches")
    return "<br>".join(lines)
