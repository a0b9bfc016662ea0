"""Exponentials, logarithms and functions built on them, in f32 and f64.

Arguments are reduced so that a few terms of a power series suffice. Coefficients are those of the Taylor series; their
number depends on the precision. Errors are 1 to 2 units in the last place.
"""

from __future__ import annotations

import math
from typing import Final

from ....spirv.binary.declarations import F32
from ....spirv.binary.expression import Id
from .floats import FloatPair, Floats, logarithm_of_two

_LN2: Final = logarithm_of_two()
_EXPONENTIAL_TERMS: Final = {32: 8, 64: 14}
_LOGARITHM_TERMS: Final = {32: 5, 64: 11}
# Results are infinite above this bound, and zero below its negative.
_OVERFLOW: Final = {32: 89.0, 64: 710.0}
_UNDERFLOW: Final = {32: -104.0, 64: -746.0}
# Functions that are the identity near zero return arguments below this bound.
_TINY: Final = {32: 2.0**-26, 64: 2.0**-55}


def _ln2(f: Floats) -> list[float]:
    """Returns ln 2 in two parts; the product of the first with any exponent is exact."""
    return f.parts(_LN2, 15 if f.kind == F32 else 42)


def _reduced(f: Floats, x: Id) -> tuple[Id, Id]:
    """Returns the nearest multiple of ln 2, as a float, and the rest."""
    high, low = _ln2(f)
    multiple = (x * f.nearest(1 / math.log(2))).function("round_even")
    return multiple, (x - multiple * high) - multiple * low


def _series(f: Floats, r: Id) -> Id:
    """Computes exp(r) - 1 for small arguments."""
    terms = _EXPONENTIAL_TERMS[f.kind.bits]
    return r + r * r * f.polynomial(r, [1 / math.factorial(n) for n in range(2, terms)])


def exponential(f: Floats, x: Id, low: Id | None = None, halvings: int = 0) -> Id:
    """Computes exp(x), or exp(x + low) for a much smaller low; the result is halved ``halvings`` times."""
    bits = f.kind.bits
    overflow = _OVERFLOW[bits] + halvings
    inside = f.larger(f.smaller(x, overflow), _UNDERFLOW[bits])
    multiple, rest = _reduced(f, inside)
    result = f.scaled(_series(f, rest if low is None else rest + low) + 1, f.to_word(multiple) - halvings)
    result = (x > overflow).select(f.infinity, result)
    return f.is_nan(x).select(x, (x < _UNDERFLOW[bits]).select(0, result))


def exponential_minus_one(f: Floats, x: Id) -> Id:
    bits = f.kind.bits
    inside = f.larger(f.smaller(x, _OVERFLOW[bits]), -28.0 if bits == 32 else -45.0)
    multiple, rest = _reduced(f, inside)
    series = _series(f, rest)
    # Half the power, since the power itself may be infinite.
    power = f.power_of_two(f.to_word(multiple) - 1)
    result = 2.0 * (power * series + (power - 0.5))
    result = multiple.equals(0).select(series, result)
    result = (x > _OVERFLOW[bits]).select(f.infinity, result)
    return (f.is_nan(x) | (f.absolute(x) < _TINY[f.kind.bits])).select(x, result)


def _decomposed(f: Floats, x: Id) -> tuple[Id, Id]:
    """Splits a positive number into its exponent, as a float, and a significand between sqrt(1/2) and sqrt(2)."""
    is_small = x < 2.0 ** (1 - f.bias)
    normal = is_small.select(x * 2.0**f.digits, x)
    root = 0x3F3504F3 if f.kind == F32 else 0x3FE6A09E
    exponent_of_one = f.bias << f.shift
    top = f.top(normal) + (exponent_of_one - root)
    exponent = (top >> f.shift) - f.bias - is_small.select(f.builder.word(f.digits), 0)
    significand = f.with_top(normal, (top & ((1 << f.shift) - 1)) + root)
    return f.from_word(exponent), significand


def _of_special(f: Floats, x: Id, logarithm_of_positive: Id) -> Id:
    """Replaces a logarithm if its argument is not positive and finite."""
    logarithm_of_positive = x.equals(math.inf).select(x, logarithm_of_positive)
    logarithm_of_positive = (x < 0.0).select(f.nan, logarithm_of_positive)
    logarithm_of_positive = x.equals(0).select(-f.infinity, logarithm_of_positive)
    return f.is_nan(x).select(x, logarithm_of_positive)


def logarithm(f: Floats, x: Id) -> Id:
    exponent, significand = _decomposed(f, x)
    high, low = _ln2(f)
    part = significand - 1.0
    s = part / (part + 2.0)
    z = s * s
    series = z * f.polynomial(z, [2 / (2 * n + 1) for n in range(1, _LOGARITHM_TERMS[f.kind.bits])])
    half = part * part * 0.5
    result = exponent * high - ((half - (s * (half + series) + exponent * low)) - part)
    return _of_special(f, x, result)


def logarithm_of_next(f: Floats, x: Id) -> Id:
    """Computes log(1 + x)."""
    next = x + 1.0
    # The rounding error of the sum.
    lost = (x > 1.0).select(1.0 - (next - x), x - (next - 1.0))
    result = logarithm(f, next) + lost / next
    result = (next.equals(0) | next.equals(math.inf)).select(logarithm(f, next), result)
    return (f.is_nan(x) | (f.absolute(x) < _TINY[f.kind.bits])).select(x, result)


