"""NumPy's dtypes of blocks: structured dtypes with the offsets, strides and sizes that the shader declares."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np

from ...status import InvalidArgumentError, UnimplementedError
from .reflection_types import BlockMember, BufferBlock, ScalarType

Dtype: TypeAlias = np.dtype[np.generic]
Run: TypeAlias = tuple[int, Dtype, int]
"""The offset, type and number of scalars that lie one after another."""

_MAX_ITEM_BYTES: Final = (1 << 31) - 1  # NumPy's limit
_MAX_RUNS: Final = 1 << 16
PADDED: Final = "value"
"""The field of a padded array element; NumPy's arrays have no other form of padding."""


def member_names(members: Sequence[BlockMember]) -> dict[str, BlockMember]:
    """Returns the members by name in their order; unnamed members are ``member0``, ``member1``, … by position."""
    members_by_name: dict[str, BlockMember] = {}
    for index, member in enumerate(members):
        name = member.name if member.name and member.name not in members_by_name else f"member{index}"
        members_by_name[name] = member
    return members_by_name


def tail(members: Sequence[BlockMember]) -> BlockMember | None:
    """Returns the run-time sized array at the end of a block, or ``None``."""
    return members[-1] if members and members[-1].array_length == 0 else None


def only_array(members: Sequence[BlockMember]) -> BlockMember | None:
    """Returns the array that is a block's only member, or ``None``: arguments for such a block are that array."""
    return members[0] if len(members) == 1 and members[0].array_shape else None


def scalars_of(members: Sequence[BlockMember]) -> set[ScalarType]:
    scalars: set[ScalarType] = set()
    pending = list(members)
    while pending:
        member = pending.pop()
        if member.scalar is not None:
            scalars.add(member.scalar)
        pending += member.members
    return scalars


def scalar_dtype(scalar: ScalarType) -> Dtype:
    """Returns the dtype of a scalar in memory: unsigned for ``bool``, bytes where NumPy has none."""
    if scalar.kind == "bool":
        return np.dtype(np.uint32)
    return scalar.dtype or np.dtype(f"V{max(scalar.bits // 8, 1)}")


def block_dtype(block: BufferBlock, length: int | None = None) -> Dtype:
    """Returns the dtype of a block; ``length`` is that of the run-time sized array at its end.

    Raises:
        InvalidArgumentError: the block ends with a run-time sized array and ``length`` is missing, or it does not and
            ``length`` is given.
        UnimplementedError: NumPy has no dtype of that size, or elements overlap.
    """
    last = tail(block.members)
    if (last is None) != (length is None):
        raise InvalidArgumentError(
            f"{block.name or 'the block'} has no run-time sized array, so that length= means nothing"
            if last is None
            else f"{block.name or 'the block'} ends with a run-time sized array; give length=, that of the array"
        )
    size = block.fixed_size
    if last is not None:
        size += (length or 0) * (last.array_stride or 0)
    return _struct(block.members, size, length)


def element_dtype(block: BufferBlock) -> Dtype:
    """Returns the dtype of one element of a block whose only member is an array."""
    array = only_array(block.members)
    assert array is not None
    return _array(array, array.array_shape[1:], array.array_strides[1:], array.array_strides[0])


def _dtype(of: Dtype, shape: tuple[int, ...]) -> Dtype:
    """Returns the dtype of arrays of a dtype, with the axes of both."""
    base, inner = of.subdtype or (of, ())
    try:
        return np.dtype((base, (*shape, *inner))) if shape or inner else base
    except (ValueError, OverflowError) as error:
        raise UnimplementedError(f"NumPy has no dtype for this block: {error}; give its bytes as uint8") from None


def _struct(members: Sequence[BlockMember], size: int, length: int | None) -> Dtype:
    formats = [_member(member, length) for member in members]
    return _fields(list(member_names(members)), formats, [member.offset for member in members], size)


def _fields(names: list[str], formats: list[Dtype], offsets: list[int], size: int) -> Dtype:
    try:
        # NumPy's own sums wrap.
        if max([size, *(at + field.itemsize for at, field in zip(offsets, formats, strict=True))]) > _MAX_ITEM_BYTES:
            raise ValueError(f"an item of over {_MAX_ITEM_BYTES} bytes")
        return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})
    except (ValueError, OverflowError) as error:
        raise UnimplementedError(f"NumPy has no dtype for this block: {error}; give its bytes as uint8") from None


