"""Scattered sums of floats in fixed point, by atomic integer additions: the result does not depend on the order.

First the largest magnitude among the updates of each element is computed. It determines the shift of each update's 24
digits in 64 bits, such that the sum cannot overflow. Of n updates, those up to 2³⁸ / n times smaller than the largest
keep every digit. The sum is rounded once, so it is closer to the true sum than a sum of floats in any order.
"""

from __future__ import annotations

import math
from typing import Final

from ...dialects.builder import Builder
from ...ir.operation import Value, tensor_of
from ...ir.types import F32, I32, I64, ScalarType, TensorType
from ..formulas.expression import Expression
from .building import joining, scattered, shape_of, taken

_WORD: Final = ScalarType("ui32")
_WIDE: Final = ScalarType("ui64")

_INFINITE: Final = 0x7F800000
_HIDDEN: Final = 1 << 23
_MANY: Final = 31
"""Infinite updates are counted in a word: positive updates from this bit on, negative updates below.

NaN counts as both.
"""


def sums_by_place(builder: Builder, keys: Value, update: Value, old: Value) -> Value:
    """Adds updates to rows.

    Args:
        builder: the builder that appends the operations.
        keys: the row of each update; the number of rows for no row.
        update: a row for each key, of floats of up to 32 bits.
        old: the rows.
    """

    def joined(name: str, value: Expression) -> Expression:
        zero = builder.constant(0, TensorType(tensor_of(old).lengths, value.element))
        return Expression(
            builder, scattered(builder, joining(builder, name, value.element), keys, [value.value], [zero])[0]
        )

    (total,), before = shape_of(keys), Expression(builder, old)
    digits = max(total.bit_length(), 7)
    bits = Expression(builder, update).convert(F32).bitcast(_WORD)
    magnitude = bits & 0x7FFFFFFF
    largest = joined("maximum", magnitude)
    fixed = _fixed(bits, magnitude, Expression(builder, taken(builder, largest.value, keys)), 38 - digits)
    result = joined("add", fixed)
    scale = _exponent(largest).convert(I32) + (digits - 188)
    half = scale.call("shift_right_arithmetic", 1)
    value = result.convert(F32)
    for part in (half, scale - half):
        value = value * (part + 127).call("shift_left", 23).bitcast(F32)
    value = (largest >= _INFINITE).then(_special(result), value)
    added = (before.convert(F32) + value).convert(before.element)
    return largest.equals(0).then(before, added).value


def _exponent(magnitude: Expression) -> Expression:
    return magnitude.call("shift_right_logical", 23).call("maximum", 1)


def _fixed(bits: Expression, magnitude: Expression, largest: Expression, most: int) -> Expression:
    """Converts floats to fixed point.

    Args:
        bits: the floats' bits.
        magnitude: the floats' bits without the sign.
        largest: the largest magnitude among the updates of the same element.
        most: the left shift of the largest element, in bits.
    """
    fraction = magnitude & (_HIDDEN - 1)
    integer = fraction | (magnitude >= _HIDDEN).then(bits.constant(_HIDDEN), 0)
    distance = _exponent(largest) - _exponent(magnitude)
    near = distance.call("minimum", most)
    right = (distance - near).call("minimum", 31)
    left = near.constant(most) - near
    bit = bits.constant(1)
    unit = bit.call("shift_left", right).call("shift_right_logical", 1)
    rounded = (integer + unit).call("shift_right_logical", right)
    power = bit.call("shift_left", left)
    value = (rounded.convert(_WIDE) * power.convert(_WIDE)).bitcast(I64)
    is_negative = bits >= 1 << 31
    value = is_negative.then(-value, value)
    infinite = is_negative.then(value.constant(1), 1 << _MANY)
    special = magnitude.equals(_INFINITE).then(infinite, 0)
    special = (magnitude > _INFINITE).then((1 << _MANY) + 1, special)
    return (largest >= _INFINITE).then(special, value)


def _special(counts: Expression) -> Expression:
    """Returns the sum of values that are not all finite, from packed counts of positive and negative infinities."""
    above = counts.call("shift_right_logical", _MANY).differs(0)
    below = (counts & ((1 << _MANY) - 1)).differs(0)
    positive = counts.builder.constant(math.inf, TensorType(tensor_of(counts.value).lengths, F32))
    infinite = above.then(Expression(counts.builder, positive), -math.inf)
    return (above & below).then(math.nan, infinite)
