"""Calls that allocate memory, put work on a queue, and use fences."""

from __future__ import annotations

from collections.abc import Callable

from ...hal.memory import BufferUsage, MemoryTypeFlags
from ...status import UnimplementedError
from ..program.ir import NULL, Constant, Instruction, Operand, Rodata, Variable
from .expressions import Text
from .operands import OperandTexts


class QueueCalls(OperandTexts):
    """``hal.allocator.*``, ``hal.device.queue.*``, ``hal.ex.file.*`` and ``hal.fence.*``."""

    # -- memory --------------------------------------------------------------------------------------

    def allocate(self, one: Instruction) -> Text:
        memory, usage, size = one.operands[2:5]
        return self._allocate(memory, usage, size)

    def _allocate(self, memory: Operand, usage: Operand, size: Operand) -> Text:
        return Text(
            f"self.context.allocator.allocate({self.flags(memory, MemoryTypeFlags)}, "
            f"{self.flags(usage, BufferUsage)}, size={self.arg(size)})"
        )

    def alloca(self, one: Instruction) -> Text:
        pool, memory, usage, size = one.operands[4:8]
        if not (isinstance(pool, Constant) and pool.number == 0):
            raise UnimplementedError(f"function {self.function.name} allocates from a pool; there are none")
        return self._allocate(memory, usage, size)

    def import_memory(self, one: Instruction) -> Text:
        _, attempt, _, memory, usage, source, offset, size = one.operands
        return Text(
            f"import_memory(self.device, self.context.allocator, {self.data(source)}, "
            f"{self.arg(offset)}, {self.arg(size)}, {self.flags(memory, MemoryTypeFlags)}, "
            f"{self.flags(usage, BufferUsage)}, attempt=bool({self.arg(attempt)}))"
        )

    def file(self, one: Instruction) -> Text:
        buffer, offset, size = one.operands[3:6]
        start, length = self.arg(offset), self.arg(size)
        text = f"HalFile({self.data(buffer)}{'' if isinstance(buffer, Rodata) else '.toreadonly()'})"
        if (
            isinstance(buffer, Rodata)
            and start == "0"
            and length in ("-1", str(len(self.module.program.rodata[buffer.ordinal])))
        ):
            return Text(text)
        end = f"HalFile({self.data(buffer)}).view.nbytes - {start}" if length == "-1" else length
        return Text(f'HalFile({text}.range({start}, {end}, "ex.file.from_memory"))')

    # -- queues --------------------------------------------------------------------------------------

    def execute_indirect(self, one: Instruction) -> Text:
        texts = []
        for row in self.rows(one.operands[-1]):
            assert isinstance(row, tuple)
            texts.append(f"({', '.join(self.arg(each) for each in row)})")
        table = f", bindings=[{', '.join(texts)}]" if texts else ""
        return Text(f"queue_execute(self.context, {self.arg(one.operands[4])}{table}{self.fences(one)})")

    def execute(self, one: Instruction) -> Text:
        commands = one.operands[4]
        if isinstance(commands, tuple):
            texts = [self.arg(row) for row in commands if not isinstance(row, tuple)]
            return Text(f"queue_execute_all(self.context, [{', '.join(texts)}]{self.fences(one)})")
        return Text(f"queue_execute(self.context, {self.arg(commands)}{self.fences(one)})")

    def queue(self, name: str) -> Callable[[Instruction], Text]:
        """A transfer whose operands are the function's."""

        def write(one: Instruction) -> Text:
            operands = one.operands[4:-1]
            if name == "queue_fill":
                buffer, offset, size, pattern, width = operands
                texts = [self.arg(buffer), self.arg(offset), self.arg(size), self.pattern(pattern, width)]
            else:
                texts = [self.data(each) if isinstance(each, Rodata) else self.arg(each) for each in operands]
            return Text(f"{name}(self.context, {', '.join(texts)}{self.fences(one)})")

        return write

    # -- fences --------------------------------------------------------------------------------------

    def fence_create(self, one: Instruction) -> Text:
        return Text("HalFence(self.device)")

    def fence_join(self, one: Instruction) -> Text:
        texts = [self.arg(row) for row in self.rows(one.operands[-1])]
        return Text(f"join([{', '.join(texts)}])")

    def fence_await(self, one: Instruction) -> Text:
        fences = [row for row in self.rows(one.operands[-1]) if not isinstance(row, tuple)]
        timeout = one.operands[0]
        if not one.results and len(fences) == 1 and isinstance(fences[0], Variable) and self.is_fence(fences[0]):
            return Text(f"{self.arg(fences[0])}.wait_until()")
        texts = ", ".join(self.arg(fence) for fence in fences)
        forever = isinstance(timeout, Constant) and timeout.number == -1
        limit = "" if forever else f", milliseconds={self.arg(timeout)}"
        return Text(f"await_fences([{texts}]{limit})")

    def is_fence(self, variable: Variable) -> bool:
        """Whether a fence is never null."""
        return not self._may_be_null(variable)

    def _may_be_null(self, variable: Variable) -> bool:
        if variable in self.function.arguments:
            return True
        for block in self.function.blocks:
            for one in block.instructions:
                if variable in one.results and one.operation != "call":
                    source = one.operands[0] if one.operation == "assign" else NULL
                    if not isinstance(source, Variable) or source is variable or self._may_be_null(source):
                        return True
            for edge in block.edges:
                for target, value in edge.copies:
                    if target is variable and (not isinstance(value, Variable) or self._may_be_null(value)):
                        return True
        return False
