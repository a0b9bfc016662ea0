"""Push constants from Python values, laid out as the shader declares them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from ...hal_vulkan import BlockMember, PushConstantBlock
from ...status import InvalidArgumentError, NotFoundError, shown

PushValue: TypeAlias = "int | float | bool | Sequence[PushValue] | Mapping[str, PushValue] | np.ndarray | np.generic"
Push: TypeAlias = bytes | bytearray | Sequence[PushValue] | Mapping[str, PushValue] | None

_DOUBLE: Final = struct.Struct("=d")
_MAX_KEPT: Final = 256


class PushConstants:
    """The push constants of a kernel; keeps the bytes of values that were given before."""

    def __init__(self, block: PushConstantBlock | None, kernel: str, check: Callable[[Iterable[str]], None]) -> None:
        """``block`` is what the shader declares, ``None`` for nothing; ``kernel`` its name, for messages.

        ``check`` raises for names that are not those of push constants.
        """
        self._block = block
        self._kernel = kernel
        self._check = check
        self._kept: dict[object, bytes] = {}

    def pack(self, push: Push, fields: Mapping[str, object]) -> bytes:
        """The bytes of the block, from bytes, a value for each member in order, or values by member name (``fields``
        too).
        """
        if self._block is None and push is None and not fields:
            return b""
        if push is not None or any(type(value) not in (int, float) for value in fields.values()):
            self._check(fields)
            return pack_push(self._block, push, fields, self._kernel)
        # By bits: 1 and 1.0 differ, so do 0.0 and -0.0, and NaN is equal to itself.
        key = tuple([(name, value if type(value) is int else _DOUBLE.pack(value)) for name, value in fields.items()])
        kept = self._kept.get(key)
        if kept is None:
            self._check(fields)
            kept = pack_push(self._block, push, fields, self._kernel)
            if len(self._kept) < _MAX_KEPT:
                self._kept[key] = kept
        return kept


def pack_push(block: PushConstantBlock | None, push: Push, fields: Mapping[str, object], kernel: str) -> bytes:
    """The bytes of a push-constant block; see ``PushConstants.pack``."""
    if block is None:
        if push or fields:
            given = f"{len(push)} value(s)" if push else ", ".join(fields)
            raise InvalidArgumentError(f"{kernel} has no push constants, got {given}")
        return b""
    if isinstance(push, (bytes, bytearray)):
        if fields:
            raise InvalidArgumentError(f"{kernel}: give push constants as push= bytes or by name, not both")
        if len(push) != block.size:
            raise InvalidArgumentError(
                f"{kernel} takes {block.size} bytes of push constants ({describe_push(block)}), got {len(push)}"
            )
        return bytes(push)
    values: dict[str, object] = {}
    if isinstance(push, Mapping):
        values.update(push)
    elif push is not None:
        if isinstance(push, (str, int, float)) or not isinstance(push, (Sequence, np.ndarray)):
            raise InvalidArgumentError(
                f"{kernel}: push= takes bytes, a sequence of values or a mapping, got {type(push).__name__}"
            )
        names = by_name(block.members)
        if len(push) != len(names):
            raise InvalidArgumentError(
                f"{kernel} has {len(names)} push constant(s) ({describe_push(block)}), got {len(push)} value(s)"
            )
        values.update(zip(names, push, strict=True))
    twice = values.keys() & fields.keys()
    if twice:
        raise InvalidArgumentError(f"{kernel}: push constant(s) {', '.join(sorted(twice))} given twice")
    values.update(fields)
    data = bytearray(block.size)
    _pack_members(data, 0, block.members, values, kernel)
    return bytes(data)


def describe_push(block: PushConstantBlock) -> str:
    """``float a, uint n`` for messages."""
    return ", ".join(f"{_type_name(member)} {name}" for name, member in by_name(block.members).items())


def by_name(members: Sequence[BlockMember]) -> dict[str, BlockMember]:
    """The members of a block in their order; those without a name are ``member0``, ``member1``, … by position."""
    return {member.name or f"member{index}": member for index, member in enumerate(members)}


def member_layout(member: BlockMember, itemsize: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """NumPy's shape and strides of a member; a matrix is indexed by row and column."""
    shape, strides = member.array_shape, member.array_strides
    if member.columns > 1:
        # Vulkan's columns (or rows) lie matrix_stride apart.
        far = member.matrix_stride or itemsize * member.components
        steps = (far, itemsize) if member.row_major else (itemsize, far)
        return (*shape, member.components, member.columns), (*strides, *steps)
    if member.components > 1:
        return (*shape, member.components), (*strides, itemsize)
    return shape, strides


