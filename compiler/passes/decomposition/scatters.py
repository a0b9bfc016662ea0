"""Scatters of many updates, as direct scatters (``direct_scatters``) or by sorting the updates.

A kernel computes a scatter by gathering: each element of the result inspects every update. With more than a few
thousand updates that is too slow. Then this file brings the updates into the form of one row per key, and
``updates_by_place`` applies them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...analysis.special_forms import IN_ORDER, MAX_LOOKS, ScatterAxes, is_direct
from ...analysis.weights import iterations_of
from ...dialects.builder import Builder, Values
from ...dialects.rewrite import rewrite_block
from ...ir.copying import copy_region
from ...ir.operation import Block, Operation, Value, tensor_of
from ...ir.types import I1, I32, TensorType
from ...kernels.scalars.target import Target
from ..canonical.legacy import over_tensors
from ..formulas.expression import Expression
from .building import shape_of
from .updates_by_place import applied, most_looks

_FAR: Final = 1 << 30


MAX_IN_ORDER: Final = {"cpu": (1 << 15, 16), "default": (32, 64)}
"""The most updates that are applied one after another, and the fewest elements of each, by family of devices."""


def replace_scatters(block: Block, target: Target) -> None:
    """Replaces scatters of many updates in a block and its nested regions."""

    def rewritten(builder: Builder, operation: Operation) -> Values | None:
        values = (*operation.operands, *operation.results)
        if operation.name not in _RULES or not all(tensor_of(value).is_static for value in values):
            return None
        return _RULES[operation.name](builder, operation, target)

    rewrite_block(block, rewritten)


def _is_small(count: int, elements: int, body: Block) -> bool:
    """Whether each element can inspect ``count`` updates."""
    return count * elements <= MAX_LOOKS and count <= most_looks(body)


# -- scatters --------------------------------------------------------------------------------------------


def _scatter(builder: Builder, operation: Operation, device: Target) -> Values | None:
    count = len(operation.results)
    inputs, indices, updates = operation.operands[:count], operation.operands[count], operation.operands[count + 1 :]
    shape, target, dims = shape_of(updates[0]), shape_of(inputs[0]), ScatterAxes(operation)
    scatter, mapped, batches = dims.scatter, dims.mapped, dims.batches
    updated = math.prod(shape[axis] for axis in scatter if axis not in batches.values())
    if 0 in target or is_direct(operation) or _is_small(updated, math.prod(target), operation.regions[0].block):
        return None
    in_order = _in_order(builder, operation, updated, device)
    if in_order is not None:
        return in_order
    # Dimensions in which an update has one index, and dimensions in which it is a whole row.
    update_axis = dict(zip(dims.kept, dims.window, strict=True))
    rows = [axis for axis in dims.kept if axis not in mapped]
    points = [axis for axis in range(len(target)) if axis not in rows]
    moved = [update_axis[axis] for axis in points if axis in update_axis]
    order = [*scatter, *moved, *(update_axis[axis] for axis in rows)]
    grid = [shape[axis] for axis in (*scatter, *moved)]
    lengths = [shape[update_axis[axis]] for axis in rows]
    # The position of each update, in the shape of the grid.
    type = TensorType(grid, I32)
    keys = Expression(builder, builder.constant(0, type))
    inside = Expression(builder, builder.constant(True, type.of(I1)))
    for axis in points:
        if axis in mapped:
            number = _component(builder, indices, dims.vector, mapped.index(axis), grid, len(scatter))
        elif axis in batches:
            number = builder.iota(type, scatter.index(batches[axis]))
        else:
            number = builder.constant(0, type)
        position = Expression(builder, number)
        if axis in update_axis:
            offset = builder.iota(type, len(scatter) + moved.index(update_axis[axis]))
            position = position + Expression(builder, offset)
        inside = inside & ((position >= 0) & (position < target[axis]))
        keys = keys * target[axis] + position
    places = math.prod(target[axis] for axis in points)
    total = math.prod(grid)
    flat = builder.reshape(inside.then(keys, places).value, (total,))
    update_rows = [builder.reshape(builder.transpose(value, order), (total, *lengths)) for value in updates]
    # The elements within the reach of rows, with all positions in one dimension.
    axes = [*points, *rows]
    reached = [slice_to(builder, value, dict(zip(rows, lengths, strict=True))) for value in inputs]
    old = [builder.reshape(builder.transpose(value, axes), (places, *lengths)) for value in reached]
    body = operation.regions[0].block
    new = applied(builder, body, flat, update_rows, old, operation.flag("unique_indices"), device)
    back = [axes.index(axis) for axis in range(len(axes))]
    results = []
    for value, before in zip(new, inputs, strict=True):
        whole = builder.reshape(value, (*(target[axis] for axis in points), *lengths))
        part = builder.transpose(whole, back)
        starts = [builder.constant(0, TensorType((), I32))] * len(target)
        is_whole = shape_of(part) == target
        results.append(part if is_whole else builder.put_at(before, part, starts))
    return results


def _in_order(builder: Builder, operation: Operation, updated: int, device: Target) -> Values | None:
    """Applies updates one after another if they are few and have many elements each; else returns None."""
    most, least = MAX_IN_ORDER.get(device.family, MAX_IN_ORDER["default"])
    body, last = operation.regions[0], operation.operands[-1]
    loops = sum(iterations_of(inner) for inner in body.block.operations)
    if updated * (1 + loops) > most or math.prod(shape_of(last)) < updated * least:
        return None
    types = [value.type for value in operation.results]
    attributes = {**operation.attributes, IN_ORDER: True}
    made = builder.append("scatter", operation.operands, types, attributes, [copy_region(body, {})])
    if is_direct(made):
        return made.results
    builder.block.operations.remove(made)
    return None


def slice_to(builder: Builder, value: Value, lengths: Mapping[int, int]) -> Value:
    """Slices dimensions to the first elements."""
    for axis, length in lengths.items():
        value = builder.piece(value, axis, 0, length)
    return value


def _component(builder: Builder, indices: Value, vector: int, number: int, grid: Sequence[int], rank: int) -> Value:
    """Returns a component of every index vector as i32, broadcast to the grid; indices far outside stay outside."""
    shape = shape_of(indices)
    if vector < len(shape):
        indices = builder.piece(indices, vector, number, number + 1)
    indices = builder.reshape(indices, grid[:rank])
    element = tensor_of(indices).scalar
    if element.bits >= 32:
        indices = builder.elementwise("minimum", indices, _FAR)
        if element.kind == "int":
            indices = builder.elementwise("maximum", indices, -_FAR)
    return builder.broadcast(builder.convert(indices, I32), grid, range(rank))


# -- selections ------------------------------------------------------------------------------------------


def _select_and_scatter(builder: Builder, operation: Operation, device: Target) -> Values | None:
    """Scatters to the selected element of each window."""
    value, source, start = operation.operands
    rank = len(shape_of(value))
    sizes = operation.integers("window_dimensions", [1] * rank)
    strides = operation.integers("window_strides", [1] * rank)
    windows = math.prod(-(-size // stride) for size, stride in zip(sizes, strides, strict=True))
    selection, scatter = (region.block for region in operation.regions)
    count = math.prod(shape_of(value))
    if not count or _is_small(windows * (1 + math.prod(sizes)), count, scatter):
        return None
    is_apart = all(size <= stride for size, stride in zip(sizes, strides, strict=True))
    element = tensor_of(value).scalar
    flat = builder.iota(TensorType((count,), I32), 0)
    numbers = builder.reshape(flat, shape_of(value))
    there = builder.constant(True, TensorType(shape_of(value), I1))
    scalars = [TensorType((), scalar) for scalar in (element, I32, I1)]

    def body(inner: Builder, six: Values) -> Values:
        (keeps,) = over_tensors(inner, selection, [six[0], six[3]])
        keeps = inner.elementwise("or", inner.elementwise("not", six[5]), keeps)
        keeps = inner.elementwise("and", six[2], keeps)
        first, second = (inner.select(keeps, six[number], six[number + 3]) for number in range(2))
        return [first, second, inner.elementwise("or", six[2], six[5])]

    kept = ("window_dimensions", "window_strides", "padding")
    attributes = {key: item for key, item in operation.attributes.items() if key in kept}
    starts = [builder.constant(0, scalar) for scalar in scalars]
    types = [TensorType(shape_of(source), scalar.element) for scalar in scalars]
    region = builder.region([*scalars, *scalars], body)
    chosen = builder.append("reduce_window", [value, numbers, there, *starts], types, attributes, [region]).results
    keys = builder.reshape(builder.select(chosen[2], chosen[1], count), (math.prod(shape_of(source)),))
    updates = builder.reshape(source, (math.prod(shape_of(source)),))
    old = builder.broadcast(start, (count,), ())
    (result,) = applied(builder, scatter, keys, [updates], [old], is_apart, device)
    return [builder.reshape(result, shape_of(value))]


_RULES: Final[Mapping[str, Callable[[Builder, Operation, Target], Values | None]]] = {
    "stablehlo.scatter": _scatter,
    "stablehlo.select_and_scatter": _select_and_scatter,
}
