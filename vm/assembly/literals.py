"""Numbers and strings of VM assembly text, exactly as they are encoded.

Integers are decimal or hexadecimal. Floating-point numbers are decimal, hexadecimal (``0x1.8p3``), ``inf`` or ``nan``,
or ``nan(0x1)`` with the payload of C's ``strtod``, each with an optional sign; ``bits(0x7FA00000)`` is a value by its
bits. Strings are literal UTF-8, or have escapes, ``e"\\"\\n\\x00"``: ``\\"``, ``\\\\``, ``\\n``, ``\\r``, ``\\t`` and
bytes in hexadecimal.
"""

from __future__ import annotations

import math
import re
import struct
from fractions import Fraction
from typing import Final

# iree-as-module reads floating-point literals of at most 63 characters and integers of at most 31.
_MAX_CHARACTERS: Final = 63


class LiteralError(Exception):
    """A problem with a literal; the caller adds its location and raises the user's error."""


def integer(text: str, bits: int, *, signed: bool) -> int:
    """Returns the value of an integer literal as an unsigned number of ``bits`` bits.

    A signed literal may also be written as the unsigned number of the same bits: ``0xFFFFFFFF`` is -1 in 32 bits.
    """
    digits = text.lstrip("+-")
    if len(text) > _MAX_CHARACTERS:
        raise LiteralError(f"a literal of at most {_MAX_CHARACTERS} characters, got {len(text)}")
    if len(digits) > 1 and digits[0] == "0" and digits.isdecimal():
        raise LiteralError("a decimal number without leading zeros: C tools read one with them as octal")
    try:
        value = int(text, 16 if digits[:2] in ("0x", "0X") else 10)
    except ValueError:
        raise LiteralError("an integer, decimal or hexadecimal") from None
    low = -(1 << (bits - 1)) if signed else 0
    high = (1 << bits) - 1
    if not low <= value <= high:
        raise LiteralError(f"an integer from {low} to {high}")
    return value & high


def float_bits(text: str, bits: int) -> int:
    """Returns the 32 or 64 bits of a floating-point literal, rounded once, to nearest, ties to even.

    LiteralError for a text that is no number, a number that is too large, or a nonzero number that rounds to 0.
    """
    if len(text) > _MAX_CHARACTERS:
        raise LiteralError(f"a literal of at most {_MAX_CHARACTERS} characters, got {len(text)}")
    if text.startswith("bits("):
        return integer(text[5:-1], bits, signed=False)
    sign = 1 if text.startswith("-") else 0
    body = text.lstrip("+-").lower()
    mantissa_bits = 23 if bits == 32 else 52
    infinity = ((1 << (bits - 1 - mantissa_bits)) - 1) << mantissa_bits
    if body in ("inf", "infinity"):
        magnitude = infinity
    elif body.startswith("nan"):
        magnitude = infinity | 1 << (mantissa_bits - 1) | _payload(body[3:]) & ((1 << mantissa_bits) - 1)
    else:
        magnitude = _finite_bits(body, bits)
    return sign << (bits - 1) | magnitude


_ESCAPE: Final = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|(.))|\\")
_ESCAPED: Final = {b'"': b'"', b"\\": b"\\", b"n": b"\n", b"r": b"\r", b"t": b"\t"}


def string_bytes(text: str) -> bytes:
    """Returns the bytes of a string literal; ``text`` includes the quotes."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise LiteralError("characters that UTF-8 can encode") from None
    return _ESCAPE.sub(_unescaped, data[2:-1]) if data.startswith(b"e") else data[1:-1]


def _unescaped(match: re.Match[bytes]) -> bytes:
    if match[1] is not None:
        return bytes.fromhex(match[1].decode())
    if match[2] not in _ESCAPED:
        raise LiteralError('the escapes \\", \\\\, \\n, \\r, \\t and \\x00')
    return _ESCAPED[match[2]]


def _payload(text: str) -> int:
    digits = text.strip("()")
    try:
        return int(digits, 0) if digits else 0
    except ValueError:
        raise LiteralError("a payload such as nan(0x1)") from None


def _finite_bits(body: str, bits: int) -> int:
    try:
        value = float.fromhex(body) if body.startswith("0x") else float(body)
    except OverflowError:
        value = math.inf
    except ValueError:
        raise LiteralError("a number") from None
    if math.isinf(value):
        raise LiteralError(f"a number that an f{bits} can hold; write inf for infinity")
    if value == 0.0:
        mantissa = body[2:].split("p")[0] if body.startswith("0x") else body.split("e")[0]
        if mantissa.strip("0."):
            raise LiteralError(f"a number that an f{bits} can hold, this one rounds to 0")
        return 0
    if bits == 64:
        return int.from_bytes(struct.pack("<d", value), "little")
    # Rounded to odd, an inexact double is on the right side of every tie between two f32.
    exact = value if body.startswith("0x") else Fraction(body)
    if exact != value and not struct.pack("<d", value)[0] & 1:
        value = math.nextafter(value, math.inf if exact > value else 0.0)
    try:
        number = int.from_bytes(struct.pack("<f", value), "little")
    except OverflowError:
        raise LiteralError("a number that an f32 can hold; write inf for infinity") from None
    if number == 0:
        raise LiteralError("a number that an f32 can hold, this one rounds to 0")
    return number
