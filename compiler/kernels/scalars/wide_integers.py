"""64-bit integers as pairs of words, for devices without 64-bit integers.

Division follows Warren, *Hacker's Delight*, 2nd edition, section 9-4: by half words, without loops.
"""

from __future__ import annotations

from typing import Final

from ....spirv.binary.declarations import U32, Kind
from ....spirv.binary.expression import Arithmetic, Id, Operand
from ....spirv.binary.grammar import Op

PAIR: Final = Kind("pair", 64)


class Pair(Id):
    """A 64-bit integer in two words, with the operators of ``Id``."""

    __slots__ = ("high", "low")

    def __init__(self, low: Id, high: Id) -> None:
        super().__init__(low.builder, 0, PAIR)
        self.low: Id = low
        self.high: Id = high

    @staticmethod
    def of(builder: Arithmetic, value: int) -> Pair:
        """Returns a constant."""
        return Pair(builder.word(value), builder.word(value >> 32))

    def _pair(self, other: Operand) -> Pair:
        if isinstance(other, Pair):
            return other
        assert not isinstance(other, Id), "a pair goes with pairs and numbers"
        return Pair.of(self.builder, int(other))

    def __add__(self, other: Operand) -> Pair:
        right = self._pair(other)
        low = self.low + right.low
        return Pair(low, self.high + right.high + (low < right.low).select(low.builder.word(1), 0))

    def __sub__(self, other: Operand) -> Pair:
        right = self._pair(other)
        borrow = (self.low < right.low).select(self.builder.word(1), 0)
        return Pair(self.low - right.low, self.high - right.high - borrow)

    def __mul__(self, other: Operand) -> Pair:
        right = self._pair(other)
        low, high = product(self.low, right.low)
        return Pair(low, high + self.low * right.high + self.high * right.low)

    def __neg__(self) -> Pair:
        return Pair.of(self.builder, 0) - self

    def __invert__(self) -> Pair:
        return Pair(~self.low, ~self.high)

    def __and__(self, other: Operand) -> Pair:
        right = self._pair(other)
        return Pair(self.low & right.low, self.high & right.high)

    def __or__(self, other: Operand) -> Pair:
        right = self._pair(other)
        return Pair(self.low | right.low, self.high | right.high)

    def __xor__(self, other: Operand) -> Pair:
        right = self._pair(other)
        return Pair(self.low ^ right.low, self.high ^ right.high)

    def __lshift__(self, other: Operand) -> Pair:
        by = self._pair(other).low
        small, over = by & 31, (self.low >> 1) >> ((by & 31) ^ 31)
        far = (by & 32).differs(0)
        shifted = self.low << small
        return Pair(far.select(0, shifted), far.select(shifted, (self.high << small) | over))

    def __rshift__(self, other: Operand) -> Pair:
        by = self._pair(other).low
        high, low = self.high >> (by & 31), self._low_shifted(by)
        far = (by & 32).differs(0)
        return Pair(far.select(high, low), far.select(0, high))

    def shifted_signed(self, other: Operand) -> Pair:
        """Shifts to the right with copies of the sign."""
        by = self._pair(other).low
        high, low = self.high.shifted_signed(by & 31), self._low_shifted(by)
        far = (by & 32).differs(0)
        return Pair(far.select(high, low), far.select(self.high.shifted_signed(31), high))

    def _low_shifted(self, by: Id) -> Id:
        return (self.low >> (by & 31)) | ((self.high << 1) << ((by & 31) ^ 31))

    def equals(self, other: Operand) -> Id:
        right = self._pair(other)
        return self.low.equals(right.low) & self.high.equals(right.high)

    def differs(self, other: Operand) -> Id:
        return ~self.equals(other)

    def __lt__(self, other: Operand) -> Id:
        right = self._pair(other)
        return (self.high < right.high) | (self.high.equals(right.high) & (self.low < right.low))

    def __le__(self, other: Operand) -> Id:
        return ~(self._pair(other) < self)

    def __gt__(self, other: Operand) -> Id:
        return self._pair(other) < self

    def __ge__(self, other: Operand) -> Id:
        return ~(self < other)

    def below(self, other: Operand) -> Id:
        """Compares as signed integers."""
        right = self._pair(other)
        return self.high.below(right.high) | (self.high.equals(right.high) & (self.low < right.low))

    def __floordiv__(self, other: Operand) -> Pair:
        return divided(self, self._pair(other))

    def __mod__(self, other: Operand) -> Pair:
        right = self._pair(other)
        return self - divided(self, right) * right


def product(left: Id, right: Id) -> tuple[Id, Id]:
    """Returns the low and the high word of the product of two words."""
    if left.value is not None and right.value is not None:
        whole = left.value * right.value
        return left.builder.word(whole), left.builder.word(whole >> 32)
    return left.builder.pair(Op.UMulExtended, left, right)


def leading_zeros(value: Id) -> Id:
    """Counts the zeros before the first set bit of a word; 32 for zero."""
    return value.builder.word(31) - value.highest_bit()


def choose(condition: Id, then: Id, otherwise: Id) -> Id:
    """Selects ``then`` or ``otherwise``; both may be pairs."""
    if isinstance(then, Pair):
        assert isinstance(otherwise, Pair)
        return Pair(condition.select(then.low, otherwise.low), condition.select(then.high, otherwise.high))
    return condition.select(then, otherwise)


def divided(dividend: Pair, divisor: Pair) -> Pair:
    """Returns the unsigned quotient; the divisor must not be zero."""
    builder = dividend.builder

    def by_word() -> list[Id]:
        high = dividend.high // divisor.low
        low = _divided_by_word(dividend.high % divisor.low, dividend.low, divisor.low)
        return [low, high]

    def by_pair() -> list[Id]:
        # The quotient of the halved dividend by the divisor's leading word is at most one too large.
        shift = Pair(leading_zeros(divisor.high), builder.word(0))
        normalized = (divisor << shift).high
        half = dividend >> 1
        estimate = Pair(_divided_by_word(half.high, half.low, normalized), builder.word(0))
        estimate = (estimate << shift) >> 31
        estimate = Pair(estimate.low - estimate.low.differs(0).select(builder.word(1), 0), builder.word(0))
        rest = dividend - estimate * divisor
        return [estimate.low + (rest < divisor).select(builder.word(0), 1), builder.word(0)]

    low, high = builder.conditional(divisor.high.equals(0), by_word, by_pair)
    return Pair(low, high)


def _divided_by_word(high: Id, low: Id, divisor: Id) -> Id:
    """Divides a pair by a word that is greater than the pair's high word."""
    builder = high.builder
    shift = leading_zeros(divisor)
    scaled = divisor << shift
    first, second = scaled >> 16, scaled & 0xFFFF
    pair = Pair(low, high) << Pair(shift, builder.word(0))
    upper = _digit(pair.high, pair.low >> 16, first, second)
    rest = (pair.high << 16) + (pair.low >> 16) - upper * scaled
    lower = _digit(rest, pair.low & 0xFFFF, first, second)
    return (upper << 16) + lower


def _digit(high: Id, next: Id, first: Id, second: Id) -> Id:
    """Returns a digit of 16 bits: an estimate, corrected twice."""
    digit = high // first
    rest = high - digit * first
    for _ in range(2):
        wrong = (rest < 0x10000) & ((digit >= 0x10000) | ((digit * second) > ((rest << 16) + next)))
        digit = digit - wrong.select(digit.builder.constant(U32, 1), 0)
        rest = rest + wrong.select(first, 0)
    return digit
