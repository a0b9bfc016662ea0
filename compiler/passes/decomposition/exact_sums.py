"""Scattered sums of floats in fixed point, by atomic additions of integers: the same result in any order.

First the largest magnitude among the updates of each element is found. It determines how far the 24 digits of each
update are shifted in 64 bits, such that the sum cannot overflow: of n updates, those up to 2³⁸ / n times smaller than
the largest keep every digit. The sum is rounded once, and so is closer to the true one than a sum of floats in any
order.
"""

from __future__ import annotations

import math
from typing import Final

from ...dialects.builder import Builder
from ...ir.attributes import type_shape
from ...ir.operation import Value, tensor_of
from ...ir.types import F32, I32, I64, ScalarType, TensorType
from .building import joining, scattered, taken

_WORD: Final = ScalarType("ui32")
_WIDE: Final = ScalarType("ui64")
_INFINITE: Final = 0x7F800000
_HIDDEN: Final = 1 << 23
_MANY: Final = 31
"""Infinite updates are counted in a word, positive ones from this bit on, negative ones below; NaN counts as both."""


def sums_by_place(builder: Builder, keys: Value, update: Value, old: Value) -> Value:
    """Adds updates to rows.

    Args:
        builder: appends the operations.
        keys: the row of each update; the number of rows for no row.
        update: a row for each key, of floats of up to 32 bits.
        old: the rows.
    """
    (total,), element = type_shape(tensor_of(keys)), tensor_of(old).scalar
    digits = max(total.bit_length(), 7)
    shape = tensor_of(old).lengths
    bits = builder.bitcast(builder.convert(update, F32), _WORD)
    magnitude = builder.elementwise("and", bits, 0x7FFFFFFF)
    zero = builder.constant(0, TensorType(shape, _WORD))
    (largest,) = scattered(builder, joining(builder, "maximum", _WORD), keys, [magnitude], [zero])
    fixed = _fixed(builder, bits, magnitude, taken(builder, largest, keys), 38 - digits)
    (result,) = scattered(
        builder, joining(builder, "add", I64), keys, [fixed], [builder.constant(0, TensorType(shape, I64))]
    )
    exponent = builder.convert(_exponent(builder, largest), I32)
    scale = builder.elementwise("add", exponent, digits - 188)
    half = builder.elementwise("shift_right_arithmetic", scale, 1)
    value = builder.convert(result, F32)
    for part in (half, builder.elementwise("subtract", scale, half)):
        value = builder.elementwise("multiply", value, _power_of_two(builder, part))
    value = builder.select(builder.compare("GE", largest, _INFINITE), _special(builder, result), value)
    added = builder.convert(builder.elementwise("add", builder.convert(old, F32), value), element)
    return builder.select(builder.compare("EQ", largest, 0), old, added)


def _exponent(builder: Builder, magnitude: Value) -> Value:
    return builder.elementwise("maximum", builder.elementwise("shift_right_logical", magnitude, 23), 1)


def _power_of_two(builder: Builder, exponent: Value) -> Value:
    return builder.bitcast(builder.elementwise("shift_left", builder.elementwise("add", exponent, 127), 23), F32)


def _fixed(builder: Builder, bits: Value, magnitude: Value, largest: Value, most: int) -> Value:
    """Converts floats to fixed point.

    Args:
        builder: appends the operations.
        bits: of the floats.
        magnitude: their bits without the sign.
        largest: magnitude among the updates of the same element.
        most: how far the largest is shifted to the left.
    """
    fraction = builder.elementwise("and", magnitude, _HIDDEN - 1)
    has_hidden = builder.compare("GE", magnitude, _HIDDEN)
    integer = builder.elementwise("or", fraction, builder.select(has_hidden, builder.like(bits, _HIDDEN), 0))
    distance = builder.elementwise("subtract", _exponent(builder, largest), _exponent(builder, magnitude))
    near = builder.elementwise("minimum", distance, most)
    right = builder.elementwise("minimum", builder.elementwise("subtract", distance, near), 31)
    left = builder.elementwise("subtract", builder.like(near, most), near)
    one = builder.like(bits, 1)
    unit = builder.elementwise("shift_right_logical", builder.elementwise("shift_left", one, right), 1)
    rounded = builder.elementwise("shift_right_logical", builder.elementwise("add", integer, unit), right)
    factors = (rounded, builder.elementwise("shift_left", one, left))
    product = builder.elementwise("multiply", *(builder.convert(factor, _WIDE) for factor in factors))
    value = builder.bitcast(product, I64)
    is_negative = builder.compare("GE", bits, 1 << 31)
    value = builder.select(is_negative, builder.elementwise("negate", value), value)
    infinite = builder.select(is_negative, builder.like(value, 1), 1 << _MANY)
    special = builder.select(builder.compare("EQ", magnitude, _INFINITE), infinite, 0)
    special = builder.select(builder.compare("GT", magnitude, _INFINITE), (1 << _MANY) + 1, special)
    return builder.select(builder.compare("GE", largest, _INFINITE), special, value)


def _special(builder: Builder, counts: Value) -> Value:
    """Returns the sum of values of which some are not finite; NaN counts on both sides."""
    above = builder.compare("NE", builder.elementwise("shift_right_logical", counts, _MANY), 0)
    below = builder.compare("NE", builder.elementwise("and", counts, (1 << _MANY) - 1), 0)
    positive = builder.constant(math.inf, TensorType(tensor_of(counts).lengths, F32))
    infinite = builder.select(above, positive, -math.inf)
    return builder.select(builder.elementwise("and", above, below), math.nan, infinite)
