"""Integer arithmetic, conversions and comparisons of the VM's operations.

The bytecode's registers hold 32- and 64-bit words; here an integer word is a Python int in **signed canonical** form
(-2³¹ ≤ v < 2³¹ or -2⁶³ ≤ v < 2⁶³), an f32 is a Python float that holds exactly an f32 value, an f64 is a Python float.
What an operation does where C leaves it undefined (casts out of range, shift amounts) is what IREE's runtime does on
x86-64, release 3.13 (``runtime/src/iree/vm/ops.h``; the operations are the same since 3.1): programs were tested there.

Floating-point arithmetic is in :mod:`.float_numerics`.
"""

from __future__ import annotations

import math
import struct
from typing import Final

from ...status import InvalidArgumentError

__all__ = [
    "abs32",
    "abs64",
    "bitcast_f32_i32",
    "bitcast_f64_i64",
    "bitcast_i32_f32",
    "bitcast_i64_f64",
    "cast_f32_si32",
    "cast_f32_si64",
    "cast_f32_ui32",
    "cast_f32_ui64",
    "cast_f64_si32",
    "cast_f64_si64",
    "cast_f64_ui32",
    "cast_f64_ui64",
    "cast_si32_f32",
    "cast_si32_f64",
    "cast_si64_f32",
    "cast_si64_f64",
    "cast_ui32_f32",
    "cast_ui32_f64",
    "cast_ui64_f32",
    "cast_ui64_f64",
    "ctlz32",
    "ctlz64",
    "div32_s",
    "div32_u",
    "div64_s",
    "div64_u",
    "eq_u",
    "lt_u",
    "lte_u",
    "ne_o",
    "rem32_s",
    "rem32_u",
    "rem64_s",
    "rem64_u",
    "round_f32",
    "shl32",
    "shl64",
    "shr32_s",
    "shr32_u",
    "shr64_s",
    "shr64_u",
    "wrap32",
    "wrap64",
]

_MASK32: Final = 0xFFFF_FFFF
_MASK64: Final = 0xFFFF_FFFF_FFFF_FFFF
_SIGN32: Final = 0x8000_0000
_SIGN64: Final = 0x8000_0000_0000_0000
_TWO52: Final = float(1 << 52)
_TWO63: Final = float(1 << 63)
_TWO64: Final = float(1 << 64)

_pack_f32 = struct.Struct("f").pack
_unpack_f32 = struct.Struct("f").unpack
_pack_i32 = struct.Struct("i").pack
_unpack_i32 = struct.Struct("i").unpack
_pack_f64 = struct.Struct("d").pack
_unpack_f64 = struct.Struct("d").unpack
_pack_i64 = struct.Struct("q").pack
_unpack_i64 = struct.Struct("q").unpack


# ---------------------------------------------------------------------------------------------------- integers


def wrap32(x: int) -> int:
    """Any int modulo 2³², as a signed canonical i32."""
    return ((x + _SIGN32) & _MASK32) - _SIGN32


def wrap64(x: int) -> int:
    """Any int modulo 2⁶⁴, as a signed canonical i64."""
    return ((x + _SIGN64) & _MASK64) - _SIGN64


def shl32(a: int, n: int) -> int:
    """i32 shift left; of the amount only the low five bits count."""
    return wrap32(a << (n & 31))


def shr32_s(a: int, n: int) -> int:
    """i32 arithmetic shift right; of the amount only the low five bits count."""
    return a >> (n & 31)


def shr32_u(a: int, n: int) -> int:
    """i32 logical shift right; of the amount only the low five bits count."""
    return wrap32((a & _MASK32) >> (n & 31))


def shl64(a: int, n: int) -> int:
    """i64 shift left; of the amount (an i32) only the low six bits count."""
    return wrap64(a << (n & 63))


def shr64_s(a: int, n: int) -> int:
    """i64 arithmetic shift right; of the amount (an i32) only the low six bits count."""
    return a >> (n & 63)


def shr64_u(a: int, n: int) -> int:
    """i64 logical shift right; of the amount (an i32) only the low six bits count."""
    return wrap64((a & _MASK64) >> (n & 63))


def _divided_by_zero(operation: str, a: int) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{operation} of {a}: expected a divisor that is not zero, got 0; the program must test its divisor first"
    )


def _quotient(a: int, b: int) -> int:
    """Truncating division: towards zero, as C's, where Python's goes towards minus infinity."""
    q = a // b
    return q + 1 if q < 0 and q * b != a else q


def _remainder(a: int, b: int) -> int:
    """Truncating remainder: the sign of the dividend, as C's, where Python's has the divisor's."""
    r = abs(a) % abs(b)
    return -r if a < 0 else r


def div32_s(a: int, b: int) -> int:
    """Signed i32 division towards zero. -2³¹ / -1 wraps to -2³¹.

    The wrap is this VM's choice: C leaves that quotient undefined, x86-64 traps on it and other processors wrap; a trap
    would end the process, and wrapping is what the VM's other integer operations do.

    Raises:
        InvalidArgumentError: ``b`` is zero. (IREE's runtime dies of SIGFPE.)
    """
    if b == 0:
        raise _divided_by_zero("div.i32.s", a)
    return wrap32(_quotient(a, b))


