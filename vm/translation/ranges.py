"""Computes bounds of integer operations' results from the bounds of their operands.

They determine which results need no wrapping, and which operations have a simpler form.

Bounds apply to the exact result, before it is wrapped to its type: ``add.i32`` of two full i32 goes from -2**32 to
2**32 - 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Final, TypeAlias

Range: TypeAlias = tuple[int, int]

FULL: Final[dict[str, Range]] = {"i": (-(1 << 31), (1 << 31) - 1), "I": (-(1 << 63), (1 << 63) - 1)}
"""The bounds of an integer register type."""

_BIT: Final[Range] = (0, 1)


def fits(bounds: Range, bits: int) -> bool:
    """Whether all values within ``bounds`` fit in a signed integer of ``bits`` bits."""
    return bounds[0] >= -(1 << (bits - 1)) and bounds[1] < 1 << (bits - 1)


def result_range(mnemonic: str, operands: Sequence[Range]) -> Range | None:
    """Returns the bounds of an integer operation's exact result, if narrower than its type's."""
    rule, bits = _rule_of(mnemonic)
    if rule is None:
        return None
    if mnemonic.startswith("select."):
        operands = operands[-2:]
    return rule(bits, *[bound for operand in operands for bound in operand])


@cache
def _rule_of(mnemonic: str) -> tuple[Callable[..., Range | None] | None, int]:
    """Returns the rule and the bit width of an operation."""
    if mnemonic.startswith(("cmp.", "import.")):
        return lambda bits, *bounds: _BIT, 0
    name, _, rest = mnemonic.partition(".")
    if name in ("ext", "trunc"):
        return _CONVERSIONS.get(mnemonic), 0
    is_integer = rest[:1] == "i"
    rule = _RULES.get(f"{name}.{rest[4:]}" if rest[4:] else name) if is_integer else None
    return rule, int(rest[1:3]) if rule is not None else 0


def _mul(bits: int, a: int, b: int, c: int, d: int) -> Range:
    corners = (a * c, a * d, b * c, b * d)
    return min(corners), max(corners)


def _fma(bits: int, a: int, b: int, c: int, d: int, e: int, f: int) -> Range:
    low, high = _mul(bits, a, b, c, d)
    return low + e, high + f


def _and(bits: int, a: int, b: int, c: int, d: int) -> Range:
    if a >= 0 or c >= 0:
        return 0, min(b if a >= 0 else d, d if c >= 0 else b)
    return _bitwise(bits, a, b, c, d)


def _bitwise(bits: int, a: int, b: int, c: int, d: int) -> Range:
    # The result has no more bits than the operands; it is not negative if they are not.
    width = max((~bound if bound < 0 else bound).bit_length() for bound in (a, b, c, d))
    return (0 if a >= 0 and c >= 0 else -(1 << width)), (1 << width) - 1


def _shifts(bits: int, c: int, d: int) -> Range:
    """Returns the bounds of a shift amount, which is taken modulo ``bits``."""
    return (c, d) if c >= 0 and d < bits else (0, bits - 1)


def _shl(bits: int, a: int, b: int, c: int, d: int) -> Range:
    least, most = _shifts(bits, c, d)
    return min(a << most, a << least), max(b << most, b << least)


def _shr_s(bits: int, a: int, b: int, c: int, d: int) -> Range:
    least, most = _shifts(bits, c, d)
    return min(a >> least, a >> most), max(b >> least, b >> most)


def _shr_u(bits: int, a: int, b: int, c: int, d: int) -> Range:
    least, most = _shifts(bits, c, d)
    return (a >> most, b >> least) if a >= 0 else (0, (1 << bits) - 1 >> least)


def _union(bits: int, a: int, b: int, c: int, d: int) -> Range:
    return min(a, c), max(b, d)


def _rem_s(bits: int, a: int, b: int, c: int, d: int) -> Range:
    most = max(abs(c), abs(d), 1) - 1
    return (0 if a >= 0 else max(a, -most)), (0 if b <= 0 else min(b, most))


def _rem_u(bits: int, a: int, b: int, c: int, d: int) -> Range | None:
    return (0, min(b, d - 1) if a >= 0 else d - 1) if c > 0 else None


def _div(bits: int, a: int, b: int, c: int, d: int) -> Range | None:
    return (a // d, b // c) if a >= 0 and c > 0 else None


# Arguments: the operation's bit width, and the lowest and highest value of each operand.
_RULES: Final[dict[str, Callable[..., Range | None]]] = {
    "add": lambda bits, a, b, c, d: (a + c, b + d),
    "sub": lambda bits, a, b, c, d: (a - d, b - c),
    "mul": _mul,
    "fma": _fma,
    "not": lambda bits, a, b: (~b, ~a),
    "abs": lambda bits, a, b: (a, b) if a >= 0 else (0, max(-a, b)),
    "and": _and,
    "or": _bitwise,
    "xor": _bitwise,
    "shl": _shl,
    "shr.s": _shr_s,
    "shr.u": _shr_u,
    "min.s": lambda bits, a, b, c, d: (min(a, c), min(b, d)),
    "max.s": lambda bits, a, b, c, d: (max(a, c), max(b, d)),
    "min.u": _union,
    "max.u": _union,
    "select": _union,
    "ctlz": lambda bits, a, b: (0, bits),
    "div.s": _div,
    "div.u": _div,
    "rem.s": _rem_s,
    "rem.u": _rem_u,
}


def _within(low: int, high: int) -> Callable[..., Range]:
    """Returns the rule of a conversion that keeps values between these bounds."""
    return lambda bits, a, b: (a, b) if low <= a and b <= high else (low, high)


_CONVERSIONS: Final[dict[str, Callable[..., Range]]] = {
    "trunc.i32.i8": _within(0, 255),
    "trunc.i32.i16": _within(0, 65535),
    "ext.i8.i32.s": _within(-128, 127),
    "ext.i8.i32.u": _within(0, 255),
    "ext.i16.i32.s": _within(-32768, 32767),
    "ext.i16.i32.u": _within(0, 65535),
    "ext.i32.i64.s": lambda bits, a, b: (a, b),
    "ext.i32.i64.u": _within(0, (1 << 32) - 1),
    "trunc.i64.i32": lambda bits, a, b: (a, b),
}


def refined(operator: str, left: Range, right: Range) -> tuple[Range, Range]:
    """Narrows the bounds of two integers by a true comparison: ``<``, ``>=``, ``==`` or ``!=``."""
    (a, b), (c, d) = left, right
    if operator == "<":
        b, c = min(b, d - 1), max(c, a + 1)
    elif operator == ">=":
        a, d = max(a, c), min(d, b)
    elif operator == "==":
        a, c = max(a, c), max(a, c)
        b, d = min(b, d), min(b, d)
    elif c == d:  # not equal to a constant
        a, b = a + (a == c), b - (b == c)
    # A contradiction means code that never runs: keep the bounds.
    return ((a, b) if a <= b else left), ((c, d) if c <= d else right)
