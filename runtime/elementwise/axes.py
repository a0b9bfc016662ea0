"""The axes along which arrays are combined or scanned."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np

from ...status import InvalidArgumentError, OutOfRangeError
from .arguments import Value


class Axes:
    """The axes of a shape, with the reduced or scanned ones last.

    Attributes:
        shape: of the arguments, broadcast.
        order: all axes, the kept ones first.
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
        raise InvalidArgumentError(f"{kernel}: no array tells how many elements there are; pass one that is not raw")
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
    for one in several:
        try:
            at = operator.index(one)
        except TypeError:
            raise InvalidArgumentError(f"{kernel}: axis is an int, several, or None; got {axis!r}") from None
        if not -len(shape) <= at < len(shape) or isinstance(one, bool):
            raise OutOfRangeError(f"{kernel}: there is no axis {one} in shape {shape}")
        normalised.append(at % len(shape))
    if len(set(normalised)) < len(normalised):
        raise InvalidArgumentError(f"{kernel}: axis {axis!r} names one twice")
    return tuple(sorted(normalised))
