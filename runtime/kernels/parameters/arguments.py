"""Arguments of kernel calls as arrays, and workgroup counts."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ....status import InvalidArgumentError
from ...arrays.array import DeviceArray
from ...arrays.spec import ArraySpec, check_out
from ...images.bound import ABSENT, Bound
from ...images.image import DeviceImage
from ...images.texel_array import TexelArray
from .parameter import KernelArgument, Parameter, Prepared, ResultArray

Out: TypeAlias = ResultArray | Sequence[ResultArray] | None
"""Arrays for written bindings that the call passes neither by position nor by name, in binding order."""
Groups: TypeAlias = int | tuple[int, ...]
"""Workgroups in x, y and z; trailing ones are 1."""
Counts: TypeAlias = tuple[int, int, int]


def declared(parameters: Sequence[Parameter]) -> str:
    """Returns a shader's declaration, for messages."""
    shown: dict[str, int] = {}  # lists an array of bindings once
    for parameter in parameters:
        text = f"{parameter.label}: {parameter.declared()}{', written' if parameter.written else ''}"
        shown[text] = shown.get(text, 0) + 1
    return "; ".join(f"{text} (a list of {n})" if n > 1 else text for text, n in shown.items()) or "no bindings"


def prepare_arguments(
    parameters: Sequence[Parameter], arrays: Sequence[KernelArgument], kernel: str
) -> tuple[list[Prepared], bool]:
    """Returns the arguments as arrays, and whether each is known to fit its binding."""
    values: list[Prepared] = []
    fit = True
    for parameter, value in zip(parameters, arrays, strict=True):
        # The usual cases without a call.
        if (
            (type(value) is np.ndarray and value.flags.c_contiguous) or (type(value) is ArraySpec and parameter.written)
        ) and (value.dtype, value.nbytes) in parameter.accepted:
            values.append(value)
        elif type(value) is DeviceArray and (value.dtype, value.nbytes) in parameter.accepted:
            value._check_open()
            values.append(value)
        elif value is None and parameter.binding.count != 1:
            values.append(ABSENT)
        else:
            prepared = parameter.prepare(value, kernel)
            values.append(prepared)
            if (prepared.dtype, prepared.nbytes) not in parameter.accepted:
                fit = False
    return values, fit


def targets_of(out: Out, kernel: str) -> list[int]:
    """Returns the ids of the arrays in ``out=``, which results are copied into."""
    outs = listed(out)
    for array in outs:
        if isinstance(array, np.ndarray):
            check_out(array, array.shape, array.dtype, f"{kernel}: out=")
        elif not isinstance(array, (DeviceArray, DeviceImage, TexelArray)):
            raise InvalidArgumentError(f"{kernel}: out= takes arrays to write into, got {type(array).__name__}")
    return [id(array) for array in outs]


def listed(out: Out) -> list[ResultArray]:
    """Returns the arrays in ``out=`` as a list."""
    if out is None:
        return []
    return list(out) if isinstance(out, (tuple, list)) else [out]  # type: ignore[list-item]  # checked by targets_of


# -- workgroup counts --------------------------------------------------------------------------------


def given_counts(groups: Groups, kernel: str) -> Counts:
    """Returns workgroup counts as three ints."""
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
    parameters: Sequence[Parameter], arrays: Sequence[DeviceArray | Bound], local: Counts, kernel: str
) -> Counts:
    """Returns workgroup counts for one invocation per element, or texel, of the largest written array.

    If no array is written, the largest one counts. With a one-dimensional local size elements are counted. Otherwise
    the axes of the array are those of the grid, the last axis first.

    Raises:
        InvalidArgumentError: there are no arrays.
    """
    pairs = list(zip(arrays, parameters, strict=True))
    candidates = [pair for pair in pairs if pair[1].written] or pairs
    if not candidates:
        raise InvalidArgumentError(f"{kernel} has no arrays to infer workgroup counts from; give groups=")
    array, parameter = max(candidates, key=lambda pair: pair[0].nbytes)
    if local[1] == local[2] == 1:
        stride = parameter.stride
        count = -(-(array.nbytes - parameter.head) // stride) if stride else array.size
        return max(1, -(-count // local[0])), 1, 1
    extents = [*reversed(parameter.element_axes(array.shape)), 1, 1, 1]
    for extra in extents[3:]:
        extents[2] *= extra
    x, y, z = (max(1, -(-extent // size)) for extent, size in zip(extents[:3], local, strict=True))
    return x, y, z
