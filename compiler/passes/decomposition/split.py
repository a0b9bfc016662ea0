"""Splits long loops: no invocation of a kernel runs more than a few thousand iterations.

Drivers end long dispatches, some of them silently. A contraction becomes a sum of partial contractions, a convolution a
loop over parts of its taps. Sums of narrow floats are in f32 until the end. Reductions are in ``staged_reductions``,
windows in ``large_windows``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from ...dialects.builder import Builder, Values
from ...dialects.rewrite import rewrite_named
from ...dialects.rules.requirements import strided
from ...ir.attributes import Attribute, DenseArray, StructAttr
from ...ir.operation import Block, Operation, Value, tensor_of
from ...ir.sizes import Dim, Size, number_of
from ...ir.types import F32, I1, I64, TensorType
from ...kernels.scalars.target import Target
from .staged_reductions import by_powers, in_parts, in_stages, summed

MAX_PRODUCTS: Final = 16_384
"""The largest number of products that an invocation sums; at most half that number in split sums."""

MIN_PRODUCTS: Final = 1024
"""The fewest products that an invocation sums if a sum is split because the device idles."""


def split_loops(block: Block, target: Target) -> None:
    """Replaces operations with too long loops, in a block and its nested regions.

    Sums for few elements are split among several invocations, to keep the target busy.
    """
    rewrite_named(block, {**_RULES, "stablehlo.dot_general": partial(_dot_general, target)})


def _partial_type(operation: Operation) -> TensorType:
    """Returns the type of partial sums: f32 for narrow floats."""
    type = tensor_of(operation.results[0])
    return type.of(F32) if type.scalar.kind == "float" and type.scalar.bits < 32 else type


def _most_products(operation: Operation, count: int, target: Target) -> int:
    """Returns the largest number of products that an invocation sums; fewer if a split keeps the target busy."""
    results = tensor_of(operation.results[0]).count
    if isinstance(results, Size):
        return MAX_PRODUCTS
    busy = target.compute_units * max(target.subgroup_size, 8) * 8
    return min(MAX_PRODUCTS, 2 * max(MIN_PRODUCTS, -(-count * results // busy)))


def _part_of(length: int, size: int) -> int:
    """Returns a part length of at least and close to ``size``; a divisor of the whole length if there is one."""
    return next((part for part in range(size, min(2 * size, length)) if length % part == 0), size)


def _dot_general(target: Target, builder: Builder, operation: Operation) -> Values | None:
    """Splits the longest summed dimension, and sums the products of the parts; multiplies if none is summed."""
    numbers = operation.attributes["dot_dimension_numbers"]
    assert isinstance(numbers, StructAttr)
    left, right = operation.operands
    axes = numbers.ints("lhs_contracting_dimensions"), numbers.ints("rhs_contracting_dimensions")
    lengths = [tensor_of(left).lengths[axis] for axis in axes[0]]
    if not lengths:
        return [_outer_product(builder, operation, numbers)]
    known = [length for length in lengths if isinstance(length, int)]
    count = math.prod(known)
    dynamic = [length for length in lengths if isinstance(length, Size)]
    most = _most_products(operation, count, target)
    if count <= (1 if dynamic else most):
        return None
    longest = dynamic[0] if dynamic else max(known)
    position = lengths.index(longest)
    size = max(1, most // 2 // count if isinstance(longest, Size) else most // 2 * longest // count)
    if isinstance(longest, int):
        size = _part_of(longest, size)
    split = []
    fields: dict[str, object] = dict(numbers.fields)
    for side, value, own in zip(("lhs", "rhs"), (left, right), axes, strict=True):
        axis = own[position]
        zero = builder.constant(0, TensorType((), tensor_of(value).element))
        split.append(in_parts(builder, value, axis, size, zero))
        batching = f"{side}_batching_dimensions"
        fields[batching] = (axis, *(number + (number > axis) for number in numbers.ints(batching)))
        fields[f"{side}_contracting_dimensions"] = tuple(number + (number >= axis) for number in own)
    sums = _partial_type(operation)
    type = TensorType((strided(longest, size), *sums.shape), sums.element)
    attributes = {**operation.attributes, "dot_dimension_numbers": StructAttr(numbers.name, fields)}
    products = builder.append("dot_general", split, [type], attributes)
    again = _dot_general(target, builder, products)
    if again is not None:
        builder.block.operations.remove(products)
    total = summed(builder, (again or products.results)[0], 0)
    return [builder.convert(total, tensor_of(operation.results[0]).scalar)]


def _outer_product(builder: Builder, operation: Operation, numbers: StructAttr) -> Value:
    """Multiplies the operands element-wise, each broadcast along the free dimensions of the other."""
    type, result = _partial_type(operation), tensor_of(operation.results[0])
    factors, first = [], len(numbers.ints("lhs_batching_dimensions"))
    for side, value in zip(("lhs", "rhs"), operation.operands, strict=True):
        batch = numbers.ints(f"{side}_batching_dimensions")
        free = [axis for axis in range(tensor_of(value).rank) if axis not in batch]
        places = {axis: first + number for number, axis in enumerate(free)} | {axis: n for n, axis in enumerate(batch)}
        first += len(free)
        factor = builder.convert(value, type.scalar)
        factors.append(builder.broadcast(factor, result.shape, [places[axis] for axis in range(len(places))]))
    return builder.convert(builder.elementwise("multiply", *factors), result.scalar)


def _convolution(builder: Builder, operation: Operation) -> Values | None:
    """Loops over parts of the kernel's longest summed dimension, and adds their convolutions."""
    value, kernel = operation.operands
    numbers = operation.attributes["dimension_numbers"]
    assert isinstance(numbers, StructAttr)
    spatial = numbers.ints("kernel_spatial_dimensions")
    inputs = numbers.int("kernel_input_feature_dimension")
    lengths = tensor_of(kernel).lengths
    count, axis = 1, inputs
    for dim in (*spatial, inputs):
        length = lengths[dim]
        if isinstance(length, Size):
            return None
        count *= length
        axis = dim if length > number_of(lengths[axis]) else axis
    if count <= MAX_PRODUCTS:
        return None
    length = number_of(lengths[axis])
    size = max(1, MAX_PRODUCTS // 2 * length // count)
    parts = -(-length // size)
    attributes = dict(operation.attributes)
    zero = builder.constant(0, TensorType((), tensor_of(value).element))
    if axis == inputs:
        features = numbers.int("input_feature_dimension")
        groups = operation.integer("feature_group_count", 1)
        shape = tensor_of(value).lengths
        value = builder.reshape(value, (*shape[:features], groups, length, *shape[features + 1 :]))
        value = in_parts(builder, value, features + 1, size, zero)
        dimension, step = features + 1, 1
        taken: Dim = 1
        joined: Sequence[Dim] = (*shape[:features], groups * size, *shape[features + 1 :])
    else:
        value, kernel, attributes = _plain_dimension(builder, operation, spatial.index(axis), parts * size)
        dimension = numbers.ints("input_spatial_dimensions")[spatial.index(axis)]
        step = size * operation.integers("rhs_dilation", [1] * len(spatial))[spatial.index(axis)]
        taken = tensor_of(value).lengths[dimension] - (parts - 1) * step
        joined = [taken if dim == dimension else other for dim, other in enumerate(tensor_of(value).lengths)]
    kernel = in_parts(builder, kernel, axis, size, builder.constant(0, TensorType((), tensor_of(kernel).element)))
    type = _partial_type(operation)
    taps = [size if dim == axis else other for dim, other in enumerate(lengths)]

    def add(inner: Builder, number: Value, sums: Values) -> Values:
        piece = inner.piece_at(value, dimension, inner.elementwise("multiply", number, step), taken)
        some = inner.piece_at(kernel, axis, number, 1)
        operands = [inner.reshape(piece, joined), inner.reshape(some, taps)]
        part = inner.append("convolution", operands, [type], attributes)
        again = _convolution(inner, part)
        if again is not None:
            inner.block.operations.remove(part)
        return [inner.elementwise("add", sums[0], (again or part.results)[0])]

    (total,) = builder.loop(parts, [builder.constant(0, type)], add)
    return [builder.convert(total, tensor_of(operation.results[0]).scalar)]


def _plain_dimension(
    builder: Builder, operation: Operation, number: int, length: int
) -> tuple[Value, Value, dict[str, Attribute]]:
    """Returns operands and attributes of a convolution, with a spatial dimension already padded, dilated and reversed.

    Args:
        builder: the builder that appends the operations.
        operation: the convolution.
        number: the spatial dimension's number.
        length: the length of that dimension of the new kernel, which is padded with zeros.
    """
    value, kernel = operation.operands
    numbers = operation.attributes["dimension_numbers"]
    assert isinstance(numbers, StructAttr)
    axes = {side: numbers.ints(f"{side}_spatial_dimensions") for side in ("input", "kernel")}
    rank = len(axes["input"])
    lists = {
        name: operation.integers(name, [neutral] * count)
        for name, neutral, count in (("lhs_dilation", 1, rank), ("window_reversal", 0, rank), ("padding", 0, 2 * rank))
    }
    dilation = operation.integers("rhs_dilation", [1] * rank)[number]
    axis = axes["kernel"][number]
    if lists["window_reversal"][number]:
        kernel = builder.reverse(kernel, (axis,))
    more = (length - number_of(tensor_of(kernel).lengths[axis])) * dilation
    ends = lists["padding"][2 * number], lists["padding"][2 * number + 1] + more
    low, high, gaps = (
        [amount if dim == axes["input"][number] else 0 for dim in range(rank + 2)]
        for amount in (*ends, lists["lhs_dilation"][number] - 1)
    )
    value = builder.pad(value, builder.constant(0, TensorType((), tensor_of(value).element)), low, high, gaps)

    def without(name: str, neutral: int) -> list[int]:
        return [neutral if dim == number else other for dim, other in enumerate(lists[name])]

    pairs = zip(lists["padding"][::2], lists["padding"][1::2], strict=True)
    return (
        value,
        kernel,
        {
            **operation.attributes,
            "lhs_dilation": DenseArray(I64, tuple(without("lhs_dilation", 1))),
            "window_reversal": DenseArray(I1, tuple(bool(dim) for dim in without("window_reversal", 0))),
            "padding": tuple(DenseArray(I64, (0, 0) if dim == number else pair) for dim, pair in enumerate(pairs)),
        },
    )


_RULES: Final[Mapping[str, Callable[[Builder, Operation], Values | None]]] = {
    "stablehlo.convolution": _convolution,
    "stablehlo.reduce": in_stages,
    "stablehlo.reduce_window": by_powers,
}
