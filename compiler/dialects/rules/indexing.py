"""Rules of operations that pick and place elements: slices, pads, gathers, scatters, sorts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...ir.attributes import StructAttr
from ...ir.operation import Operation
from ...ir.types import I1, TensorType, Type
from .bodies import combined, mapped
from .requirements import (
    Length,
    OperationError,
    Rule,
    axes,
    increasing,
    integer,
    ints,
    may_fit,
    merged,
    same_length,
    sizes,
    strided,
    tensors,
)


def _slice(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    starts, limits = sizes(operation, "start_indices"), sizes(operation, "limit_indices")
    strides = ints(operation, "strides")
    if not len(starts) == len(limits) == len(strides) == value.rank:
        raise OperationError(f"a range for each of {value}'s {value.rank} dimensions")
    shape: list[Length] = []
    for axis, (start, limit, stride) in enumerate(zip(starts, limits, strides, strict=True)):
        length = value.shape[axis]
        if stride < 1 or not (may_fit(0, start) and may_fit(start, limit) and may_fit(limit, length)):
            raise OperationError(
                f"0 <= start <= limit <= {length} and a stride of 1 or more, got {start}:{limit}:{stride}"
            )
        shape.append(strided(limit - start, stride))
    return [TensorType(shape, value.element)]


def _pad(operation: Operation) -> Sequence[Type]:
    value, padding = tensors(operation, 2)
    if padding is not TensorType((), value.element):
        raise OperationError(f"a padding value of type tensor<{value.element}>, got {padding}", 1)
    low, high = sizes(operation, "edge_padding_low"), sizes(operation, "edge_padding_high")
    interior = sizes(operation, "interior_padding")
    if {len(low), len(high), len(interior)} != {value.rank}:
        raise OperationError(f"low, high and interior padding for each of {value}'s dimensions")
    shape: list[Length] = []
    for axis, length in enumerate(value.shape):
        if not may_fit(0, interior[axis]):
            raise OperationError(f"interior padding of 0 or more, got {interior[axis]}")
        if length is None:
            shape.append(None)
            continue
        between = (length - 1) * interior[axis] if length else 0
        padded = low[axis] + length + between + high[axis]
        if not may_fit(0, padded):
            raise OperationError(f"padding that leaves dimension {axis} 0 or more elements, got {padded}")
        shape.append(padded)
    return [TensorType(shape, value.element)]


def _dynamic_slice(operation: Operation) -> Sequence[Type]:
    value, *starts = tensors(operation)
    taken = sizes(operation, "slice_sizes")
    _starts(value, starts, 1)
    if len(taken) != value.rank or not all(map(_is_part, taken, value.shape)):
        raise OperationError(f"a size for each dimension of {value}, and none larger, got {list(taken)}")
    return [TensorType(taken, value.element)]


def _is_part(size: Length, length: Length) -> bool:
    return may_fit(0, size) and may_fit(size, length)


def _starts(value: TensorType, starts: Sequence[TensorType], first: int) -> None:
    if len(starts) != value.rank:
        raise OperationError(f"a start index for each of {value}'s {value.rank} dimensions, got {len(starts)}")
    for index, start in enumerate(starts):
        if start.rank or not start.scalar.is_integer or start.element is not starts[0].element:
            raise OperationError(f"start indices that are integers of one type, got {start}", first + index)


def _dynamic_update_slice(operation: Operation) -> Sequence[Type]:
    types = tensors(operation)
    if len(types) < 2:
        raise OperationError(f"an operand, an update and start indices, got {len(types)} operands")
    value, update, *starts = types
    _starts(value, starts, 2)
    fits = update.rank == value.rank and all(map(_is_part, update.shape, value.shape))
    if update.element is not value.element or not fits:
        raise OperationError(f"an update of {value}'s element type that fits into it, got {update}", 1)
    return [value]


def _numbers(operation: Operation, name: str) -> StructAttr:
    value = operation.attributes.get(name)
    if not isinstance(value, StructAttr):
        raise OperationError(f"the attribute {name} with dimension numbers")
    return value


def _gather(operation: Operation) -> Sequence[Type]:
    value, indices = tensors(operation, 2)
    return gathered(operation, value, indices, sizes(operation, "slice_sizes"))


def gathered(operation: Operation, value: TensorType, indices: TensorType, sizes: Sequence[Length]) -> Sequence[Type]:
    """Returns the type of gathered slices, whose sizes may be unknown."""
    numbers = _numbers(operation, "dimension_numbers")
    offset, collapsed = numbers.ints("offset_dims"), numbers.ints("collapsed_slice_dims")
    batching, index_batching = numbers.ints("operand_batching_dims"), numbers.ints("start_indices_batching_dims")
    start_map = numbers.ints("start_index_map")
    vector = numbers.int("index_vector_dim")
    _index_numbers(indices, vector, len(start_map), "start_index_map")
    axes([*collapsed, *batching], value.rank, "collapsed_slice_dims and operand_batching_dims")
    axes([*start_map, *batching], value.rank, "start_index_map and operand_batching_dims")
    _batching(value, indices, batching, index_batching, vector)
    increasing(offset, "offset_dims")
    increasing(collapsed, "collapsed_slice_dims")
    if len(sizes) != value.rank or not all(map(_is_part, sizes, value.shape)):
        raise OperationError(f"a slice size for each dimension of {value}, and none larger, got {list(sizes)}")
    if any(sizes[axis] not in (None, 0, 1) for axis in (*collapsed, *batching)):
        raise OperationError(f"sizes of 0 or 1 along collapsed and batching dimensions, got {list(sizes)}")
    kept = [size for axis, size in enumerate(sizes) if axis not in (*collapsed, *batching)]
    batch = [length for axis, length in enumerate(indices.shape) if axis != vector]
    rank = len(batch) + len(offset)
    axes(offset, rank, "offset_dims")
    if len(kept) != len(offset):
        raise OperationError(f"as many offset_dims as dimensions that stay ({len(kept)}), got {len(offset)}")
    inner, outer = iter(kept), iter(batch)
    shape = [next(inner) if axis in offset else next(outer) for axis in range(rank)]
    if 0 not in shape and any(sizes[axis] == 0 for axis in collapsed):
        raise OperationError(f"an element in each slice, since the result has elements, got sizes {list(sizes)}")
    return [TensorType(shape, value.element)]


def _batching(
    value: TensorType, indices: TensorType, batching: Sequence[int], index_batching: Sequence[int], vector: int
) -> None:
    """Checks that batching dimensions of an operand and of its indices correspond."""
    increasing(batching, "batching dimensions of the operand")
    axes(index_batching, indices.rank, "batching dimensions of the indices")
    if vector in index_batching:
        raise OperationError(f"batching dimensions of the indices without index_vector_dim, which is {vector}", 1)
    if len(batching) != len(index_batching):
        raise OperationError(f"as many batching dimensions of both, got {list(batching)} and {list(index_batching)}")
    for axis, other in zip(batching, index_batching, strict=True):
        expected = f"dimension {axis} of {value} as long as dimension {other} of {indices}"
        same_length(value.shape[axis], indices.shape[other], expected, 1)


def _index_numbers(indices: TensorType, vector: int, components: int, name: str) -> None:
    if not indices.scalar.is_integer:
        raise OperationError(f"indices that are integers, got {indices}", 1)
    if not 0 <= vector <= indices.rank:
        raise OperationError(f"index_vector_dim from 0 to {indices.rank}, got {vector}")
    count = indices.shape[vector] if vector < indices.rank else 1
    if count is not None and count != components:
        raise OperationError(f"a number in {name} for each of an index vector's {count} components, got {components}")


def _scatter(operation: Operation) -> Sequence[Type]:
    types = tensors(operation)
    count = len(operation.results)
    if len(types) != 2 * count + 1 or not count:
        raise OperationError(f"inputs, indices and updates for {count} results, got {len(types)} operands")
    inputs, indices, updates = types[:count], types[count], types[count + 1 :]
    numbers = _numbers(operation, "scatter_dimension_numbers")
    window, inserted = numbers.ints("update_window_dims"), numbers.ints("inserted_window_dims")
    batching = numbers.ints("input_batching_dims")
    targets = numbers.ints("scatter_dims_to_operand_dims")
    _index_numbers(indices, numbers.int("index_vector_dim"), len(targets), "scatter_dims_to_operand_dims")
    axes([*inserted, *batching], inputs[0].rank, "inserted_window_dims and input_batching_dims")
    axes([*targets, *batching], inputs[0].rank, "scatter_dims_to_operand_dims and input_batching_dims")
    axes(window, updates[0].rank, "update_window_dims")
    increasing(window, "update_window_dims")
    increasing(inserted, "inserted_window_dims")
    vector = numbers.int("index_vector_dim")
    _batching(inputs[0], indices, batching, numbers.ints("scatter_indices_batching_dims"), vector)
    if len(window) + len(inserted) + len(batching) != inputs[0].rank:
        raise OperationError(
            f"update_window_dims, inserted_window_dims and batching dims for {inputs[0].rank} dimensions"
        )
    batch = [length for axis, length in enumerate(indices.shape) if axis != numbers.int("index_vector_dim")]
    scattered = [length for axis, length in enumerate(updates[0].shape) if axis not in window]
    merged(
        scattered,
        batch,
        f"updates whose other dimensions are those of the indices {indices}, got {updates[0]}",
        count + 1,
    )
    kept = [axis for axis in range(inputs[0].rank) if axis not in (*inserted, *batching)]
    for axis, source in zip(kept, window, strict=True):
        if not _is_part(updates[0].shape[source], inputs[0].shape[axis]):
            raise OperationError(f"windows that fit into {inputs[0]}, got updates {updates[0]}", count + 1)
    for index, (value, update) in enumerate(zip(inputs, updates, strict=True)):
        if value.element is not update.element:
            raise OperationError(f"updates of the inputs' element types, got {value} and {update}", count + 1 + index)
        merged(value.shape, inputs[0].shape, f"inputs of one shape, got {value} and {inputs[0]}", index)
        merged(
            update.shape, updates[0].shape, f"updates of one shape, got {update} and {updates[0]}", count + 1 + index
        )
    elements = combined(operation, inputs, updates)
    return [TensorType(type.shape, element) for type, element in zip(inputs, elements, strict=True)]


def _sort(operation: Operation) -> Sequence[Type]:
    unsorted = integer(operation, "given", 0)
    types = tensors(operation)[: len(operation.operands) - unsorted]
    if not types or unsorted < 0:
        raise OperationError("at least one operand")
    axis = integer(operation, "dimension", -1)
    axes([axis if axis >= 0 else axis + types[0].rank], types[0].rank, "dimension")
    for index, type in enumerate(types):
        merged(type.shape, types[0].shape, f"operands of one shape, got {types[0]} and {type}", index)
    if integer(operation, "block", 1) < 1 or integer(operation, "runs", 1) < 1:
        raise OperationError("blocks and runs of at least one element")
    block = operation.regions[0].block
    wanted = [TensorType((), type.element) for type in types for _ in range(2)]
    arguments = [value.type for value in block.arguments]
    if arguments != wanted or [value.type for value in block.terminator.operands] != [TensorType((), I1)]:
        raise OperationError("a comparison that takes two elements of each operand and gives tensor<i1>")
    return types


def _map(operation: Operation) -> Sequence[Type]:
    types = tensors(operation)
    if not types:
        raise OperationError("at least one operand")
    shape = types[0].shape
    for index, type in enumerate(types[1:], 1):
        shape = merged(shape, type.shape, f"operands of one shape, got {types[0]} and {type}", index)
    if ints(operation, "dimensions") != tuple(range(len(shape))):
        raise OperationError(f"dimensions to be {list(range(len(shape)))}")
    return [TensorType(shape, mapped(operation, types))]


def _torch_index_select(operation: Operation) -> Sequence[Type]:
    value, indices = tensors(operation, 2)
    axis, batch = integer(operation, "dim", -1), integer(operation, "batch_dims", -1)
    if not 0 <= batch <= indices.rank or not batch <= axis < value.rank:
        raise OperationError(f"0 <= batch_dims <= {indices.rank} and batch_dims <= dim < {value.rank}")
    if not indices.scalar.is_integer:
        raise OperationError(f"indices that are integers, got {indices}", 1)
    merged(value.shape[:batch], indices.shape[:batch], f"equal batch dimensions, got {value} and {indices}", 1)
    shape = (*value.shape[:axis], *indices.shape[batch:], *value.shape[axis + 1 :])
    return [TensorType(shape, value.element)]


INDEXING: Final[Mapping[str, Rule]] = {
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    "map": _map,
    "pad": _pad,
    "scatter": _scatter,
    "slice": _slice,
    "sort": _sort,
    "torch_index_select": _torch_index_select,
}
