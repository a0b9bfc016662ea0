"""Contractions and convolutions: a sum of products for each element of the result."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from ...spirv.builder import Id
from ..ir.attributes import StructAttr
from ..ir.operation import Operation, Value
from ..ir.sizes import Dim, is_at_least, product, quotient
from ..ir.types import F32, I32, ScalarType
from . import complex_math
from .conversions import convert
from .elements import Frame, Structure, scalar_of, shape_of
from .index import Index, split
from .scalars import Complex, Scalar, as_complex, as_id, select

MAX_IN_ORDER: Final = 128
"""Sums of more floats go by runs of so many, whose errors do not add up."""

Step: TypeAlias = Callable[[Sequence[Id], Sequence[Scalar]], Sequence[Scalar]]


def working_type(type: ScalarType) -> ScalarType:
    """The type to sum in: of narrow floats f32, of narrow integers one that wraps in the end."""
    if type.kind == "float" and type.bits < 32:
        return F32
    return I32 if type.is_integer and type.bits < 32 else type


def summed(
    frame: Frame,
    operation: Operation,
    depth: Sequence[Dim],
    zeros: Sequence[Scalar],
    step: Step,
) -> Sequence[Scalar]:
    """Sums over all products, floats by runs of ``MAX_IN_ORDER`` at most.

    Args:
        frame: where the operands are.
        operation: the contraction.
        depth: lengths of what is summed over.
        zeros: the sums of no products.
        step: from one number for each length, and sums, to the sums with the products that have these numbers.
    """

    def nest(lengths: Sequence[Dim], found: Sequence[Id], sums: Sequence[Scalar], body: Step) -> Sequence[Scalar]:
        if not lengths:
            return body(found, sums)
        first, *rest = lengths
        return frame.fold(operation, first, sums, lambda number, sums: nest(rest, [*found, number], sums, body))

    is_exact = not any(isinstance(zero, Complex) or zero.kind.letter == "f" for zero in zeros)
    known = [length for length in depth if isinstance(length, int)]
    if is_exact or len(known) < len(depth) or math.prod(known) <= MAX_IN_ORDER:
        return nest(depth, [], zeros, step)
    inner = len(depth)
    while math.prod(known[inner - 1 :]) <= MAX_IN_ORDER:
        inner -= 1
    if inner < len(depth):

        def window(found: Sequence[Id], sums: Sequence[Scalar]) -> Sequence[Scalar]:
            return _added(sums, nest(depth[inner:], found, zeros, step))

        return nest(depth[:inner], [], sums=zeros, body=window)
    *outer, last = known
    runs, rest = divmod(last, MAX_IN_ORDER)

    def row(found: Sequence[Id], sums: Sequence[Scalar]) -> Sequence[Scalar]:
        def run(number: Id, sums: Sequence[Scalar]) -> Sequence[Scalar]:
            first = number * MAX_IN_ORDER
            part = frame.fold(operation, MAX_IN_ORDER, zeros, lambda offset, part: step([*found, first + offset], part))
            return _added(sums, part)

        sums = frame.fold(operation, runs, sums, run)
        first = runs * MAX_IN_ORDER
        return frame.fold(operation, rest, sums, lambda number, sums: step([*found, number + first], sums))

    return nest(outer, [], zeros, row)


def _added(totals: Sequence[Scalar], parts: Sequence[Scalar]) -> list[Scalar]:
    found: list[Scalar] = []
    for total, part in zip(totals, parts, strict=True):
        if isinstance(part, Complex):
            found.append(complex_math.add(as_complex(total), part))
        else:
            found.append(as_id(total) + part)
    return found


def result_of(frame: Frame, type: ScalarType, total: Scalar) -> Scalar:
    """A sum as an element of the result."""
    if type.kind == "float":
        return frame.scalars.rounded(type, as_id(total))
    return frame.scalars.wrapped(type, as_id(total)) if type.is_integer else total


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


def products_of(frame: Frame, operation: Operation) -> Products:
    """The products whose sums are the elements of a contraction or a convolution."""
    return (
        _DotGeneral(frame, operation) if operation.name == "stablehlo.dot_general" else _Convolution(frame, operation)
    )


def products_per_element(operation: Operation) -> Dim:
    """Products that are summed for each element of a contraction or a convolution."""
    return product(depth_of(operation))


def depth_of(operation: Operation) -> list[Dim]:
    """Lengths of what is summed over: contracted dimensions, or the window's and the features."""
    left, right = (shape_of(value) for value in operation.operands[:2])
    if operation.name == "stablehlo.dot_general":
        return [left[axis] for axis in _numbers(operation).ints("lhs_contracting_dimensions")]
    numbers = _numbers(operation)
    taps = [right[axis] for axis in numbers.ints("kernel_spatial_dimensions")]
    return [*taps, right[numbers.int("kernel_input_feature_dimension")]]


