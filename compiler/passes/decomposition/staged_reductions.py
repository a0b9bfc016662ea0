"""Long reductions in stages over runs of elements, and large windows composed of windows of 1, 2, 4, … elements.

No invocation loops over more than a few thousand elements. Elements stay in order, so bodies need only be associative,
as in the specification. Sums of narrow floats are in f32 until the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ...analysis.identities import identity_of, joined_by
from ...analysis.rows import MAX_ALONE, fills_device, is_enough, rows_over
from ...analysis.scans import scan_of
from ...analysis.weights import iterations_of
from ...dialects.builder import Builder, Values
from ...dialects.rules.requirements import strided
from ...ir.copying import copy_region
from ...ir.operation import Block, Operation, Region, Value, tensor_of
from ...ir.sizes import Dim, Size, is_at_least, product
from ...ir.types import F32, TensorType
from ..canonical.legacy import over_tensors
from .building import converted, joining, shape_of

RUN: Final = 256
"""Elements that an invocation reduces if there are more than ``MAX_ALONE``."""

ROW: Final = 4096
"""Elements of a row's part that a workgroup reduces, if there are few longer rows."""


def in_stages(builder: Builder, operation: Operation) -> Values | None:
    """Splits a long reduction into stages; returns None for a short reduction."""
    count = len(operation.results)
    values, starts = operation.operands[:count], operation.operands[count:]
    axes = sorted(operation.integers("dimensions"))
    most = most_reduced(operation.regions[0].block)
    if is_at_least(_reduced_count(values[0], axes), most + 1) is False or fills_device(operation):
        return None
    return reduced(builder, operation.regions[0], values, starts, axes)


