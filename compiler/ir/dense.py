"""The elements of constants: numbers in nested lists, or their bytes in hexadecimal."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias

import numpy as np

from .attributes import Array, DenseElements, type_shape
from .types import ScalarType, ShapedType, TensorType, Type

if TYPE_CHECKING:
    from .scanner import Scanner

_Refuse: TypeAlias = Callable[[str], NoReturn]

_HEX_STRING: Final = re.compile(r'\s*"0x([0-9A-Fa-f]*)"\s*')
_HEX_NUMBER: Final = re.compile(r"(-?)0x([0-9A-Fa-f]+)")
_COMPLEX: Final = re.compile(r"\(([^(),]*),([^(),]*)\)")
_DECIMAL_POINT: Final = re.compile(r"(?<![0-9.])(-?)\+?0*([0-9]+)\.(?![0-9])")


class _ElementError(ValueError):
    """An element has the wrong type."""


def dense_elements(scanner: Scanner, body: str, offset: int, type: Type) -> DenseElements:
    """Reads the constant of a ``dense<…>``.

    Args:
        scanner: the scanner, for errors.
        body: the text between the angle brackets.
        offset: the offset of the body in the text.
        type: the type of the constant; a scalar type stands for a tensor of rank 0.

    Raises:
        CompileError: the body does not fit the type.
    """

    def refuse(message: str) -> NoReturn:
        scanner.error(message, offset)

    shaped = type if isinstance(type, ShapedType) else TensorType((), type)
    if not shaped.is_static:
        refuse(f"a constant's type has only known lengths, got {type}")
    try:
        dtype = shaped.scalar.dtype
    except ValueError as error:
        refuse(str(error))
    shape = type_shape(shaped)
    hexadecimal = _HEX_STRING.fullmatch(body)
    if hexadecimal is None and '"' in body:
        refuse('expected numbers, or hexadecimal digits in quotes such as "0x0000803F"')
    if hexadecimal is not None:
        return DenseElements(shaped, _of_bytes(refuse, hexadecimal[1], shaped, dtype))
    if not body.strip():
        if shaped.count:
            refuse(f"the constant has no elements, its type {type} has {shaped.count}")
        return DenseElements(shaped, np.zeros(shape, dtype))
    nans: list[bytes] = []
    values = _values(refuse, body, shaped.scalar, nans)
    try:
        array = _converted(values, shaped.scalar)
    except _ElementError as error:
        refuse(f"expected elements of {shaped.element}: {error}")
    except (ValueError, TypeError):
        refuse(f"expected elements of {shaped.element} in lists of equal lengths")
    except OverflowError:
        refuse(f"an element does not fit {shaped.element}")
    if nans:
        parts = np.atleast_1d(np.ascontiguousarray(array)).view(shaped.scalar.part.dtype)
        parts[np.isnan(parts)] = np.frombuffer(b"".join(nans), parts.dtype)
        array = parts.view(dtype).reshape(array.shape)
    if array.ndim == 0:
        return DenseElements(shaped, np.broadcast_to(array, shape))
    if array.shape != shape:
        refuse(f"the constant's elements have the shape {list(array.shape)}, its type is {type}")
    return DenseElements(shaped, array)


def _of_bytes(refuse: _Refuse, digits: str, type: ShapedType, dtype: np.dtype[np.generic]) -> Array:
    if len(digits) % 2:
        refuse(f"the constant has {len(digits)} hexadecimal digits, two make a byte")
    data = np.frombuffer(bytes.fromhex(digits), np.uint8)
    shape = type_shape(type)
    count = math.prod(shape)
    if dtype == np.bool_ and data.size == (count + 7) // 8 != count:
        # Older printers pack eight booleans into a byte.
        return np.unpackbits(data, count=count, bitorder="little").astype(np.bool_).reshape(shape)
    if dtype == np.bool_:
        data = (data != 0).view(np.uint8)
    if data.size == dtype.itemsize and count != 1:
        return np.broadcast_to(data.view(dtype)[0], shape)
    if data.size != count * dtype.itemsize:
        refuse(f"the constant has {data.size} bytes, {type} takes {count * dtype.itemsize}")
    array = data.view(dtype).reshape(shape)
    array.flags.writeable = False
    return array


def _values(refuse: _Refuse, body: str, element: ScalarType, nans: list[bytes]) -> object:
    """Reads nested lists of numbers, complex numbers as lists of two; appends the bytes of each NaN to ``nans``."""
    text = body
    if element.kind == "complex":
        text = _COMPLEX.sub(r"[\1,\2]", text)
    if "0x" in text:
        part = element.part

        def number(match: re.Match[str]) -> str:
            if len(match[2]) > 32:
                refuse(f"expected numbers or one string of hexadecimal digits, got {match[0][:40]}…")
            bits = int(match[2], 16)
            if part.kind != "float":
                return f"{match[1]}{bits}"
            if bits >= 1 << part.bits:
                refuse(f"{match[0]} has more bits than {part}")
            raw = bits.to_bytes(part.dtype.itemsize, "little")
            value = float(np.frombuffer(raw, part.dtype)[0])
            if value != value:
                nans.append(raw)
                return "NaN"
            return repr(value).replace("inf", "Infinity")

        text = _HEX_NUMBER.sub(number, text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(_DECIMAL_POINT.sub(r"\1\2.0", text).replace("[,", "["))
    except (ValueError, RecursionError):
        refuse("expected numbers, true or false, in nested lists with commas between them")


def _converted(values: object, element: ScalarType) -> Array:
    if element.kind == "complex":
        pairs = np.array(values, np.float64)
        if pairs.ndim == 0 or pairs.shape[-1] != 2:
            raise _ElementError("complex numbers are written as (real, imaginary)")
        with np.errstate(over="ignore", invalid="ignore"):
            return pairs.astype(element.part.dtype).view(element.dtype)[..., 0]
    array = np.array(values)
    if array.size == 0:
        return array.astype(element.dtype)
    if element.kind == "bool":
        if array.dtype != np.bool_:
            if array.dtype.kind not in "iu" or not np.isin(array, (0, 1, -1)).all():
                raise _ElementError("booleans are true or false")
            array = array != 0
        return array
    if array.dtype == np.bool_:
        raise _ElementError(f"true and false are no {element}")
    if element.kind == "float":
        if array.dtype.kind not in "iuf":
            raise _ElementError("a number is too large")
        with np.errstate(over="ignore", invalid="ignore"):
            return array.astype(np.float64).astype(element.dtype)
    if array.dtype.kind != "i":
        array = np.array(values, object)
        if any(type(value) is not int for value in array.reshape(-1)):
            raise _ElementError(f"a fraction is no {element}")
    return _integers(array, element)


def _integers(whole: Array, element: ScalarType) -> Array:
    low = -(1 << (element.bits - 1)) if element.kind != "uint" else 0
    lowest, highest = int(whole.min()), int(whole.max())
    if lowest < low or highest >= 1 << element.bits:
        raise OverflowError
    if highest >= 1 << (element.bits - 1) and element.kind != "uint":
        # A signless constant may be written without its sign.
        unsigned = np.asarray(whole.astype(object) & ((1 << element.bits) - 1))
        return unsigned.astype(np.uint64).astype(element.dtype)
    return whole.astype(np.uint64 if element.kind == "uint" else np.int64).astype(element.dtype)
