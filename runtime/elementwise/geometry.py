"""The axes along which arrays are combined or scanned, and the addressing of arrays that are broadcast or reordered."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Literal

import numpy as np

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError, OutOfRangeError
from .arguments import Value


class Axes:
    """The axes of a shape, with the reduced or scanned axes last.

    Attributes:
        shape: the shape of the arguments, broadcast.
        order: the numbers of all axes, the kept ones first.
        rows: the element count of the kept axes, which is the number of results of a reduction.
        count: the element count of a row.
    """

    def __init__(self, kernel: str, shape: tuple[int, ...], axis: object) -> None:
        self.shape = shape
        self._along = _normalised(kernel, shape, axis)
        self.order: tuple[int, ...] = (*(at for at in range(len(shape)) if at not in self._along), *self._along)
        self.rows: int = math.prod(length for at, length in enumerate(shape) if at not in self._along)
        self.count: int = math.prod(shape[at] for at in self._along)

    def kept_shape(self, keepdims: bool) -> tuple[int, ...]:
        """Returns the shape of a reduction's results."""
        if keepdims:
            return tuple(1 if at in self._along else length for at, length in enumerate(self.shape))
        return tuple(length for at, length in enumerate(self.shape) if at not in self._along)


def common_shape(kernel: str, values: Sequence[Value]) -> tuple[int, ...]:
    """Returns the shape that arrays are broadcast to.

    Raises:
        InvalidArgumentError: the shapes do not broadcast, or there is no array.
    """
    shaped = [value for value in values if value.array is not None and not value.declared.is_raw]
    if not shaped:
        raise InvalidArgumentError(
            f"{kernel}: no array determines the number of elements; pass an array that is not raw"
        )
    try:
        return tuple(np.broadcast_shapes(*(value.shape for value in shaped)))
    except ValueError:
        shapes = ", ".join(f"{value.declared.name} {value.shape}" for value in shaped)
        raise InvalidArgumentError(f"{kernel}: these shapes do not go together: {shapes}") from None


def _normalised(kernel: str, shape: tuple[int, ...], axis: object) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(len(shape)))
    several = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    normalised = []
    for entry in several:
        try:
            at = operator.index(entry)
        except TypeError:
            raise InvalidArgumentError(f"{kernel}: axis is an int, several, or None; got {axis!r}") from None
        if not -len(shape) <= at < len(shape) or isinstance(entry, bool):
            raise OutOfRangeError(f"{kernel}: there is no axis {entry} in shape {shape}")
        normalised.append(at % len(shape))
    if len(set(normalised)) < len(normalised):
        raise InvalidArgumentError(f"{kernel}: axis {axis!r} names one twice")
    return tuple(sorted(normalised))


Mode = Literal["flat", "one", "strided"]


@dataclass(frozen=True, slots=True)
class Geometry:
    """Elements in an order, and their indices in several arrays.

    Attributes:
        lengths: the lengths of the axes, merged as far as possible.
        strides: the strides of each array, in elements; 0 along a broadcast axis.
    """

    lengths: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]

    @property
    def modes(self) -> tuple[Mode, ...]:
        """Returns the indexing of each array: by the element's number, by 0, or by its strides."""
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
    for operand in shapes:
        padded = (1,) * (len(shape) - len(operand)) + tuple(operand)
        full = [math.prod(padded[axis + 1 :]) if padded[axis] != 1 else 0 for axis in range(len(shape))]
        strides.append([full[axis] for axis in axes])
    lengths: list[int] = []
    rows: list[list[int]] = [[] for _ in strides]
    for at, axis in enumerate(axes):
        length = shape[axis]
        if length == 1:
            continue
        # Two axes merge if in each array the outer stride is the inner stride times the inner length.
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
