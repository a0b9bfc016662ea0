"""Operands of calls as the texts of arguments."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Final

from ...status import InvalidArgumentError, UnimplementedError
from ..program.ir import NULL, Constant, Function, Instruction, Operand, Rodata, Value
from .expressions import Text
from .module import Module
from .names import element_name

_NOT_WRITTEN: Final = {
    "hal.channel": "collectives between devices are not implemented",
    "hal.command_buffer.collective": "collectives between devices are not implemented",
    "io_parameters": "parameters of files are read by sessions; compile the weights into the module",
}


class OperandTexts:
    """Operands of one function's calls; ``text_of`` gives the text of a value."""

    def __init__(self, module: Module, function: Function, text_of: Callable[[Value], Text]) -> None:
        self.module = module
        self.function = function
        self._text_of = text_of

    def refused(self, one: Instruction) -> UnimplementedError:
        """The error for an import or an operation that HAL code has nothing for."""
        if one.operation == "call":
            name = str(one.callee)
            other = f"it is a function of the module {name.partition('.')[0]}, which is none that HAL code can call"
            why = next((text for prefix, text in _NOT_WRITTEN.items() if name.startswith(prefix)), other)
        else:
            name, why = f"the operation {one.operation}", "HAL code has nothing for it"
        place = f" at {one.location}" if one.location else ""
        return UnimplementedError(
            f"function {self.function.name} of module {self.module.program.name} calls {name}{place}: {why}. Run the "
            "module with pumice.Session, or `pumice run`"
        )

    def arg(self, operand: Operand) -> str:
        """An operand as an argument."""
        if isinstance(operand, tuple):
            raise InvalidArgumentError(f"function {self.function.name}: a call has a list where a value is expected")
        return self._text_of(operand).number()

    def rows(self, operand: Operand) -> Sequence[Value | tuple[Value, ...]]:
        """The rows of a repeated operand."""
        if not isinstance(operand, tuple):
            raise InvalidArgumentError(f"function {self.function.name}: a call has a value where a list is expected")
        return operand

    def shape(self, operand: Operand) -> str:
        """A tuple of lengths."""
        texts = [self.arg(row) for row in self.rows(operand)]
        return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"

    def data(self, operand: Operand) -> str:
        """The bytes of a host buffer."""
        if isinstance(operand, Rodata):
            return self.module.data.text(operand.ordinal)
        return self.arg(operand)

    def text(self, operand: Operand) -> str:
        """The text in a host buffer, as a literal."""
        if isinstance(operand, Rodata):
            return quoted(self.module.program.text(operand))
        return f'bytes({self.arg(operand)}).decode("utf-8", "replace")'

    def fences(self, one: Instruction, at: int = 2) -> str:
        """The keyword arguments for a wait and a signal fence."""
        parts = []
        for name, operand in zip(("wait", "signal"), one.operands[at : at + 2], strict=True):
            if operand != NULL:
                parts.append(f", {name}={self.arg(operand)}")
        return "".join(parts)

    def flags(self, operand: Operand, kind: type[enum.IntFlag]) -> str:
        """Flags, by a constant's name where they are known."""
        assert not isinstance(operand, tuple)
        return self.module.flag(operand, kind) or self.arg(operand)

    def element(self, operand: Operand) -> str:
        """An element type."""
        if isinstance(operand, Constant):
            return element_name(int(operand.number))
        return self.arg(operand)

    def encoding(self, operand: Operand) -> str:
        """The keyword argument for an encoding; none for the dense one."""
        if isinstance(operand, Constant) and operand.number == 1:
            return ""
        return f", encoding={self.arg(operand)}"

    def pattern(self, pattern: Operand, width: Operand) -> str:
        if isinstance(pattern, Constant) and isinstance(width, Constant) and width.number in (1, 2, 4):
            number, size = int(pattern.number), int(width.number)
            return repr((number & ((1 << 8 * size) - 1)).to_bytes(size, "little")).replace("'", '"')
        return f"pattern_of({self.arg(pattern)}, {self.arg(width)})"

    def plain(self, name: str) -> Callable[[Instruction], Text]:
        """A call of a function with the same operands."""
        return lambda one: Text(f"{name}({', '.join(self.arg(each) for each in one.operands)})")

    def method(self, name: str) -> Callable[[Instruction], Text]:
        """A call of a method of the first operand, without arguments."""
        return lambda one: Text(f"{self.arg(one.operands[0])}.{name}()")


def quoted(text: str) -> str:
    """A string literal in double quotes."""
    literal = repr(text)
    if literal[0] == "'" and '"' not in literal:
        return f'"{literal[1:-1]}"'
    return literal
