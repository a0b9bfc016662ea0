"""Calls that make executables and record command buffers."""

from __future__ import annotations

from ...vm.translation.expressions import (
    ONE,
    ZERO,
    Binary,
    Display,
    Expression,
    Keyword,
    Literal,
    Name,
    call,
    listed,
    method,
)
from ..program.ir import NULL, Constant, Instruction, Operand
from .expressions import Hexadecimal
from .operands import OperandWriter
from .queue_calls import DEVICE


class CommandCalls(OperandWriter):
    """``hal.executable.*`` and ``hal.command_buffer.*``."""

    def executable(self, instruction: Instruction) -> Expression:
        kind, data, constants = instruction.operands[-3:]
        content = Literal(b"") if constants == NULL else call("bytes", self.data(constants))
        return method(DEVICE, "program_executable", self.text(kind), self.data(data), Keyword("constants", content))

    def lookup(self, instruction: Instruction) -> Expression:
        executable, name = instruction.operands
        return method(self.arg(executable), "lookup", self.text(name))

    def query(self, instruction: Instruction) -> Expression:
        return method(DEVICE, "query", *map(self.text, instruction.operands[1:3]))

    def commands(self, instruction: Instruction) -> Expression:
        modes, capacity = instruction.operands[1], instruction.operands[4]
        options = []
        if capacity != Constant("i", 0):
            options.append(Keyword("binding_capacity", self.arg(capacity)))
        if not isinstance(modes, Constant):
            options.append(Keyword("one_shot", call("bool", Binary("&", self.arg(modes), ONE))))
        elif int(modes.number) & 1:
            options.append(Keyword("one_shot", Name("True")))
        return method(Name("self"), "_record", *options)

    def label(self, instruction: Instruction) -> Expression:
        return method(self.arg(instruction.operands[0]), "begin_label", self.text(instruction.operands[1]))

    def _range(self, commands: Expression, *operands: Operand, is_written: bool = True) -> Expression:
        """Returns a range by a slot, a buffer, an offset and a size."""
        access = [] if is_written else [Keyword("written", Name("False"))]
        return method(commands, "reference", *map(self.arg, operands), *access)

    def fill(self, instruction: Instruction) -> Expression:
        commands = self.arg(instruction.operands[0])
        target, offset, size, slot, pattern, width = instruction.operands[1:7]
        return method(commands, "fill", self._range(commands, slot, target, offset, size), self.pattern(pattern, width))

    def update(self, instruction: Instruction) -> Expression:
        commands = self.arg(instruction.operands[0])
        source, start, target, offset, size, slot = instruction.operands[1:7]
        written = self._range(commands, slot, target, offset, size)
        file = call("HalFile", self.data(source))
        data = method(file, "range", self.arg(start), self.arg(size), Literal("update_buffer"))
        return method(commands, "update", written, method(data, "tobytes"))

    def copy(self, instruction: Instruction) -> Expression:
        commands = self.arg(instruction.operands[0])
        source_slot, target_slot, source, source_offset, target, target_offset, size = instruction.operands[1:8]
        ranges = (
            self._range(commands, source_slot, source, source_offset, size, is_written=False),
            self._range(commands, target_slot, target, target_offset, size),
        )
        length = self.arg(size)
        return method(commands, "copy", *ranges, *([] if length == Literal(-1) else [length]))

    def _bindings(self, operand: Operand) -> Expression:
        bindings: list[Expression] = []
        for row in self.rows(operand):
            assert isinstance(row, tuple)
            _, slot, buffer, offset, size = row
            if buffer != NULL:
                bindings.append(Display((ZERO, *map(self.arg, row[1:]))))
                continue
            options = []
            if offset != Constant("I", 0):
                options.append(Keyword("offset", self.arg(offset)))
            if size != Constant("I", -1):
                options.append(Keyword("size", self.arg(size)))
            bindings.append(call("slot", self.arg(slot), *options))
        return listed(bindings)

    def _arguments(self, flags: Operand, constants: Operand, bindings: Operand) -> list[Expression]:
        return [
            Keyword("flags", self.arg(flags)),
            Keyword("constants", listed(self.items(constants))),
            Keyword("bindings", self._bindings(bindings)),
        ]

    def dispatch(self, instruction: Instruction) -> Expression:
        commands, executable, function, x, y, z, *rest = instruction.operands
        groups = Keyword("groups", Display(tuple(map(self._count, (x, y, z)))))
        return method(
            self.arg(commands),
            "dispatch_function",
            self.arg(executable),
            self.arg(function),
            groups,
            *self._arguments(*rest),
        )

    def _count(self, operand: Operand) -> Expression:
        """Returns a number of workgroups, which is unsigned."""
        assert not isinstance(operand, tuple)
        term = self._term_of(operand)
        if term.bounds is not None and term.bounds[0] >= 0:
            return term.number()
        return Binary("&", term.number(), Hexadecimal(0xFFFFFFFF))

    def dispatch_indirect(self, instruction: Instruction) -> Expression:
        commands, executable, function, slot, workgroups, offset, *rest = instruction.operands
        recorder = self.arg(commands)
        counts = self._range(recorder, slot, workgroups, offset, Constant("I", 12), is_written=False)
        return method(
            recorder,
            "dispatch_function_indirect",
            self.arg(executable),
            self.arg(function),
            Keyword("counts", counts),
            *self._arguments(*rest),
        )
