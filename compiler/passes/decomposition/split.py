"""Long loops in parts: no invocation of a kernel runs more than a few thousand iterations.

Drivers end long dispatches, some of them without a word. A reduction goes in stages over runs of elements; a
contraction is a sum of partial ones; a convolution a loop over parts of its taps; a large window is made of
windows of 1, 2, 4, … elements. Elements stay in order, so that bodies need only be associative, as the specification
has it. Sums of narrow floats are in f32 until the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from ...codegen.target import Target
from ...dialects.builder import Builder
from ...dialects.rules.requirements import strided
from ...ir.attributes import Attribute, DenseArray, StructAttr, type_shape
from ...ir.copying import copy_region
from ...ir.operation import Block, Operation, Region, Value, tensor_of
from ...ir.sizes import Dim, Size, is_at_least, number_of, product
from ...ir.types import F32, I1, I64, ScalarType, TensorType
from ..canonical.legacy import over_tensors
from ..identities import identity_of, joined_by
from ..rewrite import rewrite_named
from ..rows import MAX_ALONE, fills_device, is_enough, rows_over
from ..scans import scan_of
from ..weights import iterations_of

Values = Sequence[Value]

RUN: Final = 256
"""Elements that an invocation reduces where there are more than ``MAX_ALONE``."""

ROW: Final = 4096
"""Elements of the innermost dimensions that a workgroup reduces, where there are few rows, and longer ones."""

MAX_PRODUCTS: Final = 16_384
"""Products that an invocation sums, half as many where there are more."""

MIN_PRODUCTS: Final = 1024
"""Products that an invocation sums at least, before a sum is divided because the device idles."""

MAX_WINDOW_WORK: Final = 1 << 24
"""Elements that all windows together hold; more, of windows beyond 128 elements, go by powers of two."""


def split_loops(block: Block, target: Target) -> None:
    """Replaces operations whose loops are too long, in a block and the regions inside.

    Sums of few elements are divided among more invocations, so that they keep the target busy.
    """
    rewrite_named(block, {**_RULES, "stablehlo.dot_general": partial(_dot_general, target)})


def _shape(value: Value) -> tuple[int, ...]:
    return type_shape(tensor_of(value))


# -- reductions ------------------------------------------------------------------------------------------


def _reduce(builder: Builder, operation: Operation) -> Values | None:
    count = len(operation.results)
    values, starts = operation.operands[:count], operation.operands[count:]
    axes = sorted(operation.integers("dimensions"))
    most = most_reduced(operation.regions[0].block)
    if is_at_least(_reduced_count(values[0], axes), most + 1) is False or fills_device(operation):
        return None
    return reduced(builder, operation.regions[0], values, starts, axes)


def most_reduced(body: Block) -> int:
    """Elements that an invocation reduces at most, by the loops that the body has itself."""
    return max(2, MAX_ALONE // (1 + sum(iterations_of(operation) for operation in body.operations)))


def reduced(builder: Builder, body: Region, values: Values, starts: Values, axes: Sequence[int]) -> Values:
    """A reduction in stages, each over runs of neighbouring elements; the initial values are used in the last."""
    axes = sorted(axes)
    element = tensor_of(values[0]).scalar
    joined = joined_by(body.block)
    if joined == "add" and element.kind == "float" and element.bits < 32:
        wide, start = ([builder.convert(value, F32) for value in given] for given in (values, starts))
        (found,) = reduced(builder, sum_body(builder, F32), wide, start, axes)
        return [builder.convert(found, element)]
    neutral = list(starts)
    identity = identity_of(joined, element)
    if identity is not None:
        neutral = [builder.constant(identity, TensorType((), element))]
    most = most_reduced(body.block)
    # What depends on the call is one dimension in the end, of runs.
    while is_at_least(_reduced_count(values[0], axes), most + 1) is not False and not _are_runs(values, axes):
        rows = None if most < MAX_ALONE else rows_over(tensor_of(values[0]).lengths, axes)
        if rows is not None and is_enough(rows):
            break
        values, axes = _reduced_runs(builder, body, values, neutral, axes, min(RUN, most) if rows is None else ROW)
    return _reduce_over(builder, body, values, starts, axes)


def _reduced_count(value: Value, axes: Sequence[int]) -> Dim:
    lengths = tensor_of(value).lengths
    return product(lengths[axis] for axis in axes)


def _are_runs(values: Values, axes: Sequence[int]) -> bool:
    """Whether the only dimension left to reduce is a number of runs that depends on the call."""
    lengths = [tensor_of(values[0]).lengths[axis] for axis in axes]
    return len(axes) == 1 and isinstance(lengths[0], Size) and not lengths[0].symbols & lengths[0].plain_symbols


def _reduced_runs(
    builder: Builder, body: Region, values: Values, neutral: Values, axes: Sequence[int], most: int
) -> tuple[Values, list[int]]:
    """One stage: runs of at most so many elements; the values then, and the dimensions that are left to reduce."""
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
        inner = [axis + 1, *(each + 1 for each in inner)]
    found = _reduce_over(builder, body, values, neutral, inner)
    return found, [axis - sum(each < axis for each in inner) for axis in rest]


def even_part(length: Dim, most: int) -> int:
    """A size of parts that fills a length as well as one of a quarter of the most or above can."""
    if isinstance(length, Size):
        return most
    divisors = (size for size in range(most, most // 4, -1) if length % size == 0)
    return next(divisors, -(-length // -(-length // most)))


def in_parts(builder: Builder, value: Value, axis: int, size: int, filling: Value) -> Value:
    """A dimension as two, the second of a size, filled up where it is no multiple."""
    shape = tensor_of(value).lengths
    parts = strided(shape[axis], size)
    high = [parts * size - shape[axis] if each == axis else 0 for each in range(len(shape))]
    padded = builder.pad(
        value, builder.convert(filling, tensor_of(value).scalar), [0] * len(shape), high, [0] * len(shape)
    )
    return builder.reshape(padded, (*shape[:axis], parts, size, *shape[axis + 1 :]))


def _reduce_over(builder: Builder, body: Region, values: Values, starts: Values, axes: Sequence[int]) -> Values:
    arguments = body.block.arguments[: len(values)]
    shape = [length for axis, length in enumerate(tensor_of(values[0]).lengths) if axis not in axes]
    types = [TensorType(shape, argument.tensor.scalar) for argument in arguments]
    attributes: dict[str, Attribute] = {"dimensions": DenseArray(I64, tuple(sorted(axes)))}
    outside = {value: value for operation in body.block.operations for value in operation.operands}
    return builder.append("reduce", [*values, *starts], types, attributes, [copy_region(body, dict(outside))]).results


def sum_body(builder: Builder, element: ScalarType) -> Region:
    """A body that adds its arguments."""
    scalar = TensorType((), element)
    return builder.region([scalar, scalar], lambda inner, pair: [inner.elementwise("add", *pair)])


def summed(builder: Builder, value: Value, axis: int) -> Value:
    """The sum over a dimension, in stages where it is long."""
    element = tensor_of(value).scalar
    zero = builder.constant(0, TensorType((), element))
    (found,) = reduced(builder, sum_body(builder, element), [value], [zero], [axis])
    return found


# -- contractions ----------------------------------------------------------------------------------------


def _partial_type(operation: Operation) -> TensorType:
    """The type of partial sums: f32 for narrow floats."""
    type = tensor_of(operation.results[0])
    return type.of(F32) if type.scalar.kind == "float" and type.scalar.bits < 32 else type


def _most_products(operation: Operation, count: int, target: Target) -> int:
    """Products that an invocation sums at most: half as many, if they are divided, keep the target busy."""
    results = tensor_of(operation.results[0]).count
    if isinstance(results, Size):
        return MAX_PRODUCTS
    busy = target.compute_units * max(target.subgroup_size, 8) * 8
    return min(MAX_PRODUCTS, 2 * max(MIN_PRODUCTS, -(-count * results // busy)))


def _part_of(length: int, size: int) -> int:
    """A part of a length about as long as a size, and no less: one that divides it, if there is one."""
    return next((each for each in range(size, min(2 * size, length)) if length % each == 0), size)


def _dot_general(target: Target, builder: Builder, operation: Operation) -> Values | None:
    """A product for each part of the longest summed dimension, and their sum."""
    numbers = operation.attributes["dot_dimension_numbers"]
    assert isinstance(numbers, StructAttr)
    left, right = operation.operands
    axes = numbers.ints("lhs_contracting_dimensions"), numbers.ints("rhs_contracting_dimensions")
    lengths = [tensor_of(left).lengths[axis] for axis in axes[0]]
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
        fields[batching] = (axis, *(each + (each > axis) for each in numbers.ints(batching)))
        fields[f"{side}_contracting_dimensions"] = tuple(each + (each >= axis) for each in own)
    sums = _partial_type(operation)
    type = TensorType((strided(longest, size), *sums.shape), sums.element)
    attributes = {**operation.attributes, "dot_dimension_numbers": StructAttr(numbers.name, fields)}
    products = builder.append("dot_general", split, [type], attributes)
    again = _dot_general(target, builder, products)
    if again is not None:
        builder.block.operations.remove(products)
    found = summed(builder, (again or products.results)[0], 0)
    return [builder.convert(found, tensor_of(operation.results[0]).scalar)]


def _convolution(builder: Builder, operation: Operation) -> Values | None:
    """A loop over parts of the longest dimension of the kernel that is summed over, which adds their convolutions."""
    value, kernel = operation.operands
    numbers = operation.attributes["dimension_numbers"]
    assert isinstance(numbers, StructAttr)
    spatial = numbers.ints("kernel_spatial_dimensions")
    inputs = numbers.int("kernel_input_feature_dimension")
    lengths = tensor_of(kernel).lengths
    count, axis = 1, inputs
    for each in (*spatial, inputs):
        length = lengths[each]
        if isinstance(length, Size):
            return None
        count *= length
        axis = each if length > number_of(lengths[axis]) else axis
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
        place, step = features + 1, 1
        taken: Dim = 1
        joined: Sequence[Dim] = (*shape[:features], groups * size, *shape[features + 1 :])
    else:
        value, kernel, attributes = _plain_dimension(builder, operation, spatial.index(axis), parts * size)
        place = numbers.ints("input_spatial_dimensions")[spatial.index(axis)]
        step = size * operation.integers("rhs_dilation", [1] * len(spatial))[spatial.index(axis)]
        taken = tensor_of(value).lengths[place] - (parts - 1) * step
        joined = [taken if each == place else other for each, other in enumerate(tensor_of(value).lengths)]
    kernel = in_parts(builder, kernel, axis, size, builder.constant(0, TensorType((), tensor_of(kernel).element)))
    type = _partial_type(operation)
    taps = [size if each == axis else other for each, other in enumerate(lengths)]

    def add(inner: Builder, number: Value, sums: Values) -> Values:
        piece = inner.piece_at(value, place, inner.elementwise("multiply", number, step), taken)
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
    """Operands and attributes of a convolution with a spatial dimension padded, spread and reversed beforehand.

    Args:
        builder: to which the operations are added.
        operation: the convolution.
        number: of the spatial dimension.
        length: of that dimension of the kernel to come, which is filled up with zeros.
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
        kernel = builder.append("reverse", [kernel], [kernel.type], {"dimensions": DenseArray(I64, (axis,))}).result
    more = (length - number_of(tensor_of(kernel).lengths[axis])) * dilation
    ends = lists["padding"][2 * number], lists["padding"][2 * number + 1] + more
    low, high, gaps = (
        [amount if each == axes["input"][number] else 0 for each in range(rank + 2)]
        for amount in (*ends, lists["lhs_dilation"][number] - 1)
    )
    value = builder.pad(value, builder.constant(0, TensorType((), tensor_of(value).element)), low, high, gaps)

    def without(name: str, neutral: int) -> list[int]:
        return [neutral if each == number else other for each, other in enumerate(lists[name])]

    pairs = zip(lists["padding"][::2], lists["padding"][1::2], strict=True)
    return (
        value,
        kernel,
        {
            **operation.attributes,
            "lhs_dilation": DenseArray(I64, tuple(without("lhs_dilation", 1))),
            "window_reversal": DenseArray(I1, tuple(bool(each) for each in without("window_reversal", 0))),
            "padding": tuple(DenseArray(I64, (0, 0) if each == number else pair) for each, pair in enumerate(pairs)),
        },
    )