def div32_u(a: int, b: int) -> int:
    """Unsigned i32 division of the words' bit patterns.

    Raises:
        InvalidArgumentError: ``b`` is zero.
    """
    if b == 0:
        raise _divided_by_zero("div.i32.u", a)
    return wrap32((a & _MASK32) // (b & _MASK32))


def rem32_s(a: int, b: int) -> int:
    """Signed i32 remainder with the sign of ``a``; -2³¹ rem -1 is 0, see :func:`div32_s`.

    Raises:
        InvalidArgumentError: ``b`` is zero.
    """
    if b == 0:
        raise _divided_by_zero("rem.i32.s", a)
    return _remainder(a, b)


def rem32_u(a: int, b: int) -> int:
    """Unsigned i32 remainder of the words' bit patterns.

    Raises:
        InvalidArgumentError: ``b`` is zero.
    """
    if b == 0:
        raise _divided_by_zero("rem.i32.u", a)
    return wrap32((a & _MASK32) % (b & _MASK32))


def div64_s(a: int, b: int) -> int:
    """Signed i64 division towards zero. -2⁶³ / -1 wraps to -2⁶³, for the reason in :func:`div32_s`.

    Raises:
        InvalidArgumentError: ``b`` is zero.
    """
    if b == 0:
        raise _divided_by_zero("div.i64.s", a)
    return wrap64(_quotient(a, b))


def div64_u(a: int, b: int) -> int:
    """Unsigned i64 division of the words' bit patterns.

    Raises:
        InvalidArgumentError: ``b`` is zero.
    """
    if b == 0:
        raise _divided_by_zero("div.i64.u", a)
    return wrap64((a & _MASK64) // (b & _MASK64))


def rem64_s(a: int, b: int) -> int:
    """Signed i64 remainder with the sign of ``a``; -2⁶³ rem -1 is 0, see :func:`div32_s`.

    Raises:
        InvalidArgumentError: ``b`` is zero.
    """
    if b == 0:
        raise _divided_by_zero("rem.i64.s", a)
    return _remainder(a, b)


def rem64_u(a: int, b: int) -> int:
    """Unsigned i64 remainder of the words' bit patterns.

    Raises:
        InvalidArgumentError: ``b`` is zero.
    """
    if b == 0:
        raise _divided_by_zero("rem.i64.u", a)
    return wrap64((a & _MASK64) % (b & _MASK64))


def ctlz32(a: int) -> int:
    """Leading zero bits of an i32 word; 32 for zero."""
    return 32 - (a & _MASK32).bit_length()


def ctlz64(a: int) -> int:
    """Leading zero bits of an i64 word; 64 for zero."""
    return 64 - (a & _MASK64).bit_length()


def abs32(a: int) -> int:
    """Magnitude of an i32; -2³¹ has none in range and stays itself."""
    return wrap32(abs(a))


def abs64(a: int) -> int:
    """Magnitude of an i64; -2⁶³ has none in range and stays itself."""
    return wrap64(abs(a))


# --------------------------------------------------------------------------------------------- float to integer


def _llround(x: float) -> int:
    """Nearest i64, halves away from zero; -2⁶³ for NaN and everything out of range.

    That value is the "integer indefinite" of x86-64's CVTTSD2SI, which C's ``lround`` family passes on there.
    """
    if -_TWO52 < x < _TWO52:
        n = int(x)
        rest = x - n
        if rest >= 0.5:
            return n + 1
        if rest <= -0.5:
            return n - 1
        return n
    if -_TWO63 <= x < _TWO63:
        return int(x)
    return -_SIGN64


def cast_f32_si32(x: float) -> int:
    """Nearest integer, halves away from zero, as an i64 of which the low 32 bits are kept; NaN and ±inf give 0."""
    return wrap32(_llround(x))


def cast_f32_ui32(x: float) -> int:
    """Bit for bit the same as :func:`cast_f32_si32`: both go through i64."""
    return wrap32(_llround(x))


def cast_f32_si64(x: float) -> int:
    """Nearest integer, halves away from zero; NaN, ±inf and out of range give -2⁶³."""
    return _llround(x)


def cast_f32_ui64(x: float) -> int:
    """Nearest integer, halves away from zero, in 0 … 2⁶⁴-1; negative ones down to -2⁶³ keep their value; the rest gives 2⁶³."""
    if _TWO63 <= x < _TWO64:
        return int(x) - (1 << 64)
    return _llround(x)


def cast_f64_si32(x: float) -> int:
    """The f64 is rounded **to f32 first**, then cast as by :func:`cast_f32_si32`: 16777217.0 gives 16777216."""
    return wrap32(_llround(round_f32(x)))


def cast_f64_ui32(x: float) -> int:
    """Bit for bit the same as :func:`cast_f64_si32`."""
    return wrap32(_llround(round_f32(x)))


def cast_f64_si64(x: float) -> int:
    """Nearest integer, halves away from zero; NaN, ±inf and out of range give -2⁶³."""
    return _llround(x)


def cast_f64_ui64(x: float) -> int:
    """Bit for bit the same as :func:`cast_f64_si64`: 2⁶³ and above are out of range, unlike in :func:`cast_f32_ui64`."""
    return _llround(x)


# --------------------------------------------------------------------------------------------- integer to float


def round_f32(x: float) -> float:
    """The f32 nearest to an f64 (ties to even), as a Python float; too large gives ±inf, a signalling NaN a quiet one.

    The sum, difference, product, quotient or square root of f32 values, computed in f64 and rounded by this, is the
    correctly rounded f32 result: f64 has more than twice the significand's bits and two, so rounding twice is harmless.
    """
    try:
        result: float = _unpack_f32(_pack_f32(x))[0]
    except OverflowError:  # not in today's native packing, but nothing promises it
        return math.copysign(math.inf, x)
    return result


def _round_integer_f32(x: int) -> float:
    """Correctly rounded f32 of an int of up to 64 bits and a sign.

    An int past 2⁵³ may not go through f64 as it is, for it would be rounded twice. Shifted to 53 bits with what was lost
    kept as a sticky last bit (round to odd), the f64 is exact and the one rounding to f32 sees on which side it lies.
    """
    if -(1 << 53) <= x <= (1 << 53):
        return round_f32(x)
    return round_f32((x >> 11) | ((x & 0x7FF) != 0)) * 2048.0


def cast_si32_f32(x: int) -> float:
    """f32 nearest to a signed i32."""
    return round_f32(x)


def cast_ui32_f32(x: int) -> float:
    """f32 nearest to an i32 word read as unsigned."""
    return round_f32(x & _MASK32)


def cast_si64_f32(x: int) -> float:
    """f32 nearest to a signed i64, rounded once."""
    return _round_integer_f32(x)


def cast_ui64_f32(x: int) -> float:
    """f32 nearest to an i64 word read as unsigned, rounded once."""
    return _round_integer_f32(x & _MASK64)


def cast_si32_f64(x: int) -> float:
    """f64 equal to a signed i32."""
    return float(x)


def cast_ui32_f64(x: int) -> float:
    """f64 equal to an i32 word read as unsigned."""
    return float(x & _MASK32)


def cast_si64_f64(x: int) -> float:
    """f64 nearest to a signed i64."""
    return float(x)


def cast_ui64_f64(x: int) -> float:
    """f64 nearest to an i64 word read as unsigned."""
    return float(x & _MASK64)


# ------------------------------------------------------------------------------------------------------ bitcasts


def bitcast_i32_f32(x: int) -> float:
    """The f32 with a word's bits.

    NaNs keep sign and payload, signalling ones too: a NaN is built as the f64 whose upper significand bits are the
    f32's. (The processor's conversion would make it quiet; so does any arithmetic on it, here as there.)
    """
    value: float = _unpack_f32(_pack_i32(x))[0]
    if value == value:
        return value
    return bitcast_i64_f64((-_SIGN64 if x < 0 else 0) | 0x7FF0_0000_0000_0000 | (x & 0x7F_FFFF) << 29)


def bitcast_f32_i32(x: float) -> int:
    """The word with an f32's bits; the inverse of :func:`bitcast_i32_f32` for every word.

    A NaN that f64 arithmetic made with a payload in the lower bits only becomes the default quiet NaN.
    """
    if x == x:
        try:
            word: int = _unpack_i32(_pack_f32(x))[0]
        except OverflowError:
            word = 0x7F80_0000 if x > 0.0 else 0x7F80_0000 - _SIGN32
        return word
    bits = bitcast_f64_i64(x)
    return (-_SIGN32 if bits < 0 else 0) | 0x7F80_0000 | ((bits >> 29) & 0x7F_FFFF or 0x40_0000)


def bitcast_i64_f64(x: int) -> float:
    """The f64 with a word's bits, of NaNs too."""
    value: float = _unpack_f64(_pack_i64(x))[0]
    return value


def bitcast_f64_i64(x: float) -> int:
    """The word with an f64's bits, of NaNs too."""
    word: int = _unpack_i64(_pack_f64(x))[0]
    return word


# --------------------------------------------------------------------------------------------------- comparisons
# Python's ==, < and <= are the ordered comparisons already; != is the unordered one.


def eq_u(a: float, b: float) -> int:
    """1 where the operands are equal or one is NaN, else 0."""
    return 0 if a < b or a > b else 1


def ne_o(a: float, b: float) -> int:
    """1 where the operands differ **or one is NaN**, else 0.

    An ordered comparison would give 0 for NaN; the peer's operation is C's ``!=``, and programs see that.
    """
    return 1 if a != b else 0


def lt_u(a: float, b: float) -> int:
    """1 where ``a`` is less than ``b`` or one is NaN, else 0."""
    return 0 if a >= b else 1


def lte_u(a: float, b: float) -> int:
    """1 where ``a`` is at most ``b`` or one is NaN, else 0."""
    return 0 if a > b else 1
