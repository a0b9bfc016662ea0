"""Sine, cosine, tangent and arc tangent in f32 and f64.

Arguments are reduced by multiples of a quarter turn. Small arguments use the method of Cody and Waite, in three parts.
Others use that of Payne and Hanek, *Radian reduction for trigonometric functions*, 1983: the relevant bits of 2/π are
multiplied with the significand as integers. Coefficients are those of the Taylor series. Errors are 1 to 2 units in the
last place.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from ....spirv.binary.declarations import F32
from ....spirv.binary.expression import Id
from ....spirv.binary.grammar import Op
from .floats import FloatPair, Floats
from .wide_integers import leading_zeros, product

_PI: Final = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534")
_TABLE_BITS: Final = 1216
# The largest multiple of a quarter turn for Cody and Waite's method: with the parts below, its products are exact.
_MULTIPLES: Final = {32: 8, 64: 20}
_PARTS: Final = {32: (16, 16), 64: (33, 33)}
_SINE_TERMS: Final = {32: 5, 64: 9}
_COSINE_TERMS: Final = {32: 6, 64: 10}
_ARC_TERMS: Final = {32: 10, 64: 21}


@functools.cache
def _two_over_pi() -> tuple[int, ...]:
    """Returns two words of zeros, then the bits of 2/π after the binary point."""
    bits = _TABLE_BITS + 64

    def arc_cotangent(number: int) -> int:
        term = (1 << bits) // number
        total, sign, divisor = term, -1, 3
        while term:
            term //= number * number
            total += sign * (term // divisor)
            sign, divisor = -sign, divisor + 2
        return total

    pi = 4 * (4 * arc_cotangent(5) - arc_cotangent(239))  # Machin's formula
    digits = (2 << (bits + _TABLE_BITS)) // pi
    words = [digits >> shift & 0xFFFFFFFF for shift in range(_TABLE_BITS - 32, -1, -32)]
    return (0, 0, *words)


def _reduced(f: Floats, x: Id) -> tuple[FloatPair, Id]:
    """Returns an argument's remainder, at most an eighth of a turn, and the number of quarter turns modulo four."""
    bits = f.kind.bits
    bound = 2.0 ** _MULTIPLES[bits]

    def small() -> Sequence[Id]:
        multiple = (x * f.nearest(2 / math.pi)).function("round_even")
        first, second, third = (multiple * part for part in f.parts(_PI / 2, *_PARTS[bits]))
        rest = x - first
        high = rest - second
        high, low = f.ordered_sum(high, ((rest - high) - second) - third)
        return high, low, f.to_word(multiple)

    high, low, turns = f.builder.conditional(f.absolute(x) < bound, small, lambda: _reduced_large(f, x))
    return (high, low), turns


def _reduced_large(f: Floats, x: Id) -> tuple[Id, Id, Id]:
    """Reduces a large argument."""
    builder = f.builder
    top = f.top(x)
    is_single = f.kind == F32
    exponent = ((top >> f.shift) & (0xFF if is_single else 0x7FF)) - f.bias
    head = (top & ((1 << f.shift) - 1)) | (1 << f.shift)
    significand = [head] if is_single else [f.scalars.halves(x)[0], head]
    # The first bit of 2/π whose product with the significand's last bit is less than four quarter turns.
    first = exponent + (64 - (f.digits - 1) - 2)
    word, bit = first >> 5, first & 31
    count = 3 if is_single else 6
    table = _two_over_pi()
    raw = [builder.lookup(table, _bounded(word + index, len(table) - 1)) for index in range(count + 1)]
    window = [(raw[i] << bit) | ((raw[i + 1] >> 1) >> (bit ^ 31)) for i in range(count)]
    fraction = _product(significand, list(reversed(window)))[::-1]
    # Two bits of quarter turns, then the remainder, rounded to the nearest turn.
    turns = fraction[0] >> 30
    rest = [(fraction[i] << 2) | (fraction[i + 1] >> 30) for i in range(count - 1)]
    is_upper = (rest[0] >> 31).differs(0)
    turns = turns + is_upper.select(builder.word(1), 0)
    rest = [is_upper.select(~word, word) for word in rest]
    # The leading bits, after the bits that cancel.
    zeros = rest[0].equals(0).select(leading_zeros(rest[1]) + 32, leading_zeros(rest[0]))
    far = zeros >= 32
    if is_single:
        rest.append(builder.word(0))
    moved = [far.select(rest[i + 1], rest[i]) for i in range(len(rest) - 1)]
    by = zeros & 31
    words = [(moved[i] << by) | ((moved[i + 1] >> 1) >> (by ^ 31)) for i in range(len(moved) - 1)]
    if is_single:
        words.append(moved[-1] << by)
        leading = _float(f, words[0] >> 8, -24)
        trailing = _float(f, ((words[0] & 0xFF) << 16) | (words[1] >> 16), -48)
    else:
        leading = _float(f, words[0], -32)
        trailing = _float(f, words[1], -64) + _float(f, words[2], -96)
    high, low = f.parts(_PI / 2, f.digits)
    whole, lost = f.exact_product(leading, f.constant(high))
    is_negative = is_upper.differs(f.is_negative(x))
    scale = f.power_of_two(-zeros)
    scale = is_negative.select(-scale, scale)
    whole, lost = f.ordered_sum(whole, lost + (leading * low + trailing * high))
    return whole * scale, lost * scale, f.is_negative(x).select(builder.word(0) - turns, turns)


