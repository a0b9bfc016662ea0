"""Values of SPIR-V constants: literals decoded exactly, `OpSpecConstantOp` folded at the module's defaults."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError
from ..binary.folding import FOLDS
from ..binary.grammar import Op
from .reflection_types import ScalarType

Scalar = int | float | bool
ConstantValue = Scalar | tuple[Scalar, ...] | None


@dataclass(frozen=True, slots=True)
class Constant:
    """A module-scope constant.

    Attributes:
        id: the result id.
        scalar: the type of a scalar constant, or ``None``.
        value: a scalar, the components of a vector, or ``None`` if it is neither or unknown.
        constituents: the ids of a composite's parts, and the operands of an operation on specialization constants.
        is_spec: a scalar that specialization can set if it has a ``SpecId``.
        varies: whether specialization can change it.
        divides_by_zero: whether it divides by zero at the module's values, which makes it undefined.
    """

    id: int
    scalar: ScalarType | None
    value: ConstantValue
    constituents: tuple[int, ...] = ()
    is_spec: bool = False
    varies: bool = False
    divides_by_zero: bool = False


def decode_scalar(scalar: ScalarType, words: Sequence[int]) -> Scalar:
    """Returns a numeric literal: low-order word first, narrow types in the low-order bits (SPIR-V 2.2.1, Literal).

    Raises:
        InvalidArgumentError: the literal's word count does not fit the type's width.
    """
    expected = 2 if scalar.bits > 32 else 1
    if len(words) != expected:
        raise InvalidArgumentError(
            f"a SPIR-V constant of {scalar.bits} bits takes {expected} literal words, got {len(words)}; "
            "the module is damaged"
        )
    raw = _wrap(words[0] | (words[1] << 32 if expected == 2 else 0), scalar.bits)
    if scalar.kind != "float":
        return _wrap(raw, scalar.bits, scalar.kind == "int")
    dtype = scalar.dtype
    return math.nan if dtype is None else float(np.frombuffer(raw.to_bytes(dtype.itemsize, "little"), dtype)[0])


def divides_by_zero(opcode: int, operands: Sequence[int], constants: dict[int, Constant]) -> bool:
    """Whether an `OpSpecConstantOp`, or an operand that determines it, divides by zero at the operands' values."""
    if opcode == Op.Select and (chosen := _chosen(operands, constants)) is not None:
        operands = (operands[0], chosen.id)
    known = [constants[operand] for operand in operands if operand in constants]
    divisor = known[1].value if opcode in _DIVISIONS and len(known) == 2 else None
    return divisor == 0 or any(operand.divides_by_zero for operand in known)


def _chosen(operands: Sequence[int], constants: dict[int, Constant]) -> Constant | None:
    """Returns the operand that a Select chooses; the other operand may be undefined."""
    condition = constants.get(operands[0])
    if condition is None or condition.value is None or len(operands) != 3:
        return None
    return constants.get(operands[1 if condition.value else 2])


def _wrap(value: int, bits: int, signed: bool = False) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def _quotient(a: int, b: int) -> int:
    """Divides and rounds towards zero, as SPIR-V's OpSDiv does."""
    magnitude = abs(a) // abs(b)
    return magnitude if (a < 0) == (b < 0) else -magnitude


_Binary = Callable[[int, int], int]

# By opcode. Each table's name says how operands are interpreted.
_UNSIGNED: Final[dict[int, _Binary]] = {**FOLDS, Op.UGreaterThan: operator.gt, Op.UGreaterThanEqual: operator.ge}
_SIGNED: Final[dict[int, _Binary]] = {
    Op.SDiv: _quotient,
    Op.SRem: lambda a, b: a - b * _quotient(a, b),
    Op.SMod: operator.mod,  # the sign of the divisor, as in Python
    Op.SGreaterThan: operator.gt,
    Op.SGreaterThanEqual: operator.ge,
    Op.SLessThan: operator.lt,
    Op.SLessThanEqual: operator.le,
}
_LOGICAL: Final[dict[int, Callable[[bool, bool], bool]]] = {
    Op.LogicalEqual: operator.eq,
    Op.LogicalNotEqual: operator.ne,
    Op.LogicalOr: operator.or_,
    Op.LogicalAnd: operator.and_,
}
_SHIFTS: Final[dict[int, Callable[[int, int, int], int]]] = {
    Op.ShiftLeftLogical: lambda a, b, bits: a << b,
    Op.ShiftRightLogical: lambda a, b, bits: _wrap(a, bits) >> b,
    Op.ShiftRightArithmetic: lambda a, b, bits: _wrap(a, bits, True) >> b,
}
_DIVISIONS: Final = frozenset({Op.UDiv, Op.SDiv, Op.UMod, Op.SRem, Op.SMod})


def fold_spec_constant_op(
    opcode: int, scalar: ScalarType | None, operands: Sequence[int], constants: dict[int, Constant]
) -> ConstantValue:
    """Returns the value of an `OpSpecConstantOp` at the operands' default values.

    ``None`` for vectors, floats and undefined results, which are not folded.
    """
    if scalar is None or not operands:
        return None
    if opcode == Op.CompositeExtract:
        source = constants.get(operands[0])
        if source is None or not isinstance(source.value, tuple) or len(operands) != 2:
            return None
        return source.value[operands[1]] if operands[1] < len(source.value) else None
    if opcode == Op.Select:
        chosen = _chosen(operands, constants)
        return None if chosen is None else chosen.value
    arguments = [constants.get(operand) for operand in operands]
    values: list[Scalar] = []
    bits = 0
    for argument in arguments:
        if argument is None or argument.scalar is None or argument.value is None or isinstance(argument.value, tuple):
            return None
        values.append(argument.value)
        bits = max(bits, argument.scalar.bits) if argument.scalar.kind in ("int", "uint") else bits
    if scalar.kind == "float" or any(isinstance(value, float) for value in values):
        return None
    folded = _fold_integers(opcode, scalar, [int(value) for value in values], bits)
    if folded is None:
        return None
    return bool(folded) if scalar.kind == "bool" else _wrap(folded, scalar.bits, scalar.kind == "int")


def _fold_integers(opcode: int, scalar: ScalarType, values: list[int], bits: int) -> int | None:
    if len(values) == 1:
        value = values[0]
        if opcode == Op.LogicalNot:
            return not value
        if not bits:
            return None
        unary = {
            Op.SNegate: -value,
            Op.Not: ~value,
            Op.SConvert: _wrap(value, bits, True),
            Op.UConvert: _wrap(value, bits),
        }
        return unary.get(opcode)
    if len(values) != 2:
        return None
    a, b = values
    if opcode in _LOGICAL:
        return _LOGICAL[opcode](bool(a), bool(b))
    if not bits or (opcode in _DIVISIONS and b == 0):
        return None
    if opcode in _SHIFTS:  # the base has the result's width; the count's may differ
        return _SHIFTS[opcode](a, b, scalar.bits) if 0 <= b < scalar.bits else None
    if opcode in _UNSIGNED:
        return _UNSIGNED[opcode](_wrap(a, bits), _wrap(b, bits))
    return _SIGNED[opcode](_wrap(a, bits, True), _wrap(b, bits, True)) if opcode in _SIGNED else None
