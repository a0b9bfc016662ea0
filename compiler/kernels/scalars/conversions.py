"""Conversions between types, rounded once: to floats to nearest even, to integers towards zero and saturated."""

from __future__ import annotations

from ....spirv.binary.declarations import F32, F64, U32, U64
from ....spirv.binary.expression import Id
from ....spirv.binary.grammar import Op
from ...ir.types import ScalarType
from .integers import extended, low_word
from .scalars import Complex, Scalar, Scalars, as_id, float_kind, is_signed, select
from .wide_integers import Pair, choose, leading_zeros


def convert(scalars: Scalars, value: Scalar, source: ScalarType, target: ScalarType) -> Scalar:
    """Converts a scalar: complex numbers to their real parts, and to booleans by comparison with zero."""
    if source is target:
        return value
    if isinstance(value, Complex):
        if target.kind == "complex":
            real, imaginary = (convert(scalars, x, source.part, target.part) for x in (value.real, value.imaginary))
            return Complex(as_id(real), as_id(imaginary))
        return convert(scalars, value.real, source.part, target)
    if target.kind == "complex":
        real = convert(scalars, value, source, target.part)
        return Complex(as_id(real), scalars.builder.constant(float_kind(target), 0))
    if source.kind == "bool":
        return _of_boolean(scalars, as_id(value), target)
    if target.kind == "bool":
        if source.kind != "float":
            return value.differs(0)
        # Compare the bits: devices may flush a subnormal number to zero.
        return (scalars.float_bits(value) & ((1 << (value.kind.bits - 1)) - 1)).differs(0)
    if source.kind == "float":
        if target.kind == "float":
            return _float_to_float(scalars, as_id(value), source, target)
        return float_to_integer(scalars, as_id(value), target)
    if target.kind == "float":
        return _integer_to_float(scalars, as_id(value), source, target)
    return _integer_to_integer(scalars, as_id(value), source, target)


def _of_boolean(scalars: Scalars, value: Id, target: ScalarType) -> Scalar:
    return select(value, scalars.constant(target, 1), scalars.constant(target, 0))


def _integer_to_integer(scalars: Scalars, value: Id, source: ScalarType, target: ScalarType) -> Id:
    if source.bits == 64 and target.bits < 64:
        return scalars.wrapped(target, low_word(scalars, value))
    if source.bits < 64 and target.bits == 64:
        return extended(scalars, value, is_signed(source))
    return scalars.wrapped(target, value)


def _float_to_float(scalars: Scalars, value: Id, source: ScalarType, target: ScalarType) -> Id:
    if target.bits == 64:
        return value.convert(Op.FConvert, F64)
    if source.bits < 64:
        return scalars.rounded(target, value)
    narrow = value.convert(Op.FConvert, F32)
    return narrow if target.bits == 32 else scalars.rounded(target, _odd(narrow, value))


def _odd(narrow: Id, value: Id) -> Id:
    """Rounds an f64 to f32 towards zero and sets the last bit if inexact, so that rounding again is correct."""
    bits = narrow.bits(U32)
    back = narrow.convert(Op.FConvert, F64)
    is_further = value.function("fabs") < back.function("fabs")
    lower = is_further.select(bits - 1, bits)
    is_inexact = (back < value) | (value < back)
    return is_inexact.select(lower | 1, bits).bits(F32)


def _integer_to_float(scalars: Scalars, value: Id, source: ScalarType, target: ScalarType) -> Id:
    builder = scalars.builder
    if target.bits == 64:
        if source.bits <= 32:
            return value.convert(Op.ConvertSToF if is_signed(source) else Op.ConvertUToF, F64)
        low, high = scalars.halves(value)
        upper = high.convert(Op.ConvertSToF if is_signed(source) else Op.ConvertUToF, F64)
        return upper * 2.0**32 + low.convert(Op.ConvertUToF, F64)
    if source.bits <= 24 or (source.bits == 32 and target.bits == 32):
        return scalars.rounded(target, value.convert(Op.ConvertSToF if is_signed(source) else Op.ConvertUToF, F32))
    negative = value.below(0) if is_signed(source) else builder.boolean(False)
    size = choose(negative, -value, value)
    if source.bits == 64:
        # The leading 32 bits; the last is sticky.
        low, high = scalars.halves(size)
        pair = Pair(low, high)
        shift = high.equals(0).select(builder.word(32), leading_zeros(high))
        top = pair << Pair(shift, builder.word(0))
        word = top.high | top.low.differs(0).select(builder.word(1), 0)
        scale = ((159 - shift) << 23).bits(F32)  # 2 ** (32 - shift)
    else:
        word, scale = size, builder.constant(F32, 1)
    if target.bits < 32:
        # As many bits as f32 holds; the last is sticky.
        shift = leading_zeros(word | 1)
        top_word = word << shift
        word = ((top_word >> 8) | (top_word & 0xFF).differs(0).select(builder.word(1), 0)).convert(Op.ConvertUToF, F32)
        scale = scale * ((135 - shift) << 23).bits(F32)  # 2 ** (8 - shift)
    else:
        word = word.convert(Op.ConvertUToF, F32)
    result = word * scale
    return scalars.rounded(target, negative.select(-result, result))


def float_to_integer(scalars: Scalars, value: Id, target: ScalarType) -> Id:
    """Converts a float towards zero, saturated; NaN gives zero."""
    signed = is_signed(target)
    low = -(1 << (target.bits - 1)) if signed else 0
    high = (1 << (target.bits - 1 if signed else target.bits)) - 1
    lowest, highest = scalars.integer(target, low), scalars.integer(target, high)
    is_nan = scalars.is_nan(value)
    # Both bounds are powers of two, or one past the largest value.
    is_high, is_low = value >= float(high + 1), value <= float(low)
    is_outside = is_high | is_low | is_nan
    inside = is_outside.select(0.0, value)
    if target.bits <= 32:
        result: Id = inside.convert(Op.ConvertFToS if signed else Op.ConvertFToU, U32)
    elif scalars.target.int64:
        result = inside.convert(Op.ConvertFToS if signed else Op.ConvertFToU, U64)
    else:
        size = inside.function("fabs").function("floor")
        upper = (size * 2.0**-32).function("floor")
        lower = size - upper * 2.0**32
        result = Pair(lower.convert(Op.ConvertFToU, U32), upper.convert(Op.ConvertFToU, U32))
        result = choose(inside < 0.0, -result, result)
    zero = scalars.integer(target, 0)
    result = choose(is_nan, zero, result)
    return choose(is_high, highest, choose(is_low, lowest, result))
