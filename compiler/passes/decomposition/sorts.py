"""Merge sorts: blocks of a few elements, repeatedly merged in pairs.

A sort sorts blocks: its attribute ``block`` is their length, and ``runs`` the length of the runs that are already in
order. Both are powers of two. The last block may be shorter, so there is no padding.

Along a dimension of call-dependent length, the number of merges is call-dependent, too. There the stages of a bitonic
network are iterations of a loop, in the form in which all exchanges go upwards: an element's partner is its mirror
image in the block, or has one index bit flipped. Partners past the end would be larger than every element, so elements
without a partner stay unchanged, without padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...analysis.scans import LOOK_BACK
from ...analysis.special_forms import GIVEN
from ...dialects.builder import Builder, Values
from ...ir.attributes import Attribute, IntegerAttr
from ...ir.copying import copy_region
from ...ir.operation import Block, Operation, Region, Value, tensor_of
from ...ir.sizes import Size
from ...ir.types import I32, I64, TensorType
from ...kernels.scalars.target import Target
from ..canonical.legacy import IN_MEMORY, over_tensors
from ..formulas.expression import Expression
from .building import narrowed, taken, widened
from .digit_sorts import sorted_by_digits

BLOCK: Final = 8
"""Elements that a kernel sorts at once."""

MAX_OPERANDS: Final = 5
"""The most operands of a sort: they and the results are buffers of a kernel."""

_OWN: Final = {
    "stablehlo.constant": (IN_MEMORY,),
    "stablehlo.reduce_window": (LOOK_BACK,),
    "stablehlo.sort": ("block", "runs", GIVEN),
}
"""Attributes that mark operations, by the operations' names."""

_SCALAR = TensorType((), I32)


def forget_stages(block: Block) -> None:
    """Removes the marks that these passes set on operations, such as that of a sort's stages."""
    for operation in (inner for outer in block.operations for inner in outer.walk()):
        own = _OWN.get(operation.name, ())
        if any(name in operation.attributes for name in own):
            operation.operands = operation.operands[: len(operation.operands) - operation.integer(GIVEN, 0)]
            kept = {name: value for name, value in operation.attributes.items() if name not in own}
            operation.attributes = kept


def sort(target: Target, builder: Builder, operation: Operation) -> Values | None:
    """Sorts stably; returns None for a sort that a kernel computes."""
    if "block" in operation.attributes or GIVEN in operation.attributes:
        return None
    shape = tensor_of(operation.operands[0]).lengths
    axis = operation.integer("dimension", -1) % len(shape)
    length = shape[axis]
    if 0 in shape or length == 1:
        return operation.operands
    compared = _compared(operation)
    if isinstance(length, Size) or len(compared) >= MAX_OPERANDS:
        return _sorted_in_loop(builder, operation, axis)
    if len(operation.operands) > MAX_OPERANDS:
        return _sorted_by_place(target, builder, operation, axis, compared)
    digits_sorted = sorted_by_digits(builder, operation, target)
    if digits_sorted is not None:
        return digits_sorted
    values = [widened(builder, value) for value in operation.operands]
    body = _widened_body(builder, operation, values)
    runs, block = 1, BLOCK
    while runs < length:
        attributes: dict[str, Attribute] = {"dimension": IntegerAttr(axis, I64), "is_stable": True}
        if block < length or runs > 1:
            attributes |= {"block": IntegerAttr(block, I64), "runs": IntegerAttr(runs, I64)}
        region = copy_region(body, {})
        values = builder.append("sort", values, [value.type for value in values], attributes, [region]).results
        runs, block = block, 2 * block
    pairs = zip(values, operation.operands, strict=True)
    return [narrowed(builder, value, tensor_of(operand).scalar) for value, operand in pairs]


def _compared(operation: Operation) -> list[int]:
    """Returns the numbers of the operands that a comparison depends on."""
    block = operation.regions[0].block
    read = {value for outer in block.operations for inner in outer.walk() for value in inner.operands}
    arguments = block.arguments
    return [number for number in range(len(operation.operands)) if read & {*arguments[2 * number : 2 * number + 2]}]