def _numbers(operation: Operation) -> StructAttr:
    """Which dimensions are which."""
    found = operation.attributes.get("dot_dimension_numbers", operation.attributes.get("dimension_numbers"))
    assert isinstance(found, StructAttr)
    return found


class Products(ABC):
    """The products whose sums are the elements of a contraction or a convolution.

    Attributes:
        depth: lengths of what is summed over; each product has one number for each.
    """

    def __init__(self, frame: Frame, operation: Operation) -> None:
        self._frame = frame
        self._operands = operation.operands[:2]
        self._working = working_type(scalar_of(operation.result))
        self._numbers = _numbers(operation)
        self._shapes = shape_of(operation.operands[0]), shape_of(operation.operands[1])
        self.depth = depth_of(operation)

    @abstractmethod
    def factors(self, parts: Sequence[Id], inner: Sequence[Id]) -> tuple[Id, Index, Index]:
        """Whether there is a product, and where its factors are.

        Args:
            parts: index of the element of the result.
            inner: one number for each length of ``depth``.
        """

    def plus(self, total: Scalar, left: Index, right: Index) -> Scalar:
        """A sum with the product of an element of each operand."""
        return _plus(self._frame, self._working, total, *map(self._factor, self._operands, (left, right)))

    def _factor(self, value: Value, index: Index) -> Scalar:
        return convert(self._frame.scalars, self._frame.at(value, index), scalar_of(value), self._working)

    def added(self, total: Scalar, parts: Sequence[Id], inner: Sequence[Id]) -> Scalar:
        """A sum with a product, computed without a branch: one that is not there counts as zero."""
        condition, left, right = self.factors(parts, inner)
        if condition.value is not None:
            return self.plus(total, left, right) if condition.value else total
        index = self._frame.index(left.shape, [condition.select(part, 0) for part in left.parts])
        a, b = map(self._factor, self._operands, (index, right))
        a = select(condition, a, self._frame.scalars.constant(self._working, 0))
        return _plus(self._frame, self._working, total, a, b)


class _DotGeneral(Products):
    def __init__(self, frame: Frame, operation: Operation) -> None:
        super().__init__(frame, operation)
        sides = ("lhs", "rhs")
        self._batch = [self._numbers.ints(f"{side}_batching_dimensions") for side in sides]
        self._summed = [self._numbers.ints(f"{side}_contracting_dimensions") for side in sides]

    def factors(self, parts: Sequence[Id], inner: Sequence[Id]) -> tuple[Id, Index, Index]:
        """Where the factors are: each product is there."""
        # The result's dimensions: those of batches, then the free ones of either side.
        position = len(self._batch[0])
        found = []
        for batch, summed, shape in zip(self._batch, self._summed, self._shapes, strict=True):
            places = {**dict(zip(batch, parts, strict=False)), **dict(zip(summed, inner, strict=True))}
            for axis in range(len(shape)):
                if axis not in places:
                    places[axis] = parts[position]
                    position += 1
            found.append(self._frame.index(shape, [places[axis] for axis in range(len(shape))]))
        return self._frame.builder.boolean(True), found[0], found[1]


