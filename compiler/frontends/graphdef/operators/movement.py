"""Values transposed, padded, taken apart, and indexed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from ....dialects.builder import Builder
from ....ir.attributes import StructAttr
from ....ir.operation import Operation, Value, tensor_of
from ....ir.sizes import Dim, Size, number_of
from ....ir.types import TensorType
from .known_values import known_array, lengths_of

_MAX_PARTS: Final = 1 << 14


def padded(builder: Builder, value: Value, pairs: Sequence[tuple[int, int]], filling: Value | None = None) -> Value:
    """Puts elements before and after each dimension: zeros, or copies of a scalar."""
    filling = filling or builder.constant(0, TensorType((), tensor_of(value).element))
    lows, highs = [low for low, _ in pairs], [high for _, high in pairs]
    return builder.pad(value, filling, lows, highs, [0] * len(pairs))


def parts(builder: Builder, value: Value, axis: int, sizes: Sequence[int]) -> list[Value]:
    """Splits a value along a dimension.

    Raises:
        ValueError: into too many parts.
    """
    if len(sizes) > _MAX_PARTS:
        raise ValueError(f"expected at most {_MAX_PARTS} parts, got {len(sizes)}")
    ends = list(itertools.accumulate(sizes))
    return [builder.piece(value, axis, end - size, end) for end, size in zip(ends, sizes, strict=True)]


# -- slices ----------------------------------------------------------------------------------------------


def element_of(builder: Builder, vector: Value, index: int) -> int | Value:
    """Returns an element of a vector of integers: a number where it is known, else a value."""
    position = index
    while True:
        known = known_array(vector)
        if known is not None:
            return int(known.reshape(-1)[position])
        owner = vector.owner
        if not isinstance(owner, Operation):
            break
        if owner.name == "stablehlo.concatenate":
            for vector in owner.operands:
                length = number_of(*lengths_of(vector))
                if position < length:
                    break
                position -= length
        elif owner.name in ("stablehlo.convert", "stablehlo.reshape"):
            (vector,) = owner.operands
        else:
            break
    flat = builder.reshape(vector, [tensor_of(vector).count])
    return builder.reshape(builder.slice(flat, [(position, position + 1, 1)]), ())


def part(builder: Builder, value: Value, starts: Sequence[int | Value], sizes: Sequence[Dim]) -> Value:
    """Returns a part of a value; starts that are values are computed at each call."""
    if all(isinstance(start, int) for start in starts):
        ranges = [(start, start + size, 1) for start, size in zip(starts, sizes, strict=True) if isinstance(start, int)]
        return builder.slice(value, ranges)
    index = next(start for start in starts if isinstance(start, Value))
    offsets = [start if isinstance(start, Value) else builder.like(index, start) for start in starts]
    return builder.part_at(value, offsets, sizes)


def strided_part(
    builder: Builder, value: Value, starts: Sequence[int | Value], sizes: Sequence[Dim], steps: Sequence[int]
) -> Value:
    """Returns elements of a value at regular intervals along each dimension.

    Args:
        builder: appends the operations.
        value: to take elements of.
        starts: of the first elements. A dimension whose start is a value has the size and the step 1.
        sizes: of the result.
        steps: from an element to the next, negative ones towards the start.
    """
    if any(isinstance(start, Value) for start in starts):
        # The other dimensions are cut first.
        shape = lengths_of(value)
        whole = [0 if isinstance(start, Value) else start for start in starts]
        lengths = [
            length if isinstance(start, Value) else size
            for start, length, size in zip(starts, shape, sizes, strict=True)
        ]
        value = strided_part(builder, value, whole, lengths, steps)
        return part(builder, value, [start if isinstance(start, Value) else 0 for start in starts], sizes)
    ranges: list[tuple[Dim, Dim, int]] = []
    reversed_axes = []
    for axis, (start, size, step) in enumerate(zip(starts, sizes, steps, strict=True)):
        assert isinstance(start, int)
        if isinstance(size, Size):
            ranges.append((start, start + size, 1))
            continue
        last = start + (size - 1) * step if size else start
        if step < 0:
            reversed_axes.append(axis)
        low, high = min(start, last), max(start, last)
        ranges.append((low, high + 1 if size else low, abs(step)))
    result = builder.slice(value, ranges)
    return builder.reverse(result, reversed_axes) if reversed_axes else result


# -- gathers and scatters --------------------------------------------------------------------------------


def take(builder: Builder, value: Value, indices: Value, axis: int, batch: int) -> Value:
    """Gathers slices by their indices along a dimension; the first ``batch`` dimensions of both are parallel."""
    shape, index_shape = lengths_of(value), lengths_of(indices)
    spread = len(index_shape) - batch
    numbers = {
        "offset_dims": (*range(batch, axis), *range(axis + spread, len(shape) + spread - 1)),
        "collapsed_slice_dims": (axis,),
        "operand_batching_dims": tuple(range(batch)),
        "start_indices_batching_dims": tuple(range(batch)),
        "start_index_map": (axis,),
        "index_vector_dim": len(index_shape),
    }
    sizes = [1 if number < batch or number == axis else length for number, length in enumerate(shape)]
    result = (*shape[:axis], *index_shape[batch:], *shape[axis + 1 :])
    return builder.gather(value, indices, numbers, sizes, result)


def take_by_vectors(builder: Builder, value: Value, indices: Value, batch: int) -> Value:
    """Gathers elements or slices by vectors of indices, which are the last dimension of ``indices``.

    Raises:
        ValueError: vectors are too long, or there are too many parallel dimensions.
    """
    shape, index_shape = lengths_of(value), lengths_of(indices)
    count = number_of(index_shape[-1]) if index_shape else 0
    if not 0 <= batch < max(len(index_shape), 1) or not index_shape or batch + count > len(shape):
        raise ValueError(f"vectors of {indices.type} do not index {value.type}")
    indexed = tuple(range(batch, batch + count))
    result = (*index_shape[:-1], *shape[batch + count :])
    numbers = {
        "offset_dims": tuple(range(len(index_shape) - 1, len(result))),
        "collapsed_slice_dims": indexed,
        "operand_batching_dims": tuple(range(batch)),
        "start_indices_batching_dims": tuple(range(batch)),
        "start_index_map": indexed,
        "index_vector_dim": len(index_shape) - 1,
    }
    sizes = [1 if axis < batch + count else length for axis, length in enumerate(shape)]
    return builder.gather(value, indices, numbers, sizes, result)


def scatter(builder: Builder, value: Value, indices: Value, updates: Value, combine: str) -> Value:
    """Combines elements or slices of a value with updates, by vectors of indices.

    Args:
        builder: appends the operation.
        value: to update a copy of.
        indices: whose last dimension holds the vectors.
        updates: one for each vector.
        combine: the operation of an element and its update; empty to replace elements.

    Raises:
        ValueError: vectors are too long.
    """
    shape, index_shape = lengths_of(value), lengths_of(indices)
    count = number_of(index_shape[-1]) if index_shape else 0
    if not index_shape or count > len(shape):
        raise ValueError(f"vectors of {indices.type} do not index {value.type}")
    outer = len(index_shape) - 1
    numbers = {
        "update_window_dims": tuple(range(outer, outer + len(shape) - count)),
        "inserted_window_dims": tuple(range(count)),
        "scatter_dims_to_operand_dims": tuple(range(count)),
        "index_vector_dim": outer,
    }
    scalar = TensorType((), tensor_of(value).element)
    region = builder.region(
        [scalar, scalar], lambda inner, pair: [inner.elementwise(combine, *pair) if combine else pair[1]]
    )
    attributes = {"scatter_dimension_numbers": StructAttr("stablehlo.scatter", numbers)}
    return builder.append("scatter", [value, indices, updates], [value.type], attributes, [region]).result