def _widened_body(builder: Builder, operation: Operation, values: Values) -> Region:
    """Returns the comparison of a sort, on whole-word elements."""
    body = operation.regions[0]
    elements = [tensor_of(value).scalar for value in operation.operands]
    if elements == [tensor_of(value).scalar for value in values]:
        return body
    types = [TensorType((), tensor_of(value).element) for value in values for _ in range(2)]

    def compare(inner: Builder, pairs: Values) -> Values:
        narrow = [narrowed(inner, value, elements[number // 2]) for number, value in enumerate(pairs)]
        return over_tensors(inner, body.block, narrow)

    return builder.region(types, compare)


def _sorted_by_place(
    target: Target, builder: Builder, operation: Operation, axis: int, compared: Sequence[int]
) -> Values:
    """Sorts compared operands with their positions; gathers the other operands."""
    body, chosen = operation.regions[0].block, [operation.operands[number] for number in compared]
    position = builder.iota(TensorType(tensor_of(chosen[0]).lengths, I32), axis)

    def compare(inner: Builder, pairs: Values) -> Value:
        numbers = [2 * number + side for number in compared for side in range(2)]
        inside = dict(zip(numbers, pairs[:-2], strict=True))
        others = [inner.constant(0, tensor_of(argument)) for argument in body.arguments]
        return over_tensors(inner, body, [inside.get(number, other) for number, other in enumerate(others)])[0]

    results = builder.sort([*chosen, position], axis, compare)
    made = builder.block.operations.pop()
    *sorted_values, position = sort(target, builder, made) or results
    sorted_by = dict(zip(compared, sorted_values, strict=True))
    return [
        sorted_by[number] if number in sorted_by else _gathered(builder, value, position, axis)
        for number, value in enumerate(operation.operands)
    ]


def _gathered(builder: Builder, value: Value, places: Value, axis: int) -> Value:
    """Gathers each row's elements by its own positions along a dimension."""
    type = tensor_of(value)
    others = tuple(other for other in range(type.rank) if other != axis)
    fields = {
        "collapsed_slice_dims": (axis,),
        "start_index_map": (axis,),
        "operand_batching_dims": others,
        "start_indices_batching_dims": others,
        "index_vector_dim": type.rank,
    }
    return builder.gather(value, places, fields, (1,) * type.rank, type.shape)


def _sorted_in_loop(builder: Builder, operation: Operation, axis: int) -> Values:
    """Sorts in a loop; positions break ties, so that the sort is stable.

    The loop carries the block size, the distance of the stage's partners (0 for the mirroring stage at the start of a
    block size), the operands, and the original positions of their elements.
    """
    body = operation.regions[0].block
    shape = tensor_of(operation.operands[0]).lengths
    positions = builder.iota(TensorType(shape, I32), axis)
    starts = [builder.constant(2, _SCALAR), builder.constant(0, _SCALAR), *operation.operands, positions]

    def more(inner: Builder, carried: Values) -> Values:
        # The last block size is the first that is at least the length.
        half = inner.elementwise("shift_right_logical", carried[0], 1)
        return [inner.compare("LT", half, inner.dimension(carried[2], axis))]

    def stage(inner: Builder, carried: Values) -> Values:
        size, distance, *values = carried
        return [*_next(inner, size, distance), *_exchanged(inner, body, values, size, distance, axis)]

    return builder.repeat(starts, more, stage)[2:-1]


def _next(builder: Builder, size: Value, distance: Value) -> Values:
    """Returns the next stage's block size and distance: a quarter of the size after mirroring, then halves."""
    is_mirror = builder.compare("EQ", distance, 0)
    quarter = builder.elementwise("shift_right_logical", size, 2)
    half = builder.elementwise("shift_right_logical", distance, 1)
    following = builder.select(is_mirror, quarter, half)
    is_done = builder.compare("EQ", following, 0)
    return [builder.select(is_done, builder.elementwise("shift_left", size, 1), size), following]


def _exchanged(builder: Builder, body: Block, values: Values, size: Value, distance: Value, axis: int) -> Values:
    """Computes one stage. The last value holds the original positions of elements, which break ties."""
    shape = tensor_of(values[-1]).lengths
    vector = TensorType((shape[axis],), I32)

    def spread(scalar: Value) -> Value:
        return builder.broadcast(scalar, vector.shape, ())

    index = builder.iota(vector, 0)
    bits = builder.select(builder.compare("EQ", distance, 0), builder.elementwise("subtract", size, 1), distance)
    partner = Expression(builder, builder.elementwise("xor", index, spread(bits)))
    is_inside = partner < Expression(builder, spread(builder.dimension(values[0], axis)))
    position = builder.select(is_inside.value, partner.value, index)
    whole = [
        builder.broadcast(flag, shape, (axis,))
        for flag in (is_inside.value, (partner > Expression(builder, index)).value)
    ]
    exists, is_lower = whole
    others = [taken(builder, value, position, axis) for value in values]
    firsts, seconds = _in_order(builder, is_lower, values, others)
    swap, _ = _out_of_order(builder, body, firsts, seconds)
    swap = builder.elementwise("and", exists, swap)
    return [builder.select(swap, other, own) for own, other in zip(values, others, strict=True)]


def _in_order(
    builder: Builder, is_lower: Value, values: Values, others: Values
) -> tuple[Sequence[Value], Sequence[Value]]:
    """Returns each pair of an element and its partner with the lower index first."""
    firsts = [builder.select(is_lower, own, partner) for own, partner in zip(values, others, strict=True)]
    seconds = [builder.select(is_lower, partner, own) for own, partner in zip(values, others, strict=True)]
    return firsts, seconds


def _out_of_order(builder: Builder, body: Block, firsts: Values, seconds: Values) -> tuple[Value, Value]:
    """Whether the second of each pair precedes the first: by the body and then by position, and by position only.

    Positions are the last values.
    """
    pairs = list(zip(seconds[:-1], firsts[:-1], strict=True))
    (after,) = over_tensors(builder, body, [value for pair in pairs for value in pair])
    (before,) = over_tensors(builder, body, [value for pair in pairs for value in pair[::-1]])
    later = builder.compare("GT", firsts[-1], seconds[-1])
    tie = builder.elementwise("and", builder.elementwise("not", before), later)
    return builder.elementwise("or", after, tie), later
