"""Scatters of many updates: updates sorted by where they go, those of one place joined, and each place finds its own.

A kernel computes a scatter backwards: each element of the result looks at every update. That is as many looks as there
are updates times elements; beyond a few million, and for windows that hold too many elements, this file takes over.
Updates of one place stay in order. Where the body is one associative operation they are joined in log₂ n steps;
otherwise they are applied in rounds, each place's first ones in the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...dialects.builder import Builder
from ...ir.attributes import Attribute, DenseArray, IntegerAttr, StructAttr, type_shape
from ...ir.operation import Block, Operation, Region, Value, tensor_of
from ...ir.types import F32, I1, I32, I64, ScalarType, TensorType
from ..canonical.legacy import over_tensors
from ..identities import REPLACED, joined_by
from ..rewrite import rewrite_block
from ..weights import iterations_of

Values = Sequence[Value]

MAX_UPDATES: Final = 1024
"""Updates that each element of a result looks at."""

MAX_WORK: Final = 1 << 24
"""Looks of all elements together, of more than a few updates each."""

_FEW: Final = 16
_FAR: Final = 1 << 30


def sort_scatters(block: Block) -> None:
    """Replaces scatters of many updates in a block and the regions inside."""
    rewrite_block(block, _rewritten)


def _rewritten(builder: Builder, operation: Operation) -> Values | None:
    rule = _RULES.get(operation.name)
    if rule is None or not all(tensor_of(value).is_static for value in (*operation.operands, *operation.results)):
        return None
    return rule(builder, operation)


def _shape(value: Value) -> tuple[int, ...]:
    return type_shape(tensor_of(value))


def _is_small(count: int, elements: int, body: Block) -> bool:
    """Whether so many looks of each element are few enough, with a body that is applied in each."""
    most = MAX_UPDATES // (1 + sum(iterations_of(operation) for operation in body.operations))
    return count <= min(_FEW, most) or (count <= most and count * elements <= MAX_WORK)


# -- scatters --------------------------------------------------------------------------------------------


def _scatter(builder: Builder, operation: Operation) -> Values | None:
    count = len(operation.results)
    inputs, indices, updates = operation.operands[:count], operation.operands[count], operation.operands[count + 1 :]
    numbers = operation.attributes["scatter_dimension_numbers"]
    assert isinstance(numbers, StructAttr)
    window, inserted = numbers.ints("update_window_dims"), numbers.ints("inserted_window_dims")
    mapped = numbers.ints("scatter_dims_to_operand_dims")
    input_batch, index_batch = numbers.ints("input_batching_dims"), numbers.ints("scatter_indices_batching_dims")
    shape, target = _shape(updates[0]), _shape(inputs[0])
    scatter = [axis for axis in range(len(shape)) if axis not in window]
    vector = numbers.int("index_vector_dim")
    batches = [scatter[source - (source > vector)] for source in index_batch]
    updated = math.prod(shape[axis] for axis in scatter if axis not in batches)
    if 0 in target or _is_small(updated, math.prod(target), operation.regions[0].block):
        return None
    # Dimensions in which an update is at one place, and those in which it is a row from the start.
    kept = [axis for axis in range(len(target)) if axis not in inserted and axis not in input_batch]
    update_axis = dict(zip(kept, window, strict=True))
    rows = [axis for axis in kept if axis not in mapped]
    points = [axis for axis in range(len(target)) if axis not in rows]
    moved = [update_axis[axis] for axis in points if axis in update_axis]
    order = [*scatter, *moved, *(update_axis[axis] for axis in rows)]
    grid = [shape[axis] for axis in (*scatter, *moved)]
    lengths = [shape[update_axis[axis]] for axis in rows]
    # The place of each update, of the shape of the grid.
    type = TensorType(grid, I32)
    keys = builder.constant(0, type)
    inside = builder.constant(True, type.of(I1))
    for axis in points:
        if axis in mapped:
            place = _component(builder, indices, vector, mapped.index(axis), grid, len(scatter))
        elif axis in input_batch:
            place = builder.iota(type, scatter.index(batches[input_batch.index(axis)]))
        else:
            place = builder.constant(0, type)
        if axis in update_axis:
            offset = builder.iota(type, len(scatter) + moved.index(update_axis[axis]))
            place = builder.elementwise("add", place, offset)
        good = builder.elementwise("and", builder.compare("GE", place, 0), builder.compare("LT", place, target[axis]))
        inside = builder.elementwise("and", inside, good)
        keys = builder.elementwise("add", builder.elementwise("multiply", keys, target[axis]), place)
    places = math.prod(target[axis] for axis in points)
    total = math.prod(grid)
    keys = builder.reshape(builder.select(inside, keys, places), (total,))
    given = [builder.reshape(_transposed(builder, value, order), (total, *lengths)) for value in updates]
    # The elements that rows reach, with the places in one dimension.
    axes = [*points, *rows]
    reached = [slice_to(builder, value, dict(zip(rows, lengths, strict=True))) for value in inputs]
    old = [builder.reshape(_transposed(builder, value, axes), (places, *lengths)) for value in reached]
    body = operation.regions[0].block
    new = _applied(builder, body, keys, given, old, operation.flag("unique_indices"))
    back = [axes.index(axis) for axis in range(len(axes))]
    found = []
    for value, before in zip(new, inputs, strict=True):
        whole = builder.reshape(value, (*(target[axis] for axis in points), *lengths))
        part = _transposed(builder, whole, back)
        starts = [builder.constant(0, TensorType((), I32))] * len(target)
        is_whole = _shape(part) == target
        found.append(
            part if is_whole else builder.append("dynamic_update_slice", [before, part, *starts], [before.type]).result
        )
    return found


def slice_to(builder: Builder, value: Value, lengths: Mapping[int, int]) -> Value:
    """The first elements of some dimensions."""
    for axis, length in lengths.items():
        value = builder.piece(value, axis, 0, length)
    return value


def _component(builder: Builder, indices: Value, vector: int, number: int, grid: Sequence[int], rank: int) -> Value:
    """A component of every index vector as i32, repeated to the grid; what is far outside stays outside."""
    shape = _shape(indices)
    if vector < len(shape):
        indices = builder.piece(indices, vector, number, number + 1)
    indices = builder.reshape(indices, grid[:rank])
    element = tensor_of(indices).scalar
    if element.bits >= 32:
        indices = builder.elementwise("minimum", indices, _FAR)
        if element.kind == "int":
            indices = builder.elementwise("maximum", indices, -_FAR)
    return builder.broadcast(builder.convert(indices, I32), grid, range(rank))


def _transposed(builder: Builder, value: Value, order: Sequence[int]) -> Value:
    if list(order) == list(range(len(order))):
        return value
    type = TensorType([_shape(value)[axis] for axis in order], tensor_of(value).element)
    return builder.append("transpose", [value], [type], {"permutation": DenseArray(I64, tuple(order))}).result


# -- updates by place ------------------------------------------------------------------------------------


def _applied(builder: Builder, body: Block, keys: Value, updates: Values, old: Values, is_unique: bool) -> Values:
    """Rows after the updates to them.

    Args:
        builder: appends what is needed.
        body: from rows and updates to rows.
        keys: the row that each update goes to; none where it is their number.
        updates: one row for each key.
        old: the rows.
        is_unique: whether no row has more than one update.
    """
    (total,), places = _shape(keys), _shape(old[0])[0]
    type = TensorType((total,), I32)
    scalars = [TensorType((), I32)] * 4
    region = builder.region(scalars, lambda inner, four: [inner.compare("LT", four[0], four[1])])
    attributes: dict[str, Attribute] = {"dimension": IntegerAttr(0, I64), "is_stable": True}
    both = builder.append("sort", [keys, builder.iota(type, 0)], [type, type], attributes, [region])
    keys, order = both.results
    element = tensor_of(old[0]).scalar
    joined = joined_by(body)
    given: Values = [taken(builder, value, order) for value in updates]
    if not is_unique and joined not in ("", REPLACED):
        if joined == "add" and element.kind == "float" and element.bits < 32:
            old, given = ([builder.convert(value, F32) for value in values] for values in (list(old), given))
            body = _sum_body(builder, F32).block
        given = _joined(builder, body, keys, given)
    rows = builder.iota(TensorType((places,), I32), 0)
    ends = _bound(builder, keys, rows)
    if is_unique or joined:
        last = builder.elementwise("maximum", builder.elementwise("subtract", ends, 1), 0)
        hit = builder.elementwise(
            "and", builder.compare("GT", ends, 0), builder.compare("EQ", taken(builder, keys, last), rows)
        )
        found = _updated(builder, body, old, given, last, hit)
        return [builder.convert(value, element) for value in found] if len(found) == 1 else found
    starts = _bound(builder, keys, builder.elementwise("subtract", rows, 1))
    return _in_rounds(builder, body, old, given, starts, ends)


def _sum_body(builder: Builder, element: ScalarType) -> Region:
    scalar = TensorType((), element)
    return builder.region([scalar, scalar], lambda inner, pair: [inner.elementwise("add", *pair)])


def taken(builder: Builder, value: Value, positions: Value) -> Value:
    """Rows at positions of the first dimension."""
    (count,), shape = _shape(positions), _shape(value)
    fields = {
        "offset_dims": tuple(range(1, len(shape))),
        "collapsed_slice_dims": (0,),
        "start_index_map": (0,),
        "index_vector_dim": 1,
    }
    attributes: dict[str, Attribute] = {
        "dimension_numbers": StructAttr("stablehlo.gather", fields),
        "slice_sizes": DenseArray(I64, (1, *shape[1:])),
    }
    type = TensorType((count, *shape[1:]), tensor_of(value).element)
    return builder.append("gather", [value, builder.reshape(positions, (count, 1))], [type], attributes).result


def _joined(builder: Builder, body: Block, keys: Value, values: Values) -> Values:
    """For each update, the updates of the same place up to it, joined."""
    (total,) = _shape(keys)
    distance = 1
    while distance < total:
        before = [builder.piece(value, 0, 0, total - distance) for value in values]
        after = [builder.piece(value, 0, distance, total) for value in values]
        same = builder.compare(
            "EQ", builder.piece(keys, 0, 0, total - distance), builder.piece(keys, 0, distance, total)
        )
        joined = over_tensors(builder, body, [*before, *after])
        values = [
            builder.concatenate([builder.piece(value, 0, 0, distance), _chosen(builder, same, new, old)], 0)
            for value, new, old in zip(values, joined, after, strict=True)
        ]
        distance *= 2
    return values


def _chosen(builder: Builder, predicate: Value, chosen: Value, other: Value) -> Value:
    """Rows by a predicate of each."""
    return builder.select(builder.broadcast(predicate, _shape(chosen), (0,)), chosen, other)


def _bound(builder: Builder, keys: Value, rows: Value) -> Value:
    """For each row, how many of the sorted keys are not above it."""
    (total,) = _shape(keys)
    found = builder.like(rows, 0)
    step = 1 << (total.bit_length() - 1)
    while step:
        after = builder.elementwise("add", found, step)
        last = builder.elementwise("minimum", builder.elementwise("subtract", after, 1), total - 1)
        fits = builder.elementwise(
            "and", builder.compare("LE", after, total), builder.compare("LE", taken(builder, keys, last), rows)
        )
        found = builder.select(fits, after, found)
        step //= 2
    return found


def _updated(builder: Builder, body: Block, old: Values, updates: Values, positions: Value, hit: Value) -> list[Value]:
    """Rows after one update of each that is hit."""
    chosen = [taken(builder, value, positions) for value in updates]
    new = over_tensors(builder, body, [*old, *chosen])
    return [_chosen(builder, hit, one, other) for one, other in zip(new, old, strict=True)]


def _in_rounds(
    builder: Builder, body: Block, old: Values, updates: Values, starts: Value, ends: Value
) -> Sequence[Value]:
    """Each row's updates one after another, those of all rows at the same time."""
    index = TensorType((), I32)
    counts = builder.elementwise("subtract", ends, starts)
    region = builder.region([index, index], lambda inner, pair: [inner.elementwise("maximum", *pair)])
    zero = builder.constant(0, index)
    axes: dict[str, Attribute] = {"dimensions": DenseArray(I64, (0,))}
    most = builder.append("reduce", [counts, zero], [index], axes, [region]).result

    def condition(inner: Builder, values: Values) -> Values:
        return [inner.compare("LT", values[0], most)]

    def step(inner: Builder, values: Values) -> Values:
        number, *rows = values
        position = inner.elementwise("add", starts, inner.broadcast(number, _shape(starts), ()))
        hit = inner.compare("LT", position, ends)
        position = inner.select(hit, position, 0)
        return [inner.elementwise("add", number, 1), *_updated(inner, body, rows, updates, position, hit)]

    types = [index, *(value.type for value in old)]
    regions = [builder.region(types, condition), builder.region(types, step)]
    return builder.append("while", [zero, *old], types, regions=regions).results[1:]


