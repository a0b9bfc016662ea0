"""Floats of less than 32 bits: decoding to f32, and rounding from f32.

Formats are those of IEEE 754 (f16), of the Open Compute Project's *OFP8* and *MX* specifications, and of StableHLO's
types. Rounding is to nearest, ties to even. No step depends on the device's treatment of subnormal f32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ....spirv.binary.declarations import F16, F32, U32, Kind
from ....spirv.binary.expression import Id
from ....spirv.binary.grammar import Op

_HALVES: Final = Kind("f", 16, 2)
_INFINITY: Final = 0x7F800000
_NAN: Final = 0x7FC00000


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A binary floating-point format.

    Attributes:
        exponent: the number of bits in the exponent.
        mantissa: the number of bits in the mantissa.
        bias: the bias of the exponent.
        nan: the bits of a resulting NaN; in formats without NaN, those of -0, as in ml_dtypes.
        overflow: the bits of the positive value that replaces values out of range.
        largest: the bits of the largest finite value.
        is_unsigned: whether the format has no sign; its zero bits are then NaN.
        has_negative_zero: whether -0 is a zero.
    """

    exponent: int
    mantissa: int
    bias: int
    nan: int
    overflow: int
    largest: int
    is_unsigned: bool = False
    has_negative_zero: bool = True

    @property
    def has_infinity(self) -> bool:
        """Whether the format has an infinity."""
        return self.overflow > self.largest and self.overflow != self.nan

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 0 if self.is_unsigned else 1 << (self.exponent + self.mantissa)


def _ieee(exponent: int, mantissa: int, bias: int | None = None) -> FloatFormat:
    infinity = ((1 << exponent) - 1) << mantissa
    quiet = infinity | 1 << (mantissa - 1)
    return FloatFormat(exponent, mantissa, bias or (1 << (exponent - 1)) - 1, quiet, infinity, infinity - 1)


def _unsigned_zero(exponent: int, mantissa: int, bias: int) -> FloatFormat:
    nan = 1 << (exponent + mantissa)
    return FloatFormat(exponent, mantissa, bias, nan, nan, nan - 1, has_negative_zero=False)


def _finite(exponent: int, mantissa: int, bias: int) -> FloatFormat:
    largest = (1 << (exponent + mantissa)) - 1
    return FloatFormat(exponent, mantissa, bias, largest + 1, largest, largest)


FORMATS: Final[Mapping[str, FloatFormat]] = {
    "f16": _ieee(5, 10),
    "bf16": _ieee(8, 7),
    "f8E5M2": _ieee(5, 2),
    "f8E4M3": _ieee(4, 3),
    "f8E3M4": _ieee(3, 4),
    "f8E4M3FN": FloatFormat(4, 3, 7, 0x7F, 0x7F, 0x7E),
    "f8E4M3FNUZ": _unsigned_zero(4, 3, 8),
    "f8E5M2FNUZ": _unsigned_zero(5, 2, 16),
    "f8E4M3B11FNUZ": _unsigned_zero(4, 3, 11),
    "f8E8M0FNU": FloatFormat(8, 0, 127, 0xFF, 0xFF, 0xFE, is_unsigned=True),
    "f6E2M3FN": _finite(2, 3, 1),
    "f6E3M2FN": _finite(3, 2, 3),
    "f4E2M1FN": _finite(2, 1, 1),
}


def decoded(format: FloatFormat, bits: Id, is_native: bool = False) -> Id:
    """Decodes a narrow float to f32; its bits are the low bits of a word, the other bits are zero."""
    builder = bits.builder
    shift = 23 - format.mantissa
    if is_native:
        half = builder.emit(Op.CompositeExtract, F16, bits.bits(_HALVES), 0)
        return half.convert(Op.FConvert, F32)
    if format.is_unsigned:
        # The smallest exponent is that of f32's subnormals.
        result = bits.equals(0).select(builder.word(0x00400000), bits << 23)
        return bits.equals(format.nan).select(_NAN, result).bits(F32)
    if format.exponent == 8:
        return (bits << shift).bits(F32)
    magnitude = bits & (format.sign - 1)
    normal = (magnitude << shift) + ((127 - format.bias) << 23)
    subnormal = magnitude.convert(Op.ConvertUToF, F32) * 2.0 ** (1 - format.bias - format.mantissa)
    result = (magnitude < (1 << format.mantissa)).select(subnormal.bits(U32), normal)
    if format.has_infinity:
        result = (magnitude > format.largest).select((magnitude << shift) | _INFINITY, result)
    elif format.nan == format.largest + 1 < format.sign:
        result = magnitude.equals(format.nan).select(_NAN, result)
    result = result | ((bits & format.sign) << (31 - format.exponent - format.mantissa))
    if not format.has_negative_zero:
        result = bits.equals(format.sign).select(_NAN, result)
    return result.bits(F32)


def encoded(format: FloatFormat, value: Id, is_native: bool = False) -> Id:
    """Rounds an f32 to a narrow float and returns its bits."""
    builder = value.builder
    if is_native:
        half = value.convert(Op.FConvert, F16)
        return builder.emit(Op.CompositeConstruct, _HALVES, half, builder.constant(F16, 0)).bits(U32)
    raw = value.bits(U32)
    magnitude = raw & 0x7FFFFFFF
    shift = 23 - format.mantissa
    if format.is_unsigned:
        # Ties round up. The smallest value is a subnormal f32, whose bits do not contain its exponent.
        rounded = (magnitude + 0x00400000) >> 23
        small = (magnitude >= 0x00600000).select(builder.word(1), 0)
        result = (magnitude < 0x00800000).select(small, rounded)
        return (result.equals(255) | (raw > 0x7F800000) | raw.equals(0)).select(format.nan, result)
    result = (magnitude + ((magnitude >> shift) & 1) + ((1 << (shift - 1)) - 1)) >> shift
    if format.exponent < 8:
        # Adding a power of two whose last place is the smallest subnormal rounds to a multiple of that subnormal.
        anchor = builder.constant(F32, 2.0 ** (24 - format.bias - format.mantissa))
        subnormal = (magnitude.bits(F32) + anchor).bits(U32) - anchor.bits(U32)
        normal = result - ((127 - format.bias) << format.mantissa)
        result = (magnitude < ((128 - format.bias) << 23)).select(subnormal, normal)
    result = (result > format.largest).select(format.overflow, result)
    if format.has_infinity:
        # NaNs keep their leading bits, so that moving a value does not change it.
        payload = ((magnitude >> shift) & ((1 << format.mantissa) - 1)) | format.overflow
        result = (magnitude > _INFINITY).select(payload.equals(format.overflow).select(format.nan, payload), result)
    elif format.nan != format.overflow:
        result = (magnitude > _INFINITY).select(format.nan, result)
    sign = (raw >> 31) << (format.exponent + format.mantissa)
    if not format.has_negative_zero:
        return (result.equals(0) | result.equals(format.sign)).select(result, result | sign)
    return result ^ sign
