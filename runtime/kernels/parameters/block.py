"""Blocks from Python values: nested mappings by member name, in the layout that the shader declares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import numpy as np

from ....hal_vulkan import BlockMember
from ....spirv.reflection.block_dtype import block_dtype, element_dtype, member_names, only_array, scalar_dtype, tail
from ....spirv.reflection.reflection_types import BufferBlock
from ....status import InvalidArgumentError, NotFoundError, UnimplementedError, shorten, shown
from ...arrays.array import DeviceArray

_SHOWN_MEMBERS: Final = 12
_MAX_BYTES: Final = 1 << 31
EXACT: Final = float(1 << 53)
"""Floats up to here are the integers that they were made from."""


def describe(members: Sequence[BlockMember]) -> str:
    """Returns the members as ``float a, uint n``, for messages."""
    parts = [f"{type_name(member)} {name}" for name, member in member_names(members).items()]
    more = f", … ({len(parts)} members)" if len(parts) > _SHOWN_MEMBERS else ""
    return ", ".join(parts[:_SHOWN_MEMBERS]) + more


def type_name(member: BlockMember) -> str:
    """Returns a member's type, for messages."""
    if member.pointee:
        base = f"pointer to {member.pointee}"
    elif member.scalar is None:
        base = "struct"
    else:
        base = member.scalar.kind + ("" if member.scalar.bits == 32 else str(member.scalar.bits))
        if member.columns > 1:
            base += f" {member.components}x{member.columns} matrix"
        elif member.components > 1:
            base += f" vec{member.components}"
    return base + "".join(f"[{n or ''}]" for n in member.array_shape)