def most_reduced(body: Block) -> int:
    """Returns the largest number of elements that an invocation reduces, given the loops in the body."""
    return max(2, MAX_ALONE // (1 + sum(iterations_of(operation) for operation in body.operations)))


def reduced(builder: Builder, body: Region, values: Values, starts: Values, axes: Sequence[int]) -> Values:
    """Reduces in stages, each over runs of neighbouring elements; the last uses the initial values."""
    axes = sorted(axes)
    element = tensor_of(values[0]).scalar
    joined = joined_by(body.block)
    if joined == "add" and element.kind == "float" and element.bits < 32:
        wide, start = ([builder.convert(value, F32) for value in operands] for operands in (values, starts))
        (result,) = reduced(builder, joining(builder, "add", F32), wide, start, axes)
        return [builder.convert(result, element)]
    neutral = list(starts)
    identity = identity_of(joined, element)
    if identity is not None:
        neutral = [builder.constant(identity, TensorType((), element))]
    most = most_reduced(body.block)
    # Call-dependent lengths end as one dimension of runs.
    while is_at_least(_reduced_count(values[0], axes), most + 1) is not False and not _are_runs(values, axes):
        rows = None if most < MAX_ALONE else rows_over(tensor_of(values[0]).lengths, axes)
        if rows is not None and is_enough(rows) and (isinstance(rows.length, int) or identity is not None):
            break
        values, axes = _reduced_runs(builder, body, values, neutral, axes, min(RUN, most) if rows is None else ROW)
    return _reduce_over(builder, body, values, starts, axes)


def _reduced_count(value: Value, axes: Sequence[int]) -> Dim:
    lengths = tensor_of(value).lengths
    return product(lengths[axis] for axis in axes)


def _are_runs(values: Values, axes: Sequence[int]) -> bool:
    """Whether a single dimension remains, whose length is a call-dependent number of runs."""
    lengths = [tensor_of(values[0]).lengths[axis] for axis in axes]
    return len(axes) == 1 and isinstance(lengths[0], Size) and not lengths[0].symbols & lengths[0].plain_symbols


def _reduced_runs(
    builder: Builder, body: Region, values: Values, neutral: Values, axes: Sequence[int], most: int
) -> tuple[Values, list[int]]:
    """Reduces runs of up to ``most`` elements, as one stage; returns the values, and the remaining dimensions."""
    shape = tensor_of(values[0]).lengths
    inner: list[int] = []
    run = 1
    for axis in reversed(axes):
        length = shape[axis]
        if isinstance(length, Size) or run * length > most:
            break
        inner.append(axis)
        run *= length
    rest = [axis for axis in axes if axis not in inner]
    size = most // run
    if size > 1:
        axis = rest[-1]
        size = even_part(shape[axis], size)
        values = [in_parts(builder, value, axis, size, start) for value, start in zip(values, neutral, strict=True)]
        inner = [axis + 1, *(number + 1 for number in inner)]
    results = _reduce_over(builder, body, values, neutral, inner)
    return results, [axis - sum(number < axis for number in inner) for axis in rest]


def even_part(length: Dim, most: int) -> int:
    """Returns a part size between a quarter of ``most`` and ``most`` that needs the least padding."""
    if isinstance(length, Size):
        return most
    divisors = (size for size in range(most, most // 4, -1) if length % size == 0)
    return next(divisors, -(-length // -(-length // most)))


def in_parts(builder: Builder, value: Value, axis: int, size: int, filling: Value) -> Value:
    """Splits a dimension in two, the second with a fixed size; pads to a multiple."""
    shape = tensor_of(value).lengths
    parts = strided(shape[axis], size)
    padded = builder.lengthen(
        value, axis, parts * size - shape[axis], builder.convert(filling, tensor_of(value).scalar)
    )
    return builder.reshape(padded, (*shape[:axis], parts, size, *shape[axis + 1 :]))


def _reduce_over(builder: Builder, body: Region, values: Values, starts: Values, axes: Sequence[int]) -> Values:
    outside = {value: value for operation in body.block.operations for value in operation.operands}
    return builder.reduction(values, starts, sorted(axes), copy_region(body, outside))


def summed(builder: Builder, value: Value, axis: int) -> Value:
    """Sums over a dimension, in stages if it is long."""
    element = tensor_of(value).scalar
    zero = builder.constant(0, TensorType((), element))
    (result,) = reduced(builder, joining(builder, "add", element), [value], [zero], [axis])
    return result


MAX_WINDOW_WORK: Final = 1 << 24
"""The most elements of all windows together without composing windows of more than 128 elements."""


def by_powers(builder: Builder, operation: Operation) -> Values | None:
    """Composes large windows of smaller windows; returns None if windows are small enough."""
    count = len(operation.results)
    values, starts = operation.operands[:count], operation.operands[count:]
    if not all(value.tensor.is_static for value in (*values, operation.results[0])):
        return None
    if scan_of(operation) is not None:
        return None
    sizes = operation.integers("window_dimensions")
    work = math.prod((*sizes, *shape_of(operation.results[0])))
    if math.prod(sizes) <= most_reduced(operation.regions[0].block) and (
        math.prod(sizes) <= 128 or work <= MAX_WINDOW_WORK
    ):
        return None
    body = operation.regions[0].block
    element = tensor_of(values[0]).scalar
    if joined_by(body) == "add" and element.kind == "float" and element.bits < 32:
        body = joining(builder, "add", F32).block
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
            (0, length, strides[axis] if number == axis else 1) for number, length in enumerate(shape_of(values[0]))
        ]
        values = [builder.slice(value, ranges) for value in values]
    first = [builder.broadcast(start, shape_of(values[0]), ()) for start in starts]
    joined = over_tensors(builder, body, [*first, *values])
    return converted(builder, joined, operation.results)


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
    """Applies a body to each element and the element at a distance, if both exist."""
    length = min(shape_of(left[0])[axis], shape_of(right[0])[axis] - distance)
    firsts = [builder.piece(value, axis, 0, length) for value in left]
    seconds = [builder.piece(value, axis, distance, distance + length) for value in right]
    return over_tensors(builder, body, [*firsts, *seconds])
