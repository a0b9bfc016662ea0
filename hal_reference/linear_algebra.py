"""Contractions, convolutions, factorisations and triangular systems in NumPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .program import Array, Node


def _working(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Returns the dtype of the computation: single precision for narrow floats, 64 bits for narrow integers."""
    if dtype.kind in "fc":
        return np.dtype(np.float32) if dtype == np.float16 else dtype
    if dtype == np.bool_:
        return np.dtype(np.int64)
    if "float" in dtype.name:
        return np.dtype(np.float32)
    return np.dtype(np.uint64 if dtype.name.startswith("u") else np.int64)


def _narrowed(value: Array, dtype: np.dtype[Any]) -> Array:
    return value != 0 if dtype == np.bool_ else value.astype(dtype)


def padding_of(node: Node, rank: int) -> Array:
    """Returns the padding before and after each dimension, as rows."""
    padding = node.attributes.get("padding")
    return np.zeros((rank, 2), np.int64) if padding is None else np.reshape(padding, (rank, 2))


def _product(left: Array, right: Array) -> Array:
    total = np.zeros((*left.shape[:-1], right.shape[-1]), left.dtype)
    for index in range(left.shape[-1]):
        total += left[..., index, None] * right[..., index, None, :]
    return total


def dot_general(node: Node, operands: Sequence[Array]) -> Array:
    """Computes a batched contraction: batch dimensions, then the left operand's, then the right's."""
    left, right = operands
    get = node.attributes.get
    left_batch, right_batch = get("lhs_batching_dimensions", ()), get("rhs_batching_dimensions", ())
    left_sum, right_sum = get("lhs_contracting_dimensions", ()), get("rhs_contracting_dimensions", ())
    left_free = [axis for axis in range(left.ndim) if axis not in (*left_batch, *left_sum)]
    right_free = [axis for axis in range(right.ndim) if axis not in (*right_batch, *right_sum)]
    batch = [left.shape[axis] for axis in left_batch]
    depth = math.prod(left.shape[axis] for axis in left_sum)
    working = _working(node.types[0].dtype)
    a = left.transpose([*left_batch, *left_free, *left_sum]).astype(working)
    b = right.transpose([*right_batch, *right_sum, *right_free]).astype(working)
    rows, columns = (math.prod(v.shape[x] for x in axes) for v, axes in ((left, left_free), (right, right_free)))
    product = _product(a.reshape(*batch, rows, depth), b.reshape(*batch, depth, columns))
    return _narrowed(product.reshape(node.types[0].shape), node.types[0].dtype)


def convolution(node: Node, operands: Sequence[Array]) -> Array:
    """Correlates windows of the padded and dilated input with the dilated kernel."""
    value, kernel = operands
    attributes = node.attributes
    get = attributes.get
    spatial, kernel_spatial = get("input_spatial_dimensions", ()), get("kernel_spatial_dimensions", ())
    rank = len(spatial)
    working = _working(node.types[0].dtype)
    x = value.transpose([attributes["input_batch_dimension"], attributes["input_feature_dimension"], *spatial]).astype(
        working
    )
    w = kernel.transpose(
        [attributes["kernel_output_feature_dimension"], attributes["kernel_input_feature_dimension"], *kernel_spatial]
    ).astype(working)
    reversal = get("window_reversal") or [False] * rank
    w = np.flip(w, tuple(axis + 2 for axis in range(rank) if reversal[axis]))
    strides = get("window_strides") or [1] * rank
    base, dilation = get("lhs_dilation") or [1] * rank, get("rhs_dilation") or [1] * rank
    padding = padding_of(node, rank)
    output = node.types[0].shape
    output_spatial = get("output_spatial_dimensions", ())
    counts = [output[axis] for axis in output_spatial]
    index: list[Any] = [slice(None), slice(None)]
    inside = np.ones((), np.bool_)
    for axis in range(rank):
        start = np.arange(counts[axis]) * strides[axis] - padding[axis][0]
        position = start[:, None] + np.arange(w.shape[axis + 2]) * dilation[axis]
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = position.shape
        source, rest = np.divmod(position.reshape(shape), base[axis])
        length = x.shape[axis + 2]
        inside = inside & (rest == 0) & (source >= 0) & (source < length)
        index.append(np.clip(source, 0, max(length - 1, 0)))
    windows = np.zeros((*x.shape[:2], *inside.shape), working) if 0 in x.shape else x[tuple(index)] * inside
    size = math.prod(w.shape[2:])
    windows = windows.reshape(*x.shape[:2], math.prod(counts), size)
    groups, batch_groups = get("feature_group_count", 1), get("batch_group_count", 1)
    parts = []
    outputs = w.shape[0] // (groups * batch_groups)
    for group in range(groups * batch_groups):
        features = x.shape[1] // groups
        batches = x.shape[0] // batch_groups
        first, item = (group % groups) * features, (group % batch_groups) * batches
        picked = windows[item : item + batches, first : first + features]
        depth = picked.shape[1] * size
        taps = w[group * outputs : (group + 1) * outputs].reshape(outputs, depth)
        columns = picked.transpose(0, 2, 1, 3).reshape(picked.shape[0], math.prod(counts), depth)
        parts.append(_product(columns, taps.T))
    joined = np.concatenate(parts, -1)
    shaped = np.moveaxis(joined, -1, 1).reshape(joined.shape[0], joined.shape[-1], *counts)
    order = [0] * (rank + 2)
    order[attributes["output_batch_dimension"]], order[attributes["output_feature_dimension"]] = 0, 1
    for axis, target in enumerate(output_spatial):
        order[target] = axis + 2
    return _narrowed(shaped.transpose(order), node.types[0].dtype)


