"""Sorts along a dimension whose length depends on the call: a bitonic network whose stages are rounds of a loop.

In the form whose exchanges all go upwards, an element's partner of each stage is at a distance that mirrors it in its
block or flips one bit of its index. Partners past the end count as larger than everything, so that no padding is
needed: it suffices to leave their elements alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects.builder import Builder
from ...ir.attributes import Attribute, DenseArray, StructAttr
from ...ir.operation import Block, Operation, Value, tensor_of
from ...ir.types import I32, I64, TensorType
from ..canonical.legacy import over_tensors
from ..formulas.expression import Expression

Values = Sequence[Value]

_SCALAR = TensorType((), I32)


def sorted_in_loop(builder: Builder, operation: Operation, axis: int) -> Values:
    """The sorted operands; ties go by position, so that the sort is stable.

    The loop carries the size of blocks, the distance of the stage's partners (0 for the mirroring stage that begins a
    size), the operands, and the positions that their elements come from.
    """
    body = operation.regions[0].block
    shape = tensor_of(operation.operands[0]).lengths
    place = builder.iota(TensorType(shape, I32), axis)
    starts = [builder.constant(2, _SCALAR), builder.constant(0, _SCALAR), *operation.operands, place]
    types = [value.type for value in starts]

    def more(inner: Builder, carried: Values) -> Values:
        # The last size of blocks is the first that is no less than the length.
        half = inner.elementwise("shift_right_logical", carried[0], 1)
        return [inner.compare("LT", half, inner.dimension(carried[2], axis))]

    def stage(inner: Builder, carried: Values) -> Values:
        size, distance, *values = carried
        return [*_next(inner, size, distance), *_exchanged(inner, body, values, size, distance, axis)]

    regions = [builder.region(types, more), builder.region(types, stage)]
    return builder.append("while", starts, types, {}, regions).results[2:-1]


def _next(builder: Builder, size: Value, distance: Value) -> Values:
    """Size and distance of the stage after this one: a quarter of the size after mirroring, then halves down to 1."""
    is_mirror = builder.compare("EQ", distance, 0)
    quarter = builder.elementwise("shift_right_logical", size, 2)
    half = builder.elementwise("shift_right_logical", distance, 1)
    following = builder.select(is_mirror, quarter, half)
    is_done = builder.compare("EQ", following, 0)
    return [builder.select(is_done, builder.elementwise("shift_left", size, 1), size), following]


def _exchanged(builder: Builder, body: Block, values: Values, size: Value, distance: Value, axis: int) -> Values:
    """One stage. The last value has the positions that elements come from, by which ties go."""
    shape = tensor_of(values[-1]).lengths
    vector = TensorType((shape[axis],), I32)

    def spread(scalar: Value) -> Value:
        return builder.broadcast(scalar, vector.shape, ())

    index = builder.iota(vector, 0)
    bits = builder.select(builder.compare("EQ", distance, 0), builder.elementwise("subtract", size, 1), distance)
    partner = Expression(builder, builder.elementwise("xor", index, spread(bits)))
    is_inside = partner < Expression(builder, spread(builder.dimension(values[0], axis)))
    place = builder.select(is_inside.value, partner.value, index)
    whole = [
        builder.broadcast(each, shape, (axis,))
        for each in (is_inside.value, (partner > Expression(builder, index)).value)
    ]
    exists, is_lower = whole
    others = [_taken(builder, value, place, axis) for value in values]
    firsts, seconds = in_order(builder, is_lower, values, others)
    swap, _ = out_of_order(builder, body, firsts, seconds)
    swap = builder.elementwise("and", exists, swap)
    return [builder.select(swap, other, one) for one, other in zip(values, others, strict=True)]


def in_order(
    builder: Builder, is_lower: Value, values: Values, others: Values
) -> tuple[Sequence[Value], Sequence[Value]]:
    """Each pair of an element and its partner as the one whose place is lower, and the other."""
    firsts = [builder.select(is_lower, one, other) for one, other in zip(values, others, strict=True)]
    seconds = [builder.select(is_lower, other, one) for one, other in zip(values, others, strict=True)]
    return firsts, seconds


def out_of_order(builder: Builder, body: Block, firsts: Values, seconds: Values) -> tuple[Value, Value]:
    """Whether the second of each pair comes before the first, by the body and then by position, and by position alone.

    Positions are the last values.
    """
    pairs = list(zip(seconds[:-1], firsts[:-1], strict=True))
    (after,) = over_tensors(builder, body, [value for pair in pairs for value in pair])
    (before,) = over_tensors(builder, body, [value for pair in pairs for value in pair[::-1]])
    later = builder.compare("GT", firsts[-1], seconds[-1])
    tie = builder.elementwise("and", builder.elementwise("not", before), later)
    return builder.elementwise("or", after, tie), later


def _taken(builder: Builder, value: Value, places: Value, axis: int) -> Value:
    """The elements of a value at places along a dimension."""
    type = tensor_of(value)
    rest = tuple(other for other in range(type.rank) if other != axis)
    fields = {
        "offset_dims": rest,
        "collapsed_slice_dims": (axis,),
        "start_index_map": (axis,),
        "index_vector_dim": 1,
    }
    sizes = DenseArray(I64, tuple(1 if other == axis else length for other, length in enumerate(type.lengths)))
    attributes: dict[str, Attribute] = {
        "dimension_numbers": StructAttr("stablehlo.gather", fields),
        "slice_sizes": sizes,
    }
    return builder.append("gather", [value, places], [type], attributes).result
