"""Reductions of large windows, composed of windows of 1, 2, 4, … elements, one dimension after another."""

from __future__ import annotations

import math
from typing import Final

from ...analysis.identities import joined_by
from ...analysis.scans import scan_of
from ...dialects.builder import Builder
from ...ir.attributes import type_shape
from ...ir.operation import Block, Operation, Value, tensor_of
from ...ir.types import F32
from ..canonical.legacy import over_tensors
from .staged_reductions import Values, most_reduced, sum_body

MAX_WINDOW_WORK: Final = 1 << 24
"""Elements of all windows together. Beyond that, windows of more than 128 elements are composed."""


def by_powers(builder: Builder, operation: Operation) -> Values | None:
    """Composes large windows of smaller ones; returns None where windows are small enough."""
    count = len(operation.results)
    values, starts = operation.operands[:count], operation.operands[count:]
    if not all(value.tensor.is_static for value in (*values, operation.results[0])):
        return None
    if scan_of(operation) is not None:
        return None
    sizes = operation.integers("window_dimensions")
    work = math.prod((*sizes, *_shape(operation.results[0])))
    if math.prod(sizes) <= most_reduced(operation.regions[0].block) and (
        math.prod(sizes) <= 128 or work <= MAX_WINDOW_WORK
    ):
        return None
    body = operation.regions[0].block
    element = tensor_of(values[0]).scalar
    if joined_by(body) == "add" and element.kind == "float" and element.bits < 32:
        body = sum_body(builder, F32).block
    types = [argument.tensor.scalar for argument in body.arguments[:count]]
    values, starts = (
        [builder.convert(value, type) for value, type in zip(operands, types, strict=True)]
        for operands in (values, starts)
    )
    rank = len(sizes)
    ones = [1] * rank
    strides, dilations = operation.integers("window_strides", ones), operation.integers("window_dilations", ones)
    gaps = [number - 1 for number in operation.integers("base_dilations", ones)]
    padding = operation.integers("padding", [0] * (2 * rank))
    values = [
        builder.pad(value, start, padding[::2], padding[1::2], gaps)
        for value, start in zip(values, starts, strict=True)
    ]
    for axis in reversed(range(rank)):
        values = _windows(builder, body, values, axis, sizes[axis], dilations[axis])
        ranges = [
            (0, length, strides[axis] if number == axis else 1) for number, length in enumerate(_shape(values[0]))
        ]
        values = [builder.slice(value, ranges) for value in values]
    first = [builder.broadcast(start, _shape(values[0]), ()) for start in starts]
    joined = over_tensors(builder, body, [*first, *values])
    results = zip(joined, operation.results, strict=True)
    return [builder.convert(value, tensor_of(result).scalar) for value, result in results]


def _windows(builder: Builder, body: Block, values: Values, axis: int, size: int, dilation: int) -> Values:
    """Reduces all windows of a size along a dimension."""
    result: Values | None = None
    covered, power = 0, 1
    while True:
        if size & power:
            result = values if result is None else _beside(builder, body, result, values, axis, covered * dilation)
            covered += power
        if covered == size:
            assert result is not None
            return result
        values = _beside(builder, body, values, values, axis, power * dilation)
        power *= 2


def _beside(builder: Builder, body: Block, left: Values, right: Values, axis: int, distance: int) -> Values:
    """Applies a body to elements and those at a distance, where both exist."""
    length = min(_shape(left[0])[axis], _shape(right[0])[axis] - distance)
    firsts = [builder.piece(value, axis, 0, length) for value in left]
    seconds = [builder.piece(value, axis, distance, distance + length) for value in right]
    return over_tensors(builder, body, [*firsts, *seconds])


def _shape(value: Value) -> tuple[int, ...]:
    return type_shape(tensor_of(value))
