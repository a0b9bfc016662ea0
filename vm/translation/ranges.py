"""Bounds of integer operations' results, given those of their operands.

They show which results need no wrapping and where simpler source does.

Bounds are of the exact result, before it is wrapped into its type: ``add.i32`` of two full i32 goes from -2**32 to
2**32 - 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

Range: TypeAlias = tuple[int, int]

FULL: Final[dict[str, Range]] = {"i": (-(1 << 31), (1 << 31) - 1), "I": (-(1 << 63), (1 << 63) - 1)}
"""The bounds of an integer register type."""

_BIT: Final[Range] = (0, 1)


def fits(bounds: Range, bits: int) -> bool:
    """Whether all of ``bounds`` is within a signed integer of ``bits``."""
    return bounds[0] >= -(1 << (bits - 1)) and bounds[1] < 1 << (bits - 1)


def result_range(mnemonic: str, operands: Sequence[Range]) -> Range | None:
    """The bounds of an operation's exact result, if they are narrower than its type's.

    Args:
        mnemonic: of an operation on integers.
        operands: bounds of its integer operands, in the order of its fields.
    """
    if mnemonic.startswith(("cmp.", "import.")):
        return _BIT
    name, _, rest = mnemonic.partition(".")
    if name in ("ext", "trunc"):
        found = _CONVERSIONS.get(mnemonic)
        return found(operands[0]) if found is not None else None
    rule = _RULES.get(f"{name}.{rest[4:]}" if rest[4:] else name)
    return rule(operands, int(rest[1:3])) if rule is not None and rest[:1] == "i" else None


def _add(operands: Sequence[Range], bits: int) -> Range:
    (a, b), (c, d) = operands
    return a + c, b + d


def _sub(operands: Sequence[Range], bits: int) -> Range:
    (a, b), (c, d) = operands
    return a - d, b - c


def _mul(operands: Sequence[Range], bits: int) -> Range:
    (a, b), (c, d) = operands
    corners = (a * c, a * d, b * c, b * d)
    return min(corners), max(corners)


def _fma(operands: Sequence[Range], bits: int) -> Range:
    return _add((_mul(operands[:2], bits), operands[2]), bits)


def _not(operands: Sequence[Range], bits: int) -> Range:
    ((a, b),) = operands
    return ~b, ~a


def _abs(operands: Sequence[Range], bits: int) -> Range:
    ((a, b),) = operands
    return (a, b) if a >= 0 else (0, max(-a, b))


def _and(operands: Sequence[Range], bits: int) -> Range:
    (a, b), (c, d) = operands
    if a >= 0 or c >= 0:
        return 0, min(b if a >= 0 else d, d if c >= 0 else b)
    return _bitwise(operands, bits)


def _bitwise(operands: Sequence[Range], bits: int) -> Range:
    # The result has no more bits than the operands; it is not negative if they are not.
    width = max(max(~low if low < 0 else low, ~high if high < 0 else high).bit_length() for low, high in operands)
    return (0 if all(low >= 0 for low, _ in operands) else -(1 << width)), (1 << width) - 1


def _shl(operands: Sequence[Range], bits: int) -> Range:
    (a, b), (c, d) = operands
    least, most = (c, d) if c >= 0 and d < bits else (0, bits - 1)
    return min(a << most, a << least), max(b << most, b << least)


def _shr_s(operands: Sequence[Range], bits: int) -> Range:
    (a, b), (c, d) = operands
    least, most = (c, d) if c >= 0 and d < bits else (0, bits - 1)
    return min(a >> least, a >> most), max(b >> least, b >> most)


def _shr_u(operands: Sequence[Range], bits: int) -> Range:
    (a, b), (c, d) = operands
    least, most = (c, d) if c >= 0 and d < bits else (0, bits - 1)
    if a < 0:
        a, b = 0, (1 << bits) - 1
    return a >> most, b >> least


def _min_s(operands: Sequence[Range], bits: int) -> Range:
    (a, b), (c, d) = operands
    return min(a, c), min(b, d)


def _max_s(operands: Sequence[Range], bits: int) -> Range:
    (a, b), (c, d) = operands
    return max(a, c), max(b, d)


def _union(operands: Sequence[Range], bits: int) -> Range:
    (a, b), (c, d) = operands[-2:]
    return min(a, c), max(b, d)


def _ctlz(operands: Sequence[Range], bits: int) -> Range:
    return 0, bits


def _rem_s(operands: Sequence[Range], bits: int) -> Range:
    (a, b), (c, d) = operands
    most = max(abs(c), abs(d), 1) - 1
    return (0 if a >= 0 else max(a, -most)), (0 if b <= 0 else min(b, most))


def _rem_u(operands: Sequence[Range], bits: int) -> Range | None:
    (a, b), (c, d) = operands
    return (0, min(b, d - 1) if a >= 0 else d - 1) if c > 0 else None


def _div_u(operands: Sequence[Range], bits: int) -> Range | None:
    (a, b), (c, d) = operands
    return (a // d, b // c) if a >= 0 and c > 0 else None


_RULES: Final[dict[str, Callable[[Sequence[Range], int], Range | None]]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "fma": _fma,
    "not": _not,
    "abs": _abs,
    "and": _and,
    "or": _bitwise,
    "xor": _bitwise,
    "shl": _shl,
    "shr.s": _shr_s,
    "shr.u": _shr_u,
    "min.s": _min_s,
    "max.s": _max_s,
    "min.u": _union,
    "max.u": _union,
    "select": _union,
    "ctlz": _ctlz,
    "div.s": _div_u,
    "div.u": _div_u,
    "rem.s": _rem_s,
    "rem.u": _rem_u,
}


def _within(low: int, high: int) -> Callable[[Range], Range]:
    """The rule of a conversion that keeps values between these bounds."""
    return lambda operand: operand if low <= operand[0] and operand[1] <= high else (low, high)


_CONVERSIONS: Final[dict[str, Callable[[Range], Range]]] = {
    "trunc.i32.i8": _within(0, 255),
    "trunc.i32.i16": _within(0, 65535),
    "ext.i8.i32.s": _within(-128, 127),
    "ext.i8.i32.u": _within(0, 255),
    "ext.i16.i32.s": _within(-32768, 32767),
    "ext.i16.i32.u": _within(0, 65535),
    "ext.i32.i64.s": lambda operand: operand,
    "ext.i32.i64.u": _within(0, (1 << 32) - 1),
    "trunc.i64.i32": lambda operand: operand,
}


def refined(comparison: str, left: Range, right: Range) -> tuple[Range, Range]:
    """Narrows the bounds of two integers by a comparison that is known to hold.

    Args:
        comparison: ``lt``, ``ge``, ``eq`` or ``ne``.
    """
    (a, b), (c, d) = left, right
    if comparison == "lt":
        b, c = min(b, d - 1), max(c, a + 1)
    elif comparison == "ge":
        a, d = max(a, c), min(d, b)
    elif comparison == "eq":
        a, c = max(a, c), max(a, c)
        b, d = min(b, d), min(b, d)
    elif c == d:  # not equal to a constant
        a, b = a + (a == c), b - (b == c)
    # A contradiction is code that never runs.
    return ((a, b) if a <= b else left), ((c, d) if c <= d else right)
