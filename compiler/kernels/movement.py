"""Operations that move elements: index maps, and operations that choose between operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from ...spirv.binary.declarations import U32
from ...spirv.binary.expression import Id
from ...spirv.binary.grammar import Op
from ..ir.attributes import DenseElements, StructAttr
from ..ir.operation import Operation, Value
from ..ir.sizes import Dim, Size
from ..ir.types import ScalarType
from .elements import Frame, IndexMap, Structure, scalar_of, shape_of
from .index import Index
from .scalars.conversions import convert
from .scalars.integers import Integers
from .scalars.scalars import Scalar, as_id, element_words, is_signed, storage_bits
from .scalars.target import compile_error
from .scalars.wide_integers import Pair

MAX_INLINE_WORDS: Final = 1024
"""Constants of more words become inputs of a region."""


def _broadcast(operation: Operation, index: Index) -> Index:
    shape = shape_of(operation.operands[0])
    zero = index.builder.word(0)
    dimensions = operation.integers("broadcast_dimensions")
    if shape == index.shape and dimensions == tuple(range(len(shape))):
        return index
    parts = index.parts
    return Index(
        index.builder,
        shape,
        [zero if length == 1 else parts[target] for target, length in zip(dimensions, shape, strict=True)],
    )


def _transpose(operation: Operation, index: Index) -> Index:
    parts = index.parts
    permutation = operation.integers("permutation")
    if permutation == tuple(range(len(parts))):
        return index
    operand_parts = [parts[permutation.index(axis)] for axis in range(len(parts))]
    return Index(index.builder, shape_of(operation.operands[0]), operand_parts)


def _slice(operation: Operation, index: Index) -> Index:
    starts, strides = operation.sizes("start_indices"), operation.integers("strides")
    parts = [
        part * step + index.builder.word(start) for part, start, step in zip(index.parts, starts, strides, strict=True)
    ]
    return Index(index.builder, shape_of(operation.operands[0]), parts)


def _reverse(operation: Operation, index: Index) -> Index:
    axes = operation.integers("dimensions")
    parts = [
        index.builder.word(length - 1) - part if axis in axes else part
        for axis, (part, length) in enumerate(zip(index.parts, index.shape, strict=True))
    ]
    return Index(index.builder, index.shape, parts)


MAPS: Final[Mapping[str, IndexMap]] = {
    "broadcast_in_dim": _broadcast,
    "reshape": lambda operation, index: index.reshaped(shape_of(operation.operands[0])),
    "reverse": _reverse,
    "slice": _slice,
    "transpose": _transpose,
}


def _constant(frame: Frame, operation: Operation, index: Index) -> Sequence[Scalar]:
    value = operation.attributes["value"]
    assert isinstance(value, DenseElements)
    array, type = value.array, scalar_of(operation.result)
    if value.is_splat or array.size <= 1:
        # An empty constant is never read, but its code is still generated.
        return [frame.scalars.element(type, (array if array.size else np.zeros(1, array.dtype)).reshape(-1)[0])]
    bits = storage_bits(type)
    if array.size * bits > 32 * MAX_INLINE_WORDS:
        raise compile_error(
            operation,
            f"a constant in a region has at most {MAX_INLINE_WORDS} words, got {array.size} of {type}; "
            "make it an input of the region",
        )
    words = [word for element in array.reshape(-1) for word in element_words(type, element)]
    if bits < 32:
        lanes = 32 // bits
        words = [
            sum((word & ((1 << bits) - 1)) << (lane * bits) for lane, word in enumerate(words[first : first + lanes]))
            for first in range(0, len(words), lanes)
        ]
    return [frame.unpacked(type, index.linear, lambda word: frame.builder.lookup(words, word))]


def _iota(frame: Frame, operation: Operation, index: Index) -> Sequence[Scalar]:
    part = index.parts[operation.integer("iota_dimension")]
    return [convert(frame.scalars, part, ScalarType("ui32"), scalar_of(operation.result))]


def _ends_within(padded: Dim, low: Dim, interior: Dim, length: Dim) -> bool:
    """Returns whether a padded dimension is known to end with its last element, without trailing padding."""
    if isinstance(padded, int) and isinstance(low, int) and isinstance(interior, int) and isinstance(length, int):
        return (padded - 1 - low) // (interior + 1) < length
    return padded == length and low == 0 and interior == 0


def _pad(frame: Frame, operation: Operation, index: Index) -> Sequence[Scalar]:
    value, padding = operation.operands
    shape = shape_of(value)
    inside = frame.builder.boolean(True)
    parts = []
    lows, interiors = operation.sizes("edge_padding_low"), operation.sizes("interior_padding")
    whole = shape_of(operation.results[0])
    for part, length, padded, low, interior in zip(index.parts, shape, whole, lows, interiors, strict=True):
        position, is_behind = part - frame.word(low), not (isinstance(low, int) and low <= 0)
        if interior:
            stride = frame.word(interior + 1)
            if is_behind:
                inside = inside & ~(part < frame.word(low))
            inside = inside & (position % stride).equals(0)
            position = position // stride
        parts.append(position)
        if (is_behind and not interior) or not _ends_within(padded, low, interior, length):
            inside = inside & (position < frame.word(length))
    return frame.conditional(
        inside, lambda: [frame.at(value, frame.index(shape, parts))], lambda: [frame.scalar(padding)]
    )


def _concatenate(frame: Frame, operation: Operation, index: Index) -> Sequence[Scalar]:
    axis = operation.integer("dimension")

    def piece(number: int, start: Dim) -> Sequence[Scalar]:
        value = operation.operands[number]
        shape = shape_of(value)
        parts = list(index.parts)

        def here() -> Sequence[Scalar]:
            inner = [part - frame.word(start) if at == axis else part for at, part in enumerate(parts)]
            return [frame.at(value, frame.index(shape, inner))]

        if number == len(operation.operands) - 1:
            return here()
        end = start + shape[axis]
        return frame.conditional(parts[axis] < frame.word(end), here, lambda: piece(number + 1, end))

    return piece(0, 0)


def clamped(frame: Frame, start: Value, index: Index, high: Dim) -> Id:
    """Returns a start index as a word, clamped to 0 … ``high``."""
    type = scalar_of(start)
    value = as_id(frame.at(start, index))
    integers = Integers(frame.scalars, type)
    if isinstance(high, Size) and type.bits < 32:
        # A narrow type may not hold the bound.
        type = ScalarType("i32" if is_signed(type) else "ui32")
        value = as_id(convert(frame.scalars, value, scalar_of(start), type))
        integers = Integers(frame.scalars, type)
    if isinstance(high, Size):
        value = integers.minimum(value, as_id(convert(frame.scalars, frame.word(high), ScalarType("ui32"), type)))
    elif type.bits >= 32 or high < 1 << (type.bits - is_signed(type)):
        # If a narrow type cannot hold the bound, no value exceeds it.
        value = integers.minimum(value, frame.scalars.integer(type, high))
    if is_signed(type):
        value = integers.maximum(value, frame.scalars.integer(type, 0))
    return low_word_of(value)


def saturated(frame: Frame, start: Value, index: Index) -> Id:
    """Returns a start index as a signed word, saturated."""
    type = scalar_of(start)
    value = as_id(frame.at(start, index))
    if type.bits < 32 or type is ScalarType("i32"):
        return value
    integers = Integers(frame.scalars, type)
    value = integers.minimum(value, frame.scalars.integer(type, 2**31 - 1))
    if is_signed(type):
        value = integers.maximum(value, frame.scalars.integer(type, -(2**31)))
    return low_word_of(value)


def low_word_of(value: Id) -> Id:
    return value.low if isinstance(value, Pair) else value.convert(Op.UConvert, U32)


def _dynamic_slice(frame: Frame, operation: Operation, index: Index) -> Sequence[Scalar]:
    value, *starts = operation.operands
    return [frame.at(value, _from_starts(frame, starts, shape_of(value), index))]


def target_of_update(frame: Frame, operation: Operation, index: Index) -> Index:
    """Returns the index in the result of an element of an update's slice."""
    return _from_starts(frame, operation.operands[2:], shape_of(operation.result), index)


