"""Calls that make executables and record command buffers."""

from __future__ import annotations

from ..program.ir import NULL, Constant, Instruction, Operand
from .expressions import Text
from .operands import OperandTexts


class CommandCalls(OperandTexts):
    """``hal.executable.*`` and ``hal.command_buffer.*``."""

    def executable(self, one: Instruction) -> Text:
        kind, data, constants = one.operands[-3:]
        given = 'b""' if constants == NULL else f"bytes({self.data(constants)})"
        return Text(f"self.device.program_executable({self.text(kind)}, {self.data(data)}, constants={given})")

    def lookup(self, one: Instruction) -> Text:
        return Text(f"{self.arg(one.operands[0])}.lookup({self.text(one.operands[1])})")

    def query(self, one: Instruction) -> Text:
        return Text(f"self.device.query({self.text(one.operands[1])}, {self.text(one.operands[2])})")

    def commands(self, one: Instruction) -> Text:
        modes, capacity = one.operands[1], one.operands[4]
        parts = []
        if capacity != Constant("i", 0):
            parts.append(f"binding_capacity={self.arg(capacity)}")
        if not isinstance(modes, Constant):
            parts.append(f"one_shot=bool({self.arg(modes)} & 1)")
        elif int(modes.number) & 1:
            parts.append("one_shot=True")
        return Text(f"self._record({', '.join(parts)})")

    def label(self, one: Instruction) -> Text:
        return Text(f"{self.arg(one.operands[0])}.begin_label({self.text(one.operands[1])})")

    def _range(self, commands: str, at: Operand, buffer: Operand, offset: Operand, size: Operand, written: bool) -> str:
        read = "" if written else ", written=False"
        return f"{commands}.reference({self.arg(at)}, {self.arg(buffer)}, {self.arg(offset)}, {self.arg(size)}{read})"

    def fill(self, one: Instruction) -> Text:
        commands = self.arg(one.operands[0])
        target, offset, size, at, pattern, width = one.operands[1:7]
        place = self._range(commands, at, target, offset, size, True)
        return Text(f"{commands}.fill({place}, {self.pattern(pattern, width)})")

    def update(self, one: Instruction) -> Text:
        commands = self.arg(one.operands[0])
        source, start, target, offset, size, at = one.operands[1:7]
        place = self._range(commands, at, target, offset, size, True)
        data = f'HalFile({self.data(source)}).range({self.arg(start)}, {self.arg(size)}, "update_buffer")'
        return Text(f"{commands}.update({place}, {data}.tobytes())")

    def copy(self, one: Instruction) -> Text:
        commands = self.arg(one.operands[0])
        source_slot, target_slot, source, source_offset, target, target_offset, size = one.operands[1:8]
        here = self._range(commands, source_slot, source, source_offset, size, False)
        there = self._range(commands, target_slot, target, target_offset, size, True)
        length = self.arg(size)
        return Text(f"{commands}.copy({here}, {there}{'' if length == '-1' else f', {length}'})")

    def _bindings(self, operand: Operand) -> str:
        texts = []
        for row in self.rows(operand):
            assert isinstance(row, tuple)
            _, at, buffer, offset, size = row
            if buffer == NULL:
                parts = [self.arg(at)]
                if offset != Constant("I", 0):
                    parts.append(f"offset={self.arg(offset)}")
                if size != Constant("I", -1):
                    parts.append(f"size={self.arg(size)}")
                texts.append(f"slot({', '.join(parts)})")
            else:
                texts.append(f"(0, {', '.join(self.arg(each) for each in row[1:])})")
        return f"[{', '.join(texts)}]"

    def _words(self, operand: Operand) -> str:
        return f"[{', '.join(self.arg(row) for row in self.rows(operand))}]"

    def dispatch(self, one: Instruction) -> Text:
        commands, executable, function, x, y, z, flags, constants, bindings = one.operands
        groups = ", ".join(self._group(each) for each in (x, y, z))
        return Text(
            f"{self.arg(commands)}.dispatch_function({self.arg(executable)}, {self.arg(function)}, "
            f"groups=({groups}), flags={self.arg(flags)}, constants={self._words(constants)}, "
            f"bindings={self._bindings(bindings)})"
        )

    def _group(self, operand: Operand) -> str:
        assert not isinstance(operand, tuple)
        text = self._text_of(operand)
        return text.number() if text.bounds is not None and text.bounds[0] >= 0 else f"{text.operand()} & 0xFFFFFFFF"

    def dispatch_indirect(self, one: Instruction) -> Text:
        commands, executable, function, at, workgroups, offset, flags, constants, bindings = one.operands
        counts = self._range(self.arg(commands), at, workgroups, offset, Constant("I", 12), False)
        return Text(
            f"{self.arg(commands)}.dispatch_function_indirect({self.arg(executable)}, {self.arg(function)}, "
            f"counts={counts}, flags={self.arg(flags)}, constants={self._words(constants)}, "
            f"bindings={self._bindings(bindings)})"
        )
