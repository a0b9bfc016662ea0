"""Shapes, dtypes and indices of arrays, and the checks of users' values."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from types import EllipsisType
from typing import Final, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from ...formats.element_type import dtype_of
from ...status import InvalidArgumentError, UnimplementedError

Index: TypeAlias = "int | slice | EllipsisType | tuple[int | slice | EllipsisType, ...]"

_MAX_AXES: Final = 32  # NumPy's limit before 2.0


class ArraySpec:
    """Shape and dtype of an array that a kernel makes for its result; see ``empty``."""

    __slots__ = ("dtype", "nbytes", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
        self.shape: tuple[int, ...] = shape
        self.dtype: np.dtype[np.generic] = dtype
        self.nbytes: int = math.prod(shape) * dtype.itemsize

    def __repr__(self) -> str:
        return f"pumice.empty({self.shape}, {self.dtype})"


def empty(shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32) -> ArraySpec:
    """Describes a result: the kernel allocates an array of this shape and dtype on its own device.

    Args:
        shape: a length, or a length for each axis.
        dtype: the dtype, or a value that NumPy converts to a dtype; ml_dtypes are included.

    Raises:
        InvalidArgumentError: a length is negative, or the dtype is of Python objects.
    """
    return ArraySpec(check_shape(shape), check_dtype(dtype))


def check_shape(shape: SupportsIndex | Sequence[int], *, allow_unknown: bool = False) -> tuple[int, ...]:
    """Returns a shape as a tuple of lengths; raises InvalidArgumentError for other values."""
    try:
        if isinstance(shape, np.ndarray):
            shape = tuple(shape.tolist()) if shape.ndim else shape.item()
        items = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        if len(items) == 1 and isinstance(items[0], (tuple, list)):
            items = tuple(items[0])
        lengths = tuple(operator.index(n) for n in items)
    except TypeError:
        raise InvalidArgumentError(f"a shape is an int or a sequence of ints, got {shape!r}") from None
    if any(n < (-1 if allow_unknown else 0) for n in lengths):
        raise InvalidArgumentError(f"a shape's lengths must not be negative, got {shape!r}")
    if len(lengths) > _MAX_AXES:
        raise InvalidArgumentError(f"an array has at most {_MAX_AXES} axes, got {len(lengths)}")
    if 0 in lengths and any(n >= 1 << 63 for n in lengths):
        raise InvalidArgumentError(f"a shape's lengths are below 2**63, got {shape!r}")
    return lengths


def reshaped(shape: tuple[int, ...], wanted: Sequence[int]) -> tuple[int, ...]:
    """Returns ``wanted`` as a shape of the same elements; one length may be -1, which is inferred.

    Raises:
        InvalidArgumentError: the element counts differ.
    """
    size, new_shape = math.prod(shape), check_shape(tuple(wanted), allow_unknown=True)
    if -1 in new_shape:
        known = math.prod(length for length in new_shape if length != -1)
        if new_shape.count(-1) > 1 or not known or size % known:
            raise InvalidArgumentError(f"cannot reshape {shape} to {wanted}")
        new_shape = tuple(size // known if length == -1 else length for length in new_shape)
    if math.prod(new_shape) != size:
        raise InvalidArgumentError(f"cannot reshape {size} elements of shape {shape} to {wanted}")
    return new_shape


def check_dtype(dtype: npt.DTypeLike) -> np.dtype[np.generic]:
    """Returns a dtype whose elements are plain bytes; raises InvalidArgumentError for other dtypes."""
    try:
        checked = dtype if isinstance(dtype, np.dtype) else dtype_of(dtype)
    except TypeError as error:
        raise InvalidArgumentError(f"not a dtype: {dtype!r} ({error})") from None
    if checked.subdtype is not None:
        raise InvalidArgumentError(
            f"dtype {checked} is an array itself; put its shape into the array's: {checked.subdtype}"
        )
    if checked.hasobject or checked.itemsize == 0:
        raise InvalidArgumentError(f"dtype {checked} has no fixed bytes an element; a device array holds plain numbers")
    if not checked.isnative:
        raise UnimplementedError(f"dtype {checked} is big-endian; convert it with .astype({checked.newbyteorder('=')})")
    return checked


def raw_bytes(array: np.ndarray) -> memoryview:
    """Returns the bytes of a C-contiguous array, writable if it is; ml_dtypes' arrays offer no buffer of their own."""
    return array.reshape(-1).view(np.uint8).data


def check_out(out: object, shape: tuple[int, ...], dtype: np.dtype[np.generic], subject: str) -> None:
    """Raises InvalidArgumentError unless results of this shape and dtype can be copied into ``out`` in place."""
    expected = f"a writable C-contiguous array of shape {shape} and dtype {dtype}"
    if not isinstance(out, np.ndarray):
        raise InvalidArgumentError(f"{subject} must be {expected}, got {type(out).__name__}")
    if out.shape != shape or out.dtype != dtype:
        raise InvalidArgumentError(f"{subject} must be {expected}, got {out.shape} {out.dtype}")
    if not out.flags.c_contiguous or not out.flags.writeable:
        state = "read-only" if not out.flags.writeable else "not contiguous"
        raise InvalidArgumentError(f"{subject} must be {expected}; it is {state}")


def contiguous_part(index: Index, shape: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """Returns the first element and the shape of ``array[index]``; raises if that is not contiguous."""
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
            # Contiguous means that after the first axis with several entries, every axis is whole.
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