def _from_starts(frame: Frame, starts: Sequence[Value], shape: Sequence[Dim], index: Index) -> Index:
    """Returns the index in a shape of an element of a slice with clamped starts."""
    scalar = frame.index((), ())
    parts = [
        part + clamped(frame, start, scalar, length - size)
        for part, start, length, size in zip(index.parts, starts, shape, index.shape, strict=True)
    ]
    return frame.index(shape, parts)


def _dynamic_update_slice(frame: Frame, operation: Operation, index: Index) -> Sequence[Scalar]:
    value, update, *starts = operation.operands
    sizes = shape_of(update)
    scalar = frame.index((), ())
    inside = frame.builder.boolean(0 not in sizes)
    parts = []
    for part, start, length, size in zip(index.parts, starts, index.shape, sizes, strict=True):
        parts.append(part - clamped(frame, start, scalar, length - size))
        inside = inside & (parts[-1] < frame.word(size)) if size != length else inside
    return frame.conditional(
        inside, lambda: [frame.at(update, frame.index(sizes, parts))], lambda: [frame.at(value, index)]
    )


def _bitcast(frame: Frame, operation: Operation, index: Index) -> Sequence[Scalar]:
    (value,) = operation.operands
    source, target = scalar_of(value), scalar_of(operation.result)
    shape = shape_of(value)
    scalars = frame.scalars
    if source.bits == target.bits:
        return [scalars.from_words(target, scalars.to_words(source, frame.at(value, index)))]
    if source.bits > target.bits:
        words = scalars.to_words(source, frame.at(value, frame.index(shape, index.parts[:-1])))
        lane = index.parts[-1]
        per_word = max(32 // target.bits, 1)
        taken = max(target.bits // 32, 1)
        number = lane // per_word
        picked = []
        for part in range(taken):
            word = words[part]
            for position in range(taken + part, len(words), taken):
                word = number.equals(position // taken).select(words[position], word)
            picked.append(word)
        if target.bits < 32:
            picked = [(picked[0] >> ((lane % per_word) * target.bits)) & ((1 << target.bits) - 1)]
        return [scalars.from_words(target, picked)]
    gathered: list[Id] = []
    for position in range(target.bits // source.bits):
        element = frame.at(value, frame.index(shape, [*index.parts, frame.word(position)]))
        bits = scalars.to_words(source, element)
        offset = position * source.bits % 32
        if source.bits < 32 and offset:
            gathered[-1] = gathered[-1] | (bits[0] << offset)
        else:
            gathered.extend(bits)
    return [scalars.from_words(target, gathered)]


def _gather(frame: Frame, operation: Operation, index: Index) -> Sequence[Scalar]:
    value, indices = operation.operands
    numbers = operation.attributes["dimension_numbers"]
    assert isinstance(numbers, StructAttr)
    ints = numbers.ints
    offset, collapsed, mapped = ints("offset_dims"), ints("collapsed_slice_dims"), ints("start_index_map")
    operand_batch, index_batch = ints("operand_batching_dims"), ints("start_indices_batching_dims")
    vector = numbers.int("index_vector_dim")
    sizes, shape = operation.sizes("slice_sizes"), shape_of(value)
    batch = [index.parts[axis] for axis in range(len(index.parts)) if axis not in offset]
    parts = [frame.word(0)] * len(shape)
    for component, axis in enumerate(mapped):
        component_index = vector_index(frame, indices, batch, vector, component)
        parts[axis] = clamped(frame, indices, component_index, shape[axis] - sizes[axis])
    kept = [axis for axis in range(len(shape)) if axis not in collapsed and axis not in operand_batch]
    for axis, source in zip(kept, offset, strict=True):
        parts[axis] = parts[axis] + index.parts[source]
    for axis, source in zip(operand_batch, index_batch, strict=True):
        parts[axis] = batch[source - (source > vector)]
    return [frame.at(value, frame.index(shape, parts))]


def _dimension(frame: Frame, operation: Operation, index: Index) -> Sequence[Scalar]:
    length = shape_of(operation.operands[0])[operation.integer("dimension")]
    return [convert(frame.scalars, frame.word(length), ScalarType("ui32"), scalar_of(operation.result))]


def vector_index(frame: Frame, indices: Value, batch: Sequence[Id], vector: int, component: int) -> Index:
    """Returns the index of a component of an index vector."""
    shape = shape_of(indices)
    parts = list(batch)
    if vector < len(shape):
        parts.insert(vector, frame.word(component))
    return frame.index(shape, parts)


STRUCTURES: Final[Mapping[str, Structure]] = {
    "bitcast_convert": _bitcast,
    "concatenate": _concatenate,
    "constant": _constant,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    "get_dimension_size": _dimension,
    "iota": _iota,
    "pad": _pad,
}
