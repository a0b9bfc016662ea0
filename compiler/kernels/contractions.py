"""Contractions and convolutions: a sum of products for each element of the result."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from ...spirv.binary.expression import Id
from ...spirv.binary.integer_dots import dot
from ..analysis.special_forms import depth_of, numbers_of
from ..ir.operation import Operation
from ..ir.sizes import Dim, Size, is_at_least, parts_at_most, product, quotient
from ..ir.types import F32, I32, ScalarType
from .elements import Frame, Structure, scalar_of, shape_of
from .index import Index, split
from .scalars import complex_math
from .scalars.conversions import convert
from .scalars.scalars import Complex, Scalar, as_complex, as_id, is_signed, select
from .scalars.target import Target

if TYPE_CHECKING:
    from ..ir.operation import Value

MAX_IN_ORDER: Final = 128
"""The longest sum of floats in order; longer sums are split into runs, which bounds the rounding error."""

_WITHOUT_DOTS: Final = frozenset({"cpu"})
"""Families on which a dot product of four bytes takes more instructions than four products of words."""

Body: TypeAlias = Callable[[Sequence[Id], Sequence[Scalar]], Sequence[Scalar]]
Step: TypeAlias = Callable[[Sequence[Id], int, Sequence[Scalar]], Sequence[Scalar]]


def working_type(type: ScalarType) -> ScalarType:
    """Returns the type of sums: f32 for narrow floats, i32 for narrow integers, which wrap at the end."""
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
    """Emits the sums over all products; floats in runs of at most ``MAX_IN_ORDER``.

    Args:
        frame: the frame of the operands.
        operation: the contraction.
        depth: the summed lengths.
        zeros: the initial sums.
        step: a function that adds products to sums. Its arguments are an index for each length, the number of products
            from the last index on, and the sums.
        width: the largest number of products of a step, each with its own code; 0 for single products, in loops that
            the frame unrolls.
        is_padded: whether the last step is full if the last length is call-dependent; factors beyond the length are
            zeros.
    """
    unrolled = 1 if width else None

    def nest(lengths: Sequence[Dim], indices: Sequence[Id], sums: Sequence[Scalar], body: Body) -> Sequence[Scalar]:
        if not lengths:
            return body(indices, sums)
        first, *rest = lengths
        return frame.fold(operation, first, sums, lambda at, sums: nest(rest, [*indices, at], sums, body), unrolled)

    def along(indices: Sequence[Id], first: Id, count: Dim, sums: Sequence[Scalar]) -> Sequence[Scalar]:
        """Adds ``count`` products along the last length."""
        if not width or isinstance(count, Size):
            return frame.fold(operation, count, sums, lambda at, sums: step([*indices, first + at], 1, sums), unrolled)
        steps, rest = divmod(count, width)
        if steps == 1:
            sums = step([*indices, first], width, sums)
        elif steps:
            # A loop starts at a multiple of the width.
            sums = frame.fold(
                operation, steps, sums, lambda at, sums: step([*indices, first + at * width], width, sums), unrolled
            )
        return step([*indices, first + steps * width], rest, sums) if rest else sums

    def dynamic(indices: Sequence[Id], length: Size, sums: Sequence[Scalar]) -> Sequence[Scalar]:
        """Adds the products along a call-dependent last length: whole steps, then single products."""
        run, limit = max(MAX_IN_ORDER // width, 1) * width, frame.word(length)

        def whole(number: Id, sums: Sequence[Scalar]) -> Sequence[Scalar]:
            first = number * run
            rest = limit - first
            count = (rest < run).select(rest, run)
            steps = (count + (width - 1)) // width if is_padded else count // width
            part: Sequence[Scalar] = frame.counted(
                steps, run // width, zeros, lambda at, sums: step([*indices, first + at * width], width, sums)
            )
            if width > 1 and not is_padded:
                behind = first + steps * width
                part = frame.counted(
                    count % width, width - 1, part, lambda at, sums: step([*indices, behind + at], 1, sums)
                )
            return _added(sums, part)

        return frame.counted((limit + (run - 1)) // run, parts_at_most(length, run), sums, whole)

    *around, last = depth
    zero = frame.word(0)
    if width and isinstance(last, Size):
        return nest(around, [], zeros, lambda indices, sums: dynamic(indices, last, sums))
    is_exact = not any(isinstance(initial, Complex) or initial.kind.letter == "f" for initial in zeros)
    known = [length for length in depth if isinstance(length, int)]
    if is_exact or len(known) < len(depth) or math.prod(known) <= MAX_IN_ORDER:
        return nest(around, [], zeros, lambda indices, sums: along(indices, zero, last, sums))
    *outer, length = known
    if length > MAX_IN_ORDER:
        runs, rest = divmod(length, MAX_IN_ORDER)

        def row(indices: Sequence[Id], sums: Sequence[Scalar]) -> Sequence[Scalar]:
            def run(number: Id, sums: Sequence[Scalar]) -> Sequence[Scalar]:
                return _added(sums, along(indices, number * MAX_IN_ORDER, MAX_IN_ORDER, zeros))

            sums = frame.fold(operation, runs, sums, run, unrolled)
            return along(indices, frame.word(runs * MAX_IN_ORDER), rest, sums) if rest else sums

        return nest(outer, [], zeros, row)
    inner = len(outer)
    while math.prod(known[inner - 1 :]) <= MAX_IN_ORDER:
        inner -= 1

    def window(indices: Sequence[Id], sums: Sequence[Scalar]) -> Sequence[Scalar]:
        return _added(
            sums, nest(outer[inner:], indices, zeros, lambda indices, sums: along(indices, zero, length, sums))
        )

    return nest(outer[:inner], [], zeros, window)


def _added(totals: Sequence[Scalar], parts: Sequence[Scalar]) -> list[Scalar]:
    return [complex_math.plus(total, part) for total, part in zip(totals, parts, strict=True)]


def result_of(frame: Frame, type: ScalarType, total: Scalar) -> Scalar:
    """Converts a sum to an element of the result."""
    if type.kind == "float":
        return frame.scalars.rounded(type, as_id(total))
    return frame.scalars.wrapped(type, as_id(total)) if type.is_integer else total


def products_of(frame: Frame, operation: Operation, pack: int = 1) -> Products:
    """Creates the products of a contraction or a convolution.

    Args:
        frame: the frame of the operands.
        operation: the contraction.
        pack: the number of products that are computed together: the result of ``pack_of``, or 1.
    """
    made = _DotGeneral if operation.name == "stablehlo.dot_general" else _Convolution
    return made(frame, operation, pack)


def pack_of(operation: Operation, target: Target) -> int:
    """Returns the number of products that one instruction of the target adds: four for bytes, else one."""
    left, right = (scalar_of(value) for value in operation.operands[:2])
    is_packed = target.int8_dot and target.family not in _WITHOUT_DOTS
    return 4 if is_packed and left is right and left.is_integer and left.bits == 8 else 1


class Products(ABC):
    """The products of a contraction or a convolution; each element of the result is a sum of them.

    Attributes:
        depth: the summed lengths; a product has an index for each length.
        working: the type of the sums.
        pack: the number of products that are computed together.
    """

    def __init__(self, frame: Frame, operation: Operation, pack: int = 1) -> None:
        self._frame = frame
        self.pack = pack
        self.operands: Sequence[Value] = operation.operands[:2]
        self.working: ScalarType = working_type(scalar_of(operation.result))
        self._numbers = numbers_of(operation)
        self._shapes = shape_of(operation.operands[0]), shape_of(operation.operands[1])
        self.depth: list[Dim] = depth_of(operation)

    @abstractmethod
    def factor_index(self, side: int, parts: Sequence[Id], inner: Sequence[Id]) -> tuple[Id, Index]:
        """Returns whether a product exists, and the index of one of its factors; if it does not, any valid index.

        Args:
            side: the operand, 0 or 1. A factor of operand 1 always exists.
            parts: the index of the element of the result.
            inner: an index for each length of ``depth``.
        """

    def factor(self, side: int, there: Id, index: Index) -> Scalar:
        """Returns a factor, or zero if there is no product."""
        operand = self.operands[side]
        scalars = self._frame.scalars
        value = convert(scalars, self._frame.at(operand, index), scalar_of(operand), self.working)
        return select(there, value, scalars.constant(self.working, 0)) if there.value != 1 else value

    def factors(self, side: int, indices: Sequence[tuple[Id, Index]]) -> Scalar:
        """Returns the factors of up to ``pack`` products: one scalar, or bytes of a word."""
        if self.pack == 1:
            ((there, index),) = indices
            return self.factor(side, there, index)
        operand, frame = self.operands[side], self._frame
        bytes = [frame.at(operand, index) for _, index in indices]
        if len({there.number for there, _ in indices}) == 1:
            return indices[0][0].select(frame.scalars.packed(bytes), 0)
        return frame.scalars.packed(
            [there.select(as_id(byte), 0) for (there, _), byte in zip(indices, bytes, strict=True)]
        )

    def plus(self, total: Scalar, left: Scalar, right: Scalar) -> Scalar:
        """Adds a product to a sum, or all products that are computed together."""
        if self.pack > 1:
            signed = is_signed(scalar_of(self.operands[0]))
            return as_id(total) + dot(self._frame.builder, as_id(left), as_id(right), signed)
        if isinstance(total, Complex):
            return complex_math.add(total, complex_math.multiply(as_complex(left), as_complex(right)))
        a, b = as_id(left), as_id(right)
        if self.working.kind == "bool":
            return as_id(total) | (a & b)
        self._frame.builder.contracts = True
        result = as_id(total) + a * b
        self._frame.builder.contracts = False
        return result


class _DotGeneral(Products):
    def __init__(self, frame: Frame, operation: Operation, pack: int = 1) -> None:
        super().__init__(frame, operation, pack)
        sides = ("lhs", "rhs")
        self._batch = [self._numbers.ints(f"{side}_batching_dimensions") for side in sides]
        self._summed = [self._numbers.ints(f"{side}_contracting_dimensions") for side in sides]
        left, *_ = free_dimensions(operation)
        # The result has the batch dimensions, then the free dimensions of the left and the right side.
        self._first = len(self._batch[0]), len(self._batch[0]) + len(left)

    def factor_index(self, side: int, parts: Sequence[Id], inner: Sequence[Id]) -> tuple[Id, Index]:
        """Returns the index of a factor, which always exists."""
        shape = self._shapes[side]
        indices = dict(zip(self._batch[side], parts, strict=False)) | dict(zip(self._summed[side], inner, strict=False))
        free = [axis for axis in range(len(shape)) if axis not in indices]
        indices |= {axis: parts[self._first[side] + number] for number, axis in enumerate(free)}
        index = self._frame.index(shape, [indices[axis] for axis in range(len(shape))])
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

    def factor_index(self, side: int, parts: Sequence[Id], inner: Sequence[Id]) -> tuple[Id, Index]:
        """Returns the index of a factor; factors are missing in the padding and between dilated elements."""
        return self._kernel_index(parts, inner) if side else self._input_index(parts, inner)

    def _kernel_index(self, parts: Sequence[Id], inner: Sequence[Id]) -> tuple[Id, Index]:
        frame, numbers = self._frame, self._numbers
        indices = {
            numbers.int("kernel_input_feature_dimension"): inner[-1],
            numbers.int("kernel_output_feature_dimension"): parts[numbers.int("output_feature_dimension")],
        }
        for axis, tap, length, mirrored in zip(
            self._spatial["kernel"], inner, self.depth, self._reversal, strict=False
        ):
            indices[axis] = frame.word(length - 1) - tap if mirrored else tap
        index = frame.index(self._shapes[1], [indices[axis] for axis in range(len(indices))])
        return frame.builder.boolean(True), index

    def _input_index(self, parts: Sequence[Id], inner: Sequence[Id]) -> tuple[Id, Index]:
        frame, numbers, shape = self._frame, self._numbers, self._shapes[0]
        batch = parts[numbers.int("output_batch_dimension")]
        group = parts[numbers.int("output_feature_dimension")] // frame.word(self._outputs)
        if self._batch_groups > 1:
            batches = quotient(shape[numbers.int("input_batch_dimension")], self._batch_groups)
            batch = group * frame.word(batches) + batch
            group = frame.word(0)
        indices = {
            numbers.int("input_batch_dimension"): batch,
            numbers.int("input_feature_dimension"): group * frame.word(self.depth[-1]) + inner[-1],
        }
        inside = frame.builder.boolean(True)
        for axis, (output, at) in enumerate(zip(self._spatial["output"], self._spatial["input"], strict=True)):
            stride, base, dilation = self._strides[axis], self._base[axis], self._dilation[axis]
            low, length, taps = self._padding[2 * axis], shape[at], self.depth[axis]
            position = parts[output] * stride + inner[axis] * dilation - low
            here, position = undilated(frame, position, base, length, frame.builder.boolean(True))
            last = (self._lengths[output] - 1) * stride + (taps - 1) * dilation
            if base > 1 or low > 0 or is_at_least(last - low - length, 0) is not False:
                inside = inside & here
                position = here.select(position, 0)
            indices[at] = position
        return inside, frame.index(shape, [indices[axis] for axis in range(len(shape))])


def free_dimensions(operation: Operation) -> tuple[list[int], list[int]]:
    """Returns the dimensions of each operand of a contraction that are neither batch dimensions nor contracted."""
    numbers = numbers_of(operation)
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
    """Returns the operands whose elements depend on the index along each dimension of the result."""
    numbers = numbers_of(operation)
    if operation.name == "stablehlo.dot_general":
        left, right = free_dimensions(operation)
        batch = numbers.ints("lhs_batching_dimensions")
        return [*({0, 1} for _ in batch), *({0} for _ in left), *({1} for _ in right)]
    grouped = operation.integer("feature_group_count", 1) * operation.integer("batch_group_count", 1) > 1
    features = numbers.int("output_feature_dimension")
    rank = len(shape_of(operation.result))
    return [({0, 1} if grouped else {1}) if axis == features else {0} for axis in range(rank)]


def undilated(frame: Frame, position: Id, base: int, length: Dim, inside: Id) -> tuple[Id, Id]:
    """Returns whether a signed index in a dilated dimension falls on an element, and the element's index."""
    if base > 1:
        inside = inside & ~position.below(0) & (position % base).equals(0)
        position = position // base
    return inside & (position < frame.word(length)), position


def _contraction(frame: Frame, operation: Operation, index: Index) -> Sequence[Scalar]:
    products, type, parts = products_of(frame, operation), scalar_of(operation.result), index.parts

    def step(number: Sequence[Id], count: int, sums: Sequence[Scalar]) -> Sequence[Scalar]:
        inner = split(frame.builder, number[0], products.depth)
        there, left = products.factor_index(0, parts, inner)
        _, right = products.factor_index(1, parts, inner)

        def added() -> Sequence[Scalar]:
            yes = frame.builder.boolean(True)
            return [products.plus(sums[0], products.factor(0, yes, left), products.factor(1, yes, right))]

        return frame.conditional(there, added, lambda: sums)

    zero = frame.scalars.constant(working_type(type), 0)
    (total,) = summed(frame, operation, [product(products.depth)], [zero], step)
    return [result_of(frame, type, total)]


STRUCTURES: Final[Mapping[str, Structure]] = {"convolution": _contraction, "dot_general": _contraction}
