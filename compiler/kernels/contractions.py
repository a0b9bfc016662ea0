"""Contractions and convolutions: a sum of products for each element of the result."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from ...spirv.binary.expression import Id
from ...spirv.binary.integer_dots import dot
from ..ir.attributes import StructAttr
from ..ir.operation import Operation
from ..ir.sizes import Dim, Size, is_at_least, parts_at_most, product, quotient
from ..ir.types import F32, I32, ScalarType
from .elements import Frame, Structure, scalar_of, shape_of
from .index import Index, split
from .scalars import complex_math
from .scalars.conversions import convert
from .scalars.scalars import Complex, Scalar, as_complex, as_id, is_signed, select
from .scalars.target import Target

MAX_IN_ORDER: Final = 128
"""Sums of more floats go by runs of so many, whose errors do not add up."""

_WITHOUT_DOTS: Final = frozenset({"cpu"})
"""Families whose sums of four products of bytes are made of more instructions than four products of words."""

Body: TypeAlias = Callable[[Sequence[Id], Sequence[Scalar]], Sequence[Scalar]]
Step: TypeAlias = Callable[[Sequence[Id], int, Sequence[Scalar]], Sequence[Scalar]]


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
    width: int = 0,
    is_padded: bool = False,
) -> Sequence[Scalar]:
    """Sums over all products, floats by runs of ``MAX_IN_ORDER`` at most.

    Args:
        frame: where the operands are.
        operation: the contraction.
        depth: lengths of what is summed over.
        zeros: the sums of no products.
        step: from one number for each length, how many products there are from the last on, and sums, to the sums with
            these products.
        width: products of a step at most, each of which is code of its own; 0 for single ones, in loops that the frame
            unrolls as it sees fit.
        is_padded: whether the last step is as wide as the others where the last length depends on the call: factors
            beyond it are zeros.
    """
    unrolled = 1 if width else None

    def nest(lengths: Sequence[Dim], found: Sequence[Id], sums: Sequence[Scalar], body: Body) -> Sequence[Scalar]:
        if not lengths:
            return body(found, sums)
        first, *rest = lengths
        return frame.fold(operation, first, sums, lambda at, sums: nest(rest, [*found, at], sums, body), unrolled)

    def along(found: Sequence[Id], first: Id, count: Dim, sums: Sequence[Scalar]) -> Sequence[Scalar]:
        """The products of some numbers along the last length."""
        if not width or isinstance(count, Size):
            return frame.fold(operation, count, sums, lambda at, sums: step([*found, first + at], 1, sums), unrolled)
        steps, rest = divmod(count, width)
        if steps == 1:
            sums = step([*found, first], width, sums)
        elif steps:
            # The number of a loop's first product is a multiple of the width.
            sums = frame.fold(
                operation, steps, sums, lambda at, sums: step([*found, first + at * width], width, sums), unrolled
            )
        return step([*found, first + steps * width], rest, sums) if rest else sums

    def dynamic(found: Sequence[Id], length: Size, sums: Sequence[Scalar]) -> Sequence[Scalar]:
        """The products along a last length that depends on the call: whole steps, and what is left one by one."""
        run, limit = max(MAX_IN_ORDER // width, 1) * width, frame.word(length)

        def whole(number: Id, sums: Sequence[Scalar]) -> Sequence[Scalar]:
            first = number * run
            rest = limit - first
            count = (rest < run).select(rest, run)
            steps = (count + (width - 1)) // width if is_padded else count // width
            part: Sequence[Scalar] = frame.counted(
                steps, run // width, zeros, lambda at, sums: step([*found, first + at * width], width, sums)
            )
            if width > 1 and not is_padded:
                behind = first + steps * width
                part = frame.counted(
                    count % width, width - 1, part, lambda at, sums: step([*found, behind + at], 1, sums)
                )
            return _added(sums, part)

        return frame.counted((limit + (run - 1)) // run, parts_at_most(length, run), sums, whole)

    *around, last = depth
    zero = frame.word(0)
    if width and isinstance(last, Size):
        return nest(around, [], zeros, lambda found, sums: dynamic(found, last, sums))
    is_exact = not any(isinstance(each, Complex) or each.kind.letter == "f" for each in zeros)
    known = [length for length in depth if isinstance(length, int)]
    if is_exact or len(known) < len(depth) or math.prod(known) <= MAX_IN_ORDER:
        return nest(around, [], zeros, lambda found, sums: along(found, zero, last, sums))
    *outer, length = known
    if length > MAX_IN_ORDER:
        runs, rest = divmod(length, MAX_IN_ORDER)

        def row(found: Sequence[Id], sums: Sequence[Scalar]) -> Sequence[Scalar]:
            def run(number: Id, sums: Sequence[Scalar]) -> Sequence[Scalar]:
                return _added(sums, along(found, number * MAX_IN_ORDER, MAX_IN_ORDER, zeros))

            sums = frame.fold(operation, runs, sums, run, unrolled)
            return along(found, frame.word(runs * MAX_IN_ORDER), rest, sums) if rest else sums

        return nest(outer, [], zeros, row)
    inner = len(outer)
    while math.prod(known[inner - 1 :]) <= MAX_IN_ORDER:
        inner -= 1

    def window(found: Sequence[Id], sums: Sequence[Scalar]) -> Sequence[Scalar]:
        return _added(sums, nest(outer[inner:], found, zeros, lambda found, sums: along(found, zero, length, sums)))

    return nest(outer[:inner], [], zeros, window)


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


def products_of(frame: Frame, operation: Operation, pack: int = 1) -> Products:
    """The products whose sums are the elements of a contraction or a convolution.

    Args:
        frame: where the operands are.
        operation: the contraction.
        pack: products that are computed together: 4, of ``pack_of``, or 1.
    """
    made = _DotGeneral if operation.name == "stablehlo.dot_general" else _Convolution
    return made(frame, operation, pack)


def pack_of(operation: Operation, target: Target) -> int:
    """Products that one instruction of the target adds: four of bytes, or one."""
    left, right = (scalar_of(value) for value in operation.operands[:2])
    is_packed = target.int8_dot and target.family not in _WITHOUT_DOTS
    return 4 if is_packed and left is right and left.is_integer and left.bits == 8 else 1


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
        working: the type that they are summed in.
        pack: products that are computed together.
    """

    def __init__(self, frame: Frame, operation: Operation, pack: int = 1) -> None:
        self._frame = frame
        self.pack = pack
        self.operands = operation.operands[:2]
        self.working = working_type(scalar_of(operation.result))
        self._numbers = _numbers(operation)
        self._shapes = shape_of(operation.operands[0]), shape_of(operation.operands[1])
        self.depth = depth_of(operation)

    @abstractmethod
    def place(self, side: int, parts: Sequence[Id], inner: Sequence[Id]) -> tuple[Id, Index]:
        """Whether there is a product, and where one of its factors is; somewhere in the operand, if there is none.

        Args:
            side: of the operand, 0 or 1. There is always a factor of the second.
            parts: index of the element of the result.
            inner: one number for each length of ``depth``.
        """

    def factor(self, side: int, there: Id, index: Index) -> Scalar:
        """A factor where there is a product, else zero."""
        operand = self.operands[side]
        scalars = self._frame.scalars
        found = convert(scalars, self._frame.at(operand, index), scalar_of(operand), self.working)
        return select(there, found, scalars.constant(self.working, 0)) if there.value != 1 else found

    def factors(self, side: int, places: Sequence[tuple[Id, Index]]) -> Scalar:
        """The factors of as many products as are computed together, or of fewer: one, or bytes of a word."""
        if self.pack == 1:
            ((there, index),) = places
            return self.factor(side, there, index)
        operand, frame = self.operands[side], self._frame
        bytes = [frame.at(operand, index) for _, index in places]
        if len({there.number for there, _ in places}) == 1:
            return places[0][0].select(frame.scalars.packed(bytes), 0)
        return frame.scalars.packed(
            [there.select(as_id(each), 0) for (there, _), each in zip(places, bytes, strict=True)]
        )

    def plus(self, total: Scalar, left: Scalar, right: Scalar) -> Scalar:
        """A sum with a product, or with those that are computed together."""
        if self.pack > 1:
            signed = is_signed(scalar_of(self.operands[0]))
            return as_id(total) + dot(self._frame.builder, as_id(left), as_id(right), signed)
        if isinstance(total, Complex):
            return complex_math.add(total, complex_math.multiply(as_complex(left), as_complex(right)))
        a, b = as_id(left), as_id(right)
        if self.working.kind == "bool":
            return as_id(total) | (a & b)
        self._frame.builder.contracts = True
        found = as_id(total) + a * b
        self._frame.builder.contracts = False
        return found


