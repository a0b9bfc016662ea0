"""Integer operations of every width that take several instructions."""

from __future__ import annotations

from collections.abc import Sequence

from ....spirv.binary.builder import Builder
from ....spirv.binary.declarations import U32, U64
from ....spirv.binary.expression import Id
from ....spirv.binary.grammar import Op
from ...ir.types import ScalarType
from .scalars import Scalar, Scalars, as_id, is_signed
from .wide_integers import Pair, choose, leading_zeros


class Integers:
    """Operations of one integer type, on values in its range.

    Args:
        scalars: the scalars of the kernel.
        type: an integer type.
    """

    def __init__(self, scalars: Scalars, type: ScalarType) -> None:
        self._scalars = scalars
        self._builder: Builder = scalars.builder
        self._type = type
        self._signed = is_signed(type)

    def _constant(self, value: int) -> Id:
        return self._scalars.integer(self._type, value)

    def less(self, left: Id, right: Id) -> Id:
        if self._signed:
            return left.below(right)
        return left < right

    def minimum(self, left: Id, right: Id) -> Id:
        return choose(self.less(right, left), right, left)

    def maximum(self, left: Id, right: Id) -> Id:
        return choose(self.less(left, right), right, left)

    def absolute(self, value: Id) -> Id:
        """Returns the absolute value; the smallest integer is unchanged."""
        return choose(value.below(0), -value, value) if self._signed else value

    def sign(self, value: Id) -> Id:
        """Returns -1, 0 or 1."""
        sign = choose(value.equals(0), self._constant(0), self._constant(1))
        return choose(value.below(0), self._constant(-1), sign) if self._signed else sign

    def divide(self, left: Id, right: Id) -> Id:
        """Divides towards zero; returns -1 for a divisor of zero."""
        is_zero = right.equals(0)
        divisor = choose(is_zero, self._constant(1), right)
        if not self._signed:
            return choose(is_zero, self._constant(-1), left // divisor)
        result = self.absolute(left) // self.absolute(divisor)
        result = choose(left.below(0).differs(right.below(0)), -result, result)
        return choose(is_zero, self._constant(-1), result)

    def remainder(self, left: Id, right: Id) -> Id:
        """Returns the remainder with the dividend's sign, or the dividend for a divisor of zero."""
        is_zero = right.equals(0)
        divisor = choose(is_zero, self._constant(1), right)
        if not self._signed:
            return choose(is_zero, left, left % divisor)
        result = self.absolute(left) % self.absolute(divisor)
        result = choose(left.below(0), -result, result)
        return choose(is_zero, left, result)

    def power(self, base: Id, exponent: Id) -> Id:
        """Computes a power by repeated squaring.

        For a negative exponent, returns the integer quotient of one by the power.
        """
        zero, unit = self._constant(0), self._constant(1)
        start = choose(exponent.below(0), zero, exponent) if self._signed else exponent

        def step(values: Sequence[Scalar]) -> tuple[Sequence[Scalar], Id]:
            result, square, left = map(as_id, values)
            rest = left >> 1
            return (choose((left & 1).differs(0), result * square, result), square * square, rest), rest.differs(0)

        values = self._scalars.loop([unit, base, start], step, self._type.bits)
        result = self._scalars.wrapped(self._type, as_id(values[0]))
        if not self._signed:
            return result
        of_minus_one = choose((exponent & 1).differs(0), self._constant(-1), unit)
        negative = choose(base.equals(1), unit, zero)
        negative = choose(base.equals(self._constant(-1)), of_minus_one, negative)
        negative = choose(base.equals(0), self._constant(-1), negative)
        return choose(exponent.below(0), negative, result)

    def shift(self, name: str, value: Id, amount: Id) -> Id:
        """Shifts ``left``, ``right_logical`` or ``right_arithmetic``.

        An amount of at least the width gives no bits of it.
        """
        bits = self._type.bits
        outside = ~(amount < bits)
        by = choose(outside, self._constant(0), amount)
        if name == "right_arithmetic":
            # An unsigned value's sign is its highest bit.
            signed = value if self._signed else self._scalars.wrapped(ScalarType(f"i{bits}"), value)
            result = choose(outside, signed.shifted_signed(bits - 1), signed.shifted_signed(by))
            return self._scalars.wrapped(self._type, result)
        if name == "left":
            result = choose(outside, self._constant(0), value << by)
        else:
            result = choose(outside, self._constant(0), (value & ((1 << bits) - 1)) >> by)
        return self._scalars.wrapped(self._type, result)

    def count_leading_zeros(self, value: Id) -> Id:
        """Counts the zeros before the first set bit."""
        if self._type.bits <= 32:
            return leading_zeros(value & ((1 << self._type.bits) - 1)) - (32 - self._type.bits)
        low, high = self._scalars.halves(value)
        count = high.equals(0).select(leading_zeros(low) + 32, leading_zeros(high))
        return self._scalars.wide(count, self._builder.word(0))

    def population(self, value: Id) -> Id:
        """Counts the set bits."""
        if self._type.bits <= 32:
            return self._builder.emit(Op.BitCount, U32, value & ((1 << self._type.bits) - 1))
        low, high = (self._builder.emit(Op.BitCount, U32, half) for half in self._scalars.halves(value))
        return self._scalars.wide(low + high, self._builder.word(0))


def extended(scalars: Scalars, value: Id, is_signed_word: bool) -> Id:
    """Extends a word to a 64-bit integer."""
    if scalars.target.int64:
        return value.convert(Op.SConvert if is_signed_word else Op.UConvert, U64)
    return Pair(value, value.shifted_signed(31) if is_signed_word else value.builder.word(0))


def low_word(scalars: Scalars, value: Id) -> Id:
    """Returns the low 32 bits of an integer."""
    return value.low if isinstance(value, Pair) else value.convert(Op.UConvert, U32)
