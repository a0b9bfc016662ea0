"""Expressions of a shader: typed values whose operators write instructions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import ClassVar, Final, Protocol, TypeAlias

from .declarations import BOOL, U32, Kind
from .grammar import Op

# GLSL.std.450, "Binary Form".
_EXTENDED: Final = {"round_even": 2, "fabs": 4, "floor": 8, "ceil": 9, "sqrt": 31, "inverse_sqrt": 32}
_FIND_UMSB: Final = 75
_ADD: Final = {"u": Op.IAdd, "s": Op.IAdd, "f": Op.FAdd}
_SUBTRACT: Final = {"u": Op.ISub, "f": Op.FSub}
_MULTIPLY: Final = {"u": Op.IMul, "f": Op.FMul}
_LESS: Final = {"u": Op.ULessThan, "f": Op.FOrdLessThan}
_AT_MOST: Final = {"u": Op.ULessThanEqual, "f": Op.FOrdLessThanEqual}

Operand: TypeAlias = "Id | int | float | bool"
_Operator: TypeAlias = "Callable[[Id, Operand], Id]"


class Arithmetic(Protocol):
    """The methods of the builder that expressions call; ``Builder`` documents them."""

    def constant(self, kind: Kind, value: float) -> Id: ...

    def word(self, value: int) -> Id: ...

    def boolean(self, value: object) -> Id: ...

    def emit(self, opcode: int, kind: Kind, *operands: Id | int) -> Id: ...

    def binary(self, opcode: int, kind: Kind, left: Id, right: Id) -> Id: ...

    def extended(self, instruction: int, kind: Kind, *operands: Id) -> Id: ...

    def pair(self, opcode: int, left: Id, right: Id) -> tuple[Id, Id]: ...

    def conditional(
        self, condition: Id, then: Callable[[], Sequence[Id]], otherwise: Callable[[], Sequence[Id]]
    ) -> list[Id]: ...


def _operator(
    opcodes: Mapping[str, int], kind: Kind | None = None, *, swap: bool = False
) -> Callable[[Id, Operand], Id]:
    """Returns a method that writes a binary instruction, by the letter of its type; ``swap`` swaps the operands."""

    def operator(self: Id, other: Operand) -> Id:
        mine = self.kind
        if isinstance(other, Id):
            right = other
        elif mine is U32 and type(other) is int:
            right = self.builder.word(other)
        else:
            right = self.builder.constant(mine, other)
        left, right = (right, self) if swap else (self, right)
        return self.builder.binary(opcodes[mine.letter], kind or mine, left, right)

    return operator


class Id:
    """An expression: a result id with its type.

    Operators follow Python; on integers, ``<``, ``>>``, ``//`` and ``%`` are unsigned. Numbers as operands are
    constants of the other operand's type.

    Attributes:
        number: the result id.
        kind: the type.
        value: the value where it is known: an integer, or 0 or 1 for a boolean.
        start: the expression that this expression exceeds by ``distance`` modulo 2**32; itself if unknown.
        distance: the difference to ``start``.
        multiple: a power of two that divides it.
        run: the number of consecutive elements, including this one, that an invocation loads together; 0 if unknown.
    """

    __slots__ = ("builder", "distance", "kind", "multiple", "number", "run", "start", "value")

    def __init__(self, builder: Arithmetic, number: int, kind: Kind, value: int | None = None) -> None:
        self.builder: Arithmetic = builder
        self.number: int = number
        self.kind: Kind = kind
        self.value: int | None = value
        self.start: Id = self
        self.distance: int = 0
        self.run: int = 0
        self.multiple: int = 1 if value is None else power_of_two_in(value)

    @property
    def key(self) -> Hashable:
        """A key that is equal for expressions known to be equal."""
        return self.number

    @property
    def here(self) -> Id:
        """Writes the instruction, and returns its result."""
        return self

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value before the shader runs")

    __add__: ClassVar[_Operator] = _operator(_ADD)
    __radd__: ClassVar[_Operator] = _operator(_ADD, swap=True)
    __sub__: ClassVar[_Operator] = _operator(_SUBTRACT)
    __rsub__: ClassVar[_Operator] = _operator(_SUBTRACT, swap=True)
    __mul__: ClassVar[_Operator] = _operator(_MULTIPLY)
    __rmul__: ClassVar[_Operator] = _operator(_MULTIPLY, swap=True)
    __truediv__: ClassVar[_Operator] = _operator({"f": Op.FDiv})
    __rtruediv__: ClassVar[_Operator] = _operator({"f": Op.FDiv}, swap=True)
    __floordiv__: ClassVar[_Operator] = _operator({"u": Op.UDiv})
    __and__: ClassVar[_Operator] = _operator({"u": Op.BitwiseAnd, "b": Op.LogicalAnd})
    __or__: ClassVar[_Operator] = _operator({"u": Op.BitwiseOr, "b": Op.LogicalOr})
    __xor__: ClassVar[_Operator] = _operator({"u": Op.BitwiseXor, "b": Op.LogicalNotEqual})
    __lshift__: ClassVar[_Operator] = _operator({"u": Op.ShiftLeftLogical})
    __rshift__: ClassVar[_Operator] = _operator({"u": Op.ShiftRightLogical})
    __lt__: ClassVar[_Operator] = _operator(_LESS, BOOL)
    __le__: ClassVar[_Operator] = _operator(_AT_MOST, BOOL)
    __gt__: ClassVar[_Operator] = _operator(_LESS, BOOL, swap=True)
    __ge__: ClassVar[_Operator] = _operator(_AT_MOST, BOOL, swap=True)
    _remainder = _operator({"u": Op.UMod})
    shifted_signed: ClassVar[_Operator] = _operator({"u": Op.ShiftRightArithmetic})
    """The arithmetic right shift."""
    below: ClassVar[_Operator] = _operator({"u": Op.SLessThan}, BOOL)
    """Compares as signed integers: less than."""
    equals: ClassVar[_Operator] = _operator({"u": Op.IEqual, "f": Op.FOrdEqual, "b": Op.LogicalEqual}, BOOL)
    """Compares for equality; NaN equals nothing."""
    differs: ClassVar[_Operator] = _operator({"u": Op.INotEqual, "f": Op.FUnordNotEqual, "b": Op.LogicalNotEqual}, BOOL)
    """Compares for inequality; NaN differs from everything."""

    def __mod__(self, other: Operand) -> Id:
        return self.builder.constant(self.kind, 0) if other == 1 else self._remainder(other)

    def __invert__(self) -> Id:
        if self.kind.letter == "b":
            if self.value is not None:
                return self.builder.boolean(not self.value)
            return self.builder.emit(Op.LogicalNot, BOOL, self)
        return self.builder.emit(Op.Not, self.kind, self)

    def __neg__(self) -> Id:
        return self.builder.emit(Op.FNegate if self.kind.letter == "f" else Op.SNegate, self.kind, self)

    def select(self, then: Operand, otherwise: Operand) -> Id:
        """Returns ``then`` where this boolean holds, else ``otherwise``; ``then`` or ``otherwise`` is an expression."""
        if not isinstance(then, Id):
            assert isinstance(otherwise, Id)
            then = self.builder.constant(otherwise.kind, then)
        if not isinstance(otherwise, Id):
            otherwise = self.builder.constant(then.kind, otherwise)
        if self.value is not None:
            return then if self.value else otherwise
        if then.number == otherwise.number:
            return then
        result = self.builder.emit(Op.Select, then.kind, self, then, otherwise)
        result.multiple = min(then.multiple, otherwise.multiple)
        return result

    def bits(self, kind: Kind) -> Id:
        """Reinterprets the bits as another type."""
        return self if kind == self.kind else self.builder.emit(Op.Bitcast, kind, self)

    def convert(self, opcode: int, kind: Kind) -> Id:
        """Converts to another type."""
        return self if kind == self.kind else self.builder.emit(opcode, kind, self)

    def function(self, name: str) -> Id:
        """Computes ``round_even``, ``fabs``, ``floor``, ``ceil``, ``sqrt`` or ``inverse_sqrt`` of a float."""
        return self.builder.extended(_EXTENDED[name], self.kind, self)

    def highest_bit(self) -> Id:
        """Returns the position of the highest set bit of 32 bits; all ones if no bit is set."""
        return self.builder.extended(_FIND_UMSB, U32, self)


def power_of_two_in(value: int) -> int:
    """Returns the largest power of two that divides a number, at most 2**32."""
    return min(value & -value, 1 << 32) if value else 1 << 32