class _DotGeneral(Products):
    def __init__(self, frame: Frame, operation: Operation, pack: int = 1) -> None:
        super().__init__(frame, operation, pack)
        sides = ("lhs", "rhs")
        self._batch = [self._numbers.ints(f"{side}_batching_dimensions") for side in sides]
        self._summed = [self._numbers.ints(f"{side}_contracting_dimensions") for side in sides]
        left, *_ = free_dimensions(operation)
        # The result's dimensions: those of batches, then the free ones of either side.
        self._first = len(self._batch[0]), len(self._batch[0]) + len(left)

    def place(self, side: int, parts: Sequence[Id], inner: Sequence[Id]) -> tuple[Id, Index]:
        """Where a factor is: there is always one."""
        shape = self._shapes[side]
        places = dict(zip(self._batch[side], parts, strict=False)) | dict(zip(self._summed[side], inner, strict=True))
        free = [axis for axis in range(len(shape)) if axis not in places]
        places |= {axis: parts[self._first[side] + number] for number, axis in enumerate(free)}
        index = self._frame.index(shape, [places[axis] for axis in range(len(shape))])
        return self._frame.builder.boolean(True), index


class _Convolution(Products):
    def __init__(self, frame: Frame, operation: Operation, pack: int = 1) -> None:
        super().__init__(frame, operation, pack)
        numbers, kernel_shape = self._numbers, self._shapes[1]
        self._spatial = {side: numbers.ints(f"{side}_spatial_dimensions") for side in ("input", "kernel", "output")}
        ones = [1] * len(self._spatial["input"])
        self._strides, self._base, self._dilation = (
            operation.integers(name, ones) for name in ("window_strides", "lhs_dilation", "rhs_dilation")
        )
        self._padding = operation.integers("padding", [0] * (2 * len(ones)))
        self._reversal = operation.integers("window_reversal", [0] * len(ones))
        groups = operation.integer("feature_group_count", 1)
        self._batch_groups = operation.integer("batch_group_count", 1)
        self._outputs = quotient(
            kernel_shape[numbers.int("kernel_output_feature_dimension")], groups * self._batch_groups
        )
        self._lengths = shape_of(operation.result)

    def place(self, side: int, parts: Sequence[Id], inner: Sequence[Id]) -> tuple[Id, Index]:
        """Where a factor is; those in the padding and between dilated elements are not there."""
        return self._kernel_place(parts, inner) if side else self._input_place(parts, inner)

    def _kernel_place(self, parts: Sequence[Id], inner: Sequence[Id]) -> tuple[Id, Index]:
        frame, numbers = self._frame, self._numbers
        places = {
            numbers.int("kernel_input_feature_dimension"): inner[-1],
            numbers.int("kernel_output_feature_dimension"): parts[numbers.int("output_feature_dimension")],
        }
        for axis, tap, length, mirrored in zip(
            self._spatial["kernel"], inner, self.depth, self._reversal, strict=False
        ):
            places[axis] = frame.word(length - 1) - tap if mirrored else tap
        index = frame.index(self._shapes[1], [places[axis] for axis in range(len(places))])
        return frame.builder.boolean(True), index

    def _input_place(self, parts: Sequence[Id], inner: Sequence[Id]) -> tuple[Id, Index]:
        frame, numbers, shape = self._frame, self._numbers, self._shapes[0]
        batch = parts[numbers.int("output_batch_dimension")]
        group = parts[numbers.int("output_feature_dimension")] // frame.word(self._outputs)
        if self._batch_groups > 1:
            batches = quotient(shape[numbers.int("input_batch_dimension")], self._batch_groups)
            batch = group * frame.word(batches) + batch
            group = frame.word(0)
        places = {
            numbers.int("input_batch_dimension"): batch,
            numbers.int("input_feature_dimension"): group * frame.word(self.depth[-1]) + inner[-1],
        }
        inside = frame.builder.boolean(True)
        for axis, (output, at) in enumerate(zip(self._spatial["output"], self._spatial["input"], strict=True)):
            stride, base, dilation = self._strides[axis], self._base[axis], self._dilation[axis]
            low, length, taps = self._padding[2 * axis], shape[at], self.depth[axis]
            place = parts[output] * stride + inner[axis] * dilation - low
            here, place = undilated(frame, place, base, length, frame.builder.boolean(True))
            last = (self._lengths[output] - 1) * stride + (taps - 1) * dilation
            if base > 1 or low > 0 or is_at_least(last - low - length, 0) is not False:
                inside = inside & here
                place = here.select(place, 0)
            places[at] = place
        return inside, frame.index(shape, [places[axis] for axis in range(len(shape))])


