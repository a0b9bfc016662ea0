"""Indices of arrays: which contiguous part of an array an index selects."""

from __future__ import annotations

import math
import operator
from types import EllipsisType
from typing import TypeAlias

from ...status import InvalidArgumentError

Index: TypeAlias = "int | slice | EllipsisType | tuple[int | slice | EllipsisType, ...]"


def contiguous_part(index: Index, shape: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """The first element and the shape of ``array[index]``.

    Raises:
        InvalidArgumentError: the part is not contiguous, or an index of another kind.
        IndexError: an index outside the axis.
    """
    parts = index if isinstance(index, tuple) else (index,)
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(dots) == 1:
        missing = len(shape) - len(parts) + 1
        parts = (*parts[: dots[0]], *[slice(None)] * missing, *parts[dots[0] + 1 :])
    if len(parts) > len(shape):
        raise InvalidArgumentError(f"{len(parts)} indices for an array of {len(shape)} axes")
    start, kept, extended = 0, [], False
    for axis, length in enumerate(shape):
        stride = math.prod(shape[axis + 1 :])
        part = parts[axis] if axis < len(parts) else slice(None)
        if isinstance(part, slice):
            first, stop, step = part.indices(length)
            count = len(range(first, stop, step))
            # Contiguous means: after the first axis that keeps several entries, every axis is whole.
            if (step != 1 and count > 1) or (extended and count != length):
                raise InvalidArgumentError(f"[{index}] of shape {shape} is not contiguous; use x.numpy()[…]")
            extended = extended or count != 1
            kept.append(count)
            start += first * stride
        else:
            at = _checked_index(part, axis, length)
            if extended and length != 1:
                raise InvalidArgumentError(f"[{index}] of shape {shape} is not contiguous; use x.numpy()[…]")
            start += at * stride
    return start, tuple(kept)


def _checked_index(part: object, axis: int, length: int) -> int:
    try:
        if isinstance(part, bool):
            raise TypeError  # an int to Python, a mask to NumPy
        at = operator.index(part)  # type: ignore[arg-type]  # other types raise TypeError
    except TypeError:
        raise InvalidArgumentError(
            f"an index is an int, a slice or an ellipsis, got {part!r}; x.numpy()[…] takes the others"
        ) from None
    at += length if at < 0 else 0
    if not 0 <= at < length:
        raise IndexError(f"index {part} is outside axis {axis} of length {length}")
    return at
