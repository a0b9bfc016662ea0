"""Operations that move elements, in NumPy: shapes, slices, padding, gathers and scatters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from .elementwise import convert, of_one_element, structural
from .program import Array, Definition, Evaluator, Node


def _dimension_size(node: Node, operands: Sequence[Array]) -> Array:
    return np.asarray(operands[0].shape[node.attributes["dimension"]], node.types[0].dtype)


def _iota(node: Node, operands: Sequence[Array]) -> Array:
    (spec,) = node.types
    dimension = node.attributes["iota_dimension"]
    numbers = np.arange(spec.shape[dimension])
    shape = [1] * len(spec.shape)
    shape[dimension] = -1
    return np.broadcast_to(convert(numbers, spec.dtype).reshape(shape), spec.shape)


def _broadcast_in_dim(node: Node, operands: Sequence[Array]) -> Array:
    (value, *_) = operands
    shape = [1] * len(node.types[0].shape)
    for source, target in enumerate(node.attributes["broadcast_dimensions"]):
        shape[target] = value.shape[source]
    order = sorted(range(value.ndim), key=node.attributes["broadcast_dimensions"].__getitem__)
    return np.broadcast_to(value.transpose(order).reshape(shape), node.types[0].shape)


def _slice(node: Node, operands: Sequence[Array]) -> Array:
    keys = (node.attributes[name] for name in ("start_indices", "limit_indices", "strides"))
    return operands[0][tuple(slice(*item) for item in zip(*keys, strict=True))]


def _pad(node: Node, operands: Sequence[Array]) -> Array:
    value, padding = operands
    low, interior = node.attributes["edge_padding_low"], node.attributes["interior_padding"]
    result = np.full(node.types[0].shape, padding, value.dtype)
    sources, targets = [], []
    for axis, length in enumerate(value.shape):
        step = interior[axis] + 1
        positions = np.arange(length) * step + low[axis]
        inside = (positions >= 0) & (positions < result.shape[axis])
        sources.append(np.flatnonzero(inside))
        targets.append(positions[inside])
    result[np.ix_(*targets)] = value[np.ix_(*sources)]
    return result


def _starts(indices: Sequence[Array], shape: Sequence[int], sizes: Sequence[int]) -> list[int]:
    return [min(max(int(index), 0), length - size) for index, length, size in zip(indices, shape, sizes, strict=True)]


def _dynamic_slice(node: Node, operands: Sequence[Array]) -> Array:
    value, *indices = operands
    sizes = node.attributes["slice_sizes"]
    starts = _starts(indices, value.shape, sizes)
    return value[tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))]


def _dynamic_update_slice(node: Node, operands: Sequence[Array]) -> Array:
    value, update, *indices = operands
    starts = _starts(indices, value.shape, update.shape)
    result = value.copy()
    result[tuple(slice(start, start + size) for start, size in zip(starts, update.shape, strict=True))] = update
    return result


def _gather(node: Node, operands: Sequence[Array]) -> Array:
    value, indices = operands
    get = node.attributes.get
    offset, collapsed = get("offset_dims", ()), get("collapsed_slice_dims", ())
    operand_batch, index_batch = get("operand_batching_dims", ()), get("start_indices_batching_dims", ())
    sizes = node.attributes["slice_sizes"]
    shape = node.types[0].shape
    grid = np.indices(shape, np.int64)
    batch = [axis for axis in range(len(shape)) if axis not in offset]
    starts = _index_vectors(indices, get("index_vector_dim", 0), [grid[axis] for axis in batch])
    full = [np.zeros(shape, np.int64) for _ in value.shape]
    for component, axis in enumerate(get("start_index_map", ())):
        full[axis] = np.clip(starts[component], 0, value.shape[axis] - sizes[axis])
    kept = [axis for axis in range(value.ndim) if axis not in collapsed and axis not in operand_batch]
    for axis, source in zip(kept, offset, strict=True):
        full[axis] = full[axis] + grid[source]
    for axis, source in zip(operand_batch, index_batch, strict=True):
        full[axis] = grid[batch[source - (source > get("index_vector_dim", 0))]]
    return value[tuple(full)]


def _index_vectors(indices: Array, vector_axis: int, batch: Sequence[Array]) -> list[Array]:
    """Returns each component of the index vectors, at the batch positions of a grid."""
    if vector_axis == indices.ndim:
        indices = indices[..., None]
    count = indices.shape[vector_axis]
    whole = indices.astype(np.int64) if indices.dtype != np.uint64 else np.minimum(indices, 2**63 - 1).astype(np.int64)
    moved = np.moveaxis(whole, vector_axis, 0)
    return [moved[component][tuple(batch)] for component in range(count)]


def _scatter(evaluator: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
    count = len(node.results)
    inputs, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    get = node.attributes.get
    window, inserted = get("update_window_dims", ()), get("inserted_window_dims", ())
    input_batch, index_batch = get("input_batching_dims", ()), get("scatter_indices_batching_dims", ())
    shape, target_shape = updates[0].shape, inputs[0].shape
    grid = np.indices(shape, np.int64)
    scatter = [axis for axis in range(len(shape)) if axis not in window]
    starts = _index_vectors(indices, get("index_vector_dim", 0), [grid[axis] for axis in scatter])
    full = [np.zeros(shape, np.int64) for _ in target_shape]
    for component, axis in enumerate(get("scatter_dims_to_operand_dims", ())):
        full[axis] = starts[component]
    for axis, source in zip(input_batch, index_batch, strict=True):
        full[axis] = full[axis] + grid[scatter[source - (source > get("index_vector_dim", 0))]]
    kept = [axis for axis in range(len(target_shape)) if axis not in inserted and axis not in input_batch]
    inside = np.ones(shape, np.bool_)
    for axis, source in zip(kept, window, strict=True):
        # The sum of a distant index and a window's offset may wrap around, but such an index is outside in any case.
        inside &= (full[axis] >= -(2**62)) & (full[axis] < 2**62)
        full[axis] = full[axis] + grid[source]
    for axis, length in enumerate(target_shape):
        inside &= (full[axis] >= 0) & (full[axis] < length)
    chosen = np.flatnonzero(inside.reshape(-1))
    coordinates = [np.broadcast_to(axis, shape).reshape(-1)[chosen] for axis in full]
    linear = np.ravel_multi_index(tuple(coordinates), target_shape) if target_shape else np.zeros(chosen.size, np.int64)
    flat = [np.array(value).reshape(-1) for value in inputs]
    values = [update.reshape(-1)[chosen] for update in updates]
    for places in rounds(linear):
        target = linear[places]
        old = [value[target] for value in flat]
        new = evaluator.run(node.bodies[0], [*old, *(update[places] for update in values)])
        for value, item in zip(flat, new, strict=True):
            value[target] = item
    return [value.reshape(target_shape) for value in flat]


def rounds(targets: Array) -> Iterator[Array]:
    """Yields the positions of targets in rounds.

    No target repeats within a round, and updates of a target stay in order.
    """
    order = np.argsort(targets, kind="stable")
    ordered = targets[order]
    is_first = np.ones(ordered.size, np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(is_first)
    rank = np.arange(ordered.size) - np.repeat(starts, np.diff(np.append(starts, ordered.size)))
    for number in range(int(rank.max()) + 1 if rank.size else 0):
        yield order[rank == number]


STRUCTURES: Final[Mapping[str, Definition]] = {
    "broadcast_in_dim": of_one_element(_broadcast_in_dim),
    "concatenate": structural(lambda node, operands: np.concatenate(operands, node.attributes["dimension"])),
    "constant": structural(lambda node, operands: node.attributes["value"]),
    "dynamic_slice": structural(_dynamic_slice),
    "dynamic_update_slice": structural(_dynamic_update_slice),
    "gather": structural(_gather),
    "get_dimension_size": structural(_dimension_size),
    "iota": structural(_iota),
    "pad": structural(_pad),
    "reshape": of_one_element(lambda node, operands: operands[0].reshape(node.types[0].shape)),
    "reverse": structural(lambda node, operands: np.flip(operands[0], node.attributes["dimensions"])),
    "scatter": _scatter,
    "slice": structural(_slice),
    "transpose": structural(lambda node, operands: operands[0].transpose(node.attributes["permutation"])),
}
"""Definitions by name of the operation, without the dialect."""