def free_dimensions(operation: Operation) -> tuple[list[int], list[int]]:
    """Dimensions of the operands of a contraction that are neither of batches nor summed over."""
    numbers = _numbers(operation)
    left, right = (
        [
            axis
            for axis in range(len(shape_of(value)))
            if axis not in numbers.ints(f"{side}_batching_dimensions")
            and axis not in numbers.ints(f"{side}_contracting_dimensions")
        ]
        for value, side in zip(operation.operands, ("lhs", "rhs"), strict=True)
    )
    return left, right


def operands_along(operation: Operation) -> list[set[int]]:
    """For each dimension of the result, the operands whose elements depend on the place along it."""
    numbers = _numbers(operation)
    if operation.name == "stablehlo.dot_general":
        left, right = free_dimensions(operation)
        batch = numbers.ints("lhs_batching_dimensions")
        return [*({0, 1} for _ in batch), *({0} for _ in left), *({1} for _ in right)]
    grouped = operation.integer("feature_group_count", 1) * operation.integer("batch_group_count", 1) > 1
    features = numbers.int("output_feature_dimension")
    rank = len(shape_of(operation.result))
    return [({0, 1} if grouped else {1}) if axis == features else {0} for axis in range(rank)]


def undilated(frame: Frame, place: Id, base: int, length: Dim, inside: Id) -> tuple[Id, Id]:
    """Whether a signed place in a dilated dimension is an element, and which."""
    if base > 1:
        inside = inside & ~place.below(0) & (place % base).equals(0)
        place = place // base
    return inside & (place < frame.word(length)), place


def _contraction(frame: Frame, operation: Operation, index: Index) -> Sequence[Scalar]:
    products, type, parts = products_of(frame, operation), scalar_of(operation.result), index.parts

    def step(number: Sequence[Id], count: int, sums: Sequence[Scalar]) -> Sequence[Scalar]:
        inner = split(frame.builder, number[0], products.depth)
        there, left = products.place(0, parts, inner)
        _, right = products.place(1, parts, inner)

        def added() -> Sequence[Scalar]:
            yes = frame.builder.boolean(True)
            return [products.plus(sums[0], products.factor(0, yes, left), products.factor(1, yes, right))]

        return frame.conditional(there, added, lambda: sums)

    zero = frame.scalars.constant(working_type(type), 0)
    (found,) = summed(frame, operation, [product(products.depth)], [zero], step)
    return [result_of(frame, type, found)]


STRUCTURES: Final[Mapping[str, Structure]] = {"convolution": _contraction, "dot_general": _contraction}
