"""Floating-point arithmetic of the VM's operations: IEEE 754 results for every operand, never a Python exception.

Each operation comes as ``*_f32`` (operands and result are Python floats that hold f32 values) and ``*_f64``. What is not
here (add, subtract, multiply, compare) is a Python operator, for f32 followed by :func:`.numerics.round_f32`.

Which function an operation stands for is a fact of IREE's ``runtime/src/iree/vm/ops.h`` (the same in 3.1 … 3.13). The
elementary functions of f32 are computed in f64 and rounded, at most one unit in the last place from a C library's float
functions. A NaN that an operation makes has no particular sign or payload.

The rounding operations are called ``round_away_*`` and ``round_even_*`` since ``round_f32`` rounds a double to f32.
"""

from __future__ import annotations

import math
from typing import Final

from .numerics import bitcast_f64_i64, round_f32

__all__ = [
    "abs_f32",
    "abs_f64",
    "atan2_f32",
    "atan2_f64",
    "atan_f32",
    "atan_f64",
    "ceil_f32",
    "ceil_f64",
    "cos_f32",
    "cos_f64",
    "div_f32",
    "div_f64",
    "erf_f32",
    "erf_f64",
    "exp2_f32",
    "exp2_f64",
    "exp_f32",
    "exp_f64",
    "expm1_f32",
    "expm1_f64",
    "floor_f32",
    "floor_f64",
    "fma_f32",
    "fma_f64",
    "log1p_f32",
    "log1p_f64",
    "log2_f32",
    "log2_f64",
    "log10_f32",
    "log10_f64",
    "log_f32",
    "log_f64",
    "max_f32",
    "max_f64",
    "min_f32",
    "min_f64",
    "neg_f32",
    "neg_f64",
    "pow_f32",
    "pow_f64",
    "rem_f32",
    "rem_f64",
    "round_away_f32",
    "round_away_f64",
    "round_even_f32",
    "round_even_f64",
    "rsqrt_f32",
    "rsqrt_f64",
    "sin_f32",
    "sin_f64",
    "sqrt_f32",
    "sqrt_f64",
    "tanh_f32",
    "tanh_f64",
]

_INF: Final = math.inf
_NAN: Final = math.nan
_TWO52: Final = float(1 << 52)


# ------------------------------------------------------------------------------------------------- fused, quotients


def fma_f64(a: float, b: float, c: float) -> float:
    """a·b + c rounded once.

    The exact sum is an integer over a power of two, and Python divides integers with one correct rounding. IREE's
    runtime rounds the product too where the processor it was built for has no fused operation, plain x86-64 among them.
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
    """a·b + c of f32 values rounded once to f32; see :func:`fma_f64` for IREE's.

    The product of two f32 is exact in f64. The f64 sum is rounded to odd: where it is not exact and its last bit is 0, it
    moves one step towards the exact sum, so that the rounding to f32 is not misled by a tie that the sum is not.
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


def div_f64(a: float, b: float) -> float:
    """a / b; x/0 is ±inf and 0/0 NaN."""
    if b != 0.0:
        return a / b
    if a == 0.0 or a != a:
        return _NAN
    return math.copysign(_INF, a) * math.copysign(1.0, b)


def div_f32(a: float, b: float) -> float:
    """a / b of f32 values; x/0 is ±inf and 0/0 NaN."""
    return round_f32(div_f64(a, b))


def rem_f64(a: float, b: float) -> float:
    """IEEE remainder: a - n·b with n the integer nearest to a/b, ties to even; exact. NaN for b = 0 and a = ±inf.

    Not C's ``fmod``: IREE's operation is C's ``remainder``, so 5 rem 3 is -1.
    """
    try:
        return math.remainder(a, b)
    except ValueError:
        return _NAN


def rem_f32(a: float, b: float) -> float:
    """IEEE remainder of f32 values, see :func:`rem_f64`; the result is an f32 without rounding."""
    return rem_f64(a, b)


