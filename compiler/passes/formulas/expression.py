"""Formulas over tensors and batches of matrices: Python's operators append StableHLO operations.

A matrix's last two dimensions are rows and columns; lengths of 1 broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

import numpy as np

from ...dialects.builder import Builder
from ...ir.attributes import type_shape
from ...ir.operation import Value, tensor_of
from ...ir.sizes import Dim
from ...ir.types import I32, ScalarType, TensorType


class Expression:
    """A value in a formula. Numbers become constants of its type; comparisons are booleans.

    Attributes:
        builder: the builder that appends the operations.
        value: the value.
    """

    __slots__ = ("builder", "value")

    def __init__(self, builder: Builder, value: Value) -> None:
        self.builder: Builder = builder
        self.value: Value = value

    @property
    def element(self) -> ScalarType:
        """Type of the elements."""
        return tensor_of(self.value).scalar

    def call(self, name: str, *others: Expression | float) -> Self:
        """Applies an element-wise operation, with this value as the first operand."""
        return type(self)(self.builder, self.builder.elementwise(name, *self._aligned(self, *others)))

    def call_to(self, name: str, element: ScalarType) -> Self:
        """Applies an element-wise operation whose result has another element type."""
        type = tensor_of(self.value).of(element)
        return self.__class__(self.builder, self.builder.append(name, [self.value], [type]).result)

    def constant(self, number: complex) -> Self:
        """Returns a constant of this value's shape and type."""
        return type(self)(self.builder, self.builder.like(self.value, number))

    def convert(self, element: ScalarType) -> Self:
        """Converts elements to another type."""
        return type(self)(self.builder, self.builder.convert(self.value, element))

    def bitcast(self, element: ScalarType) -> Self:
        """Reinterprets the bits of elements as another type."""
        return type(self)(self.builder, self.builder.bitcast(self.value, element))

    def polynomial(self, coefficients: Sequence[float]) -> Self:
        """Returns a polynomial in this value, the highest coefficient first."""
        return type(self)(self.builder, self.builder.polynomial(self.value, coefficients))

    def __add__(self, other: Expression | float) -> Self:
        return self.call("add", other)

    def __radd__(self, other: float) -> Self:
        return self.constant(other) + self

    def __sub__(self, other: Expression | float) -> Self:
        return self.call("subtract", other)

    def __rsub__(self, other: float) -> Self:
        return self.constant(other) - self

    def __mul__(self, other: Expression | float) -> Self:
        return self.call("multiply", other)

    def __rmul__(self, other: float) -> Self:
        return self.constant(other) * self

    def __truediv__(self, other: Expression | float) -> Self:
        return self.call("divide", other)

    def __rtruediv__(self, other: float) -> Self:
        return self.constant(other) / self

    def __neg__(self) -> Self:
        return self.call("negate")

    def __abs__(self) -> Self:
        return self.call("abs")

    def __and__(self, other: Expression | float) -> Self:
        return self.call("and", other)

    def __or__(self, other: Expression | float) -> Self:
        return self.call("or", other)

    def __invert__(self) -> Self:
        return self.call("not")

    def _compare(self, direction: str, other: Expression | float) -> Self:
        left, right = self._aligned(self, other)
        assert isinstance(left, Value)
        return type(self)(self.builder, self.builder.compare(direction, left, right))

    def __lt__(self, other: Expression | float) -> Self:
        return self._compare("LT", other)

    def __le__(self, other: Expression | float) -> Self:
        return self._compare("LE", other)

    def __gt__(self, other: Expression | float) -> Self:
        return self._compare("GT", other)

    def __ge__(self, other: Expression | float) -> Self:
        return self._compare("GE", other)

    def equals(self, other: Expression | float) -> Self:
        """Whether elements are equal."""
        return self._compare("EQ", other)

    def differs(self, other: Expression | float) -> Self:
        """Whether elements are different: NaN differs from itself."""
        return self._compare("NE", other)

    def then(self, chosen: Expression | float, other: Expression | float) -> Self:
        """Selects by these booleans."""
        predicate, *operands = self._aligned(self, chosen, other)
        assert isinstance(predicate, Value)
        return type(self)(self.builder, self.builder.select(predicate, *operands))

    def _aligned(self, *operands: Expression | float) -> list[Value | complex]:
        """Broadcasts the operands of an element-wise operation to one shape."""
        return [operand.value if isinstance(operand, Expression) else operand for operand in operands]