def member_layout(member: BlockMember, itemsize: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns NumPy's shape and strides of a member; a matrix is indexed by row and column."""
    shape, strides = member.array_shape, member.array_strides
    if member.columns > 1:
        # Vulkan's columns (or rows) lie matrix_stride apart.
        far = member.matrix_stride or itemsize * member.components
        steps = (far, itemsize) if member.row_major else (itemsize, far)
        return (*shape, member.components, member.columns), (*strides, *steps)
    if member.components > 1:
        return (*shape, member.components), (*strides, itemsize)
    return shape, strides


def is_block_value(value: object) -> bool:
    """Whether an argument is a mapping of a block's members, or nested lists of mappings."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return isinstance(value, Mapping)


def pack_argument(block: BufferBlock, value: object, where: str) -> np.ndarray:
    """Packs a mapping of a block's members, or a list if the only member is an array, into an array for a binding.

    Returns:
        An array of the elements if an array is the block's only member, else one 0-dimensional element: the block.
    """
    array = only_array(block.members)
    if array is not None:
        (name,) = member_names(block.members)
        if not isinstance(value, Mapping):
            value = {name: value}
    elif not isinstance(value, Mapping):
        raise InvalidArgumentError(f"{where} is one block ({describe(block.members)}); give one mapping, not a list")
    length = _tail_length(block, value)
    last = tail(block.members)
    stride = (last.array_stride or 0) if last is not None else 0
    size = block.fixed_size + length * stride
    if size > _MAX_BYTES:
        raise UnimplementedError(f"{where} is a block of {size:,} bytes; give its bytes as a uint8 array")
    data = bytearray(size)
    pack_members(data, 0, block.members, value, where, length=length)
    if array is None:
        dtype = block_dtype(block, None if last is None else length)
        return np.frombuffer(data, dtype).reshape(())
    base, shape = element_dtype(block).subdtype or (element_dtype(block), ())  # arrays of subarrays have more axes
    return np.frombuffer(data, base).reshape(-1, *shape) if data else np.empty((0, *shape), base)


def _tail_length(block: BufferBlock, value: Mapping[str, object]) -> int:
    last = tail(block.members)
    if last is None:
        return 0
    name = list(member_names(block.members))[-1]
    return _length(value.get(name)) or 0


def _length(value: object) -> int | None:
    """Returns the length of a sequence, ``None`` for other values."""
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim):
        return len(value)
    return None


def pack_members(
    data: bytearray,
    start: int,
    members: Sequence[BlockMember],
    values: Mapping[str, object],
    where: str,
    *,
    noun: str = "member",
    length: int = 0,
    missing: Literal["refused", "zero", "any"] = "refused",
) -> None:
    """Writes members at their offsets from ``start``.

    Args:
        noun: the noun for a member in messages.
        length: the length of the run-time sized array at the end.
        missing: the treatment of members without a value: ``"refused"`` raises; ``"zero"`` keeps their bytes, but
            raises for pointers; ``"any"`` keeps the bytes of all.
    """
    known = member_names(members)
    for name in values:
        if name not in known:
            raise NotFoundError(f"{where} has no {noun} {shown(name)}; it has: {', '.join(known) or 'none'}")
    needed = {n: m for n, m in known.items() if missing == "refused" or (missing == "zero" and has_pointer(m))}
    absent = [f"{type_name(member)} {name}" for name, member in needed.items() if name not in values]
    if absent:
        raise InvalidArgumentError(f"{where}: {noun}(s) {', '.join(absent)} not given")
    for name, value in values.items():
        member, label = known[name], f"{where}: {noun} {name}"
        shape = tuple(n or length for n in member.array_shape)
        if member.scalar is not None:
            _pack_scalars(data, start + member.offset, member, shape, value, label)
            continue
        for at, item in _structures(start + member.offset, shape, member.array_strides, value, label):
            pack_members(data, at, member.members, item, label, missing=missing)


def has_pointer(member: BlockMember) -> bool:
    """Whether the member is a pointer or contains one."""
    return bool(member.pointee) or any(has_pointer(inner) for inner in member.members)


def _structures(
    start: int, shape: Sequence[int], strides: Sequence[int], value: object, where: str
) -> list[tuple[int, Mapping[str, object]]]:
    """Returns the structures in an array with their offsets."""
    items: list[tuple[int, object]] = [(start, value)]
    for count, stride in zip(shape, strides, strict=True):
        spread: list[tuple[int, object]] = []
        for at, item in items:
            length = _length(item)
            if length != count or not isinstance(item, (list, tuple, np.ndarray)):
                got = type(item).__name__ if length is None else length
                raise InvalidArgumentError(f"{where} takes {count} structures, got {got}")
            spread += [(at + i * stride, part) for i, part in enumerate(item)]
        items = spread
    structures: list[tuple[int, Mapping[str, object]]] = []
    for at, item in items:
        if isinstance(item, (np.void, np.ndarray)) and item.dtype.names is not None and item.ndim == 0:
            item = {name: item[name] for name in item.dtype.names}
        if not isinstance(item, Mapping):
            raise InvalidArgumentError(f"{where} is a structure; give its members by name in a mapping")
        structures.append((at, item))
    return structures


def _pack_scalars(
    data: bytearray, start: int, member: BlockMember, array_shape: tuple[int, ...], value: object, where: str
) -> None:
    assert member.scalar is not None
    dtype = scalar_dtype(member.scalar)
    if dtype.kind == "V" and member.scalar.dtype is None:
        raise InvalidArgumentError(f"{where} has a type that NumPy has not; give the block as bytes")
    shape, strides = member_layout(member, dtype.itemsize)
    shape = (*array_shape, *shape[len(array_shape) :])
    array = _convert(_addresses(value, where) if member.pointee else value, dtype, shape, member, where)
    if array.size:
        target: np.ndarray = np.ndarray(shape, dtype, buffer=data, offset=start, strides=strides)
        target[...] = array


def _addresses(value: object, where: str) -> object:
    """Replaces arrays of the device in a pointer's value by their addresses."""
    if isinstance(value, DeviceArray):
        return value.device_address
    if isinstance(value, (list, tuple)):
        return [_addresses(item, where) for item in value]
    if isinstance(value, np.ndarray) and value.dtype.kind != "u":
        raise InvalidArgumentError(
            f"{where} is a pointer, got a NumPy array, which has no address on the device; give device.asarray(x)"
        )
    return value


def _convert(
    value: object, dtype: np.dtype[np.generic], shape: tuple[int, ...], member: BlockMember, where: str
) -> np.ndarray:
    def refused(why: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"{where} takes {type_name(member)}{why}")

    if isinstance(value, DeviceArray):
        raise refused(", got an array on the device; only pointers take one: give its values, x.numpy()")
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise refused(f": {error}") from None
    if array.shape != shape:
        raise refused(f", shape {shape or 'scalar'}; got shape {array.shape or 'scalar'}")
    kind = array.dtype.kind
    is_integer = member.scalar is not None and member.scalar.kind in ("int", "uint")
    # Floats above 2^53 differ from the passed integers, as NumPy converts lists of large and small integers to floats.
    if (kind not in "biuf" and kind != dtype.kind) or (
        is_integer and kind == "f" and not np.all((array == np.trunc(array)) & (np.abs(array) <= EXACT))
    ):
        raise refused(f", got {shorten(shown(value))}")
    if is_integer and array.size:
        limits = np.iinfo(dtype.name)
        if array.min() < limits.min or array.max() > limits.max:
            raise refused(f" ({limits.min} to {limits.max}), got {shorten(shown(value))}")
    with np.errstate(over="ignore"):
        return array.astype(dtype)


# -- results -----------------------------------------------------------------------------------------


def unpack_argument(block: BufferBlock, data: bytes) -> object:
    """Returns the values of a block's bytes, in the form for ``pack_argument``: mappings and lists with NumPy arrays.

    Bytes after the last whole element of a run-time sized array are left out.
    """
    last = tail(block.members)
    stride = (last.array_stride or 0) if last is not None else 0
    length = max(len(data) - block.fixed_size, 0) // stride if stride else 0
    values = unpack_members(data, 0, block.members, length)
    return values.popitem()[1] if only_array(block.members) is not None else values


def unpack_members(data: bytes, start: int, members: Sequence[BlockMember], length: int = 0) -> dict[str, object]:
    """Returns members from ``start``, by name; ``length`` is the run-time sized array's at the end."""
    unpacked: dict[str, object] = {}
    for name, member in member_names(members).items():
        shape = tuple(n or length for n in member.array_shape)
        if member.scalar is None:
            unpacked[name] = _unpack_structures(data, start + member.offset, member, shape, member.array_strides)
            continue
        dtype = scalar_dtype(member.scalar)
        inner, strides = member_layout(member, dtype.itemsize)
        whole = (*shape, *inner[len(shape) :])
        at = start + member.offset
        view: np.ndarray = np.ndarray(whole, dtype, data, at, strides) if math.prod(whole) else np.empty(whole, dtype)
        unpacked[name] = view if whole else view[()]
    return unpacked


def _unpack_structures(
    data: bytes, start: int, member: BlockMember, shape: Sequence[int], strides: Sequence[int]
) -> object:
    if not shape:
        return unpack_members(data, start, member.members, 0)
    count, stride = shape[0], strides[0]
    return [_unpack_structures(data, start + i * stride, member, shape[1:], strides[1:]) for i in range(count)]