def _bounded(word: Id, highest: int) -> Id:
    return (word < highest).select(word, highest)


def _float(f: Floats, word: Id, exponent: int) -> Id:
    return word.convert(Op.ConvertUToF, f.kind) * 2.0**exponent


def _product(left: Sequence[Id], right: Sequence[Id]) -> list[Id]:
    """Returns a product, lowest word first, truncated to the right operand's number of words."""
    builder = right[0].builder
    result = [builder.word(0)] * len(right)
    for shift, digit in enumerate(left):
        carry = builder.word(0)
        for index in range(len(right) - shift):
            low, high = product(digit, right[index])
            total = result[index + shift] + low
            first = (total < low).select(builder.word(1), 0)
            result[index + shift] = total + carry
            second = (result[index + shift] < carry).select(builder.word(1), 0)
            carry = high + first + second
    return result


def _sine_and_cosine(f: Floats, x: Id) -> tuple[Id, Id, Id]:
    """Returns sine and cosine of the reduced argument, and the number of quarter turns."""
    (rest, low), turns = _reduced(f, x)
    square = rest * rest
    bits = f.kind.bits
    sines = [(-1) ** n / math.factorial(2 * n + 1) for n in range(1, _SINE_TERMS[bits])]
    cosines = [(-1) ** n / math.factorial(2 * n) for n in range(2, _COSINE_TERMS[bits])]
    half = square * 0.5
    near = 1.0 - half
    sine = rest + (rest * square * f.polynomial(square, sines) + low * near)
    cosine = near + (((1.0 - near) - half) + (square * square * f.polynomial(square, cosines) - rest * low))
    return sine, cosine, turns


def _finished(f: Floats, x: Id, result: Id) -> Id:
    return f.is_finite(x).select(result, f.nan)


def sine(f: Floats, x: Id) -> Id:
    first, second, turns = _sine_and_cosine(f, x)
    result = (turns & 1).differs(0).select(second, first)
    result = (turns & 2).differs(0).select(-result, result)
    return (f.absolute(x) < 2.0**-30).select(x, _finished(f, x, result))


def cosine(f: Floats, x: Id) -> Id:
    first, second, turns = _sine_and_cosine(f, x)
    result = (turns & 1).differs(0).select(first, second)
    result = ((turns + 1) & 2).differs(0).select(-result, result)
    return _finished(f, x, result)


def tangent(f: Floats, x: Id) -> Id:
    first, second, turns = _sine_and_cosine(f, x)
    is_odd = (turns & 1).differs(0)
    result = is_odd.select(-second, first) / is_odd.select(first, second)
    return (f.absolute(x) < 2.0**-30).select(x, _finished(f, x, result))


def arc_tangent(f: Floats, y: Id, x: Id) -> Id:
    """Returns the angle of the point (x, y)."""
    a, b = f.absolute(y), f.absolute(x)
    large, small = f.larger(a, b), f.smaller(a, b)
    # Scaled so that sums neither overflow nor underflow.
    scale = (large > 2.0 ** (f.bias - 2)).select(f.constant(0.25), (large < 2.0**-64).select(f.constant(2.0**64), 1.0))
    large, small = large * scale, small * scale
    both_infinite = small.equals(math.inf)
    large, small = both_infinite.select(1.0, large), both_infinite.select(1.0, small)
    is_steep = small > large * (math.sqrt(2) - 1)
    numerator, denominator = is_steep.select(small - large, small), is_steep.select(small + large, large)
    ratio = numerator / denominator.equals(0).select(1.0, denominator)
    square = ratio * ratio
    terms = [(-1) ** n / (2 * n + 1) for n in range(1, _ARC_TERMS[f.kind.bits])]
    result = ratio + ratio * square * f.polynomial(square, terms)
    # Offsets of an eighth, a quarter and half a turn; each constant in two parts.
    for condition, angle in ((is_steep, _PI / 4), (a > b, _PI / 2), (f.is_negative(x), _PI)):
        high, low = f.parts(angle, f.digits)
        reflected = high + (low + result) if angle == _PI / 4 else high - (result - low)
        result = condition.select(reflected, result)
    return (f.is_nan(x) | f.is_nan(y)).select(f.nan, f.with_sign(result, y))
