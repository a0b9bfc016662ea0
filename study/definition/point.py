"""Points: combinations of a study's targets, axes and devices."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TypeGuard

from ...base.lazy_dataclass import dataclass

AxisValue = int | float | str | bool
"""A value on an axis."""


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a number, not a truth value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Point:
    """One combination to be measured.

    Attributes:
        index: the index in the study's order, from 0; the points of its other side come next, baselines last.
        target: the target's name.
        device: the device's URI as in the study or on the command line.
        axes: the value on each axis.
        settings: the target's settings with all expressions evaluated; JSON values only.
        derived: the derived figures that are known before measuring, such as bytes and flops, by name.
        measure: the name of the segment that is the headline, or ``"total"``.
        baseline: the index of the point that measures the empty kernel in this point's setting; ``None`` for none.
        is_baseline: whether the point measures the empty kernel for others.
        against: the index of the point of the other side that is measured in turns with this point; ``None`` for none.
        is_against: whether the point belongs to the other side.
    """

    index: int
    target: str
    device: str
    axes: Mapping[str, AxisValue] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    derived: Mapping[str, float] = field(default_factory=dict)
    measure: str = "execute"
    baseline: int | None = None
    is_baseline: bool = False
    against: int | None = None
    is_against: bool = False

    @property
    def key(self) -> str:
        """Identifies the point in other runs and on other devices: target and axes."""
        return json.dumps([self.target, dict(sorted(self.axes.items()))], separators=(",", ":"))

    @property
    def label(self) -> str:
        """The text for messages: ``saxpy n=1024 batch=4``, followed by ``(old)`` for a point of the other side."""
        values = (f"{name}={value}" for name, value in self.axes.items())
        return " ".join([self.target, *values, *(["(old)"] if self.is_against else [])])


def paired(points: Iterable[Point]) -> list[tuple[Point, ...]]:
    """Groups points by pair, in their order; a point is alone if its counterpart is not among them."""
    by_index = {point.index: point for point in points}
    seconds = {point.against for point in by_index.values()} & by_index.keys()
    return [
        (point, by_index[point.against]) if point.against in by_index else (point,)
        for point in by_index.values()
        if point.index not in seconds
    ]
