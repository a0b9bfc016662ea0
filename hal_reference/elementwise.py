"""Element-wise operations in NumPy, and adapters from functions of arrays to definitions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from .program import Array, Definition, Evaluator, Node


def is_float(dtype: np.dtype[Any]) -> bool:
    """Returns whether a dtype is a real floating-point type of NumPy or ml_dtypes."""
    return dtype.kind == "f" or bool(dtype.kind == "V" and "float" in dtype.name)


def convert(value: Array, dtype: np.dtype[Any]) -> Array:
    """Converts elements: complex numbers to their real parts, to booleans by comparison with zero, floats to integers
    towards zero with saturation and NaN to zero.
    """
    source = value.dtype
    if dtype == source:
        return value
    if source.kind == "c" and dtype.kind != "c":
        return convert(value.real, dtype)
    if dtype == np.bool_:
        return np.asarray(value != np.zeros((), source), np.bool_)
    if is_float(source) and not is_float(dtype) and dtype.kind != "c":
        whole = np.trunc(value.astype(np.float64))
        is_unsigned, bits = dtype.name.startswith("u"), _bits(dtype)
        info = (0, 2**bits - 1) if is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        inside = np.where(np.isnan(whole), 0.0, np.clip(whole, float(info[0]), float(info[1])))
        # The largest 64-bit integers are not doubles, so clipped values are set explicitly.
        saturated = np.where(inside >= float(info[1]), 0.0, inside)
        wide = saturated.astype(np.uint64 if info[0] == 0 else np.int64).astype(dtype)
        return np.where(inside >= float(info[1]), np.array(info[1]).astype(dtype), wide).astype(dtype)
    if source.kind in "iub" or dtype.itemsize >= 4 or is_float(source):
        return value.astype(dtype)
    return value.astype(np.int64).astype(dtype)


def _bits(dtype: np.dtype[Any]) -> int:
    """Returns the bits of an element, such as 4 for ``int4``, although it takes a whole byte."""
    number = re.search(r"\d+", dtype.name)
    return int(number[0]) if number else 1


def by_doubles(function: Callable[[Array], Array]) -> Definition:
    """Defines a unary element-wise function computed in double precision.

    For doubles, in the longest precision available.
    """

    def define(_: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
        (value,) = operands
        if value.dtype.kind == "c":
            wide = value.astype(np.clongdouble if value.dtype.itemsize == 16 else np.complex128)
        else:
            wide = value.astype(np.longdouble if value.dtype == np.float64 else np.float64)
        return [np.asarray(function(wide)).astype(node.types[0].dtype)]

    return define


def direct(function: Callable[..., Array]) -> Definition:
    """Defines an element-wise function that NumPy computes in the operands' own type."""

    def define(_: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
        return [np.asarray(function(*operands)).astype(node.types[0].dtype, copy=False)]

    return define


def structural(function: Callable[[Node, Sequence[Array]], Array]) -> Definition:
    """Defines an operation that moves elements."""
    return lambda _, node, operands: [np.asarray(function(node, operands))]


def of_one_element(function: Callable[[Node, Sequence[Array]], Array]) -> Definition:
    """Defines an operation that changes nothing in a body, as bodies run over arrays of scalars."""

    def define(node: Node, operands: Sequence[Array]) -> Array:
        return function(node, operands) if node.types[0].shape or operands[0].size == 1 else operands[0]

    return structural(define)


def _log_plus_one(value: Array) -> Array:
    if value.dtype.kind != "c":
        return np.log1p(value)
    x, y = value.real, value.imag
    # |1 + z|**2 - 1 = x (2 + x) + y**2, which keeps terms that are small compared to 1.
    is_small = (np.abs(x) < 2) & (np.abs(y) < 2) & (x * (2 + x) + y * y > -0.75)
    near = np.log1p(np.where(is_small, x * (2 + x) + y * y, 0)) / 2
    result = np.empty_like(value)
    result.real = np.where(is_small, near, np.log(np.hypot(1 + x, y)))
    result.imag = np.arctan2(y, 1 + x)
    return result


def _exponential(value: Array) -> Array:
    result = np.asarray(np.exp(value))
    if value.dtype.kind == "c":
        # An infinity has no phase.
        result[np.isinf(value.real) & ~np.isfinite(value.imag)] = complex(math.nan, math.nan)
    return result


def _sign(value: Array) -> Array:
    if value.dtype.kind == "c":
        size = np.abs(value)
        return np.asarray(np.where(size == 0, 0, value / np.where(size == 0, 1, size)))
    return np.sign(value.astype(np.float64)) if is_float(value.dtype) else np.sign(value.astype(np.int64))


def _round_away(value: Array) -> Array:
    return np.asarray(np.copysign(np.floor(np.abs(value) + 0.5), value))


def _round_nearest_afz(value: Array) -> Array:
    rounded = _round_away(value)
    # Adding a half may round up the largest value below a half.
    return np.where(np.abs(rounded - value) > 0.5, np.trunc(value), rounded)


def _divide(left: Array, right: Array) -> Array:
    if "int" not in left.dtype.name:
        return left / right
    a, b = _unbounded(left), _unbounded(right)
    quotient = np.abs(a) // np.where(b == 0, 1, np.abs(b))
    signed = np.where((a < 0) != (b < 0), -quotient, quotient)
    return _wrapped(np.where(b == 0, -1, signed), left.dtype).reshape(left.shape)


def _remainder(left: Array, right: Array) -> Array:
    if "int" not in left.dtype.name:
        return np.fmod(left, right)
    a, b = _unbounded(left), _unbounded(right)
    rest = np.abs(a) % np.where(b == 0, 1, np.abs(b))
    return _wrapped(np.where(b == 0, a, np.where(a < 0, -rest, rest)), left.dtype).reshape(left.shape)


def _unbounded(value: Array) -> Array:
    """Returns an array of Python integers of rank 1 or more, as NumPy turns results of rank 0 into 64-bit numbers."""
    return np.atleast_1d(value).astype(object)


def _wrapped(values: Array, dtype: np.dtype[Any]) -> Array:
    bits = _bits(dtype)
    raw = np.asarray(np.asarray(values, object) & ((1 << bits) - 1), np.uint64)
    if dtype.itemsize * 8 == bits:
        return raw.astype(f"u{dtype.itemsize}").view(dtype)
    signed = raw.astype(np.int64)
    if not dtype.name.startswith("u"):
        signed = np.where(signed >= 1 << (bits - 1), signed - (1 << bits), signed)
    return signed.astype(dtype)


def _power(left: Array, right: Array) -> Array:
    if left.dtype.kind == "c":
        return np.power(left.astype(np.complex128), right.astype(np.complex128))
    if is_float(left.dtype):
        return np.power(left.astype(np.float64), right.astype(np.float64))
    shape = np.broadcast_shapes(left.shape, right.shape)
    pairs = zip(left.reshape(-1).tolist(), right.reshape(-1).tolist(), strict=True)
    powers = [_integer_power(int(base), int(exponent)) for base, exponent in pairs]
    return _wrapped(np.array(powers, object).reshape(shape), left.dtype)


def _atan2(y: Array, x: Array) -> Array:
    if y.dtype.kind != "c":
        return np.arctan2(y.astype(np.float64), x.astype(np.float64))
    y, x = y.astype(np.complex128), x.astype(np.complex128)
    return np.asarray(-1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y)))