# -- selections ------------------------------------------------------------------------------------------


def _select_and_scatter(builder: Builder, operation: Operation) -> Values | None:
    """The element that each window selects, and a scatter to those."""
    value, source, start = operation.operands
    rank = len(_shape(value))
    sizes = operation.integers("window_dimensions", [1] * rank)
    strides = operation.integers("window_strides", [1] * rank)
    windows = math.prod(-(-size // stride) for size, stride in zip(sizes, strides, strict=True))
    selection, scatter = (region.block for region in operation.regions)
    count = math.prod(_shape(value))
    if not count or _is_small(windows * (1 + math.prod(sizes)), count, scatter):
        return None
    element = tensor_of(value).scalar
    flat = builder.iota(TensorType((count,), I32), 0)
    numbers = builder.reshape(flat, _shape(value))
    there = builder.constant(True, TensorType(_shape(value), I1))
    scalars = [TensorType((), each) for each in (element, I32, I1)]

    def body(inner: Builder, six: Values) -> Values:
        (keeps,) = over_tensors(inner, selection, [six[0], six[3]])
        keeps = inner.elementwise("or", inner.elementwise("not", six[5]), keeps)
        keeps = inner.elementwise("and", six[2], keeps)
        first, second = (inner.select(keeps, six[each], six[each + 3]) for each in range(2))
        return [first, second, inner.elementwise("or", six[2], six[5])]

    kept = ("window_dimensions", "window_strides", "padding")
    attributes = {key: item for key, item in operation.attributes.items() if key in kept}
    starts = [builder.constant(0, each) for each in scalars]
    types = [TensorType(_shape(source), each.element) for each in scalars]
    region = builder.region([*scalars, *scalars], body)
    chosen = builder.append("reduce_window", [value, numbers, there, *starts], types, attributes, [region]).results
    keys = builder.reshape(builder.select(chosen[2], chosen[1], count), (math.prod(_shape(source)),))
    updates = builder.reshape(source, (math.prod(_shape(source)),))
    old = builder.broadcast(start, (count,), ())
    (found,) = _applied(builder, scatter, keys, [updates], [old], False)
    return [builder.reshape(found, _shape(value))]


_RULES: Final[Mapping[str, Callable[[Builder, Operation], Values | None]]] = {
    "stablehlo.scatter": _scatter,
    "stablehlo.select_and_scatter": _select_and_scatter,
}
