"""Integer division, conversions and bitcasts of the VM's operations.

An integer word is a Python int in **signed canonical** form (-2³¹ ≤ v < 2³¹ or -2⁶³ ≤ v < 2⁶³), an f32 is a Python
float that holds exactly an f32 value, an f64 is a Python float. Where C leaves a result undefined (casts out of range,
shift amounts) it is the result of IREE's runtime on x86-64, release 3.13 (``runtime/src/iree/vm/ops.h``; the operations
are the same since 3.1), because programs were tested there.

Other operations are in ``float_numerics`` or written inline (operations.py).
"""

from __future__ import annotations

import math
import struct
from typing import Final

from ...status import InvalidArgumentError

_MASK32: Final = 0xFFFF_FFFF
_MASK64: Final = 0xFFFF_FFFF_FFFF_FFFF
_SIGN32: Final = 0x8000_0000
_SIGN64: Final = 0x8000_0000_0000_0000
_TWO52: Final = float(1 << 52)
_TWO63: Final = float(1 << 63)
_TWO64: Final = float(1 << 64)

# Native packing of an f32 turns large values into infinity; standard packing raises.
_pack_f32 = struct.Struct("f").pack
_unpack_f32 = struct.Struct("f").unpack
_pack_i32 = struct.Struct("i").pack
_unpack_i32 = struct.Struct("i").unpack
_pack_f64 = struct.Struct("d").pack
_unpack_f64 = struct.Struct("d").unpack
_pack_i64 = struct.Struct("q").pack
_unpack_i64 = struct.Struct("q").unpack


def wrap32(x: int) -> int:
    """Wraps an int modulo 2³² to a signed canonical i32."""
    return ((x + _SIGN32) & _MASK32) - _SIGN32


def wrap64(x: int) -> int:
    """Wraps an int modulo 2⁶⁴ to a signed canonical i64."""
    return ((x + _SIGN64) & _MASK64) - _SIGN64


def _divided_by_zero(operation: str, a: int, bits: int, sign: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{operation}.i{bits}.{sign} of {a}: expected a divisor that is not zero, got 0; the program must test its "
        "divisor first"
    )


def div_s(a: int, b: int, bits: int) -> int:
    """Divides signed integers towards zero; the lowest integer divided by -1 wraps to itself. Division by zero raises.

    That quotient is undefined in C: x86-64 traps on it, other processors wrap. A trap would end the process (IREE's
    runtime dies of SIGFPE), and wrapping is what the VM's other integer operations do.
    """
    if b == 0:
        raise _divided_by_zero("div", a, bits, "s")
    quotient = a // b
    if quotient < 0:
        return quotient + 1 if quotient * b != a else quotient  # Python rounds towards minus infinity
    return -quotient if quotient >> (bits - 1) else quotient


def div_u(a: int, b: int, bits: int) -> int:
    """Divides the words' bits as unsigned integers. Division by zero raises."""
    if b == 0:
        raise _divided_by_zero("div", a, bits, "u")
    mask = (1 << bits) - 1
    quotient = (a & mask) // (b & mask)
    return quotient - mask - 1 if quotient >> (bits - 1) else quotient


def rem_s(a: int, b: int, bits: int) -> int:
    """Returns the signed remainder, with the sign of ``a``; lowest % -1 is 0. Division by zero raises."""
    if b == 0:
        raise _divided_by_zero("rem", a, bits, "s")
    remainder = abs(a) % abs(b)
    return -remainder if a < 0 else remainder


def rem_u(a: int, b: int, bits: int) -> int:
    """Returns the unsigned remainder of the words' bits. Division by zero raises."""
    if b == 0:
        raise _divided_by_zero("rem", a, bits, "u")
    mask = (1 << bits) - 1
    remainder = (a & mask) % (b & mask)
    return remainder - mask - 1 if remainder >> (bits - 1) else remainder


def round_to_i64(x: float) -> int:
    """Rounds to the nearest i64, halves away from zero; -2⁶³ for NaN and everything out of range.

    That value is the "integer indefinite" of x86-64's CVTTSD2SI, which C's ``lround`` family passes on there.
    """
    if -_TWO52 < x < _TWO52:
        n = int(x)
        rest = x - n
        if rest >= 0.5:
            return n + 1
        return n - 1 if rest <= -0.5 else n
    if -_TWO63 <= x < _TWO63:
        return int(x)
    return -_SIGN64


def round_to_i32(x: float) -> int:
    """Returns the low 32 bits of ``round_to_i64``; NaN and ±inf give 0."""
    return wrap32(round_to_i64(x))


def round_to_ui64(x: float) -> int:
    """Rounds to 0 … 2⁶⁴-1, halves away from zero; negative values down to -2⁶³ are kept; others give 2⁶³."""
    if _TWO63 <= x < _TWO64:
        return int(x) - (1 << 64)
    return round_to_i64(x)


def round_f32(x: float) -> float:
    """Returns the f32 nearest to an f64 (ties to even), as a Python float; overflow gives ±inf.

    The sum, difference, product, quotient or square root of f32 values, computed in f64 and rounded by this, is the
    correctly rounded f32 result: f64 has more than twice the significand's bits and two, so rounding twice is harmless.
    """
    try:
        result: float = _unpack_f32(_pack_f32(x))[0]
    except OverflowError:  # newer Pythons refuse values that round to ±inf
        return math.copysign(math.inf, x)
    return result


def integer_to_f32(x: int) -> float:
    """Returns the f32 nearest to an int of up to 64 bits and a sign, rounded once.

    An int past 2⁵³ would be rounded twice by way of f64. It is shifted to 53 bits with a sticky last bit (round to
    odd), so that the f64 is exact and the only rounding is to f32.
    """
    if -(1 << 53) <= x <= (1 << 53):
        return round_f32(x)
    return round_f32((x >> 11) | ((x & 0x7FF) != 0)) * 2048.0


def bitcast_i32_f32(x: int) -> float:
    """Returns the f32 with a word's bits.

    NaNs keep sign and payload, signalling ones too: a NaN is built as the f64 whose upper significand bits are the
    f32's. (The processor's conversion would make it quiet; so does any arithmetic on it.)
    """
    value: float = _unpack_f32(_pack_i32(x))[0]
    if value == value:
        return value
    return bitcast_i64_f64((-_SIGN64 if x < 0 else 0) | 0x7FF0_0000_0000_0000 | (x & 0x7F_FFFF) << 29)


def bitcast_f32_i32(x: float) -> int:
    """Returns the word with an f32's bits; the inverse of ``bitcast_i32_f32`` for every word.

    A NaN that f64 arithmetic made with a payload in the lower bits only becomes the default quiet NaN.
    """
    if x == x:
        word: int = _unpack_i32(_pack_f32(x))[0]
        return word
    bits = bitcast_f64_i64(x)
    return (-_SIGN32 if bits < 0 else 0) | 0x7F80_0000 | ((bits >> 29) & 0x7F_FFFF or 0x40_0000)


def bitcast_i64_f64(x: int) -> float:
    """Returns the f64 with a word's bits, also for NaNs."""
    value: float = _unpack_f64(_pack_i64(x))[0]
    return value


def bitcast_f64_i64(x: float) -> int:
    """Returns the word with an f64's bits, also for NaNs."""
    word: int = _unpack_i64(_pack_f64(x))[0]
    return word
