"""Building blocks of functions in f32 and f64: bits, powers of two, polynomials, and pairs of floats.

A pair is a sum of two non-overlapping floats, with twice the precision. The algorithms are those of Dekker, *A
floating-point technique for extending the available precision*, 1971; they do not rely on fused operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from ....spirv.binary.declarations import F32, U32, Kind
from ....spirv.binary.expression import Id
from ....spirv.binary.grammar import Op
from .scalars import Scalars

if TYPE_CHECKING:
    from .lengths import KernelBuilder

FloatPair: TypeAlias = tuple[Id, Id]
_PRECISION: Final = 60


def logarithm_of_two() -> Decimal:
    """Returns ln 2 to sixty digits."""
    with localcontext() as context:
        context.prec = _PRECISION
        return Decimal(2).ln()


class Floats:
    """Operations on floats of one kind.

    Attributes:
        scalars: the scalars of the kernel.
        builder: the builder of the module.
        kind: the type, F32 or F64.
        digits: the number of bits in the significand.
        bias: the bias of the exponent.
        shift: the number of bits in the significand in the word that holds the exponent.
    """

    def __init__(self, scalars: Scalars, kind: Kind) -> None:
        self.scalars = scalars
        self.builder: KernelBuilder = scalars.builder
        self.kind = kind
        self.digits, self.bias, self.shift = (24, 127, 23) if kind == F32 else (53, 1023, 20)

    def constant(self, value: float) -> Id:
        return self.builder.constant(self.kind, value)

    def nearest(self, value: Decimal | float) -> float:
        """Returns the nearest float of this kind."""
        return float(np.float32(float(value))) if self.kind == F32 else float(value)

    def leading(self, value: Decimal, bits: int) -> float:
        """Returns the leading bits of a positive number."""
        exponent = math.frexp(float(value))[1]
        with localcontext() as context:
            context.prec = _PRECISION
            return math.ldexp(int(value * Decimal(2) ** (bits - exponent)), exponent - bits)

    def parts(self, value: Decimal, *bits: int) -> list[float]:
        """Splits a constant into floats that sum to it: the leading bits, the next bits, …, and the rounded rest."""
        parts = []
        with localcontext() as context:
            context.prec = _PRECISION
            for count in bits:
                parts.append(self.leading(value, count))
                value -= Decimal(parts[-1])
            return [*parts, self.nearest(value)]

    @property
    def infinity(self) -> Id:
        return self.constant(math.inf)

    @property
    def nan(self) -> Id:
        """Returns the positive quiet NaN."""
        return self.constant(math.nan)

    # -- bits ------------------------------------------------------------------------------------------

    def top(self, value: Id) -> Id:
        """Returns the word that holds sign and exponent."""
        return value.bits(U32) if self.kind == F32 else self.scalars.halves(value)[1]

    def with_top(self, value: Id, top: Id) -> Id:
        """Replaces the word that holds sign and exponent."""
        return top.bits(F32) if self.kind == F32 else self.scalars.float_of_words(self.scalars.halves(value)[0], top)

    def absolute(self, value: Id) -> Id:
        return value.function("fabs")

    def is_negative(self, value: Id) -> Id:
        """Returns whether the sign bit is set."""
        return (self.top(value) >> 31).differs(0)

    def with_sign(self, value: Id, sign: Id) -> Id:
        """Replaces the sign by that of another float."""
        top = (self.top(value) & 0x7FFFFFFF) | (self.top(sign) & 0x80000000)
        return self.with_top(value, top)

    def is_nan(self, value: Id) -> Id:
        return self.scalars.is_nan(value)

    def is_finite(self, value: Id) -> Id:
        """Returns whether a float is neither infinite nor NaN."""
        mask = 0x7F800000 if self.kind == F32 else 0x7FF00000
        return (self.top(value) & mask).differs(mask)

    def power_of_two(self, exponent: Id) -> Id:
        """Computes two to the power of a word in the range of normal floats."""
        return self.with_top(self.constant(0), (exponent + self.bias) << self.shift)

    def scaled(self, value: Id, exponent: Id) -> Id:
        """Multiplies by two to the power of a word, which may be up to twice the exponent range."""
        half = exponent.shifted_signed(1)
        return value * self.power_of_two(half) * self.power_of_two(exponent - half)

    def to_word(self, value: Id) -> Id:
        """Converts an integral float to a signed word."""
        return value.convert(Op.ConvertFToS, U32)

    def from_word(self, value: Id) -> Id:
        """Converts a signed word to a float."""
        return value.convert(Op.ConvertSToF, self.kind)

    # -- arithmetic ------------------------------------------------------------------------------------

    def smaller(self, left: Id, right: Id | float) -> Id:
        """Returns the smaller of two numbers."""
        return (left < right).select(left, right)

    def larger(self, left: Id, right: Id | float) -> Id:
        """Returns the larger of two numbers."""
        return (left > right).select(left, right)

    def minimum(self, left: Id, right: Id) -> Id:
        """Returns the smaller number, or NaN if either is NaN."""
        return (self.is_nan(left) | (left < right)).select(left, right)

    def maximum(self, left: Id, right: Id) -> Id:
        """Returns the larger number, or NaN if either is NaN."""
        return (self.is_nan(left) | (left > right)).select(left, right)

    def polynomial(self, value: Id, coefficients: Sequence[float]) -> Id:
        """Evaluates a polynomial by Horner's rule, lowest coefficient first."""
        result = self.constant(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            result = result * value + coefficient
        return result

    def ordered_sum(self, large: Id, small: Id) -> FloatPair:
        """Returns the exact sum of two floats, of which ``large`` is not smaller."""
        total = large + small
        return total, small - (total - large)

    def exact_sum(self, left: Id, right: Id) -> FloatPair:
        """Returns the exact sum of two floats."""
        total = left + right
        part = total - left
        return total, (left - (total - part)) + (right - part)

    def exact_product(self, left: Id, right: Id) -> FloatPair:
        """Returns the exact product of two floats, which must not be near overflow."""
        product = left * right
        (a, b), (c, d) = self._halves(left), self._halves(right)
        return product, ((a * c - product) + a * d + b * c) + b * d

    def _halves(self, value: Id) -> FloatPair:
        scaled = value * float((1 << (self.digits + 1) // 2) + 1)
        high = scaled - (scaled - value)
        return high, value - high

    def pair_sum(self, left: FloatPair, right: FloatPair) -> FloatPair:
        high, low = self.exact_sum(left[0], right[0])
        return self.ordered_sum(high, low + left[1] + right[1])

    def pair_product(self, left: FloatPair, right: FloatPair) -> FloatPair:
        high, low = self.exact_product(left[0], right[0])
        return self.ordered_sum(high, low + (left[0] * right[1] + left[1] * right[0]))

    def pair_quotient(self, left: FloatPair, right: FloatPair) -> FloatPair:
        first = left[0] / right[0]
        high, low = self.exact_product(first, right[0])
        rest = ((left[0] - high) - low) + left[1] - first * right[1]
        return self.ordered_sum(first, rest / right[0])