# ---------------------------------------------------------------------------------------------- signs, extrema


def abs_f64(x: float) -> float:
    """The value with its sign bit cleared, of NaN too."""
    return abs(x)


def neg_f64(x: float) -> float:
    """The value with its sign bit flipped, of NaN too."""
    return -x


def min_f64(a: float, b: float) -> float:
    """``b`` where it is less than ``a``, else ``a``: so ``a`` where either is NaN, and ``a`` of two zeros."""
    return b if b < a else a


def max_f64(a: float, b: float) -> float:
    """``b`` where ``a`` is less than it, else ``a``: so ``a`` where either is NaN, and ``a`` of two zeros."""
    return b if a < b else a


abs_f32 = abs_f64
neg_f32 = neg_f64
min_f32 = min_f64
max_f32 = max_f64


# ------------------------------------------------------------------------------------------- rounding to integers
# A float of magnitude 2⁵² or more is an integer already; the test also lets NaN and ±inf through as they are. Results of
# f32 operands are f32 values without rounding, hence one function for both.


def floor_f64(x: float) -> float:
    """Largest integral value not above ``x``; zeros keep their sign."""
    if -_TWO52 < x < _TWO52:
        return math.copysign(float(math.floor(x)), x)
    return x


def ceil_f64(x: float) -> float:
    """Smallest integral value not below ``x``; -0.5 gives -0."""
    if -_TWO52 < x < _TWO52:
        return math.copysign(float(math.ceil(x)), x)
    return x


def round_away_f64(x: float) -> float:
    """Nearest integral value, halves away from zero; zeros keep their sign."""
    if -_TWO52 < x < _TWO52:
        magnitude = abs(x)
        whole = float(int(magnitude))
        return math.copysign(whole + 1.0 if magnitude - whole >= 0.5 else whole, x)
    return x


def round_even_f64(x: float) -> float:
    """Nearest integral value, halves to even; zeros keep their sign, and -0.5 gives -0 (in IREE's runtime +0)."""
    if -_TWO52 < x < _TWO52:
        return math.copysign(float(round(x)), x)
    return x


floor_f32 = floor_f64
ceil_f32 = ceil_f64
round_away_f32 = round_away_f64
round_even_f32 = round_even_f64


# -------------------------------------------------------------------------------------------------- powers, roots


def sqrt_f64(x: float) -> float:
    """Square root; -0 for -0, NaN below zero."""
    return math.sqrt(x) if x >= 0.0 else _NAN


def sqrt_f32(x: float) -> float:
    """Square root of an f32, correctly rounded; -0 for -0, NaN below zero."""
    return round_f32(sqrt_f64(x))


def rsqrt_f64(x: float) -> float:
    """1 / sqrt(x), both steps rounded; ±inf for ±0, NaN below zero."""
    return div_f64(1.0, sqrt_f64(x))


def rsqrt_f32(x: float) -> float:
    """1 / sqrt(x) with both steps rounded to f32; ±inf for ±0, NaN below zero."""
    return div_f32(1.0, sqrt_f32(x))


def _is_odd(x: float) -> bool:
    return abs(math.fmod(x, 2.0)) == 1.0 if math.isfinite(x) else False


def pow_f64(base: float, exponent: float) -> float:
    """base to the power of exponent, special cases as C's Annex F (F.10.4.4)."""
    try:
        return math.pow(base, exponent)
    except ValueError:  # a zero to a negative power, or a negative finite base to a fractional power
        if base != 0.0:
            return _NAN
        return math.copysign(_INF, base) if _is_odd(exponent) else _INF
    except OverflowError:
        return -_INF if base < 0.0 and _is_odd(exponent) else _INF


def pow_f32(base: float, exponent: float) -> float:
    """base to the power of exponent of f32 values, special cases as C's Annex F (F.10.4.4)."""
    return round_f32(pow_f64(base, exponent))


def exp_f64(x: float) -> float:
    """e to the power of x; overflow gives inf."""
    try:
        return math.exp(x)
    except OverflowError:
        return _INF