class Matrix(Expression):
    """A batch of matrices, or of numbers if rows and columns are 1."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of all dimensions."""
        return type_shape(tensor_of(self.value))

    @property
    def lengths(self) -> tuple[Dim, ...]:
        """Lengths of all dimensions, which may be call-dependent."""
        return tensor_of(self.value).lengths

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return tensor_of(self.value).rank

    @property
    def is_complex(self) -> bool:
        """Whether elements are complex."""
        return self.element.kind == "complex"

    def at(self, builder: Builder) -> Self:
        """Returns the same values for formulas of another builder, such as that of a loop's body."""
        return type(self)(builder, self.value)

    def of(self, value: Value) -> Self:
        """Wraps a value as a matrix, with this matrix's builder."""
        return type(self)(self.builder, value)

    def _aligned(self, *operands: Expression | float) -> list[Value | complex]:
        values = super()._aligned(*operands)
        shapes = [tensor_of(value).lengths for value in values if isinstance(value, Value)]
        shapes = [shape for shape in shapes if len(shape) == max(map(len, shapes))]
        whole = [next((length for length in lengths if length != 1), 1) for lengths in zip(*shapes, strict=True)]
        return [self._stretched(value, whole) if isinstance(value, Value) else value for value in values]

    def _stretched(self, value: Value, shape: Sequence[Dim]) -> Value:
        type = tensor_of(value)
        is_whole = type.lengths == tuple(shape)
        return value if is_whole else self.builder.broadcast(value, shape, range(type.rank))

    # -- parts -----------------------------------------------------------------------------------------

    def rows(self, start: int, stop: int) -> Self:
        """Returns the rows from ``start`` to ``stop``."""
        return self._part(self.rank - 2, start, stop)

    def columns(self, start: int, stop: int) -> Self:
        """Returns the columns from ``start`` to ``stop``."""
        return self._part(self.rank - 1, start, stop)

    def _part(self, axis: int, start: int, stop: int) -> Self:
        return self.of(self.builder.piece(self.value, axis, start, stop))

    def row(self, number: Value, count: int = 1) -> Self:
        """Returns rows from a computed index on."""
        return self.of(self.builder.piece_at(self.value, self.rank - 2, number, count))

    def column(self, number: Value, count: int = 1) -> Self:
        """Returns columns from a computed index on."""
        return self.of(self.builder.piece_at(self.value, self.rank - 1, number, count))

    def lengthened(self, rows: int, columns: int) -> Self:
        """Adds rows and columns of zeros at the ends."""
        none, zero = [0] * self.rank, self.builder.constant(0, TensorType((), self.element))
        return self.of(self.builder.pad(self.value, zero, none, [*none[2:], rows, columns], none))

    def beside(self, *others: Expression) -> Self:
        """Concatenates columns."""
        return self._joined(self.rank - 1, others)

    def above(self, *others: Expression) -> Self:
        """Concatenates rows."""
        return self._joined(self.rank - 2, others)

    def _joined(self, axis: int, others: Sequence[Expression]) -> Self:
        values = [self.value, *(other.value for other in others)]
        values = [value for value in values if 0 not in tensor_of(value).shape[axis : axis + 1]] or values[:1]
        return self.of(self.builder.concatenate(values, axis))

    def reordered(self, order: Value) -> Self:
        """Reorders columns by a row of i32."""
        rank = self.rank
        batch = tuple(range(rank - 2))
        numbers = {
            "offset_dims": (rank - 2,),
            "collapsed_slice_dims": (rank - 1,),
            "operand_batching_dims": batch,
            "start_indices_batching_dims": batch,
            "start_index_map": (rank - 1,),
            "index_vector_dim": rank - 1,
        }
        indices = self.builder.reshape(order, [*self.shape[:-2], tensor_of(order).shape[-1] or 0])
        sizes = (*(1 for _ in batch), self.shape[-2], 1)
        shape = (*self.shape[:-1], tensor_of(order).shape[-1])
        return self.of(self.builder.gather(self.value, indices, numbers, sizes, shape))

    # -- indices of rows and columns -------------------------------------------------------------------

    def row_numbers(self) -> Self:
        """Returns the index of each row, as a column."""
        return self.of(self.builder.iota(TensorType((*self.lengths[:-1], 1), I32), self.rank - 2))

    def column_numbers(self) -> Self:
        """Returns the index of each column, as a row."""
        shape = (*self.lengths[:-2], 1, self.lengths[-1])
        return self.of(self.builder.iota(TensorType(shape, I32), self.rank - 1))

    # -- arithmetic ------------------------------------------------------------------------------------

    def conjugate(self) -> Self:
        """Returns the complex conjugates of the elements."""
        return self.of(self.builder.conjugate(self.value))

    def real(self) -> Self:
        """Returns the real parts."""
        return self.of(self.builder.part("real", self.value)) if self.is_complex else self

    def imaginary(self) -> Self:
        """Returns the imaginary parts."""
        return self.of(self.builder.part("imag", self.value)) if self.is_complex else self.constant(0)

    def like(self, other: Expression) -> Self:
        """Converts real numbers to another expression's element type."""
        if other.element.kind != "complex" or self.is_complex:
            return self
        return self.of(self.builder.complex(self.value, self.builder.like(self.value, 0)))

    def squares(self) -> Self:
        """Returns the squares of absolute values."""
        real, imaginary = self.real(), self.imaginary()
        return real * real + imaginary * imaginary if self.is_complex else self * self

    def transposed(self) -> Self:
        """Returns the transpose."""
        rank = self.rank
        return self.of(self.builder.transpose(self.value, (*range(rank - 2), rank - 1, rank - 2)))

    def adjoint(self) -> Self:
        """Returns the conjugate transpose."""
        return self.transposed().conjugate()

    def times(self, other: Matrix) -> Self:
        """Returns the matrix product."""
        return self.of(self.builder.product(self.value, other.value))

    # -- reductions ------------------------------------------------------------------------------------

    def sum(self, *axes: int) -> Self:
        """Sums over rows (-2) or columns (-1); keeps the dimension with length 1."""
        return self._reduced("add", 0, axes)

    def largest(self, *axes: int) -> Self:
        """Returns the maximum of nonnegative elements."""
        return self._reduced("maximum", 0, axes)

    def _reduced(self, name: str, start: float, axes: Sequence[int]) -> Self:
        rank = self.rank
        dropped = tuple(sorted(axis % rank for axis in axes))
        result = self.builder.reduce(name, self.value, start, dropped)
        shape = [1 if axis in dropped else length for axis, length in enumerate(self.shape)]
        return self.of(self.builder.reshape(result, shape))

    def place_of_largest(self) -> Self:
        """Returns the row index, as i32, of each column's largest element; the first if several are equal."""
        numbers = self.of(self._stretched(self.row_numbers().value, self.shape))
        scalars = [TensorType((), self.element), TensorType((), I32)]

        def larger(inner: Builder, values: Sequence[Value]) -> Sequence[Value]:
            left, left_row, right, right_row = values
            tie = inner.elementwise("and", inner.compare("EQ", left, right), inner.compare("LT", left_row, right_row))
            keeps = inner.elementwise("or", inner.compare("GT", left, right), tie)
            return [inner.select(keeps, left, right), inner.select(keeps, left_row, right_row)]

        region = self.builder.region([*scalars, *scalars], larger)
        starts = [self.builder.constant(-np.inf, scalars[0]), self.builder.constant(2**31 - 1, scalars[1])]
        result = self.builder.reduction([self.value, numbers.value], starts, (self.rank - 2,), region)[1]
        return self.of(self.builder.reshape(result, [*self.shape[:-2], 1, self.shape[-1]]))

    def falling_order(self) -> Value:
        """Returns the column indices of a row, in descending order of its elements."""
        values = [self.value, self.column_numbers().value]
        axis = self.rank - 1
        return self.builder.sort(values, axis, lambda inner, pairs: inner.compare("GT", pairs[0], pairs[1]))[1]


def identity(builder: Builder, shape: Sequence[int], element: ScalarType) -> Matrix:
    """Returns identity matrices of a shape."""
    rows = Matrix(builder, builder.iota(TensorType(shape, I32), len(shape) - 2))
    columns = Matrix(builder, builder.iota(TensorType(shape, I32), len(shape) - 1))
    ones = builder.constant(1, TensorType(shape, element))
    return rows.equals(columns).then(Matrix(builder, ones), 0.0)


def loop(
    builder: Builder,
    count: int,
    starts: Sequence[Matrix],
    step: Callable[[Value, Sequence[Matrix]], Sequence[Matrix]],
) -> list[Matrix]:
    """Applies ``step(number, matrices)`` for each number below ``count``, in a loop."""

    def run(inner: Builder, number: Value, values: Sequence[Value]) -> Sequence[Value]:
        return [matrix.value for matrix in step(number, [Matrix(inner, value) for value in values])]

    return [Matrix(builder, value) for value in builder.loop(count, [start.value for start in starts], run)]
