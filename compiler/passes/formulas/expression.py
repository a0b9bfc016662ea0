"""Formulas over tensors: Python's operators append StableHLO operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from ...dialects.builder import Builder
from ...ir.operation import Value, tensor_of
from ...ir.types import ScalarType


class Expression:
    """A value in a formula. Numbers become constants of its type; comparisons are booleans.

    Attributes:
        builder: appends the operations.
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
        """Whether elements are not equal: a NaN differs from itself."""
        return self._compare("NE", other)

    def then(self, chosen: Expression | float, other: Expression | float) -> Self:
        """Selects by these booleans."""
        predicate, *operands = self._aligned(self, chosen, other)
        assert isinstance(predicate, Value)
        return type(self)(self.builder, self.builder.select(predicate, *operands))

    def _aligned(self, *operands: Expression | float) -> list[Value | complex]:
        """Broadcasts the operands of an element-wise operation to one shape."""
        return [operand.value if isinstance(operand, Expression) else operand for operand in operands]
