"""The axes along which arrays are combined or scanned."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np

from ...status import InvalidArgumentError, OutOfRangeError
from .arguments import Value


class Axes:
    """The axes of a shape, those along which a kernel works last.

    Attributes:
        shape: of the arguments, broadcast.
        order: the axes, those that are kept first.
        rows: how many results there are: elements of the axes that are kept.
        count: how many elements a row has.
    """

    def __init__(self, kernel: str, shape: tuple[int, ...], axis: object) -> None:
        self.shape = shape
        self._along = _normalised(kernel, shape, axis)
        self.order = (*(at for at in range(len(shape)) if at not in self._along), *self._along)
        self.rows = math.prod(length for at, length in enumerate(shape) if at not in self._along)
        self.count = math.prod(shape[at] for at in self._along)

    def kept_shape(self, keepdims: bool) -> tuple[int, ...]:
        """The shape of the results of a reduction."""
        if keepdims:
            return tuple(1 if at in self._along else length for at, length in enumerate(self.shape))
        return tuple(length for at, length in enumerate(self.shape) if at not in self._along)


def common_shape(kernel: str, values: Sequence[Value]) -> tuple[int, ...]:
    """The shape that arrays are broadcast to.

    Raises:
        InvalidArgumentError: they do not go together, or there is none.
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
