"""Arguments of kernel calls as arrays, and workgroup counts."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

import numpy as np

from ....hal.memory import BufferUsage
from ....status import InvalidArgumentError, ResourceExhaustedError
from ...arrays.array import DeviceArray
from ...arrays.array_device import ArrayDevice
from ...arrays.recorder import recorder_of
from ...arrays.spec import ArraySpec, check_out
from ...images.bound import ABSENT, Bound
from ...images.image import DeviceImage
from ...images.texel_array import TexelArray
from .parameter import KernelArgument, Parameter, Prepared, ResultArray

if TYPE_CHECKING:
    from ....hal_vulkan import Buffer

Out: TypeAlias = ResultArray | Sequence[ResultArray] | None
"""Arrays for written bindings that the call passes neither by position nor by name, in binding order."""
HostGroups: TypeAlias = int | tuple[int, ...] | str
"""Workgroups in x, y and z, of which omitted counts are 1; or an argument's name: one invocation an element of it."""
Groups: TypeAlias = HostGroups | DeviceArray
"""The same, or an array on the device of three uint32, which is read when the call runs."""
Counts: TypeAlias = tuple[int, int, int]


class PerElement(NamedTuple):
    """A grid of one invocation for each element of the argument for the parameter of that index."""

    parameter: int


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
            (type(value) is np.ndarray and value.flags.c_contiguous)
            or (type(value) is ArraySpec and parameter.written and not parameter.binding.readable)
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
    """Returns the ids of the arrays in ``out=``, to which results are copied."""
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


def check_indirect(groups: DeviceArray, device: ArrayDevice, kernel: str) -> None:
    """Raises unless an array can have the workgroup counts of a dispatch."""
    where = f"{kernel}: groups="
    groups._check_open()
    if groups.dtype != np.uint32 or groups.shape != (3,):
        raise InvalidArgumentError(
            f"{where} takes an array of three uint32 on the device, the workgroups in x, y and z; "
            f"got shape {groups.shape} and dtype {groups.dtype}"
        )
    if groups.device is not device:
        raise InvalidArgumentError(
            f"{where} is on another device, {groups.device.name}, than the kernel: copy it with device.asarray(x)"
        )
    if groups.buffer.offset % 4:
        raise InvalidArgumentError(f"{where} lies at byte {groups.buffer.offset}; the device reads multiples of 4")
    cast("Buffer", groups.buffer).check_usage(BufferUsage.DISPATCH_INDIRECT_PARAMETERS, where)
    # The device decides what a count past its limits does. Counts that are there already are looked at.
    is_known = groups.buffer.host_visible and not groups.is_pending and recorder_of(device) is None
    if is_known and (not groups.ready or device.has_reached(groups.ready)):
        counts = np.frombuffer(groups.buffer.read(), np.uint32)
        most = device.vulkan.profile.limits.max_compute_work_group_count
        if (counts > most).any():
            raise ResourceExhaustedError(
                f"{where} has {tuple(counts.tolist())} workgroups, more than {device.name} dispatches at once "
                f"({tuple(most)}); use more dimensions or a larger local size"
            )


def given_counts(groups: int | tuple[int, ...], kernel: str) -> Counts:
    """Returns workgroup counts as three ints."""
    counts = tuple(groups) if isinstance(groups, (tuple, list)) else (groups,)
    try:
        if not counts or any(isinstance(n, bool) for n in counts):
            raise TypeError
        x, y, z = (*(operator.index(n) for n in counts), 1, 1)[:3]
    except TypeError:
        x = -1
    if not 1 <= len(counts) <= 3 or x < 0 or y < 0 or z < 0:
        raise InvalidArgumentError(
            f"{kernel}: groups is an int or up to three, none negative, or an argument's name; got {groups!r}"
        )
    return x, y, z


def inferred_counts(
    parameters: Sequence[Parameter],
    arrays: Sequence[DeviceArray | Bound],
    local: Counts,
    kernel: str,
    over: PerElement | None = None,
) -> Counts:
    """Returns workgroup counts for one invocation per element, or texel, of an argument.

    That is the one of ``over``, else the largest written array, or the largest if no array is written. With a
    one-dimensional local size elements are counted. Otherwise the axes of the array are those of the grid, the last
    axis first.

    Raises:
        InvalidArgumentError: there are no arrays; or the kernel writes the array at places of no invocation's own, and
            reads one that has more elements.
    """
    pairs = list(zip(arrays, parameters, strict=True))
    candidates = [pair for pair in pairs if over is not None and pair[1].index == over.parameter]
    candidates = candidates or [pair for pair in pairs if pair[1].written] or pairs
    if not candidates:
        raise InvalidArgumentError(f"{kernel} has no arrays to infer workgroup counts from; give groups=")
    array, parameter = max(candidates, key=lambda pair: pair[0].nbytes)
    counts = _per_element(array, parameter, local)
    if over is None and parameter.binding.shared_output:
        _check_covers(pairs, parameter, math.prod(counts) * math.prod(local), local, kernel)
    return counts


def _per_element(array: DeviceArray | Bound, parameter: Parameter, local: Counts) -> Counts:
    if local[1] == local[2] == 1:
        return max(1, -(-_elements(array, parameter) // local[0])), 1, 1
    extents = [*reversed(parameter.element_axes(array.shape)), 1, 1, 1]
    for extra in extents[3:]:
        extents[2] *= extra
    x, y, z = (max(1, -(-extent // size)) for extent, size in zip(extents[:3], local, strict=True))
    return x, y, z


def _elements(array: DeviceArray | Bound, parameter: Parameter) -> int:
    stride = parameter.stride
    return -(-(array.nbytes - parameter.head) // stride) if stride else array.size


def _check_covers(
    pairs: Sequence[tuple[DeviceArray | Bound, Parameter]],
    written: Parameter,
    invocations: int,
    local: Counts,
    kernel: str,
) -> None:
    """Raises if invocations for a written array's elements are fewer than the elements of an array that is read."""
    read = [(_elements(*pair), *pair) for pair in pairs if pair[1].binding.spread_input and pair[1] is not written]
    count, array, parameter = max(read, key=lambda item: item[0], default=(0, None, written))
    if array is None or count <= invocations:
        return
    name = next((name for block in parameter.binding.blocks for name in (block.name, block.structure) if name), "")
    x, *rest = _per_element(array, parameter, local)
    by_counts = f"groups={x}" if rest == [1, 1] else f"groups={(x, *rest)}"
    raise InvalidArgumentError(
        f"{kernel}: how many workgroups? One invocation for each element of {written.label} makes {invocations:,}. "
        f"They read {parameter.label}, which has {count:,} elements, and would leave out a part of it, because the "
        f"kernel writes to places that are no invocation's own. For one invocation for each element of "
        f"{parameter.label} give {f'groups={name!r} or ' if name else ''}{by_counts}"
    )
