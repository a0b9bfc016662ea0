"""Slices, gathers, scatters, ``top_k`` and ``one_hot``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....dialects.builder import Builder
from ....ir.attributes import IntegerAttr, StructAttr
from ....ir.operation import Operation, Value, tensor_of
from ....ir.sizes import Dim, Size, is_at_least, number_of
from ....ir.types import I32, I64, TensorType
from ....passes.formulas.expression import Expression
from .known_values import known_array, lengths_of
from .node import Node, Translate


def element_of(builder: Builder, vector: Value, index: int) -> int | Value:
    """Returns an element of a vector of integers: a number if it is known, else a value."""
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
    """Returns a slice of a value; starts that are values are computed at each call."""
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
        builder: the builder that appends the operations.
        value: the value to take elements of.
        starts: the indices of the first elements. If a start is a value, the dimension's size and step must be 1.
        sizes: the lengths of the result.
        steps: the distances between elements; negative steps go towards the start.
    """
    if any(isinstance(start, Value) for start in starts):
        # The other dimensions are sliced first.
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
    """Gathers elements or slices by index vectors, the last dimension of ``indices``.

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
    """Combines elements or slices of a value with updates, by index vectors.

    Args:
        builder: the builder that appends the operation.
        value: the value to update a copy of.
        indices: the indices; their last dimension holds the vectors.
        updates: the updates, one for each vector.
        combine: the operation that combines an element with its update; empty to replace elements.

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


def _slice(node: Node) -> Sequence[Value]:
    value, begins, _ = node.expect(3)
    shape = node.shape(0)
    sizes = list(node.known_lengths(2, "the sizes"))
    if len(sizes) != len(shape) or node.shape(1) != (len(shape),):
        raise node.error(f"expected a start and a size for each dimension of {node.type(0)}, got {sizes}")
    starts = [element_of(node.builder, begins, index) for index in range(len(shape))]
    for axis, (start, length) in enumerate(zip(starts, shape, strict=True)):
        if sizes[axis] == -1:
            if isinstance(start, Value):
                raise node.error(f"the size of dimension {axis} has to be known where its start is not")
            sizes[axis] = length - start
        end = sizes[axis] if isinstance(start, Value) else start + sizes[axis]
        fits = is_at_least(sizes[axis], 0), is_at_least(length - end, 0), isinstance(start, Value) or start >= 0
        if False in fits:
            raise node.error(f"expected a part of {node.type(0)}, got starts {_shown(starts)} and sizes {sizes}")
    return [part(node.builder, value, starts, sizes)]


def _shown(starts: Sequence[int | Value]) -> list[str]:
    return [str(start) if isinstance(start, int) else "?" for start in starts]


def _strided_slice(node: Node) -> Sequence[Value]:
    """Translates StridedSlice; its masks have a bit for each element of begin, end and strides."""
    value, begins, ends, _ = node.expect(4)
    shape = node.shape(0)
    strides = node.known_integers(3, "the strides")
    begin_mask, end_mask, ellipsis_mask, new_mask, shrink_mask = (
        node.integer(f"{name}_mask", 0) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    )
    count = len(strides)
    if node.shape(1) != (count,) or node.shape(2) != (count,):
        raise node.error(f"expected as many starts and ends as strides, got {node.type(1)} and {node.type(2)}")
    if 0 in strides:
        raise node.error(f"expected strides other than 0, got {list(strides)}")
    if ellipsis_mask & (ellipsis_mask - 1):
        raise node.error("expected one ellipsis at most")
    is_new = [bool(new_mask >> bit & 1) and not ellipsis_mask >> bit & 1 for bit in range(count)]
    used = sum(not ellipsis_mask >> bit & 1 and not is_new[bit] for bit in range(count))
    if used > len(shape):
        raise node.error(f"{used} dimensions are sliced, {node.type(0)} has {len(shape)}")
    starts: list[int | Value] = []
    sizes: list[Dim] = []
    steps: list[int] = []
    result: list[Dim] = []
    for bit in range(count):
        axis = len(sizes)
        if ellipsis_mask >> bit & 1:
            skipped = shape[axis : axis + len(shape) - used]
            starts += [0] * len(skipped)
            sizes += skipped
            steps += [1] * len(skipped)
            result += skipped
            continue
        if is_new[bit]:
            result.append(1)
            continue
        length, step = shape[axis], strides[bit]
        if shrink_mask >> bit & 1:
            first = 0 if begin_mask >> bit & 1 else element_of(node.builder, begins, bit)
            starts.append(_counted(node, first, number_of(length), axis))
            sizes.append(1)
            steps.append(1)
            continue
        start = None if begin_mask >> bit & 1 else element_of(node.builder, begins, bit)
        end = None if end_mask >> bit & 1 else element_of(node.builder, ends, bit)
        if isinstance(start, Value) or isinstance(end, Value):
            raise node.error(f"the bounds of dimension {axis} have to be known, or the dimension to be dropped")
        if isinstance(length, Size):
            if (start or 0, end, step) != (0, None, 1):
                raise node.error(f"dimension {axis} depends on the call ({length}): it has to be taken as a whole")
            starts.append(0)
            sizes.append(length)
            steps.append(1)
            result.append(length)
            continue
        chosen = range(length)[slice(start, end, step)]
        starts.append(chosen.start if chosen else 0)
        sizes.append(len(chosen))
        steps.append(step)
        result.append(len(chosen))
    rest = shape[len(sizes) :]
    starts, sizes, steps = [*starts, *[0] * len(rest)], [*sizes, *rest], [*steps, *[1] * len(rest)]
    return [node.builder.reshape(strided_part(node.builder, value, starts, sizes, steps), [*result, *rest])]


