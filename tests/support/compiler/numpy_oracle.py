"""The results of element-wise operations by NumPy, ml_dtypes and Python's integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pumice.compiler.ir.types import ScalarType

Array = npt.NDArray[Any]


def expected_of(name: str, type: ScalarType, operands: Sequence[Array]) -> Array:
    """The result of an operation, as Python's integers, long doubles or booleans; None where it is open.

    Args:
        name: of the operation, with the direction of a comparison after a space.
        type: of the elements of the operands.
        operands: arrays of the type.
    """
    if type.kind in ("int", "uint"):
        function = _INTEGER[name]
        rows = zip(*(array.astype(object) for array in operands), strict=True)
        return np.array([function(type, *map(int, row)) for row in rows], object)
    if type.kind == "bool":
        return np.asarray(_BOOLEAN[name](*operands))
    if type.kind == "complex":
        wide = [array.astype(np.clongdouble) for array in operands]
        return np.asarray({**_FLOAT, **_COMPLEX}[name](*wide))
    return np.asarray(_FLOAT[name](*(array.astype(np.float64).astype(np.longdouble) for array in operands)))


def wrapped(value: int, type: ScalarType) -> int:
    """An integer modulo the type's range."""
    value &= (1 << type.bits) - 1
    return value - (1 << type.bits) if type.kind == "int" and value >> (type.bits - 1) else value


def _wrapping(function: Callable[..., int | None]) -> Callable[..., int | None]:
    def result(type: ScalarType, *values: int) -> int | None:
        found = function(*values)
        return None if found is None else wrapped(found, type)

    return result


def _shifted(function: Callable[[int, int], int], filled: bool = False) -> Callable[..., int | None]:
    def result(type: ScalarType, value: int, places: int) -> int | None:
        if not 0 <= places < type.bits:
            return None
        return wrapped(function(value if filled else value & ((1 << type.bits) - 1), places), type)

    return result


def _quotient(left: int, right: int) -> int | None:
    return None if right == 0 else (abs(left) // abs(right)) * (1 if (left < 0) == (right < 0) else -1)


def _rest(left: int, right: int) -> int | None:
    return None if right == 0 else int(math.copysign(1, left)) * (abs(left) % abs(right))


def _signed(type: ScalarType, left: int, right: int) -> int | None:
    value = left if type.kind == "int" else wrapped(left, ScalarType(f"i{type.bits}"))
    return wrapped(value >> right, type) if 0 <= right < type.bits else None


def _bits(type: ScalarType, value: int) -> int:
    return value & ((1 << type.bits) - 1)


_COMPARED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
}
_INTEGER: Final[Mapping[str, Callable[..., Any]]] = {
    "abs": _wrapping(abs),
    "add": _wrapping(lambda a, b: a + b),
    "and": _wrapping(lambda a, b: a & b),
    "count_leading_zeros": lambda type, value: wrapped(type.bits - _bits(type, value).bit_length(), type),
    "divide": _wrapping(_quotient),
    "maximum": _wrapping(max),
    "minimum": _wrapping(min),
    "multiply": _wrapping(lambda a, b: a * b),
    "negate": _wrapping(lambda a: -a),
    "not": _wrapping(lambda a: ~a),
    "or": _wrapping(lambda a, b: a | b),
    "popcnt": lambda type, value: wrapped(_bits(type, value).bit_count(), type),
    "power": lambda type, a, b: wrapped(pow(a, b, 1 << type.bits), type) if b >= 0 else None,
    "remainder": _wrapping(_rest),
    "shift_left": _shifted(lambda a, b: a << b),
    "shift_right_arithmetic": _signed,
    "shift_right_logical": _shifted(lambda a, b: a >> b),
    "sign": _wrapping(lambda a: (a > 0) - (a < 0)),
    "subtract": _wrapping(lambda a, b: a - b),
    "xor": _wrapping(lambda a, b: a ^ b),
    **{f"compare {case}": (lambda test: lambda type, a, b: test(a, b))(test) for case, test in _COMPARED.items()},
}
_BOOLEAN: Final[Mapping[str, Callable[..., Any]]] = {
    "add": np.logical_or,
    "and": np.logical_and,
    "maximum": np.logical_or,
    "minimum": np.logical_and,
    "multiply": np.logical_and,
    "not": np.logical_not,
    "or": np.logical_or,
    "xor": np.logical_xor,
    **{f"compare {case}": test for case, test in _COMPARED.items()},
}
_FLOAT: Final[Mapping[str, Callable[..., Any]]] = {
    "abs": np.abs,
    "add": np.add,
    "atan2": np.arctan2,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "cosine": np.cos,
    "divide": np.divide,
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "floor": np.floor,
    "imag": np.imag,
    "is_finite": np.isfinite,
    "log": np.log,
    "log_plus_one": np.log1p,
    "logistic": lambda a: 1 / (1 + np.exp(-a)),
    "maximum": np.maximum,
    "minimum": np.minimum,
    "multiply": np.multiply,
    "negate": np.negative,
    "power": np.power,
    "real": np.real,
    "remainder": np.fmod,
    "round_nearest_afz": lambda a: np.copysign(np.floor(np.abs(a) + np.longdouble(0.5)), a),
    "round_nearest_even": np.rint,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "sign": np.sign,
    "sine": np.sin,
    "sqrt": np.sqrt,
    "subtract": np.subtract,
    "tan": np.tan,
    "tanh": np.tanh,
    **{f"compare {case}": test for case, test in _COMPARED.items()},
}
_COMPLEX: Final[Mapping[str, Callable[..., Any]]] = {
    "atan2": lambda a, b: -1j * np.log((b + 1j * a) / np.sqrt(a * a + b * b)),
    "cbrt": lambda a: np.exp(np.log(a) / 3),
    "maximum": lambda a, b: np.where((a.real > b.real) | ((a.real == b.real) & (a.imag > b.imag)), a, b),
    "minimum": lambda a, b: np.where((a.real < b.real) | ((a.real == b.real) & (a.imag < b.imag)), a, b),
    "sign": lambda a: a / np.abs(a),
}