# -- windows ---------------------------------------------------------------------------------------------


def _reduce_window(builder: Builder, operation: Operation) -> Values | None:
    """Windows of 1, 2, 4, … elements, one dimension after another; each of the operation's is made of some of them."""
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
        [builder.convert(value, type) for value, type in zip(given, types, strict=True)] for given in (values, starts)
    )
    rank = len(sizes)
    ones = [1] * rank
    strides, dilations = operation.integers("window_strides", ones), operation.integers("window_dilations", ones)
    gaps = [each - 1 for each in operation.integers("base_dilations", ones)]
    padding = operation.integers("padding", [0] * (2 * rank))
    values = [
        builder.pad(value, start, padding[::2], padding[1::2], gaps)
        for value, start in zip(values, starts, strict=True)
    ]
    for axis in reversed(range(rank)):
        values = _windows(builder, body, values, axis, sizes[axis], dilations[axis])
        ranges = [(0, length, strides[axis] if each == axis else 1) for each, length in enumerate(_shape(values[0]))]
        values = [builder.slice(value, ranges) for value in values]
    first = [builder.broadcast(start, _shape(values[0]), ()) for start in starts]
    found = over_tensors(builder, body, [*first, *values])
    results = zip(found, operation.results, strict=True)
    return [builder.convert(value, tensor_of(result).scalar) for value, result in results]


def _windows(builder: Builder, body: Block, values: Values, axis: int, size: int, dilation: int) -> Values:
    """What a body makes of all windows of a size along a dimension."""
    found: Values | None = None
    covered, power = 0, 1
    while True:
        if size & power:
            found = values if found is None else _beside(builder, body, found, values, axis, covered * dilation)
            covered += power
        if covered == size:
            assert found is not None
            return found
        values = _beside(builder, body, values, values, axis, power * dilation)
        power *= 2


def _beside(builder: Builder, body: Block, left: Values, right: Values, axis: int, distance: int) -> Values:
    """A body over elements and those at a distance, as far as there are both."""
    length = min(_shape(left[0])[axis], _shape(right[0])[axis] - distance)
    firsts = [builder.piece(value, axis, 0, length) for value in left]
    seconds = [builder.piece(value, axis, distance, distance + length) for value in right]
    return over_tensors(builder, body, [*firsts, *seconds])


_RULES: Final[Mapping[str, Callable[[Builder, Operation], Values | None]]] = {
    "stablehlo.convolution": _convolution,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
}
