"""Element-wise operations: from scalars to a scalar, for every type."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from ...spirv.binary.expression import Id
from ..ir.attributes import EnumAttr
from ..ir.operation import Operation
from ..ir.types import ScalarType
from .elements import ElementWise, scalar_of
from .scalars import complex_math, exponentials, trigonometry
from .scalars.conversions import convert, remainder
from .scalars.floats import Floats
from .scalars.integers import Integers
from .scalars.scalars import Complex, Scalar, Scalars, as_complex, as_id, float_kind, select
from .scalars.target import compile_error

OfFloat: TypeAlias = Callable[..., Id]
OfComplex: TypeAlias = Callable[..., Scalar]
OfInteger: TypeAlias = Callable[..., Id]


def _floats(scalars: Scalars, type: ScalarType) -> Floats:
    return Floats(scalars, float_kind(type))


def _by_type(
    of_float: OfFloat | None = None,
    of_complex: OfComplex | None = None,
    of_integer: OfInteger | None = None,
    of_boolean: Callable[..., Id] | None = None,
) -> ElementWise:
    """Creates an operation from one function for each kind of type. Each takes the kind's helper and the operands.

    Functions of booleans take no helper.
    """

    def define(scalars: Scalars, operation: Operation, operands: Sequence[Scalar]) -> Scalar:
        type = scalar_of(operation.operands[0])
        if type.kind == "float" and of_float is not None:
            return scalars.rounded(type, of_float(_floats(scalars, type), *operands))
        if type.kind == "complex" and of_complex is not None:
            return of_complex(_floats(scalars, type), *operands)
        if type.is_integer and of_integer is not None:
            return scalars.wrapped(type, of_integer(Integers(scalars, type), *operands))
        if type.kind == "bool" and of_boolean is not None:
            return of_boolean(*operands)
        raise compile_error(operation, f"it is not defined for {type}")

    return define


def _sign(f: Floats, x: Id) -> Id:
    result = (x < 0.0).select(f.constant(-1), x)
    return (x > 0.0).select(1.0, result)


def _round_away(f: Floats, x: Id) -> Id:
    size = f.absolute(x)
    whole = size.function("floor")
    return f.with_sign((size - whole >= 0.5).select(whole + 1.0, whole), x)


def _rounding(name: str) -> ElementWise:
    return _by_type(lambda f, x: x.function(name))


def _complex_extreme(is_greater: bool) -> OfComplex:
    def choose(f: Floats, left: Complex, right: Complex) -> Scalar:
        left_nan = f.is_nan(left.real) | f.is_nan(left.imaginary)
        right_nan = f.is_nan(right.real) | f.is_nan(right.imaginary)
        a, b = (left, right) if is_greater else (right, left)
        wins = left.real.equals(right.real).select(a.imaginary > b.imaginary, a.real > b.real)
        return select((wins | left_nan) & ~(right_nan & ~left_nan), left, right)

    return choose


def _compare(scalars: Scalars, operation: Operation, operands: Sequence[Scalar]) -> Scalar:
    type = scalar_of(operation.operands[0])
    direction, kind = (operation.attributes.get(name) for name in ("comparison_direction", "compare_type"))
    assert isinstance(direction, EnumAttr)
    case = direction.case
    left, right = operands
    if isinstance(left, Complex):
        other = as_complex(right)
        same = left.real.equals(other.real) & left.imaginary.equals(other.imaginary)
        return same if case == "EQ" else ~same
    a, b = as_id(left), as_id(right)
    if type.kind == "bool":
        # False is less than true.
        true = scalars.builder.word(1)
        a, b = (a, b) if case in ("EQ", "NE") else (a.select(true, 0), b.select(true, 0))
    signed = type.kind in ("int", "index")
    if type.kind == "float" and isinstance(kind, EnumAttr) and kind.case == "TOTALORDER":
        a, b, signed = _total_order(scalars, type, a), _total_order(scalars, type, b), True
    if case == "EQ":
        return a.equals(b)
    if case == "NE":
        return a.differs(b)
    if case in ("GT", "LE") and signed:
        a, b = b, a
    if signed:
        less = a.below(b)
        return less if case in ("LT", "GT") else ~less
    return {"LT": a.__lt__, "LE": a.__le__, "GT": a.__gt__, "GE": a.__ge__}[case](b)


def _total_order(scalars: Scalars, type: ScalarType, value: Id) -> Id:
    """Maps floats to signed integers in the order of IEEE 754's totalOrder."""
    if type.bits >= 32:
        bits, last = scalars.float_bits(value), type.bits - 1
    else:
        bits, last = scalars.to_words(type, value)[0], 31
        if str(type) == "f8E8M0FNU":  # unsigned
            return bits
        bits = bits << (32 - type.bits)
    return bits ^ (bits.shifted_signed(last) & ((1 << last) - 1))