def _type_name(member: BlockMember) -> str:
    if member.scalar is None:
        base = "struct"
    else:
        base = member.scalar.kind + ("" if member.scalar.bits == 32 else str(member.scalar.bits))
        if member.columns > 1:
            base += f" {member.columns}x{member.components} matrix"
        elif member.components > 1:
            base += f" vec{member.components}"
    return base + "".join(f"[{n}]" for n in member.array_shape)


def _pack_members(
    data: bytearray, start: int, members: tuple[BlockMember, ...], values: Mapping[str, object], where: str
) -> None:
    known = by_name(members)
    for name in values:
        if name not in known:
            raise NotFoundError(f"{where} has no push constant {name!r}; it has: {', '.join(known) or 'none'}")
    missing = [name for name in known if name not in values]
    if missing:
        raise InvalidArgumentError(
            f"{where}: push constant(s) {', '.join(f'{_type_name(known[n])} {n}' for n in missing)} not given"
        )
    for name, member in known.items():
        _pack_member(data, start + member.offset, member, values[name], f"{where}: push constant {name}")


def _pack_member(data: bytearray, start: int, member: BlockMember, value: object, where: str) -> None:
    if member.scalar is None:
        items: list[tuple[int, object]] = [(start, value)]
        for length, stride in zip(member.array_shape, member.array_strides, strict=True):
            spread: list[tuple[int, object]] = []
            for at, item in items:
                if not isinstance(item, (Sequence, np.ndarray)) or len(item) != length:
                    raise InvalidArgumentError(f"{where} takes {length} structures")
                spread += [(at + i * stride, part) for i, part in enumerate(item)]
            items = spread
        for at, item in items:
            if not isinstance(item, Mapping):
                raise InvalidArgumentError(f"{where} is a structure; give its members by name in a mapping")
            _pack_members(data, at, member.members, item, where)
        return
    dtype = np.dtype(np.uint32) if member.scalar.kind == "bool" else member.scalar.dtype
    if dtype is None:
        raise InvalidArgumentError(f"{where} has a type that NumPy has not; give push= as bytes")
    shape, strides = member_layout(member, dtype.itemsize)
    array = _convert(value, dtype, shape, member, where)
    target: np.ndarray = np.ndarray(shape, dtype, buffer=data, offset=start, strides=strides)
    target[...] = array


def _convert(
    value: object, dtype: np.dtype[np.generic], shape: tuple[int, ...], member: BlockMember, where: str
) -> np.ndarray:
    def refused(why: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"{where} takes {_type_name(member)}{why}")

    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise refused(f": {error}") from None
    if array.shape != shape:
        raise refused(f", shape {shape or 'scalar'}; got shape {array.shape or 'scalar'}")
    kind = array.dtype.kind
    is_integer = member.scalar is not None and member.scalar.kind in ("int", "uint")
    if (kind not in "biuf" and kind != dtype.kind) or (
        is_integer and kind == "f" and not np.all(array == np.trunc(array))
    ):
        raise refused(f", got {shown(value)}")
    if is_integer and array.size:
        limits = np.iinfo(dtype.name)
        if array.min() < limits.min or array.max() > limits.max:
            raise refused(f" ({limits.min} to {limits.max}), got {shown(value)}")
    with np.errstate(over="ignore"):
        return array.astype(dtype)
