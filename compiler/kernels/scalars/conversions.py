"""Conversions between types, rounded once, and the exact remainder of floats, which uses them.

Conversions to floats round to nearest even; those to integers round towards zero and saturate.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....spirv.binary.declarations import F32, F64, U32, U64
from ....spirv.binary.expression import Id
from ....spirv.binary.grammar import Op
from ...ir.types import F32 as F32_TYPE
from ...ir.types import F64 as F64_TYPE
from ...ir.types import ScalarType
from .floats import Floats
from .integers import extended, low_word
from .scalars import Complex, Scalar, Scalars, as_id, float_kind, is_signed, select
from .wide_integers import Pair, choose, leading_zeros


def convert(scalars: Scalars, value: Scalar, source: ScalarType, target: ScalarType) -> Scalar:
    """Converts a scalar. Complex numbers become their real parts, and booleans are comparisons with zero."""
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
        return select(as_id(value), scalars.constant(target, 1), scalars.constant(target, 0))
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
        # The bits of an f32's significand; the last is sticky.
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
    # Both bounds are powers of two: the upper bound is one above the largest value.
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


def remainder(f: Floats, x: Id, y: Id) -> Id:
    """Returns the remainder of division towards zero, by long division of the significands as integers."""
    scalars = f.scalars
    type = ScalarType("ui32" if f.kind == F32 else "ui64")
    (first, dividend), (second, divisor) = _integers(f, type, x), _integers(f, type, y)
    divisor = choose(divisor.equals(0), scalars.integer(type, 1), divisor)
    step = type.bits - f.digits
    is_less = first.below(second)
    left = is_less.select(0, first - second)

    def divide(values: Sequence[Scalar]) -> tuple[Sequence[Scalar], Id]:
        rest, count = map(as_id, values)
        by = (count < step).select(count, step)
        amount = as_id(convert(scalars, by, ScalarType("ui32"), type))
        after = count - by
        return ((rest << amount) % divisor, after), after.differs(0)

    most = -(-2 * (f.bias + f.digits) // step)
    rest = as_id(scalars.loop([dividend, left], divide, most)[0])
    # The remainder has no more digits than a float, so the conversion is exact.
    result = f.scaled(as_id(convert(scalars, rest, type, F32_TYPE if f.kind == F32 else F64_TYPE)), second)
    result = (f.absolute(x) < f.absolute(y)).select(f.absolute(x), result)
    is_wrong = y.equals(0) | ~f.is_finite(x) | f.is_nan(y)
    return is_wrong.select(f.nan, f.with_sign(result, x))


def _integers(f: Floats, type: ScalarType, x: Id) -> tuple[Id, Id]:
    """Splits a float's magnitude into an exponent and an integer."""
    scalars = f.scalars
    field = (f.top(x) >> f.shift) & (0xFF if f.kind == F32 else 0x7FF)
    is_normal = field.differs(0)
    bits = scalars.float_bits(x) & ((1 << (f.digits - 1)) - 1)
    hidden = choose(is_normal, scalars.integer(type, 1 << (f.digits - 1)), scalars.integer(type, 0))
    exponent = is_normal.select(field, 1) - (f.bias + f.digits - 1)
    return exponent, bits | hidden