def _clamp(scalars: Scalars, operation: Operation, operands: Sequence[Scalar]) -> Scalar:
    low, value, high = operands
    return _MINIMUM(scalars, operation, [_MAXIMUM(scalars, operation, [value, low]), high])


def _convert(scalars: Scalars, operation: Operation, operands: Sequence[Scalar]) -> Scalar:
    return convert(scalars, operands[0], scalar_of(operation.operands[0]), scalar_of(operation.result))


def _reduce_precision(scalars: Scalars, operation: Operation, operands: Sequence[Scalar]) -> Scalar:
    """Rounds the mantissa to nearest even; overflow becomes infinity, underflow zero."""
    type = scalar_of(operation.operands[0])
    f = _floats(scalars, type)
    value = as_id(operands[0])
    exponent_bits, mantissa_bits = operation.integer("exponent_bits"), operation.integer("mantissa_bits")
    width = value.kind.bits
    bits = scalars.float_bits(value)
    dropped = f.digits - 1 - mantissa_bits
    if dropped > 0:
        size = bits & ((1 << (width - 1)) - 1)
        odd = (size >> dropped) & 1
        half = (1 << (dropped - 1)) - 1
        rounded = (((size + odd) + half) >> dropped) << dropped
        result = f.with_sign(scalars.float_of(rounded), value)
    else:
        result = value
    bias = (1 << (exponent_bits - 1)) - 1
    if bias < f.bias:
        largest = math.ldexp(2.0 - 2.0**-mantissa_bits, bias)
        result = (f.absolute(result) > largest).select(f.with_sign(f.infinity, value), result)
    smallest = f.with_sign(f.constant(0), value)
    result = (f.absolute(result) < math.ldexp(1.0, max(1 - bias, 1 - f.bias))).select(smallest, result)
    special = value
    if mantissa_bits == 0:
        special = f.is_nan(value).select(f.with_sign(f.infinity, value), value)
    return scalars.rounded(type, f.is_finite(value).select(result, special))


def _select(scalars: Scalars, operation: Operation, operands: Sequence[Scalar]) -> Scalar:
    condition, then, otherwise = operands
    return select(as_id(condition), then, otherwise)


def _zero() -> ElementWise:
    return lambda scalars, operation, operands: scalars.builder.word(0)


def _part(name: str) -> ElementWise:
    def define(scalars: Scalars, operation: Operation, operands: Sequence[Scalar]) -> Scalar:
        (value,) = operands
        if isinstance(value, Complex):
            return value.real if name == "real" else value.imaginary
        return value if name == "real" else scalars.constant(scalar_of(operation.result), 0)

    return define


def _is_finite(scalars: Scalars, operation: Operation, operands: Sequence[Scalar]) -> Scalar:
    return _floats(scalars, scalar_of(operation.operands[0])).is_finite(as_id(operands[0]))


def _shift(name: str) -> ElementWise:
    return _by_type(of_integer=lambda integers, value, amount: integers.shift(name, value, amount))


_MINIMUM: Final = _by_type(
    lambda f, x, y: f.minimum(x, y),
    _complex_extreme(False),
    lambda integers, x, y: integers.minimum(x, y),
    lambda x, y: x & y,
)
_MAXIMUM: Final = _by_type(
    lambda f, x, y: f.maximum(x, y),
    _complex_extreme(True),
    lambda integers, x, y: integers.maximum(x, y),
    lambda x, y: x | y,
)

