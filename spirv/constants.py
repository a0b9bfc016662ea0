"""Values of SPIR-V constants: literals decoded exactly, `OpSpecConstantOp` folded at the module's defaults."""

from __future__ import annotations

import dataclasses
import operator
import struct
from collections.abc import Callable, Sequence
from typing import Final

from ..status import InvalidArgumentError
from .reflection_types import ScalarType

__all__ = ["Constant", "ConstantValue", "Scalar", "decode_scalar", "fold_spec_constant_op"]

Scalar = int | float | bool
ConstantValue = Scalar | tuple[Scalar, ...] | None


@dataclasses.dataclass(frozen=True, slots=True)
class Constant:
    """A module-scope constant.

    Attributes:
        id: result id.
        scalar: the type of a scalar constant, or ``None``.
        value: a scalar, the components of a vector, or ``None`` where it is neither or cannot be told.
        constituents: ids a composite was made of.
        is_spec: a scalar that specialization may set, if it has a ``SpecId``.
    """

    id: int
    scalar: ScalarType | None
    value: ConstantValue
    constituents: tuple[int, ...] = ()
    is_spec: bool = False


def decode_scalar(scalar: ScalarType, words: Sequence[int]) -> Scalar:
    """A numeric literal: low-order word first, narrow types in the low-order bits (SPIR-V 2.2.1, Literal).

    Raises:
        InvalidArgumentError: the literal's word count does not fit the type's width.
    """
    expected = 2 if scalar.bits > 32 else 1
    if len(words) != expected:
        raise InvalidArgumentError(
            f"a SPIR-V constant of {scalar.bits} bits takes {expected} literal words, got {len(words)}; "
            "the module is damaged"
        )
    raw = words[0] | (words[1] << 32 if expected == 2 else 0)
    raw &= (1 << scalar.bits) - 1
    if scalar.kind != "float":
        return _wrap(raw, scalar)
    if scalar.encoding:
        dtype = scalar.dtype
        if dtype is None:
            return float("nan")
        import numpy as np

        return float(np.frombuffer(raw.to_bytes(dtype.itemsize, "little"), dtype=dtype)[0])
    code = {16: "<e", 32: "<f", 64: "<d"}[scalar.bits]
    return float(struct.unpack(code, raw.to_bytes(scalar.bits // 8, "little"))[0])


def _wrap(value: int, scalar: ScalarType) -> int:
    value &= (1 << scalar.bits) - 1
    if scalar.kind == "int" and value >> (scalar.bits - 1):
        value -= 1 << scalar.bits
    return value


def _unsigned(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


def _signed(value: int, bits: int) -> int:
    value = _unsigned(value, bits)
    return value - (1 << bits) if value >> (bits - 1) else value


def _quotient(a: int, b: int) -> int:
    """Division that rounds towards zero, as SPIR-V's OpSDiv does."""
    magnitude = abs(a) // abs(b)
    return magnitude if (a < 0) == (b < 0) else -magnitude


_Binary = Callable[[int, int], int]

# Keys are opcodes of SPIR-V's section 3 ("Instructions"). Operands come as the interpretation names them.
_MODULAR: Final[dict[int, _Binary]] = {
    128: operator.add,  # OpIAdd
    130: operator.sub,  # OpISub
    132: operator.mul,  # OpIMul
    197: operator.or_,  # OpBitwiseOr
    198: operator.xor,  # OpBitwiseXor
    199: operator.and_,  # OpBitwiseAnd
}
_UNSIGNED: Final[dict[int, _Binary]] = {
    134: operator.floordiv,  # OpUDiv
    137: operator.mod,  # OpUMod
    172: operator.gt,  # OpUGreaterThan
    174: operator.ge,  # OpUGreaterThanEqual
    176: operator.lt,  # OpULessThan
    178: operator.le,  # OpULessThanEqual
    170: operator.eq,  # OpIEqual
    171: operator.ne,  # OpINotEqual
}
_SIGNED: Final[dict[int, _Binary]] = {
    135: _quotient,  # OpSDiv
    138: lambda a, b: a - b * _quotient(a, b),  # OpSRem
    139: operator.mod,  # OpSMod: the sign of the divisor, as Python's
    173: operator.gt,  # OpSGreaterThan
    175: operator.ge,  # OpSGreaterThanEqual
    177: operator.lt,  # OpSLessThan
    179: operator.le,  # OpSLessThanEqual
}
_LOGICAL: Final[dict[int, Callable[[bool, bool], bool]]] = {
    164: operator.eq,  # OpLogicalEqual
    165: operator.ne,  # OpLogicalNotEqual
    166: operator.or_,  # OpLogicalOr
    167: operator.and_,  # OpLogicalAnd
}
_DIVISIONS: Final = frozenset({134, 135, 137, 138, 139})
_SHIFT_RIGHT_LOGICAL, _SHIFT_RIGHT_ARITHMETIC, _SHIFT_LEFT = 194, 195, 196
_CONVERT_U, _CONVERT_S, _NEGATE, _NOT, _LOGICAL_NOT, _SELECT = 113, 114, 126, 200, 168, 169
_COMPOSITE_EXTRACT: Final = 81


def fold_spec_constant_op(
    opcode: int, scalar: ScalarType | None, operands: Sequence[int], constants: dict[int, Constant]
) -> ConstantValue:
    """The value of an `OpSpecConstantOp` with scalar result, at the operands' default values.

    Args:
        opcode: the operation.
        scalar: the result type, ``None`` if not scalar.
        operands: operand words after the opcode: ids, but literal indices for OpCompositeExtract.
        constants: the constants defined so far.

    Returns:
        The value, or ``None`` for an operation that is not folded (vectors, floats, undefined results).
    """
    if scalar is None or not operands:
        return None
    if opcode == _COMPOSITE_EXTRACT:
        source = constants.get(operands[0])
        if source is None or not isinstance(source.value, tuple) or len(operands) != 2:
            return None
        return source.value[operands[1]] if operands[1] < len(source.value) else None
    arguments = [constants.get(operand) for operand in operands]
    values: list[Scalar] = []
    bits = 0
    for argument in arguments:
        if argument is None or argument.scalar is None or argument.value is None or isinstance(argument.value, tuple):
            return None
        values.append(argument.value)
        bits = max(bits, argument.scalar.bits) if argument.scalar.kind in ("int", "uint") else bits
    if opcode == _SELECT:
        return (values[1] if values[0] else values[2]) if len(values) == 3 else None
    if scalar.kind == "float" or any(isinstance(value, float) for value in values):
        return None
    folded = _fold_integers(opcode, scalar, [int(value) for value in values], bits)
    if folded is None:
        return None
    return bool(folded) if scalar.kind == "bool" else _wrap(folded, scalar)


def _fold_integers(opcode: int, scalar: ScalarType, values: list[int], bits: int) -> int | None:
    if len(values) == 1:
        value = values[0]
        if opcode == _LOGICAL_NOT:
            return not value
        if not bits:
            return None
        unary = {_NEGATE: -value, _NOT: ~value, _CONVERT_S: _signed(value, bits), _CONVERT_U: _unsigned(value, bits)}
        return unary.get(opcode)
    if len(values) != 2:
        return None
    a, b = values
    if opcode in _LOGICAL:
        return _LOGICAL[opcode](bool(a), bool(b))
    if not bits or (opcode in _DIVISIONS and b == 0):
        return None
    if opcode in _MODULAR:
        return _MODULAR[opcode](a, b)
    if opcode in _UNSIGNED:
        return _UNSIGNED[opcode](_unsigned(a, bits), _unsigned(b, bits))
    if opcode in _SIGNED:
        return _SIGNED[opcode](_signed(a, bits), _signed(b, bits))
    # The base has the result's width; the shift count may have another.
    if not 0 <= b < scalar.bits:
        return None
    if opcode == _SHIFT_LEFT:
        return a << b
    if opcode == _SHIFT_RIGHT_LOGICAL:
        return _unsigned(a, scalar.bits) >> b
    if opcode == _SHIFT_RIGHT_ARITHMETIC:
        return _signed(a, scalar.bits) >> b
    return None
