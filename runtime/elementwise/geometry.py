"""Addressing for arrays that are broadcast or taken in another order of their axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from ...base.lazy_dataclass import dataclass

Mode = Literal["flat", "one", "strided"]


@dataclass(frozen=True, slots=True)
class Geometry:
    """Elements in an order, and their indices in several arrays.

    Attributes:
        lengths: of the axes, merged as far as possible.
        strides: of each array, in elements; 0 along a broadcast axis.
    """

    lengths: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]

    @property
    def modes(self) -> tuple[Mode, ...]:
        """Returns how each array is indexed: by the element's number, by 0, or by its strides."""
        flat = len(self.lengths) <= 1
        return tuple(
            "one" if not any(strides) else "flat" if flat and strides == (1,) else "strided" for strides in self.strides
        )

    def table(self) -> np.ndarray:
        """Returns the lengths, then the strides of each array that needs them."""
        rows = [row for row, mode in zip(self.strides, self.modes, strict=True) if mode == "strided"]
        return np.array([*self.lengths, *(n for row in rows for n in row)], np.uint32)


def geometry_of(shape: Sequence[int], shapes: Sequence[Sequence[int]], order: Sequence[int] | None = None) -> Geometry:
    """Returns the geometry of C-contiguous arrays, broadcast from ``shapes`` to ``shape``, its axes in an order."""
    axes = list(range(len(shape))) if order is None else list(order)
    strides = []
    for one in shapes:
        padded = (1,) * (len(shape) - len(one)) + tuple(one)
        full = [math.prod(padded[axis + 1 :]) if padded[axis] != 1 else 0 for axis in range(len(shape))]
        strides.append([full[axis] for axis in axes])
    lengths: list[int] = []
    rows: list[list[int]] = [[] for _ in strides]
    for at, axis in enumerate(axes):
        length = shape[axis]
        if length == 1:
            continue
        # Two axes merge if in each array the outer stride is the inner one times the inner length.
        if lengths and all(row[-1] == stride[at] * length for row, stride in zip(rows, strides, strict=True)):
            lengths[-1] *= length
            for row, stride in zip(rows, strides, strict=True):
                row[-1] = stride[at]
        else:
            lengths.append(length)
            for row, stride in zip(rows, strides, strict=True):
                row.append(stride[at])
    if not lengths:
        lengths = [1]
        rows = [[0] for _ in strides]
    return Geometry(tuple(lengths), tuple(tuple(row) for row in rows))
