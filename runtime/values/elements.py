"""Elements of values from text: integers, floats, booleans, complex numbers and opaque bytes, one for each token."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from ...formats.element_type import ElementType, NumericalType

Array: TypeAlias = npt.NDArray[np.generic]

_INTEGER: Final = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|(0[0-7]*)|([1-9][0-9]*))")
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_HEX_FLOAT: Final = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?")
_SPECIAL: Final = re.compile(r"[+-]?(?:inf|infinity|nan)", re.IGNORECASE)
_BOOLEANS: Final = {"0": False, "00": False, "false": False, "1": True, "01": True, "true": True}
_MAX_DIGITS: Final = 80


class BadElement(Exception):
    """An error: the token at ``index`` is not what was ``expected``."""

    def __init__(self, index: int, expected: str) -> None:
        super().__init__(expected)
        self.index: Final = index
        self.expected: Final = expected


def decode_elements(tokens: list[str], element_type: ElementType) -> Array:
    """Decodes one element for each token; raises BadElement for tokens of another type or out of range."""
    if element_type.is_integer:
        return _decode_integers(tokens, element_type)
    if element_type is ElementType.FLOAT_64:
        return np.array(_each(real, tokens), np.float64)
    if element_type.is_float:
        singles = np.array(_each(_single, tokens), np.float32)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            return singles.astype(element_type.require_dtype())
    if element_type.is_boolean:
        return np.array(_each(_boolean, tokens), element_type.require_dtype())
    decode = _complex if element_type.is_complex else _opaque
    data = b"".join(_each(lambda token: decode(token, element_type), tokens))
    return element_type.unpack(data, (len(tokens),))


def is_integer(token: str) -> bool:
    """Whether the token is written as an integer."""
    return _INTEGER.fullmatch(token) is not None


_Decoded = TypeVar("_Decoded")


def _each(decode: Callable[[str], _Decoded], tokens: list[str]) -> list[_Decoded]:
    """Decodes each token; the ``ValueError`` of ``decode`` names the expected form."""
    values: list[_Decoded] = []
    for index, token in enumerate(tokens):
        try:
            values.append(decode(token))
        except ValueError as error:
            raise BadElement(index, str(error)) from None
    return values


def integer(token: str, low: int, high: int) -> int:
    """Returns the integer of a token; the message of a ValueError names the expected form."""
    match = _INTEGER.fullmatch(token)
    if match is None or len(token) > _MAX_DIGITS:
        raise ValueError(f"an integer of {low} to {high}")
    sign, hexadecimal, octal, decimal = match.groups()
    value = int(hexadecimal, 16) if hexadecimal else int(octal, 8) if octal else int(decimal)
    value = -value if sign == "-" else value
    if not low <= value <= high:
        raise ValueError(f"an integer of {low} to {high}")
    return value


def real(token: str) -> float:
    """Returns the number of a token in binary64; the message of a ValueError names the expected form."""
    if _DECIMAL.fullmatch(token) or _SPECIAL.fullmatch(token):
        return float(token)
    if _HEX_FLOAT.fullmatch(token):
        try:
            return float.fromhex(token)
        except OverflowError:
            return -math.inf if token[0] == "-" else math.inf
    raise ValueError("a number, inf or nan")


def _single(token: str) -> np.float32:
    """Rounds ``token`` once, to the nearest binary32; rounding to binary64 first could break a tie the wrong way."""
    value = real(token)
    with np.errstate(over="ignore"):
        rounded = np.float32(value)
        if float(rounded) == value or not math.isfinite(value):
            return rounded
        # Infinity rounds as the power of two that follows the largest binary32.
        edge = float(rounded) if np.isfinite(rounded) else math.copysign(2.0**128, value)
        other = np.nextafter(rounded, np.float32(math.inf if value > edge else -math.inf))
    if (edge + float(other)) / 2 != value or not _DECIMAL.fullmatch(token):
        return rounded
    # A binary64 midway between two binary32 values: the decimal's digits decide.
    from decimal import Decimal  # imported here: few values need it

    exact, tie = Decimal(token), Decimal(value)
    if exact == tie:
        return rounded
    return max(rounded, other) if exact > tie else min(rounded, other)


def _complex(token: str, element_type: ElementType) -> bytes:
    size = element_type.byte_count
    real_type = np.dtype(f"<f{size // 2}")
    if len(token) == 2 * size and (raw := _hex_bytes(token)) is not None:
        return raw
    first, second = token, "0"
    if token[-1] in "ijIJ":
        signs = [m.start() for m in re.finditer(r"(?<![eEpP])[+-]", token) if m.start() > 0]
        cut = signs[-1] if signs else 0
        first, second = token[:cut] or "0", token[cut:-1]
        second = second + "1" if second in ("", "+", "-") else second
    try:
        convert: Callable[[str], float | np.float32] = _single if size == 8 else real
        return np.array([convert(first), convert(second)], real_type).tobytes()
    except ValueError:
        raise ValueError(f"a complex number such as 1+2i, or {2 * size} hexadecimal digits") from None


def _opaque(token: str, element_type: ElementType) -> bytes:
    raw = _hex_bytes(token) if len(token) == 2 * element_type.byte_count else None
    if raw is None:
        raise ValueError(f"{2 * element_type.byte_count} hexadecimal digits")
    return raw


def _boolean(token: str) -> bool:
    value = _BOOLEANS.get(token.lower())
    if value is None:
        raise ValueError("0, 1, 00, 01, false or true")
    return value


def _hex_bytes(token: str) -> bytes | None:
    return bytes.fromhex(token) if re.fullmatch(r"(?:[0-9a-fA-F]{2})+", token) else None


def _decode_integers(tokens: list[str], element_type: ElementType) -> Array:
    bits = element_type.bits
    low = 0 if element_type.is_unsigned else -(1 << (bits - 1))
    signless = element_type.numerical_type == NumericalType.INTEGER
    high = (1 << (bits - (0 if signless or element_type.is_unsigned else 1))) - 1
    values = _each(lambda token: integer(token, low, high), tokens)
    if element_type.is_sub_byte:
        nibbles = bytes(value & 0x0F for value in values)
        packed = bytes(a | b << 4 for a, b in itertools.zip_longest(nibbles[::2], nibbles[1::2], fillvalue=0))
        return element_type.unpack(packed, (len(values),))
    mask = (1 << bits) - 1
    return np.array([value & mask for value in values], f"u{bits // 8}").view(element_type.require_dtype())