def hyperbolic_tangent(f: Floats, x: Id) -> Id:
    size = f.smaller(f.absolute(x), 10.0 if f.kind == F32 else 22.0)
    grown = exponential_minus_one(f, size * 2.0)
    result = f.with_sign(grown / (grown + 2.0), x)
    return (f.is_nan(x) | (f.absolute(x) < _TINY[f.kind.bits])).select(x, result)


def logistic(f: Floats, x: Id) -> Id:
    """Computes 1 / (1 + exp(-x))."""
    decayed = exponential(f, -f.absolute(x))
    result = f.is_negative(x).select(decayed, f.constant(1)) / (decayed + 1.0)
    return f.is_nan(x).select(x, result)


def hyperbolic(f: Floats, x: Id) -> tuple[Id, Id]:
    """Returns sinh(x) and cosh(x)."""
    size = f.absolute(x)
    grown = exponential_minus_one(f, f.smaller(size, 20.0))
    small = 0.5 * (grown + grown / (grown + 1.0))
    # Half of the exponential may be finite although the exponential is not.
    half = exponential(f, size, halvings=1)
    is_large = size > 20.0
    grown_cosh = 1.0 + 0.5 * (grown * grown / (grown + 1.0))
    sine, cosine = is_large.select(half, small), is_large.select(half, grown_cosh)
    return f.is_nan(x).select(x, f.with_sign(sine, x)), f.is_nan(x).select(x, cosine)


def cube_root(f: Floats, x: Id) -> Id:
    """Returns the real cube root."""
    size = f.absolute(x)
    # Neither subnormal nor so large that a multiple overflows.
    steps = 8 if f.kind == F32 else 18
    is_small, is_large = size < 2.0 ** (1 - f.bias), size > 2.0 ** (f.bias - 4)
    unscaled = f.constant(1)
    scale = is_small.select(2.0 ** (3 * steps), is_large.select(2.0 ** (-3 * steps), unscaled))
    back = is_small.select(2.0**-steps, is_large.select(2.0**steps, unscaled))
    normal = size * scale
    # A third of the exponent's word; its bias is then too small by two thirds.
    offset = 0x2A5137A0 if f.kind == F32 else 0x2A9F7893
    y = f.with_top(f.constant(0), f.top(normal) // 3 + offset)
    for _ in range(2 if f.kind == F32 else 3):
        cube = y * y * y
        y = y + y * ((normal - cube) / (cube + cube + normal))
    y = y * back
    result = f.with_sign(y, x)
    return (x.equals(0) | ~f.is_finite(x)).select(x, result)


def logarithm_pair(f: Floats, x: Id) -> FloatPair:
    """Computes log(x) of a positive finite number to about one and a half times the precision."""
    exponent, significand = _decomposed(f, x)
    return _logarithm_pair(f, exponent, (significand, f.constant(0)))


def _logarithm_pair(f: Floats, exponent: Id, significand: FloatPair) -> FloatPair:
    high, low = significand
    below = f.exact_sum(high, f.constant(-1.0))
    above = f.exact_sum(high, f.constant(1.0))
    s = f.pair_quotient((below[0], below[1] + low), (above[0], above[1] + low))
    z = f.pair_product(s, s)
    series = f.polynomial(z[0], [2 / (2 * n + 1) for n in range(2, _LOGARITHM_TERMS[f.kind.bits] + 2)])
    # 2 s + s z (2/3 + z (2/5 + …)); only the first terms need pairs.
    third = f.nearest(2 / 3)
    factor = f.pair_sum((f.constant(third), f.constant(f.nearest(_two_thirds(third)))), (z[0] * series, f.constant(0)))
    cubic = f.pair_product(f.pair_product(s, z), factor)
    result = f.pair_sum((s[0] * 2.0, s[1] * 2.0), cubic)
    first, second = _ln2(f)
    head = exponent * first
    return f.pair_sum(f.ordered_sum(head, exponent * second), result)


def _two_thirds(nearest: float) -> float:
    """Returns the difference between 2/3 and the nearest float."""
    numerator, denominator = nearest.as_integer_ratio()
    return (2 * denominator - 3 * numerator) / (3 * denominator)


def power(f: Floats, base: Id, exponent: Id) -> Id:
    """Computes a power with IEEE 754's special values."""
    size = f.absolute(base)
    safe = (size.equals(0) | ~f.is_finite(base)).select(1.0, size)
    bound = 2.0 ** (32 if f.kind == F32 else 64)
    bounded = f.larger(f.smaller(exponent, bound), -bound)
    high, low = logarithm_pair(f, safe)
    product = f.exact_product(high, bounded)
    result = exponential(f, product[0], product[1] + low * bounded)
    # Zero and infinity.
    grows = f.is_negative(exponent).differs(size.equals(math.inf))
    result = (size.equals(0) | size.equals(math.inf)).select(grows.select(f.infinity, f.constant(0)), result)
    # Infinite exponents of any base except one.
    large = (size > 1.0).differs(f.is_negative(exponent))
    result = (
        f.absolute(exponent)
        .equals(math.inf)
        .select(size.equals(1.0).select(f.constant(1), large.select(f.infinity, f.constant(0))), result)
    )
    whole = exponent.function("floor").equals(exponent)
    half = exponent * 0.5
    is_odd = whole & half.function("floor").differs(half)
    result = (is_odd & f.is_negative(base)).select(-result, result)
    result = ((base < 0.0) & ~whole & f.is_finite(base)).select(f.nan, result)
    result = (f.is_nan(base) | f.is_nan(exponent)).select(f.nan, result)
    return (exponent.equals(0) | base.equals(1.0)).select(1.0, result)
