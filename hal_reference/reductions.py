"""Operations with a body over many elements, in NumPy: reductions, windows, selections, sorts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from .linear_algebra import padding_of
from .program import Array, Body, Definition, Evaluator, Node
from .structures import rounds

_MAX_IN_ORDER: Final = 128
"""Reductions of more elements are pairwise."""


def _folded(evaluator: Evaluator, body: Body, values: Sequence[Array], starts: Sequence[Array]) -> list[Array]:
    """Reduces the last axis: pairwise while it is long, then in order from the initial values."""
    values = list(values)
    while values[0].shape[-1] > _MAX_IN_ORDER:
        length = values[0].shape[-1]
        even = length // 2 * 2
        pairs = evaluator.run(body, [*(v[..., 0:even:2] for v in values), *(v[..., 1:even:2] for v in values)])
        shape = (*values[0].shape[:-1], even // 2)
        rests = [value[..., even:] for value in values]
        values = [np.concatenate([np.broadcast_to(p, shape), rest], -1) for p, rest in zip(pairs, rests, strict=True)]
    totals = [np.broadcast_to(start, values[0].shape[:-1]) for start in starts]
    for index in range(values[0].shape[-1]):
        totals = evaluator.run(body, [*totals, *(value[..., index] for value in values)])
    return totals


def _reduce(evaluator: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
    count = len(node.results)
    axes = sorted(node.attributes["dimensions"])
    kept = [axis for axis in range(operands[0].ndim) if axis not in axes]
    values = []
    for value in operands[:count]:
        moved = value.transpose([*kept, *axes])
        values.append(moved.reshape(*moved.shape[: len(kept)], math.prod(moved.shape[len(kept) :])))
    return shaped(node, _folded(evaluator, node.bodies[0], values, operands[count:]))


def shaped(node: Node, values: Sequence[Array]) -> list[Array]:
    """Broadcasts values to the result types, as a body may return a constant with fewer dimensions."""
    return [np.broadcast_to(value, spec.shape) for value, spec in zip(values, node.types, strict=True)]


def _windows(node: Node, value: Array, fill: Array) -> tuple[Array, Array]:
    """Returns the elements of each window along a last axis (``fill`` outside the operand), and linear indices."""
    rank = value.ndim
    get = node.attributes.get
    sizes = node.attributes["window_dimensions"]
    strides = get("window_strides") or [1] * rank
    dilations, base = get("window_dilations") or [1] * rank, get("base_dilations") or [1] * rank
    low = padding_of(node, rank)[:, 0]
    counts = node.types[0].shape if node.name == "reduce_window" else node.attributes["counts"]
    linear = np.zeros((*counts, *sizes), np.int64)
    inside = np.ones((*counts, *sizes), np.bool_)
    for axis, length in enumerate(value.shape):
        outer = np.arange(counts[axis]) * strides[axis] - low[axis]
        position = outer[:, None] + np.arange(sizes[axis]) * dilations[axis]
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = counts[axis], sizes[axis]
        position = position.reshape(shape)
        index, rest = np.divmod(position, base[axis])
        inside &= (rest == 0) & (index >= 0) & (index < length)
        linear = linear * length + np.clip(index, 0, max(length - 1, 0))
    linear = np.where(inside, linear, -1).reshape(*counts, math.prod(sizes))
    padded = np.append(value.reshape(-1), np.asarray(fill, value.dtype))
    return padded[linear], linear


def _reduce_window(evaluator: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
    count = len(node.results)
    starts = operands[count:]
    values = [_windows(node, value, start)[0] for value, start in zip(operands[:count], starts, strict=True)]
    return shaped(node, _folded(evaluator, node.bodies[0], values, starts))


def _select_and_scatter(evaluator: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
    value, source, start = operands
    rank = value.ndim
    sizes = node.attributes.get("window_dimensions") or [1] * rank
    attributes = {**node.attributes, "window_dimensions": sizes, "counts": source.shape}
    windows, places = _windows(Node(node.name, (), (), node.types, attributes), value, start)
    best, at = windows[..., 0], places[..., 0]
    for index in range(1, windows.shape[-1]):
        item, position = windows[..., index], places[..., index]
        (keeps,) = evaluator.run(node.bodies[0], [best, item])
        moves = ((at < 0) | ~np.asarray(keeps)) & (position >= 0)
        best, at = np.where(moves, item, best), np.where(moves, position, at)
    result = np.full(value.size, start, value.dtype)
    chosen = np.flatnonzero(at.reshape(-1) >= 0)
    targets, values = at.reshape(-1)[chosen], source.reshape(-1)[chosen]
    for part in rounds(targets):
        (new,) = evaluator.run(node.bodies[1], [result[targets[part]], values[part]])
        result[targets[part]] = new
    return [result.reshape(value.shape)]


def _sort(evaluator: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
    """Sorts each block of the sorted axis; without the attribute ``block``, the whole axis."""
    axis = node.attributes.get("dimension", -1)
    # Further operands are the digits and their positions, used only by devices.
    operands = operands[: len(node.types)]
    moved = [np.moveaxis(value, axis, -1) for value in operands]
    length = moved[0].shape[-1]
    block = node.attributes.get("block", length)
    if not length:
        return list(operands)
    whole = length // block * block
    shape = (*moved[0].shape[:-1], whole // block, block)
    blocks = _sorted(evaluator, node.bodies[0], [value[..., :whole].reshape(shape) for value in moved])
    parts: list[Sequence[Array]] = [[value.reshape(*shape[:-2], whole) for value in blocks]]
    if whole < length:
        parts.append(_sorted(evaluator, node.bodies[0], [value[..., whole:] for value in moved]))
    return [np.moveaxis(np.concatenate(pieces, -1), -1, axis) for pieces in zip(*parts, strict=True)]


def _sorted(evaluator: Evaluator, body: Body, values: Sequence[Array]) -> Sequence[Array]:
    """Sorts the last axis by a bitonic network; positions break ties, so that every sort is stable."""
    length = values[0].shape[-1]
    size = 1 << max(length - 1, 0).bit_length()
    positions = np.broadcast_to(np.arange(size), (*values[0].shape[:-1], size)).copy()
    padded = [np.concatenate([value, np.repeat(value[..., :1], size - length, -1)], -1) for value in values]
    block = 2
    while block <= size:
        step = block // 2
        while step:
            index = np.arange(size)
            left = index[(index & step) == 0]
            right = left | step
            a, b = [v[..., left] for v in padded], [v[..., right] for v in padded]
            p, q = positions[..., left], positions[..., right]
            (after,) = evaluator.run(body, _interleaved(b, a))
            (before,) = evaluator.run(body, _interleaved(a, b))
            swap = np.where((p >= length) | (q >= length), p > q, after | (~np.asarray(before) & (p > q)))
            swap = swap ^ ((left & block) != 0)
            for value, x, y in zip([*padded, positions], [*a, p], [*b, q], strict=True):
                value[..., left], value[..., right] = np.where(swap, y, x), np.where(swap, x, y)
            step //= 2
        block *= 2
    return [value[..., :length] for value in padded]


def _interleaved(first: Sequence[Array], second: Sequence[Array]) -> list[Array]:
    return [value for pair in zip(first, second, strict=True) for value in pair]


REDUCTIONS: Final[Mapping[str, Definition]] = {
    "reduce": _reduce,
    "reduce_window": _reduce_window,
    "select_and_scatter": _select_and_scatter,
    "sort": _sort,
}
"""Definitions by name of the operation, without the dialect."""