def _member(member: BlockMember, length: int | None) -> Dtype:
    shape = member.array_shape
    if shape and not shape[0]:
        shape = (length or 0, *shape[1:])
    return _array(member, shape, member.array_strides, None)


def _array(member: BlockMember, shape: Sequence[int], strides: Sequence[int], padded_to: int | None) -> Dtype:
    """Returns a member's dtype in arrays of these lengths and strides, padded to a size if specified."""
    dtype = _single(member)
    lengths: tuple[int, ...] = ()
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        size = dtype.itemsize * math.prod(lengths)
        if stride != size:
            dtype, lengths = _padded(dtype, lengths, stride), ()
        lengths = (length, *lengths)
    if padded_to is not None and padded_to != dtype.itemsize * math.prod(lengths):
        return _padded(dtype, lengths, padded_to)
    return _dtype(dtype, lengths)


def _single(member: BlockMember) -> Dtype:
    if member.scalar is None:
        return _struct(member.members, max((m.offset + m.size for m in member.members), default=0), None)
    scalar = scalar_dtype(member.scalar)
    if member.columns > 1:
        far, near = (member.components, member.columns) if member.row_major else (member.columns, member.components)
        stride = member.matrix_stride or scalar.itemsize * near
        if stride == near * scalar.itemsize:
            return _dtype(scalar, (far, near))
        return _dtype(_padded(scalar, (near,), stride), (far,))
    return _dtype(scalar, (member.components,)) if member.components > 1 else scalar


def _padded(of: Dtype, shape: tuple[int, ...], size: int) -> Dtype:
    if size < of.itemsize * math.prod(shape):
        raise UnimplementedError(
            f"array elements of {of.itemsize} bytes lie {size} bytes apart; NumPy cannot overlap elements"
        )
    if of.names is not None and not shape and of.fields is not None:
        fields = [of.fields[name] for name in of.names]
        return _fields(list(of.names), [field[0] for field in fields], [field[1] for field in fields], size)
    return _fields([PADDED], [_dtype(of, shape)], [0], size)


# -- comparison --------------------------------------------------------------------------------------


def runs(dtype: Dtype) -> list[Run]:
    """Returns the scalars of a dtype by offset; neighbours of one type form a run.

    Raises:
        UnimplementedError: there are more than 65,536 runs.
    """
    parts = list(itertools.islice(_runs(dtype, 0), _MAX_RUNS + 1))
    if len(parts) > _MAX_RUNS:
        raise UnimplementedError(f"a block of over {_MAX_RUNS} parts; give its bytes as uint8")
    result: list[Run] = []
    for offset, scalar, count in sorted(parts, key=lambda run: run[0]):
        if result:
            at, last, number = result[-1]
            if last == scalar and at + number * last.itemsize == offset:
                result[-1] = at, last, number + count
                continue
        result.append((offset, scalar, count))
    return result


def _runs(dtype: Dtype, start: int) -> Iterator[Run]:
    base, count = dtype, 1
    while base.subdtype is not None:
        base, shape = base.subdtype
        count *= math.prod(shape)
    if base.names is None:
        if count:
            yield start, base, count
        return
    for index in range(count):
        for name in base.names:
            field = base.fields[name]  # type: ignore[index]  # there are fields, for there are names
            yield from _runs(field[0], start + index * base.itemsize + field[1])


def difference(declared: Dtype, actual: Dtype) -> str:
    """Describes the first difference between a declared and an actual layout; ``""`` if there is none.

    Types that NumPy lacks (bfloat16, which shaders keep in uint16) fit unsigned integers of their size, and bytes fit
    any type. The content of padding is ignored.
    """
    parts = runs(actual)
    starts = [offset for offset, _, _ in parts]
    for offset, scalar, count in runs(declared):
        end = offset + count * scalar.itemsize
        at = offset
        while at < end:
            index = bisect.bisect_right(starts, at) - 1
            covered, of, number = parts[index] if index >= 0 else (0, scalar, 0)
            until = covered + number * of.itemsize
            if until <= at:
                return f"{scalar} at byte {at} is missing"
            if not fits(scalar, of):
                return f"byte {at} is {of}, declared {scalar}"
            if (at - covered) % of.itemsize:
                return f"the {scalar} at byte {at} lies across elements"
            at = until
    return ""


def fits(declared: Dtype, actual: Dtype) -> bool:
    """Whether scalars of a dtype may be passed where a shader declares another."""
    if actual == declared or actual == np.uint8:
        return True
    return actual.itemsize == declared.itemsize and (
        declared.type is np.void or (declared.kind == "u" and actual.kind not in "if")
    )
