"""Conversions of scalars between callers and the VM.

Numbers are passed in 32- and 64-bit registers. Integer arguments must fit the declared width, and are sign-extended
unless declared unsigned. Integer results are truncated to the declared width, since programs compute in the register's
width. Floats of at most 16 bits are the low bits of an integer register.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...vm.bytecode.declaration import DeclaredValue
from ...vm.types.numerics import round_f32
from ..arrays.array import DeviceArray
from .signature import Argument, Result, element_type_of

_REGISTER_BITS: Final = {"i": 32, "I": 64}


def scalar_binder(argument: Argument, function: str) -> Callable[[Any], Any]:
    """Returns a converter of a caller's number (Python, NumPy, or an array of rank 0) to the VM's."""
    if argument.letter in "iI":
        element_type = element_type_of(argument.declared)
        if element_type is not None and element_type.is_float and element_type.dtype is not None:
            return _narrow_float(argument, function, element_type.dtype)
        return _integer(argument, function)
    return _float(argument, function)


def scalar_unbinder(result: Result) -> Callable[[Any], Any]:
    """Returns a converter of the VM's number to the caller's: a bool for ``i1``, else an int or a float."""
    text = (result.declared.element_type if result.declared is not None else None) or ""
    if result.letter not in "iI" or not text:
        return lambda value: value
    if text == "i1":
        return lambda value: bool(value & 1)
    element_type = element_type_of(result.declared)
    if element_type is not None and element_type.is_float and element_type.dtype is not None:
        dtype = element_type.dtype
        word = np.dtype(f"u{dtype.itemsize}")
        mask = (1 << 8 * dtype.itemsize) - 1
        return lambda value: float(np.asarray(value & mask, word).view(dtype))
    digits = text.lstrip("sui")
    bits = int(digits) if digits.isdigit() else 64
    if text.startswith("u"):
        return lambda value: value & ((1 << bits) - 1)
    if bits >= _REGISTER_BITS[result.letter]:
        return lambda value: value
    half = 1 << (bits - 1)
    return lambda value: ((value + half) & (2 * half - 1)) - half


def _integer_range(declared: DeclaredValue | None, letter: str) -> tuple[int, int, int]:
    """Returns the lowest and highest value, and the first of the values that represent negative numbers."""
    bits = _REGISTER_BITS[letter]
    text = (declared.element_type if declared is not None else None) or ""
    width = bits
    digits = text.lstrip("sui")
    if digits.isdigit():
        width = min(int(digits), bits)
    if width == 1:
        return 0, 1, 2
    if text.startswith("si"):
        return -1 << (width - 1), (1 << (width - 1)) - 1, 1 << (width - 1)
    if text.startswith("u"):
        return 0, (1 << width) - 1, 1 << (bits - 1)
    return -1 << (width - 1), (1 << width) - 1, 1 << (width - 1)


def _integer(argument: Argument, function: str) -> Callable[[Any], int]:
    low, high, half = _integer_range(argument.declared, argument.letter)
    modulus = 2 * half

    def bind(value: Any) -> int:
        number = value if type(value) is int else _as_integer(value)
        if number is None:
            raise argument.error(function, value, "expected an int")
        if not low <= number <= high:
            raise argument.error(function, value, f"expected {'a bool or ' * (high == 1)}an int from {low} to {high}")
        return number if number < half else number - modulus

    return bind


def _as_integer(value: Any) -> int | None:
    if isinstance(value, DeviceArray):
        value = value.numpy()
    if isinstance(value, (np.ndarray, np.generic)):
        if value.ndim or value.dtype.kind not in "biu":
            return None
        return int(value)
    try:
        return operator.index(value)
    except TypeError:
        return None


def _as_float(value: Any) -> float | None:
    if isinstance(value, DeviceArray):
        value = value.numpy()
    if isinstance(value, (np.ndarray, np.generic)) and (value.ndim or value.dtype.kind not in "biufV"):
        return None
    if value is None or isinstance(value, (str, bytes, bytearray, complex)):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _float(argument: Argument, function: str) -> Callable[[Any], float]:
    is_single = argument.letter == "f"

    def bind(value: Any) -> float:
        number = value if type(value) is float else _as_float(value)
        if number is None:
            raise argument.error(function, value, "expected a float")
        if not is_single:
            return number
        rounded = round_f32(number)
        if math.isinf(rounded) and not math.isinf(number):
            raise argument.error(function, value, "it is too large for f32")
        return rounded

    return bind


def _narrow_float(argument: Argument, function: str, dtype: np.dtype[np.generic]) -> Callable[[Any], int]:
    """Returns a converter for floats of 16 or 8 bits, which are the low bits of an integer register."""
    bits = np.dtype(f"i{dtype.itemsize}")

    def bind(value: Any) -> int:
        number = _as_float(value)
        if number is None:
            raise argument.error(function, value, "expected a float")
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            rounded = np.asarray(number, dtype)
        if math.isfinite(number) and not np.isfinite(rounded):
            raise argument.error(function, value, f"it is too large for {dtype}")
        return int(rounded.view(bits))

    return bind
