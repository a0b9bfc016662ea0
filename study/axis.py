"""Axes: what a study varies, and over which values."""

from __future__ import annotations

from dataclasses import dataclass

from .point import AxisValue

__all__ = ["Axis"]


@dataclass(frozen=True, slots=True)
class Axis:
    """A named list of values.

    Attributes:
        name: as expressions have it.
        values: at least one, all different.
    """

    name: str
    values: tuple[AxisValue, ...]
