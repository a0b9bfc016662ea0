"""Variables and constants of a function in C, and arguments of calls: numbers, ranges, arrays, texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...status import UnimplementedError
from ...vm.translation.expressions import Attribute, Cast, Display, Expression, Keyword, Literal, Name, Unary, call
from ..program.ir import Constant, Function, Instruction, Operand, Program, Rodata, Value, Variable
from .executables import Executables
from .statements import NULL, P
from .support import reserved
from .types import KEYWORDS, number


class Values:
    """The values of one function as expressions.

    Attributes:
        constants: the ordinals of constants that the function uses as buffers of host memory.
    """

    def __init__(self, program: Program, function: Function, executables: Executables) -> None:
        self.program = program
        self.function = function
        self.executables = executables
        self.constants: dict[int, None] = {}
        self.names: dict[Variable, str] = {}
        self._taken: set[str] = set()

    def where(self) -> str:
        """Returns the function's name, for messages."""
        return f"function {self.function.name or self.function.ordinal}"

    def name(self, variable: Variable) -> Name:
        """Returns a variable."""
        if variable not in self.names:
            wanted = base = variable.name or "value"
            number = 0
            while wanted in self._taken or wanted in reserved() or wanted in KEYWORDS:
                wanted = f"{base}_{number}"
                number += 1
            self._taken.add(wanted)
            self.names[variable] = wanted
        return Name(self.names[variable])

    def value(self, value: Operand) -> Expression:
        """Returns a value as a primary expression, which binds tighter than any operator."""
        if isinstance(value, Variable):
            return self.name(value)
        if isinstance(value, Rodata):
            self.constants.setdefault(value.ordinal)
            return global_member(f"rodata_{value.ordinal}")
        assert isinstance(value, Constant)
        return number(value.kind, value.number)

    def unsigned(self, value: Operand) -> Expression:
        """Returns an offset or a size as ``uint64_t``; -1 becomes the largest number."""
        if isinstance(value, Constant) and value.number == -1:
            return Name("UINT64_MAX")
        if isinstance(value, Constant) and value.number >= 0:
            size = Literal(value.number)
            return call("UINT64_C", size) if value.number > 0x7FFFFFFF else size
        return Cast("uint64_t", self.value(value))

    def word(self, value: Operand) -> Expression:
        """Returns a 32-bit number as ``uint32_t``."""
        if isinstance(value, Constant) and value.number >= 0:
            return Literal(value.number)
        return Cast("uint32_t", self.value(value))

    def text(self, value: Operand) -> Expression:
        """Returns a constant text as a literal."""
        if not isinstance(value, Rodata):
            raise UnimplementedError(
                f"{self.where()} passes a text that it makes itself; C programs have constant ones"
            )
        return Literal(self.program.text(value))

    def result(self, instruction: Instruction, position: int = 0) -> Expression:
        """Returns the address of the variable that takes a result."""
        return Unary("&", self.name(instruction.results[position]))

    def binding(self, slot: Value, buffer: Value, offset: Value, length: Value) -> Display:
        """Returns the initializer of a ``binding``: a range of a buffer or of a slot."""
        fields = []
        if not isinstance(buffer, Variable) or not (isinstance(slot, Constant) and slot.number == 0):
            fields.append(Keyword("slot", self.word(slot)))
        if not isinstance(buffer, Constant):
            fields.append(Keyword("buffer", self.value(buffer)))
        if not (isinstance(offset, Constant) and offset.number == 0):
            fields.append(Keyword("offset", self.unsigned(offset)))
        return Display((*fields, Keyword("length", self.unsigned(length))))


def global_member(name: str) -> Expression:
    """Returns a global of the program."""
    return Attribute(P, f"globals.{name}")


def rows(value: Operand) -> Sequence[Sequence[Value]]:
    """Returns the rows of a repeated argument."""
    assert isinstance(value, tuple)
    return [row if isinstance(row, tuple) else (row,) for row in value]


def array(type: str, items: Iterable[Expression]) -> tuple[Expression, Expression]:
    """Returns an array and its length, as two arguments."""
    listed = tuple(items)
    return (Cast(f"{type}[]", Display(listed)) if listed else NULL), Literal(len(listed))
