"""Operands of calls as arguments."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ...status import InvalidArgumentError, UnimplementedError
from ...vm.translation.expressions import Expression, Keyword, Literal, call, method
from ..program.ir import NULL, Constant, Function, Instruction, Operand, Rodata, Value
from .expressions import Term
from .module import Module
from .names import element_type

_NOT_WRITTEN: Final = {
    "hal.channel": "collectives between devices are not implemented",
    "hal.command_buffer.collective": "collectives between devices are not implemented",
    "io_parameters": "parameters of files are read by sessions; compile the weights into the module",
}


class OperandWriter:
    """Operands of one function's calls; ``term_of`` returns the expression of a value."""

    def __init__(self, module: Module, function: Function, term_of: Callable[[Value], Term]) -> None:
        self.module = module
        self.function = function
        self._term_of = term_of

    def refused(self, instruction: Instruction) -> UnimplementedError:
        """Returns the error for an import or an operation that HAL code cannot express."""
        if instruction.operation == "call":
            name = str(instruction.callee)
            other = f"it is a function of the module {name.partition('.')[0]}, which is none that HAL code can call"
            why = next((text for prefix, text in _NOT_WRITTEN.items() if name.startswith(prefix)), other)
        else:
            name, why = f"the operation {instruction.operation}", "HAL code has nothing for it"
        location = f" at {instruction.location}" if instruction.location else ""
        return UnimplementedError(
            f"function {self.function.name} of module {self.module.program.name} calls {name}{location}: {why}. Run "
            "the module with pumice.Session, or `pumice run`"
        )

    def arg(self, operand: Operand) -> Expression:
        """Returns an operand as an argument."""
        if isinstance(operand, tuple):
            raise InvalidArgumentError(f"function {self.function.name}: a call has a list where a value is expected")
        return self._term_of(operand).number()

    def rows(self, operand: Operand) -> Sequence[Value | tuple[Value, ...]]:
        """Returns the rows of a repeated operand."""
        if not isinstance(operand, tuple):
            raise InvalidArgumentError(f"function {self.function.name}: a call has a value where a list is expected")
        return operand

    def items(self, operand: Operand) -> tuple[Expression, ...]:
        """Returns the values of a repeated operand."""
        return tuple(self.arg(row) for row in self.rows(operand))

    def data(self, operand: Operand) -> Expression:
        """Returns the bytes of a host buffer."""
        if isinstance(operand, Rodata):
            return self.module.data.item(operand.ordinal)
        return self.arg(operand)

    def text(self, operand: Operand) -> Expression:
        """Returns the text in a host buffer."""
        if isinstance(operand, Rodata):
            return Literal(self.module.program.text(operand))
        return method(call("bytes", self.arg(operand)), "decode", Literal("utf-8"), Literal("replace"))

    def fences(self, instruction: Instruction) -> Iterator[Expression]:
        """Yields the keyword arguments for a wait and a signal fence."""
        for name, operand in zip(("wait", "signal"), instruction.operands[2:4], strict=True):
            if operand != NULL:
                yield Keyword(name, self.arg(operand))

    def flags(self, operand: Operand, kind: type[enum.IntFlag]) -> Expression:
        """Returns flags, by a constant's name if they are known."""
        assert not isinstance(operand, tuple)
        return self.module.flag(operand, kind) or self.arg(operand)

    def element(self, operand: Operand) -> Expression:
        """Returns an element type."""
        if isinstance(operand, Constant):
            return element_type(int(operand.number))
        return self.arg(operand)

    def pattern(self, pattern: Operand, width: Operand) -> Expression:
        """Returns the bytes of a pattern."""
        if isinstance(pattern, Constant) and isinstance(width, Constant) and width.number in (1, 2, 4):
            number, size = int(pattern.number), int(width.number)
            return Literal((number & ((1 << 8 * size) - 1)).to_bytes(size, "little"))
        return call("pattern_of", self.arg(pattern), self.arg(width))
