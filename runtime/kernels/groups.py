"""Workgroup counts: as a caller gives them, or inferred from the arrays of a call."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TypeAlias

from ...status import InvalidArgumentError
from ..arrays.array import DeviceArray
from .parameter import Parameter

Groups: TypeAlias = int | tuple[int, ...]
Counts: TypeAlias = tuple[int, int, int]


def given_counts(groups: Groups, kernel: str) -> Counts:
    """Workgroup counts as three ints.

    Raises:
        InvalidArgumentError: not an int or up to three, or a negative one.
    """
    counts = tuple(groups) if isinstance(groups, (tuple, list)) else (groups,)
    try:
        if not counts or any(isinstance(n, bool) for n in counts):
            raise TypeError
        x, y, z = (*(operator.index(n) for n in counts), 1, 1)[:3]
    except TypeError:
        x = -1
    if not 1 <= len(counts) <= 3 or x < 0 or y < 0 or z < 0:
        raise InvalidArgumentError(f"{kernel}: groups is an int or up to three, none negative; got {groups!r}")
    return x, y, z


def inferred_counts(
    parameters: Sequence[Parameter], arrays: Sequence[DeviceArray], local: Counts, kernel: str
) -> Counts:
    """One invocation an element of the largest written array (of the largest array, if none is written).

    With a one-dimensional local size elements are counted, otherwise the axes of the array are those of the grid, the
    last axis first.

    Raises:
        InvalidArgumentError: there are no arrays.
    """
    pairs = list(zip(arrays, parameters, strict=True))
    candidates = [pair for pair in pairs if pair[1].written] or pairs
    if not candidates:
        raise InvalidArgumentError(f"{kernel} has no arrays to infer workgroup counts from; give groups=")
    array, parameter = max(candidates, key=lambda pair: pair[0].nbytes)
    element = parameter.binding.element
    if local[1] == local[2] == 1:
        count = array.size
        if element is not None and element.stride:
            head = parameter.binding.fixed_size if element.array == "runtime" else 0
            count = -(-(array.nbytes - head) // element.stride)
        return max(1, -(-count // local[0])), 1, 1
    shape = array.shape
    if element is not None and element.components > 1 and shape and shape[-1] == element.components:
        shape = shape[:-1]
    extents = [*reversed(shape), 1, 1, 1]
    for extra in extents[3:]:
        extents[2] *= extra
    x, y, z = (max(1, -(-extent // size)) for extent, size in zip(extents[:3], local, strict=True))
    return x, y, z