def _integer_power(base: int, exponent: int) -> int:
    if exponent >= 0:
        return pow(base, exponent, 1 << 64)
    if abs(base) == 1:
        return base if exponent % 2 else 1
    return 0 if base else -1


def _extreme(choose: Callable[[Array, Array], Array], compare: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    def function(left: Array, right: Array) -> Array:
        if left.dtype.kind != "c":
            return choose(left, right)
        pick = np.where(left.real == right.real, compare(left.imag, right.imag), compare(left.real, right.real))
        pick |= np.isnan(left)
        return np.where(pick & ~(np.isnan(right) & ~np.isnan(left)), left, right)

    return function


def _shift(function: Callable[[Array, Array], Array], *, is_signed: bool = False) -> Callable[..., Array]:
    """Shifts Python integers, unsigned unless ``is_signed``; an amount of at least the width shifts out all bits."""

    def shifted(value: Array, amount: Array) -> Array:
        bits = _bits(value.dtype)
        raw = _unbounded(value) & ((1 << bits) - 1)
        if is_signed:
            raw = np.where(raw >= 1 << (bits - 1), raw - (1 << bits), raw)
        by = _unbounded(amount)
        result = function(raw, np.where((by < 0) | (by >= bits), bits, by))
        return _wrapped(result, value.dtype).reshape(np.broadcast_shapes(value.shape, amount.shape))

    return shifted


def _not(value: Array) -> Array:
    return ~value if value.dtype == np.bool_ else _wrapped(~value.astype(object), value.dtype)


def _bitwise(function: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    def both(left: Array, right: Array) -> Array:
        if left.dtype.kind in "biu":
            return function(left, right)
        return _wrapped(function(left.astype(np.int64), right.astype(np.int64)), left.dtype)

    return both


def _arithmetic(
    function: Callable[[Array, Array], Array], of_bools: Callable[[Array, Array], Array]
) -> Callable[..., Array]:
    """Computes arithmetic operations such as sums and products; for booleans by logic."""
    return lambda left, right: (of_bools if left.dtype == np.bool_ else function)(left, right)


def _negate(value: Array) -> Array:
    return _wrapped(-value.astype(object), value.dtype) if value.dtype.name.startswith("uint") else -value


def _absolute(value: Array) -> Array:
    return np.abs(value) if value.dtype.kind in "fciu" else np.where(value < 0, -value, value)


def _counted(count: Callable[[int, int], int]) -> Definition:
    """Defines an operation that counts bits, from an unsigned integer and its width."""

    def function(value: Array) -> Array:
        bits = _bits(value.dtype)
        raw = [int(item) & ((1 << bits) - 1) for item in value.reshape(-1).tolist()]
        return np.array([count(item, bits) for item in raw], np.int64).reshape(value.shape)

    return direct(function)


_COMPARISONS: Final[Mapping[str, Callable[[Array, Array], Array]]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def total_order(value: Array) -> Array:
    """Maps floats to integers in the order of IEEE's totalOrder: -NaN, -inf, …, -0, 0, …, inf, NaN."""
    size = value.dtype.itemsize
    if value.dtype.name == "float8_e8m0fnu":  # unsigned
        return np.ascontiguousarray(value).view(np.uint8).reshape(value.shape).astype(np.int16)
    bits = np.ascontiguousarray(value).view(f"i{size}").reshape(value.shape)
    bits = bits << (size * 8 - _bits(value.dtype))
    return np.where(bits < 0, bits ^ np.array((1 << (size * 8 - 1)) - 1, bits.dtype), bits)


def _compare(_: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
    left, right = operands
    direction = node.attributes["comparison_direction"]
    if node.attributes.get("compare_type") == "TOTALORDER" and is_float(left.dtype):
        left, right = total_order(left), total_order(right)
    return [np.asarray(_COMPARISONS[direction](left, right), np.bool_)]


def _clamp(low: Array, value: Array, high: Array) -> Array:
    return np.minimum(np.maximum(value, low), high)


def _complex(node: Node, operands: Sequence[Array]) -> Array:
    real, imaginary = operands
    pairs = np.stack([real, imaginary], -1)
    return np.ascontiguousarray(pairs).view(node.types[0].dtype)[..., 0]


def _reduce_precision(node: Node, operands: Sequence[Array]) -> Array:
    """Rounds the mantissa to nearest even; overflow becomes infinity, underflow zero."""
    (value,) = operands
    exponent_bits, mantissa_bits = node.attributes["exponent_bits"], node.attributes["mantissa_bits"]
    wide = value.astype(np.float64)
    fraction, exponent = np.frexp(wide)
    digits = mantissa_bits + 1
    rounded = np.ldexp(np.rint(np.ldexp(fraction, digits)), exponent - digits)
    bias = (1 << (exponent_bits - 1)) - 1
    largest = math.ldexp(2.0 - 2.0**-mantissa_bits, bias) if bias < 1024 else np.inf
    smallest = math.ldexp(1.0, max(1 - bias, -1074))
    result = np.where(np.abs(rounded) > largest, np.copysign(np.inf, wide), rounded)
    result = np.where(np.abs(rounded) < smallest, np.copysign(0.0, wide), result)
    # Without a mantissa there is no NaN.
    special = np.where(np.isnan(wide) & (mantissa_bits == 0), np.copysign(np.inf, wide), wide)
    return np.where(np.isfinite(wide), result, special).astype(value.dtype)


def _bitcast(node: Node, operands: Sequence[Array]) -> Array:
    (value,) = operands
    (spec,) = node.types
    source, target = _bits(value.dtype), _bits(spec.dtype)
    if value.dtype.itemsize * 8 == source and spec.dtype.itemsize * 8 == target:
        shape = value.shape if source == target else spec.shape
        return np.ascontiguousarray(value).reshape(-1).view(spec.dtype).reshape(shape)
    if value.dtype.itemsize * 8 == source:
        octets = np.ascontiguousarray(value).reshape(-1).view(np.uint8).reshape(-1, value.dtype.itemsize)
        raw = np.pad(octets, ((0, 0), (0, 8 - value.dtype.itemsize))).view(np.uint64).reshape(-1)
    else:
        # Floats of fewer than 8 bits are the low bits of a byte.
        whole = np.ascontiguousarray(value).view(np.uint8) if is_float(value.dtype) else value.astype(np.int64)
        raw = (whole & ((1 << source) - 1)).astype(np.uint64).reshape(-1)
    packed = np.unpackbits(raw.astype("<u8").view(np.uint8), bitorder="little").reshape(-1, 64)[:, :source].reshape(-1)
    lanes = np.zeros((packed.size // target, 64), np.uint8)
    lanes[:, :target] = packed.reshape(-1, target)
    numbers = np.packbits(lanes, axis=1, bitorder="little").view("<u8").reshape(spec.shape)
    if is_float(spec.dtype):
        return numbers.astype(f"u{spec.dtype.itemsize}").view(spec.dtype)
    return numbers != 0 if spec.dtype == np.bool_ else _wrapped(numbers.astype(object), spec.dtype)


ELEMENTWISE: Final[Mapping[str, Definition]] = {
    "abs": direct(_absolute),
    "add": direct(_arithmetic(np.add, np.logical_or)),
    "and": direct(_bitwise(np.bitwise_and)),
    "atan2": direct(_atan2),
    "bitcast_convert": structural(_bitcast),
    "cbrt": by_doubles(lambda value: np.cbrt(value) if value.dtype.kind != "c" else np.exp(np.log(value) / 3)),
    "ceil": by_doubles(np.ceil),
    "clamp": direct(_clamp),
    "compare": _compare,
    "complex": structural(_complex),
    "convert": structural(lambda node, operands: convert(operands[0], node.types[0].dtype)),
    "cosine": by_doubles(np.cos),
    "count_leading_zeros": _counted(lambda value, bits: bits - value.bit_length()),
    "divide": direct(_divide),
    "exponential": by_doubles(_exponential),
    "exponential_minus_one": by_doubles(np.expm1),
    "floor": by_doubles(np.floor),
    "imag": direct(np.imag),
    "is_finite": direct(np.isfinite),
    "log": by_doubles(np.log),
    "log_plus_one": by_doubles(_log_plus_one),
    "logistic": by_doubles(lambda value: np.asarray(1 / (1 + np.exp(-value)))),
    "maximum": direct(_extreme(np.maximum, np.greater)),
    "minimum": direct(_extreme(np.minimum, np.less)),
    "multiply": direct(_arithmetic(np.multiply, np.logical_and)),
    "negate": direct(_negate),
    "not": direct(_not),
    "or": direct(_bitwise(np.bitwise_or)),
    "popcnt": _counted(lambda value, bits: value.bit_count()),
    "power": direct(_power),
    "real": direct(np.real),
    "reduce_precision": structural(_reduce_precision),
    "remainder": direct(_remainder),
    "round_nearest_afz": by_doubles(_round_nearest_afz),
    "round_nearest_even": by_doubles(np.rint),
    "rsqrt": by_doubles(lambda value: 1 / np.sqrt(value)),
    "select": direct(np.where),
    "shift_left": direct(_shift(np.left_shift)),
    "shift_right_arithmetic": direct(_shift(np.right_shift, is_signed=True)),
    "shift_right_logical": direct(_shift(np.right_shift)),
    "sign": direct(_sign),
    "sine": by_doubles(np.sin),
    "sqrt": by_doubles(np.sqrt),
    "subtract": direct(_arithmetic(np.subtract, np.logical_xor)),
    "tan": by_doubles(np.tan),
    "tanh": by_doubles(np.tanh),
    "xor": direct(_bitwise(np.bitwise_xor)),
}
"""Definitions by name of the operation, without the dialect."""