def exp_f32(x: float) -> float:
    """e to the power of x; overflow gives inf."""
    return round_f32(exp_f64(x))


def exp2_f64(x: float) -> float:
    """2 to the power of x; overflow gives inf."""
    try:
        return math.exp2(x)
    except OverflowError:
        return _INF


def exp2_f32(x: float) -> float:
    """2 to the power of x; overflow gives inf."""
    return round_f32(exp2_f64(x))


def expm1_f64(x: float) -> float:
    """e to the power of x, minus one; overflow gives inf."""
    try:
        return math.expm1(x)
    except OverflowError:
        return _INF


def expm1_f32(x: float) -> float:
    """e to the power of x, minus one; overflow gives inf."""
    return round_f32(expm1_f64(x))


# ----------------------------------------------------------------------------------------------------- logarithms


def log_f64(x: float) -> float:
    """Natural logarithm; -inf for zeros, NaN below."""
    if x > 0.0:
        return math.log(x)
    return -_INF if x == 0.0 else _NAN


def log_f32(x: float) -> float:
    """Natural logarithm; -inf for zeros, NaN below."""
    return round_f32(log_f64(x))


def log2_f64(x: float) -> float:
    """Base-2 logarithm; -inf for zeros, NaN below."""
    if x > 0.0:
        return math.log2(x)
    return -_INF if x == 0.0 else _NAN


def log2_f32(x: float) -> float:
    """Base-2 logarithm; -inf for zeros, NaN below."""
    return round_f32(log2_f64(x))


def log10_f64(x: float) -> float:
    """Base-10 logarithm; -inf for zeros, NaN below."""
    if x > 0.0:
        return math.log10(x)
    return -_INF if x == 0.0 else _NAN


def log10_f32(x: float) -> float:
    """Base-10 logarithm; -inf for zeros, NaN below."""
    return round_f32(log10_f64(x))


def log1p_f64(x: float) -> float:
    """Natural logarithm of 1 + x; -inf for -1, NaN below."""
    if x > -1.0:
        return math.log1p(x)
    return -_INF if x == -1.0 else _NAN


def log1p_f32(x: float) -> float:
    """Natural logarithm of 1 + x; -inf for -1, NaN below."""
    return round_f32(log1p_f64(x))


# ----------------------------------------------------------------------------- trigonometric and other functions


def sin_f64(x: float) -> float:
    """Sine of radians; NaN for ±inf."""
    return math.sin(x) if math.isfinite(x) else _NAN


def sin_f32(x: float) -> float:
    """Sine of radians; NaN for ±inf."""
    return round_f32(sin_f64(x))


def cos_f64(x: float) -> float:
    """Cosine of radians; NaN for ±inf."""
    return math.cos(x) if math.isfinite(x) else _NAN


def cos_f32(x: float) -> float:
    """Cosine of radians; NaN for ±inf."""
    return round_f32(cos_f64(x))


def atan_f64(x: float) -> float:
    """Arc tangent in radians."""
    return math.atan(x)


def atan_f32(x: float) -> float:
    """Arc tangent in radians."""
    return round_f32(math.atan(x))


def atan2_f64(y: float, x: float) -> float:
    """Angle of the point (x, y) in radians, special cases as C's Annex F (F.10.1.4)."""
    return math.atan2(y, x)


def atan2_f32(y: float, x: float) -> float:
    """Angle of the point (x, y) in radians, special cases as C's Annex F (F.10.1.4)."""
    return round_f32(math.atan2(y, x))


def tanh_f64(x: float) -> float:
    """Hyperbolic tangent."""
    return math.tanh(x)


def tanh_f32(x: float) -> float:
    """Hyperbolic tangent."""
    return round_f32(math.tanh(x))


def erf_f64(x: float) -> float:
    """Error function."""
    return math.erf(x)


def erf_f32(x: float) -> float:
    """Error function."""
    return round_f32(math.erf(x))
