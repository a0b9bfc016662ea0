"""CHLO's scans and ragged contractions in terms of StableHLO's operations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...dialects.builder import Builder
from ...ir.attributes import StructAttr
from ...ir.copying import copy_operations
from ...ir.operation import Operation, Value, tensor_of
from ...ir.sizes import Dim, number_of
from ...ir.types import TensorType


def scan(builder: Builder, operation: Operation) -> Sequence[Value]:
    """Makes a scan a loop over the dimension, which carries the carries and the outputs that it writes into."""
    input_count, carry_count = operation.integers("operandSegmentSizes")
    inputs, inits = operation.operands[:input_count], operation.operands[input_count:]
    outputs = [tensor_of(value) for value in operation.results[: len(operation.results) - carry_count]]
    axis = operation.integer("dimension")
    whole_values = [*inputs, *operation.results[: len(outputs)]]
    found_length = tensor_of(whole_values[0]).lengths[axis] if whole_values else operation.integer("scan_dim_size", 0)
    length: Value | int
    last: Value | int
    if isinstance(found_length, int):
        length, last = found_length, found_length - 1
    else:
        length = builder.dimension(inputs[0], axis)
        last = builder.elementwise("subtract", length, 1)
    is_reversed = operation.flag("is_reverse")
    body = operation.regions[0].block

    def step(inner: Builder, number: Value, values: Sequence[Value]) -> Sequence[Value]:
        position = inner.elementwise("subtract", last, number) if is_reversed else number
        elements = [_slice(inner, value, axis, position) for value in inputs]
        inside = dict(zip(body.arguments, [*elements, *values[:carry_count]], strict=True))
        copy_operations(body.operations[:-1], inner.block, inside)
        returned = [inside[value] for value in body.terminator.operands]
        pairs = zip(values[carry_count:], returned[: len(outputs)], strict=True)
        return [*returned[len(outputs) :], *(_written(inner, *pair, axis, position) for pair in pairs)]

    results = builder.loop(length, [*inits, *(builder.constant(0, type) for type in outputs)], step)
    return [*results[carry_count:], *results[:carry_count]]


def _slice(builder: Builder, value: Value, axis: int, position: Value) -> Value:
    """Returns an element along a dimension, which the result does not have."""
    sizes = tensor_of(value).lengths
    return builder.reshape(builder.piece_at(value, axis, position, 1), sizes[:axis] + sizes[axis + 1 :])


def _written(builder: Builder, whole: Value, part: Value, axis: int, position: Value) -> Value:
    shape = [1 if number == axis else length for number, length in enumerate(tensor_of(whole).lengths)]
    return builder.put_along(whole, builder.reshape(part, shape), axis, position)


def ragged_dot(builder: Builder, operation: Operation) -> Sequence[Value]:
    """Contracts each group's part of the left operand, with zeros elsewhere.

    Rows along the ragged dimension belong to groups, one after another. If the dimension is contracted, each group has
    a result of its own. If it stays, groups are contracted too, since the right operand has one matrix per group. If it
    is a batch dimension, groups only make elements that belong to none zero.
    """
    left, right, sizes = operation.operands
    numbers = operation.attributes["ragged_dot_dimension_numbers"]
    assert isinstance(numbers, StructAttr)
    lists = {
        side: [numbers.ints(f"{side}_{kind}_dimensions") for kind in ("batching", "contracting")]
        for side in ("lhs", "rhs")
    }
    (ragged,) = numbers.ints("lhs_ragged_dimensions")
    batching, contracting = lists["lhs"]
    mask = _members(builder, left, sizes, ragged, _prefix(tensor_of(left).rank, ragged, batching, contracting))
    if ragged in batching:
        mask = builder.reduce("or", mask, False, (0,))
        masked = builder.select(mask, left, 0)
        return [_contracted(builder, operation, masked, right, lists["lhs"], lists["rhs"])]
    groups = tensor_of(mask).lengths[0]
    type = tensor_of(left)
    spread = builder.broadcast(left, (groups, *type.shape), range(1, type.rank + 1))
    masked = builder.select(mask, spread, 0)
    shifted = [[axis + 1 for axis in axes] for axes in lists["lhs"]]
    if ragged in lists["lhs"][1]:
        # The left operand's group is a free dimension; results have it before the batch dimensions.
        result = _contracted(builder, operation, masked, right, shifted, lists["rhs"])
        count = len(batching)
        return [builder.transpose(result, (count, *range(count), *range(count + 1, tensor_of(result).rank)))]
    (group,) = numbers.ints("rhs_group_dimensions")
    right_lists = [lists["rhs"][0], (group, *lists["rhs"][1])]
    return [_contracted(builder, operation, masked, right, [shifted[0], [0, *shifted[1]]], right_lists)]


def _prefix(rank: int, ragged: int, batching: Sequence[int], contracting: Sequence[int]) -> list[int]:
    """Dimensions of the left operand by which group sizes may differ."""
    if ragged in batching:
        return list(batching[: batching.index(ragged)])
    if ragged in contracting:
        return [*batching, *contracting[: contracting.index(ragged)]]
    return [*batching, *(axis for axis in range(ragged) if axis not in batching and axis not in contracting)]


def _members(builder: Builder, left: Value, sizes: Value, ragged: int, prefix: Sequence[int]) -> Value:
    """Returns a mask of the left operand's elements for each group."""
    type = tensor_of(sizes)
    groups = number_of(type.lengths[-1])
    below = np.tri(groups, dtype=np.int64)
    triangle = builder.constant(below.T, TensorType((groups, groups), type.element))
    ends = builder.contract(sizes, triangle, ((type.rank - 1,), (0,)))
    begins = builder.elementwise("subtract", ends, sizes)
    shape = (groups, *tensor_of(left).lengths)
    places = [axis + 1 for axis in prefix] if type.rank > 1 else []
    begins, ends = (_spread(builder, value, shape, places) for value in (begins, ends))
    position = builder.iota(TensorType(shape, type.element), ragged + 1)
    inside = builder.compare("GE", position, begins), builder.compare("LT", position, ends)
    return builder.elementwise("and", *inside)


def _spread(builder: Builder, value: Value, shape: Sequence[Dim], places: Sequence[int]) -> Value:
    """Broadcasts a per-group value to the left operand."""
    rank = tensor_of(value).rank
    first = builder.transpose(value, (rank - 1, *range(rank - 1)))
    axes = sorted(range(len(places)), key=lambda index: places[index])
    first = builder.transpose(first, (0, *(axis + 1 for axis in axes)))
    return builder.broadcast(first, shape, (0, *sorted(places)))


def _contracted(
    builder: Builder,
    operation: Operation,
    left: Value,
    right: Value,
    left_axes: Sequence[Sequence[int]],
    right_axes: Sequence[Sequence[int]],
) -> Value:
    """Returns a contraction by batching and contracting dimensions of each operand."""
    batches, axes = zip(left_axes, right_axes, strict=True)
    kept = {key: value for key, value in operation.attributes.items() if key == "precision_config"}
    return builder.contract(left, right, axes, batches, operation.tensor.element, kept)
