"""Contractions and convolutions: a sum of products for each element of the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...spirv.builder import Id
from ..ir.attributes import StructAttr
from ..ir.operation import Operation, Value
from ..ir.sizes import Dim, Size, is_at_least, product, quotient
from ..ir.types import F32, I32, ScalarType
from . import complex_math
from .conversions import convert
from .elements import Frame, Structure, scalar_of, shape_of
from .index import Index, split
from .scalars import Complex, Scalar, as_complex, as_id

MAX_IN_ORDER: Final = 128
"""Sums of more floats go by runs of so many, whose errors do not add up."""


def _working(type: ScalarType) -> ScalarType:
    """The type to sum in: of narrow floats f32, of narrow integers one that wraps in the end."""
    if type.kind == "float" and type.bits < 32:
        return F32
    return I32 if type.is_integer and type.bits < 32 else type


def _sum_of_products(
    frame: Frame,
    operation: Operation,
    count: Dim,
    factors: Callable[[Id], tuple[Id, Index, Index]],
) -> Sequence[Scalar]:
    """The sum of products of elements of two operands.

    Args:
        frame: where the operands are.
        operation: the contraction.
        count: of the products.
        factors: from a product's number to whether it is there, and where its factors are.
    """
    target = scalar_of(operation.result)
    working = _working(target)
    left, right = operation.operands[:2]

    def factor(value: Value, index: Index) -> Scalar:
        return convert(frame.scalars, frame.at(value, index), scalar_of(value), working)

    def step(number: Id, sums: Sequence[Scalar]) -> Sequence[Scalar]:
        condition, first, second = factors(number)

        def added() -> Sequence[Scalar]:
            a, b = factor(left, first), factor(right, second)
            return [_plus(frame, working, sums[0], a, b)]

        return frame.conditional(condition, added, lambda: sums)

    zero = [frame.scalars.constant(working, 0)]

    def run(number: Id, sums: Sequence[Scalar]) -> Sequence[Scalar]:
        first = number * MAX_IN_ORDER
        (part,) = frame.fold(operation, MAX_IN_ORDER, zero, lambda offset, part: step(first + offset, part))
        if isinstance(part, Complex):
            return [complex_math.add(as_complex(sums[0]), part)]
        return [as_id(sums[0]) + as_id(part)]

    if isinstance(count, Size):
        (found,) = frame.fold(operation, count, zero, step)
    else:
        runs = count // MAX_IN_ORDER if count > MAX_IN_ORDER and working.kind in ("float", "complex") else 0
        done = runs * MAX_IN_ORDER
        sums = frame.fold(operation, runs, zero, run)
        (found,) = frame.fold(operation, count - done, sums, lambda number, sums: step(number + done, sums))
    if target.kind == "float":
        return [frame.scalars.rounded(target, as_id(found))]
    return [frame.scalars.wrapped(target, as_id(found)) if target.is_integer else found]


def _plus(frame: Frame, type: ScalarType, total: Scalar, left: Scalar, right: Scalar) -> Scalar:
    if isinstance(total, Complex):
        return complex_math.add(total, complex_math.multiply(as_complex(left), as_complex(right)))
    a, b = as_id(left), as_id(right)
    if type.kind == "bool":
        return as_id(total) | (a & b)
    frame.builder.contracts = True
    found = as_id(total) + a * b
    frame.builder.contracts = False
    return found


def _dot_general(frame: Frame, operation: Operation, index: Index) -> Sequence[Scalar]:
    left, right = operation.operands
    numbers = operation.attributes["dot_dimension_numbers"]
    assert isinstance(numbers, StructAttr)
    batch = numbers.ints("lhs_batching_dimensions"), numbers.ints("rhs_batching_dimensions")
    summed = numbers.ints("lhs_contracting_dimensions"), numbers.ints("rhs_contracting_dimensions")
    shapes = shape_of(left), shape_of(right)
    lengths = [shapes[0][axis] for axis in summed[0]]
    parts = list(index.parts)
    # The result's dimensions: those of batches, then the free ones of either side.
    fixed: list[dict[int, Id]] = []
    position = len(batch[0])
    for side in range(2):
        places = dict(zip(batch[side], parts, strict=False))
        for axis in range(len(shapes[side])):
            if axis not in batch[side] and axis not in summed[side]:
                places[axis] = parts[position]
                position += 1
        fixed.append(places)

    def factors(number: Id) -> tuple[Id, Index, Index]:
        inner = split(frame.builder, number, lengths)
        found = []
        for side in range(2):
            places = {**fixed[side], **dict(zip(summed[side], inner, strict=True))}
            found.append(frame.index(shapes[side], [places[axis] for axis in range(len(shapes[side]))]))
        return frame.builder.boolean(True), found[0], found[1]

    return _sum_of_products(frame, operation, product(lengths), factors)


def _convolution(frame: Frame, operation: Operation, index: Index) -> Sequence[Scalar]:
    value, kernel = operation.operands
    numbers = operation.attributes["dimension_numbers"]
    assert isinstance(numbers, StructAttr)
    spatial = {side: numbers.ints(f"{side}_spatial_dimensions") for side in ("input", "kernel", "output")}
    rank = len(spatial["input"])
    ones = [1] * rank
    strides, base, dilation = (
        operation.integers(name, ones) for name in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    padding = operation.integers("padding", [0] * (2 * rank))
    reversal = operation.integers("window_reversal", [0] * rank)
    groups, batch_groups = operation.integer("feature_group_count", 1), operation.integer("batch_group_count", 1)
    shape, kernel_shape = shape_of(value), shape_of(kernel)
    features = kernel_shape[numbers.int("kernel_input_feature_dimension")]
    outputs = quotient(kernel_shape[numbers.int("kernel_output_feature_dimension")], groups * batch_groups)
    taps = [kernel_shape[axis] for axis in spatial["kernel"]]
    batch = index.parts[numbers.int("output_batch_dimension")]
    feature = index.parts[numbers.int("output_feature_dimension")]
    group = feature // frame.word(outputs)
    if batch_groups > 1:
        batch = group * frame.word(quotient(shape[numbers.int("input_batch_dimension")], batch_groups)) + batch
        group = frame.word(0)

    def factors(number: Id) -> tuple[Id, Index, Index]:
        *window, inner = split(frame.builder, number, [*taps, features])
        inside = frame.builder.boolean(True)
        places = {
            numbers.int("input_batch_dimension"): batch,
            numbers.int("input_feature_dimension"): group * frame.word(features) + inner,
        }
        kernel_places = {
            numbers.int("kernel_input_feature_dimension"): inner,
            numbers.int("kernel_output_feature_dimension"): feature,
        }
        for axis in range(rank):
            at = index.parts[spatial["output"][axis]]
            tap = window[axis]
            length = shape[spatial["input"][axis]]
            place = at * strides[axis] + tap * dilation[axis] - padding[2 * axis]
            here, place = undilated(frame, place, base[axis], length, frame.builder.boolean(True))
            last = (index.shape[spatial["output"][axis]] - 1) * strides[axis] + (taps[axis] - 1) * dilation[axis]
            if (
                base[axis] > 1
                or padding[2 * axis] > 0
                or is_at_least(last - padding[2 * axis] - length, 0) is not False
            ):
                inside = inside & here
            places[spatial["input"][axis]] = place
            kernel_places[spatial["kernel"][axis]] = frame.word(taps[axis] - 1) - tap if reversal[axis] else tap
        first = frame.index(shape, [places[axis] for axis in range(len(shape))])
        second = frame.index(kernel_shape, [kernel_places[axis] for axis in range(len(kernel_shape))])
        return inside, first, second

    return _sum_of_products(frame, operation, product(taps) * features, factors)


def undilated(frame: Frame, place: Id, base: int, length: Dim, inside: Id) -> tuple[Id, Id]:
    """Whether a signed place in a dilated dimension is an element, and which."""
    if base > 1:
        inside = inside & ~place.below(0) & (place % base).equals(0)
        place = place // base
    return inside & (place < frame.word(length)), place


STRUCTURES: Final[Mapping[str, Structure]] = {"convolution": _convolution, "dot_general": _dot_general}