def cholesky(value: Array, lower: bool) -> Array:
    """Returns the triangular factor of positive definite matrices; NaN for other matrices."""
    wide = value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
    matrix = wide if lower else np.conj(np.swapaxes(wide, -1, -2))
    size = matrix.shape[-1]
    factor = np.zeros_like(matrix)
    for column in range(size):
        done = factor[..., column, :column]
        rest = matrix[..., column, column].real - np.sum(np.abs(done) ** 2, -1)
        diagonal = np.sqrt(np.where(rest > 0, rest, np.nan))
        factor[..., column, column] = diagonal
        below = (
            matrix[..., column + 1 :, column]
            - np.matmul(factor[..., column + 1 :, :column], np.conj(done)[..., None])[..., 0]
        )
        factor[..., column + 1 :, column] = below / diagonal[..., None]
    failed = np.isnan(factor).any((-1, -2), keepdims=True)
    factor = np.where(failed, np.nan, factor)
    result = factor if lower else np.conj(np.swapaxes(factor, -1, -2))
    return np.asarray(result).astype(value.dtype)


def triangular_solve(node: Node, operands: Sequence[Array]) -> Array:
    """Solves ``op(a) x = b``, or ``x op(a) = b`` if ``a`` is on the right."""
    a, b = operands
    get = node.attributes.get
    wide = np.dtype(np.complex128 if a.dtype.kind == "c" else np.float64)
    matrix, right = a.astype(wide), b.astype(wide)
    lower = bool(get("lower"))
    matrix = np.tril(matrix) if lower else np.triu(matrix)
    if get("unit_diagonal"):
        matrix = matrix * (1 - np.eye(a.shape[-1])) + np.eye(a.shape[-1])
    transpose = get("transpose_a", "NO_TRANSPOSE")
    if transpose in ("TRANSPOSE", "ADJOINT"):
        matrix, lower = np.swapaxes(matrix, -1, -2), not lower
        matrix = np.conj(matrix) if transpose == "ADJOINT" else matrix
    if not get("left_side"):
        matrix, right, lower = np.swapaxes(matrix, -1, -2), np.swapaxes(right, -1, -2), not lower
    solution = np.zeros(right.shape, wide)
    size = matrix.shape[-1]
    for row in range(size) if lower else reversed(range(size)):
        known = np.matmul(matrix[..., row : row + 1, :], solution)[..., 0, :]
        solution[..., row, :] = (right[..., row, :] - known) / matrix[..., row, row][..., None]
    return (solution if get("left_side") else np.swapaxes(solution, -1, -2)).astype(b.dtype)
