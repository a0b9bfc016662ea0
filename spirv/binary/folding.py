"""Constant folding of integer and boolean instructions."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final

from .grammar import Op


class Operands(enum.Enum):
    """The index of the operand that equals the result."""

    LEFT = enum.auto()
    RIGHT = enum.auto()


#: The value of instructions on unsigned integers and booleans, before it wraps around.
FOLDS: Final[dict[int, Callable[[int, int], int]]] = {
    Op.IAdd: lambda a, b: a + b,
    Op.ISub: lambda a, b: a - b,
    Op.IMul: lambda a, b: a * b,
    Op.UDiv: lambda a, b: a // b,
    Op.UMod: lambda a, b: a % b,
    Op.BitwiseAnd: lambda a, b: a & b,
    Op.BitwiseOr: lambda a, b: a | b,
    Op.BitwiseXor: lambda a, b: a ^ b,
    Op.LogicalAnd: lambda a, b: a & b,
    Op.LogicalOr: lambda a, b: a | b,
    Op.LogicalNotEqual: lambda a, b: a ^ b,
    Op.ShiftLeftLogical: lambda a, b: a << b,
    Op.ShiftRightLogical: lambda a, b: a >> b,
    Op.IEqual: lambda a, b: a == b,
    Op.INotEqual: lambda a, b: a != b,
    Op.ULessThan: lambda a, b: a < b,
    Op.ULessThanEqual: lambda a, b: a <= b,
}
# Instructions whose result is an operand if the other operand is known: opcode -> (known left operand, known right
# operand).
_NEUTRAL: Final[dict[int, tuple[int | None, int | None]]] = {
    Op.IAdd: (0, 0),
    Op.ISub: (None, 0),
    Op.IMul: (1, 1),
    Op.UDiv: (None, 1),
    Op.BitwiseOr: (0, 0),
    Op.BitwiseXor: (0, 0),
    Op.ShiftLeftLogical: (None, 0),
    Op.ShiftRightLogical: (None, 0),
    Op.ShiftRightArithmetic: (None, 0),
    Op.LogicalAnd: (1, 1),
    Op.LogicalOr: (0, 0),
}
# Instructions with a constant result: opcode -> (known operand, result).
_ABSORBING: Final = {
    Op.IMul: (0, 0),
    Op.BitwiseAnd: (0, 0),
    Op.LogicalAnd: (0, 0),
    Op.LogicalOr: (1, 1),
}


def _is_defined(opcode: int, right: int, bits: int) -> bool:
    if opcode in (Op.UDiv, Op.UMod):
        return right != 0
    return right < bits or opcode not in (Op.ShiftLeftLogical, Op.ShiftRightLogical)


def folded(opcode: int, bits: int, operand_bits: int, left: int | None, right: int | None) -> int | Operands | None:
    """Returns the result of an instruction, or the operand that equals it; None if neither is known.

    Args:
        opcode: the instruction's opcode.
        bits: the width of the result.
        operand_bits: the width of the operands.
        left: the left operand, None where it is unknown.
        right: the right operand, None where it is unknown.
    """
    if left is not None and right is not None and opcode in FOLDS and _is_defined(opcode, right, operand_bits):
        return FOLDS[opcode](left, right) & ((1 << bits) - 1)
    if left is None and right is None:
        return None
    neutral_left, neutral_right = _NEUTRAL.get(opcode, (None, None))
    if right is not None and right == neutral_right:
        return Operands.LEFT
    if left is not None and left == neutral_left:
        return Operands.RIGHT
    known, result = _ABSORBING.get(opcode, (None, 0))
    return result if known is not None and known in (left, right) else None
