"""Floating-point functions of the VM's operations: IEEE 754 results for every operand, never a Python exception.

They compute in f64. For an f32 operation the translator rounds the result to f32 (``single`` in operations.py), unless
the function's name ends in ``_f32``: elementary functions are then at most one unit in the last place from a C
library's float functions. A NaN that an operation makes has no particular sign or payload.

The functions of the operations are from IREE's ``runtime/src/iree/vm/ops.h`` (the same in 3.1 … 3.13).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from .numerics import bitcast_f64_i64, round_f32

_INF: Final = math.inf
_NAN: Final = math.nan
_TWO52: Final = float(1 << 52)

# These raise no exception for any float.
atan: Callable[[float], float] = math.atan
atan2: Callable[[float, float], float] = math.atan2
erf: Callable[[float], float] = math.erf
tanh: Callable[[float], float] = math.tanh


def fma_f64(a: float, b: float, c: float) -> float:
    """Returns a·b + c rounded once.

    The exact sum is an integer over a power of two, and Python divides integers with one correct rounding. IREE's
    runtime rounds the product too if its target processor has no fused operation, as plain x86-64.
    """
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)) or a == 0.0 or b == 0.0:
        return a * b + c
    an, ad = a.as_integer_ratio()
    bn, bd = b.as_integer_ratio()
    cn, cd = c.as_integer_ratio()
    numerator = an * bn * cd + cn * ad * bd
    try:
        return numerator / (ad * bd * cd)
    except OverflowError:
        return _INF if numerator > 0 else -_INF


def fma_f32(a: float, b: float, c: float) -> float:
    """Returns a·b + c of f32 values rounded once to f32; see ``fma_f64`` for IREE's result.

    The product of two f32 is exact in f64. The f64 sum is rounded to odd: where it is not exact and its last bit is 0,
    it moves one step towards the exact sum, so that the rounding to f32 sees no false tie.
    """
    product = a * b
    total = product + c
    if not math.isfinite(total):
        return round_f32(total)
    part = total - product
    error = (product - (total - part)) + (c - part)  # TwoSum (Knuth, TAOCP 2, 4.2.2): total + error is exact
    if error != 0.0 and bitcast_f64_i64(total) & 1 == 0:
        total = math.nextafter(total, _INF if error > 0.0 else -_INF)
    return round_f32(total)


def div(a: float, b: float) -> float:
    """Returns a / b; x/0 is ±inf and 0/0 NaN."""
    if b != 0.0:
        return a / b
    if a == 0.0 or a != a:
        return _NAN
    return math.copysign(_INF, a) * math.copysign(1.0, b)


def rem(a: float, b: float) -> float:
    """Computes the IEEE remainder: a - n·b with n the integer nearest to a/b, ties to even; exact. NaN for b = 0 and a
    = ±inf.

    Not C's ``fmod``: IREE's operation is C's ``remainder``, so 5 rem 3 is -1. The remainder of f32 values is an f32.
    """
    try:
        return math.remainder(a, b)
    except ValueError:
        return _NAN


# Rounding to integers. A float of magnitude 2⁵² or more is an integer already; the test also lets NaN and ±inf through
# as they are. Results of f32 operands are f32 values.


def floor(x: float) -> float:
    """Returns the largest integral value not above ``x``; zeros keep their sign."""
    if -_TWO52 < x < _TWO52:
        return math.copysign(float(math.floor(x)), x)
    return x


def ceil(x: float) -> float:
    """Returns the smallest integral value not below ``x``; -0.5 gives -0."""
    if -_TWO52 < x < _TWO52:
        return math.copysign(float(math.ceil(x)), x)
    return x


def round_away(x: float) -> float:
    """Rounds to the nearest integral value, halves away from zero; zeros keep their sign."""
    if -_TWO52 < x < _TWO52:
        magnitude = abs(x)
        whole = float(int(magnitude))
        return math.copysign(whole + 1.0 if magnitude - whole >= 0.5 else whole, x)
    return x


def round_even(x: float) -> float:
    """Rounds to the nearest integral value, halves to even; -0.5 gives -0 (in IREE's runtime +0)."""
    if -_TWO52 < x < _TWO52:
        return math.copysign(float(round(x)), x)
    return x


def sqrt(x: float) -> float:
    """Returns the square root; NaN below zero. Rounded to f32 it is the correctly rounded root of an f32."""
    return math.sqrt(x) if x >= 0.0 else _NAN


def rsqrt_f64(x: float) -> float:
    """Returns 1 / sqrt(x), both steps rounded; ±inf for ±0, NaN below zero."""
    return div(1.0, sqrt(x))


def rsqrt_f32(x: float) -> float:
    """Returns 1 / sqrt(x) with both steps rounded to f32; ±inf for ±0, NaN below zero."""
    return round_f32(div(1.0, round_f32(sqrt(x))))


def _is_odd(x: float) -> bool:
    return abs(math.fmod(x, 2.0)) == 1.0 if math.isfinite(x) else False


def power(base: float, exponent: float) -> float:
    """Raises ``base`` to the power of ``exponent``; special cases as in C's Annex F (F.10.4.4)."""
    try:
        return math.pow(base, exponent)
    except ValueError:  # a zero to a negative power, or a negative finite base to a fractional power
        if base != 0.0:
            return _NAN
        return math.copysign(_INF, base) if _is_odd(exponent) else _INF
    except OverflowError:
        return -_INF if base < 0.0 and _is_odd(exponent) else _INF


def _or_infinity(function: Callable[[float], float]) -> Callable[[float], float]:
    """Returns an exponential whose overflow gives inf."""

    def guarded(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return _INF

    return guarded


exp: Callable[[float], float] = _or_infinity(math.exp)
exp2: Callable[[float], float] = _or_infinity(math.exp2)
expm1: Callable[[float], float] = _or_infinity(math.expm1)


def _above(pole: float, function: Callable[[float], float]) -> Callable[[float], float]:
    """Returns a logarithm that is -inf at its pole and NaN below."""

    def guarded(x: float) -> float:
        if x > pole:
            return function(x)
        return -_INF if x == pole else _NAN

    return guarded


log: Callable[[float], float] = _above(0.0, math.log)
log2: Callable[[float], float] = _above(0.0, math.log2)
log10: Callable[[float], float] = _above(0.0, math.log10)
log1p: Callable[[float], float] = _above(-1.0, math.log1p)


def sin(x: float) -> float:
    """Returns the sine of radians; NaN for ±inf."""
    return math.sin(x) if math.isfinite(x) else _NAN


def cos(x: float) -> float:
    """Returns the cosine of radians; NaN for ±inf."""
    return math.cos(x) if math.isfinite(x) else _NAN
