"""Calls that allocate memory, put work on a queue, and use fences."""

from __future__ import annotations

from ...hal.memory import BufferUsage, MemoryTypeFlags
from ...status import UnimplementedError
from ...vm.translation.expressions import (
    ZERO,
    Attribute,
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
from ..program.ir import NULL, Constant, Instruction, Operand, Rodata, Variable
from .operands import OperandWriter

CONTEXT = Attribute(Name("self"), "context")
DEVICE = Attribute(Name("self"), "device")
ALLOCATOR = Attribute(CONTEXT, "allocator")


class QueueCalls(OperandWriter):
    """``hal.allocator.*``, ``hal.device.queue.*``, ``hal.ex.file.*`` and ``hal.fence.*``."""

    # -- memory --------------------------------------------------------------------------------------

    def allocate(self, instruction: Instruction) -> Expression:
        memory, usage, size = instruction.operands[2:5]
        return self._allocate(memory, usage, size)

    def _allocate(self, memory: Operand, usage: Operand, size: Operand) -> Expression:
        flags = self.flags(memory, MemoryTypeFlags), self.flags(usage, BufferUsage)
        return method(ALLOCATOR, "allocate", *flags, Keyword("size", self.arg(size)))

    def alloca(self, instruction: Instruction) -> Expression:
        pool, memory, usage, size = instruction.operands[4:8]
        if not (isinstance(pool, Constant) and pool.number == 0):
            raise UnimplementedError(f"function {self.function.name} allocates from a pool; there are none")
        return self._allocate(memory, usage, size)

    def import_memory(self, instruction: Instruction) -> Expression:
        _, attempt, _, memory, usage, source, offset, size = instruction.operands
        return call(
            "import_memory",
            DEVICE,
            ALLOCATOR,
            self.data(source),
            self.arg(offset),
            self.arg(size),
            self.flags(memory, MemoryTypeFlags),
            self.flags(usage, BufferUsage),
            Keyword("attempt", call("bool", self.arg(attempt))),
        )

    def file(self, instruction: Instruction) -> Expression:
        buffer, offset, size = instruction.operands[3:6]
        start, length = self.arg(offset), self.arg(size)
        data = self.data(buffer)
        whole = call("HalFile", data if isinstance(buffer, Rodata) else method(data, "toreadonly"))
        if isinstance(buffer, Rodata) and start == ZERO:
            size_of_whole = len(self.module.program.rodata[buffer.ordinal])
            if length in (Literal(-1), Literal(size_of_whole)):
                return whole
        if length == Literal(-1):
            view = Attribute(call("HalFile", self.data(buffer)), "view")
            length = Binary("-", Attribute(view, "nbytes"), start)
        return call("HalFile", method(whole, "range", start, length, Literal("ex.file.from_memory")))

    # -- queues --------------------------------------------------------------------------------------

    def execute_indirect(self, instruction: Instruction) -> Expression:
        rows: list[Expression] = []
        for row in self.rows(instruction.operands[-1]):
            assert isinstance(row, tuple)
            rows.append(Display(tuple(map(self.arg, row))))
        table = [Keyword("bindings", listed(rows))] if rows else []
        commands = self.arg(instruction.operands[4])
        return call("queue_execute", CONTEXT, commands, *table, *self.fences(instruction))

    def execute(self, instruction: Instruction) -> Expression:
        commands = instruction.operands[4]
        if not isinstance(commands, tuple):
            return call("queue_execute", CONTEXT, self.arg(commands), *self.fences(instruction))
        return call("queue_execute_all", CONTEXT, listed(self.items(commands)), *self.fences(instruction))

    def transfer(self, name: str, instruction: Instruction) -> Expression:
        """Returns a transfer whose operands are the function's."""
        operands = instruction.operands[4:-1]
        if name == "queue_fill":
            arguments = [*map(self.arg, operands[:3]), self.pattern(*operands[3:])]
        else:
            arguments = [*map(self.data, operands)]
        return call(name, CONTEXT, *arguments, *self.fences(instruction))

    # -- fences --------------------------------------------------------------------------------------

    def fence_join(self, instruction: Instruction) -> Expression:
        return call("join", listed(self.items(instruction.operands[-1])))

    def fence_await(self, instruction: Instruction) -> Expression:
        fences = self.rows(instruction.operands[-1])
        timeout = instruction.operands[0]
        if not instruction.results and len(fences) == 1:
            fence = fences[0]
            if isinstance(fence, Variable) and not self._may_be_null(fence):
                return method(self.arg(fence), "wait_until")
        is_forever = isinstance(timeout, Constant) and timeout.number == -1
        limit = [] if is_forever else [Keyword("milliseconds", self.arg(timeout))]
        return call("await_fences", listed(map(self.arg, fences)), *limit)

    def _may_be_null(self, variable: Variable) -> bool:
        """Whether a fence may be null."""
        if variable in self.function.arguments:
            return True
        for block in self.function.blocks:
            for instruction in block.instructions:
                if variable in instruction.results and instruction.operation != "call":
                    source = instruction.operands[0] if instruction.operation == "assign" else NULL
                    if not isinstance(source, Variable) or source is variable or self._may_be_null(source):
                        return True
            for edge in block.edges:
                for target, value in edge.copies:
                    if target is variable and (not isinstance(value, Variable) or self._may_be_null(value)):
                        return True
        return False