ELEMENT_WISE: Final[Mapping[str, ElementWise]] = {
    "abs": _by_type(lambda f, x: f.absolute(x), complex_math.absolute, lambda integers, x: integers.absolute(x)),
    "add": _by_type(
        lambda _, x, y: x + y, lambda _, x, y: complex_math.add(x, y), lambda _, x, y: x + y, lambda x, y: x | y
    ),
    "and": _by_type(of_integer=lambda _, x, y: x & y, of_boolean=lambda x, y: x & y),
    "atan2": _by_type(trigonometry.arc_tangent, complex_math.arc_tangent),
    "cbrt": _by_type(exponentials.cube_root, complex_math.cube_root),
    "ceil": _rounding("ceil"),
    "clamp": _clamp,
    "compare": _compare,
    "complex": lambda scalars, operation, operands: Complex(as_id(operands[0]), as_id(operands[1])),
    "convert": _convert,
    "cosine": _by_type(trigonometry.cosine, complex_math.cosine),
    "count_leading_zeros": _by_type(of_integer=lambda integers, x: integers.count_leading_zeros(x)),
    "divide": _by_type(lambda _, x, y: x / y, complex_math.divide, lambda integers, x, y: integers.divide(x, y)),
    "exponential": _by_type(exponentials.exponential, complex_math.exponential),
    "exponential_minus_one": _by_type(exponentials.exponential_minus_one, complex_math.exponential_minus_one),
    "floor": _rounding("floor"),
    "imag": _part("imag"),
    "is_finite": _is_finite,
    "log": _by_type(exponentials.logarithm, complex_math.logarithm),
    "log_plus_one": _by_type(exponentials.logarithm_of_next, complex_math.logarithm_of_next),
    "logistic": _by_type(exponentials.logistic, complex_math.logistic),
    "maximum": _MAXIMUM,
    "minimum": _MINIMUM,
    "multiply": _by_type(
        lambda _, x, y: x * y, lambda _, x, y: complex_math.multiply(x, y), lambda _, x, y: x * y, lambda x, y: x & y
    ),
    "negate": _by_type(lambda _, x: -x, lambda _, x: Complex(-x.real, -x.imaginary), lambda _, x: -x),
    "not": _by_type(of_integer=lambda _, x: ~x, of_boolean=lambda x: ~x),
    "or": _by_type(of_integer=lambda _, x, y: x | y, of_boolean=lambda x, y: x | y),
    "partition_id": _zero(),
    "popcnt": _by_type(of_integer=lambda integers, x: integers.population(x)),
    "power": _by_type(exponentials.power, complex_math.power, lambda integers, x, y: integers.power(x, y)),
    "real": _part("real"),
    "reduce_precision": _reduce_precision,
    "remainder": _by_type(remainder, None, lambda integers, x, y: integers.remainder(x, y)),
    "replica_id": _zero(),
    "round_nearest_afz": _by_type(_round_away),
    "round_nearest_even": _rounding("round_even"),
    "rsqrt": _by_type(lambda _, x: 1.0 / x.function("sqrt"), complex_math.reciprocal_root),
    "select": _select,
    "shift_left": _shift("left"),
    "shift_right_arithmetic": _shift("right_arithmetic"),
    "shift_right_logical": _shift("right_logical"),
    "sign": _by_type(_sign, complex_math.sign, lambda integers, x: integers.sign(x)),
    "sine": _by_type(trigonometry.sine, complex_math.sine),
    "sqrt": _by_type(lambda _, x: x.function("sqrt"), complex_math.square_root),
    "subtract": _by_type(
        lambda _, x, y: x - y, lambda _, x, y: complex_math.subtract(x, y), lambda _, x, y: x - y, lambda x, y: x ^ y
    ),
    "tan": _by_type(trigonometry.tangent, complex_math.tangent),
    "tanh": _by_type(exponentials.hyperbolic_tangent, complex_math.hyperbolic_tangent),
    "xor": _by_type(of_integer=lambda _, x, y: x ^ y, of_boolean=lambda x, y: x ^ y),
}