def _counted(node: Node, start: int | Value, length: int, axis: int) -> int | Value:
    """Makes a start count from the beginning."""
    if isinstance(start, int):
        if not -length <= start < length:
            raise node.error(f"index {start} of dimension {axis} is out of {node.type(0)}")
        return start % length
    builder = node.builder
    return builder.select(
        builder.compare("LT", start, 0), builder.elementwise("add", start, builder.like(start, length)), start
    )


# -- gathers ---------------------------------------------------------------------------------------------


def _gather(node: Node) -> Sequence[Value]:
    value, indices = node.expect(3 if node.op == "GatherV2" else 2)[:2]
    rank, index_rank = node.type(0).rank, node.type(1).rank
    axis = node.axis(node.known_integer(2, "the dimension"), rank) if node.op == "GatherV2" else 0
    batch = node.axis(node.integer("batch_dims", 0), index_rank + 1)
    if batch > axis or node.shape(0)[:batch] != node.shape(1)[:batch]:
        raise node.error(f"{batch} leading dimensions of {node.type(0)} and {node.type(1)} do not go together")
    return [take(node.builder, value, indices, axis, batch)]


def _gather_nd(node: Node) -> Sequence[Value]:
    value, indices = node.expect(2)
    return [take_by_vectors(node.builder, value, indices, node.integer("batch_dims", 0))]


def _reverse_sequence(node: Node) -> Sequence[Value]:
    """Reverses the first elements of each sequence, up to its length."""
    value, lengths = node.expect(2)
    builder = node.builder
    rank = node.type(0).rank
    along, batch = node.axis(node.integer("seq_dim"), rank), node.axis(node.integer("batch_dim", 0), rank)
    if along == batch or node.type(1).rank != 1:
        raise node.error(
            f"expected two dimensions and a length for each sequence, got {along}, {batch}, {node.type(1)}"
        )
    order = [batch, along, *(axis for axis in range(rank) if axis not in (batch, along))]
    moved = node.builder.transpose(value, order)
    counting = TensorType(lengths_of(moved)[:2], node.type(1).element)
    position = Expression(builder, builder.iota(counting, 1))
    length = Expression(builder, builder.broadcast(lengths, counting.shape, [0]))
    source = (position < length).then(length - position - 1, position)
    taken = take(builder, moved, source.value, 1, 1)
    return [builder.transpose(taken, [order.index(axis) for axis in range(rank)])]


def _scatter_nd(node: Node) -> Sequence[Value]:
    indices, updates, _ = node.expect(3)
    empty = node.builder.constant(0, TensorType(node.known_integers(2, "the shape"), node.type(1).element))
    return [scatter(node.builder, empty, indices, updates, "add")]


def _tensor_scatter(combine: str) -> Translate:
    def translate(node: Node) -> Sequence[Value]:
        value, indices, updates = node.expect(3)
        return [scatter(node.builder, value, indices, updates, combine)]

    return translate


# -- top_k and one_hot -----------------------------------------------------------------------------------


def _one_hot(node: Node) -> Sequence[Value]:
    indices, _, on, off = node.expect(4)
    builder = node.builder
    depth = node.known_integer(1, "the depth")
    shape = list(node.shape(0))
    axis = node.axis(node.integer("axis", -1), len(shape) + 1)
    result = [*shape[:axis], depth, *shape[axis:]]
    type = TensorType(result, tensor_of(indices).element)
    spread = builder.broadcast(indices, result, [number for number in range(len(result)) if number != axis])
    chosen = builder.compare("EQ", spread, builder.iota(type, axis))
    return [builder.select(chosen, builder.broadcast(on, result, ()), builder.broadcast(off, result, ()))]


def _top_k(node: Node) -> Sequence[Value]:
    value, _ = node.expect(2)
    type = node.type(0)
    count = node.known_integer(1, "k")
    if not type.rank or not 0 <= count <= number_of(node.shape(0)[-1]):
        raise node.error(f"expected k to be at most the last length of {type}, got {count}")
    shape = (*node.shape(0)[:-1], count)
    # Positions are i32, and are converted to another type only on request.
    types = [TensorType(shape, type.element), TensorType(shape, I32)]
    made = Operation("chlo.top_k", [value], types, {"k": IntegerAttr(count, I64)}, location=node.builder.location)
    values, indices = node.builder.block.append(made).results
    wanted = node.element("index_type") if node.has("index_type") else I32
    return [values, node.builder.convert(indices, wanted)]


INDEXING: Final[Mapping[str, Translate]] = {
    "Gather": _gather,
    "GatherNd": _gather_nd,
    "GatherV2": _gather,
    "OneHot": _one_hot,
    "ReverseSequence": _reverse_sequence,
    "ScatterNd": _scatter_nd,
    "Slice": _slice,
    "StridedSlice": _strided_slice,
    "TensorScatterAdd": _tensor_scatter("add"),
    "TensorScatterMax": _tensor_scatter("maximum"),
    "TensorScatterMin": _tensor_scatter("minimum"),
    "TensorScatterSub": _tensor_scatter("subtract"),
    "TensorScatterUpdate": _tensor_scatter(""),
    "TopKV2": _top_k,
}
