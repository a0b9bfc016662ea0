"""Formulas over tensors: Python's operators append StableHLO operations."""

from __future__ import annotations

from collections.abc import Sequence

from ..dialects.builder import Builder
from ..ir.operation import Value, tensor_of
from ..ir.types import ScalarType


class Expression:
    """A value in a formula. Numbers in a formula become constants of its type; comparisons give booleans.

    Attributes:
        builder: appends what operators ask for.
        value: the value.
    """

    __slots__ = ("builder", "value")

    def __init__(self, builder: Builder, value: Value) -> None:
        self.builder = builder
        self.value = value

    @property
    def element(self) -> ScalarType:
        """Type of the elements."""
        return tensor_of(self.value).scalar

    def call(self, name: str, *others: Expression | float) -> Expression:
        """An element-wise operation, this value first."""
        operands = [other.value if isinstance(other, Expression) else other for other in others]
        return Expression(self.builder, self.builder.elementwise(name, self.value, *operands))

    def constant(self, number: complex) -> Expression:
        """A number in this value's shape and type."""
        return Expression(self.builder, self.builder.like(self.value, number))

    def convert(self, element: ScalarType) -> Expression:
        """This value's elements in another type."""
        return Expression(self.builder, self.builder.convert(self.value, element))

    def bitcast(self, element: ScalarType) -> Expression:
        """This value's bits as another type."""
        return Expression(self.builder, self.builder.bitcast(self.value, element))

    def polynomial(self, coefficients: Sequence[float]) -> Expression:
        """A polynomial in this value, the highest coefficient first."""
        return Expression(self.builder, self.builder.polynomial(self.value, coefficients))

    def __add__(self, other: Expression | float) -> Expression:
        return self.call("add", other)

    def __radd__(self, other: float) -> Expression:
        return self.constant(other) + self

    def __sub__(self, other: Expression | float) -> Expression:
        return self.call("subtract", other)

    def __rsub__(self, other: float) -> Expression:
        return self.constant(other) - self

    def __mul__(self, other: Expression | float) -> Expression:
        return self.call("multiply", other)

    def __rmul__(self, other: float) -> Expression:
        return self.constant(other) * self

    def __truediv__(self, other: Expression | float) -> Expression:
        return self.call("divide", other)

    def __rtruediv__(self, other: float) -> Expression:
        return self.constant(other) / self

    def __neg__(self) -> Expression:
        return self.call("negate")

    def __abs__(self) -> Expression:
        return self.call("abs")

    def __and__(self, other: Expression) -> Expression:
        return self.call("and", other)

    def __or__(self, other: Expression) -> Expression:
        return self.call("or", other)

    def __invert__(self) -> Expression:
        return self.call("not")

    def _compare(self, direction: str, other: Expression | float) -> Expression:
        operand = other.value if isinstance(other, Expression) else other
        return Expression(self.builder, self.builder.compare(direction, self.value, operand))

    def __lt__(self, other: Expression | float) -> Expression:
        return self._compare("LT", other)

    def __le__(self, other: Expression | float) -> Expression:
        return self._compare("LE", other)

    def __gt__(self, other: Expression | float) -> Expression:
        return self._compare("GT", other)

    def __ge__(self, other: Expression | float) -> Expression:
        return self._compare("GE", other)

    def equals(self, other: Expression | float) -> Expression:
        """Whether elements are equal."""
        return self._compare("EQ", other)

    def differs(self, other: Expression | float) -> Expression:
        """Whether elements are not equal: a NaN differs from itself."""
        return self._compare("NE", other)

    def then(self, chosen: Expression | float, other: Expression | float) -> Expression:
        """One or the other, by these booleans."""
        operands = [item.value if isinstance(item, Expression) else item for item in (chosen, other)]
        return Expression(self.builder, self.builder.select(self.value, *operands))