class _Convolution(Products):
    def __init__(self, frame: Frame, operation: Operation) -> None:
        super().__init__(frame, operation)
        numbers, kernel_shape = self._numbers, self._shapes[1]
        self._spatial = {side: numbers.ints(f"{side}_spatial_dimensions") for side in ("input", "kernel", "output")}
        self._rank = len(self._spatial["input"])
        ones = [1] * self._rank
        self._strides, self._base, self._dilation = (
            operation.integers(name, ones) for name in ("window_strides", "lhs_dilation", "rhs_dilation")
        )
        self._padding = operation.integers("padding", [0] * (2 * self._rank))
        self._reversal = operation.integers("window_reversal", [0] * self._rank)
        groups, self._batch_groups = (
            operation.integer("feature_group_count", 1),
            operation.integer("batch_group_count", 1),
        )
        self._outputs = quotient(
            kernel_shape[numbers.int("kernel_output_feature_dimension")], groups * self._batch_groups
        )
        self._lengths = shape_of(operation.result)

    def factors(self, parts: Sequence[Id], inner: Sequence[Id]) -> tuple[Id, Index, Index]:
        """Where the factors are; those in the padding and between dilated elements are not there."""
        frame, numbers, (shape, kernel_shape) = self._frame, self._numbers, self._shapes
        *window, feature_in = inner
        *taps, features = self.depth
        batch = parts[numbers.int("output_batch_dimension")]
        feature = parts[numbers.int("output_feature_dimension")]
        group = feature // frame.word(self._outputs)
        if self._batch_groups > 1:
            batch = (
                group * frame.word(quotient(shape[numbers.int("input_batch_dimension")], self._batch_groups)) + batch
            )
            group = frame.word(0)
        inside = frame.builder.boolean(True)
        places = {
            numbers.int("input_batch_dimension"): batch,
            numbers.int("input_feature_dimension"): group * frame.word(features) + feature_in,
        }
        kernel_places = {
            numbers.int("kernel_input_feature_dimension"): feature_in,
            numbers.int("kernel_output_feature_dimension"): feature,
        }
        for axis in range(self._rank):
            stride, base, dilation = self._strides[axis], self._base[axis], self._dilation[axis]
            low = self._padding[2 * axis]
            output, tap = self._spatial["output"][axis], window[axis]
            length = shape[self._spatial["input"][axis]]
            place = parts[output] * stride + tap * dilation - low
            here, place = undilated(frame, place, base, length, frame.builder.boolean(True))
            last = (self._lengths[output] - 1) * stride + (taps[axis] - 1) * dilation
            if base > 1 or low > 0 or is_at_least(last - low - length, 0) is not False:
                inside = inside & here
            places[self._spatial["input"][axis]] = place
            mirrored = frame.word(taps[axis] - 1) - tap
            kernel_places[self._spatial["kernel"][axis]] = mirrored if self._reversal[axis] else tap
        first = frame.index(shape, [places[axis] for axis in range(len(shape))])
        second = frame.index(kernel_shape, [kernel_places[axis] for axis in range(len(kernel_shape))])
        return inside, first, second


def undilated(frame: Frame, place: Id, base: int, length: Dim, inside: Id) -> tuple[Id, Id]:
    """Whether a signed place in a dilated dimension is an element, and which."""
    if base > 1:
        inside = inside & ~place.below(0) & (place % base).equals(0)
        place = place // base
    return inside & (place < frame.word(length)), place


def _contraction(frame: Frame, operation: Operation, index: Index) -> Sequence[Scalar]:
    products, type, parts = products_of(frame, operation), scalar_of(operation.result), index.parts

    def step(number: Sequence[Id], sums: Sequence[Scalar]) -> Sequence[Scalar]:
        inner = split(frame.builder, number[0], products.depth)
        condition, first, second = products.factors(parts, inner)
        return frame.conditional(condition, lambda: [products.plus(sums[0], first, second)], lambda: sums)

    zero = frame.scalars.constant(working_type(type), 0)
    (found,) = summed(frame, operation, [product(products.depth)], [zero], step)
    return [result_of(frame, type, found)]


STRUCTURES: Final[Mapping[str, Structure]] = {"convolution": _contraction, "dot_general": _contraction}
