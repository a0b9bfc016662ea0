"""Concatenation, splitting, padding, reversal and rolling."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Final

from ....dialects.builder import Builder
from ....ir.operation import Value, tensor_of
from ....ir.sizes import number_of
from ....ir.types import TensorType
from .known_values import lengths_of
from .node import Node, Translate

_MAX_PARTS: Final = 1 << 14


def padded(builder: Builder, value: Value, pairs: Sequence[tuple[int, int]], filling: Value | None = None) -> Value:
    """Pads each dimension at both ends: with zeros, or copies of a scalar."""
    filling = filling or builder.constant(0, TensorType((), tensor_of(value).element))
    lows, highs = [low for low, _ in pairs], [high for _, high in pairs]
    return builder.pad(value, filling, lows, highs, [0] * len(pairs))


def parts(builder: Builder, value: Value, axis: int, sizes: Sequence[int]) -> list[Value]:
    """Splits a value along a dimension.

    Raises:
        ValueError: there are too many parts.
    """
    if len(sizes) > _MAX_PARTS:
        raise ValueError(f"expected at most {_MAX_PARTS} parts, got {len(sizes)}")
    ends = list(itertools.accumulate(sizes))
    return [builder.piece(value, axis, end - size, end) for end, size in zip(ends, sizes, strict=True)]


def pairs_of(node: Node, index: int, count: int) -> list[tuple[int, int]]:
    numbers = node.known_integers(index, "pairs of numbers")
    if len(numbers) != 2 * count:
        raise node.error(f"expected two numbers for each of {count} dimensions (input {index}), got {list(numbers)}")
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _pad(node: Node) -> Sequence[Value]:
    node.expect(2 + (node.op == "PadV2"))
    pairs = pairs_of(node, 1, node.type(0).rank)
    if min(map(min, pairs), default=0) < 0:
        raise node.error(f"expected paddings that are not negative, got {pairs}")
    return [padded(node.builder, node.operand(0), pairs, node.operand(2) if node.op == "PadV2" else None)]


def _mirror_pad(node: Node) -> Sequence[Value]:
    value, _ = node.expect(2)
    mode = node.text("mode")
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise node.error(f"expected the mode REFLECT or SYMMETRIC, got {mode}")
    skipped = int(mode == "REFLECT")
    for axis, (low, high) in enumerate(pairs_of(node, 1, node.type(0).rank)):
        shape = lengths_of(value)
        if low == high == 0:
            continue
        length = number_of(shape[axis])
        if not 0 <= low <= length - skipped or not 0 <= high <= length - skipped:
            raise node.error(f"expected paddings up to {length - skipped} for dimension {axis}, got {low} and {high}")

        def part(start: int, count: int, axis: int = axis, value: Value = value) -> Value:
            return node.builder.reverse(node.builder.piece(value, axis, start, start + count), [axis])

        before = [part(skipped, low)] if low else []
        after = [part(length - skipped - high, high)] if high else []
        value = node.builder.concatenate([*before, value, *after], axis)
    return [value]


def _concat(node: Node) -> Sequence[Value]:
    if len(node.operands) < 2:
        raise node.error("expected values and a dimension")
    index = 0 if node.op == "Concat" else len(node.operands) - 1
    values = [value for number, value in enumerate(node.operands) if number != index]
    axis = node.axis(node.known_integer(index, "the dimension"), tensor_of(values[0]).rank)
    for value in values:
        if tensor_of(value).rank != tensor_of(values[0]).rank:
            raise node.error(f"expected values of one rank, got {values[0].type} and {value.type}")
    return [node.builder.concatenate(values, axis)]


def _pack(node: Node) -> Sequence[Value]:
    if not node.operands:
        raise node.error("expected at least one input")
    shape = list(node.shape(0))
    axis = node.axis(node.integer("axis", 0), len(shape) + 1)
    shape.insert(axis, 1)
    for value in node.operands:
        if value.type is not node.operand(0).type:
            raise node.error(f"expected values of one type, got {node.operand(0).type} and {value.type}")
    return [node.builder.concatenate([node.builder.reshape(value, shape) for value in node.operands], axis)]


def _unpack(node: Node) -> Sequence[Value]:
    (value,) = node.expect(1)
    shape = node.shape(0)
    axis = node.axis(node.integer("axis", 0), len(shape))
    count = number_of(shape[axis])
    if node.integer("num", count) != count:
        raise node.error(f"num is {node.integer('num')}, dimension {axis} of {node.type(0)} has {count}")
    inner = [*shape[:axis], *shape[axis + 1 :]]
    return [node.builder.reshape(item, inner) for item in parts(node.builder, value, axis, [1] * count)]


def _split(node: Node) -> Sequence[Value]:
    is_v = node.op == "SplitV"
    node.expect(3 if is_v else 2)
    value = node.operand(0 if is_v else 1)
    shape = lengths_of(value)
    axis = node.axis(node.known_integer(2 if is_v else 0, "the dimension"), len(shape))
    length = number_of(shape[axis])
    if is_v:
        sizes = list(node.known_integers(1, "the sizes"))
        if sizes.count(-1) == 1:
            sizes[sizes.index(-1)] = length - sum(sizes) - 1
    else:
        count = node.integer("num_split")
        if count < 1 or length % count:
            raise node.error(f"dimension {axis} of {value.type} does not split into {count} equal parts")
        sizes = [length // count] * count
    if sum(sizes) != length or min(sizes, default=0) < 0:
        raise node.error(f"sizes {sizes} do not add up to the {length} of dimension {axis}")
    return parts(node.builder, value, axis, sizes)


def _reverse(node: Node) -> Sequence[Value]:
    value, _ = node.expect(2)
    rank = node.type(0).rank
    if node.op == "Reverse":
        axes = [axis for axis, chosen in enumerate(node.known(1, "the dimensions").reshape(-1)) if chosen]
    else:
        axes = [node.axis(axis, rank) for axis in node.known_integers(1, "the dimensions")]
    return [node.builder.reverse(value, axes)]


def _roll(node: Node) -> Sequence[Value]:
    """Rotates elements along dimensions."""
    value, _, _ = node.expect(3)
    shifts, axes = node.known_integers(1, "the shift"), node.known_integers(2, "the dimensions")
    if len(shifts) != len(axes):
        raise node.error(f"expected a shift for each dimension, got {list(shifts)} and {list(axes)}")
    for shift, axis in zip(shifts, (node.axis(axis, node.type(0).rank) for axis in axes), strict=True):
        length = number_of(node.shape(0)[axis])
        cut = -shift % length if length else 0
        pair = [node.builder.piece(value, axis, cut, length), node.builder.piece(value, axis, 0, cut)]
        value = node.builder.concatenate(pair, axis)
    return [value]


PIECES: Final[Mapping[str, Translate]] = {
    "Concat": _concat,
    "ConcatV2": _concat,
    "MirrorPad": _mirror_pad,
    "Pack": _pack,
    "Pad": _pad,
    "PadV2": _pad,
    "Reverse": _reverse,
    "ReverseV2": _reverse,
    "Roll": _roll,
    "Split": _split,
    "SplitV": _split,
    "Unpack": _unpack,
}
