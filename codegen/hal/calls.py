"""Calls of functions and of the ``hal`` module's imports as Python on the HAL."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from ...hal.memory import BufferUsage, MemoryTypeFlags
from ...status import UnimplementedError
from ...vm.translation.expressions import (
    NONE,
    ONE,
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
from ..program.ir import NULL, Constant, Function, Instruction, Operand, Rodata, Variable
from .expressions import Hexadecimal
from .operands import OperandWriter

CONTEXT: Final = Attribute(Name("self"), "context")
DEVICE: Final = Attribute(Name("self"), "device")
ALLOCATOR: Final = Attribute(CONTEXT, "allocator")
_OBJECTS: Final[dict[str, Expression]] = {"context": CONTEXT, "device": DEVICE, "allocator": ALLOCATOR}
_ITEM: Final = re.compile(r"(?:(\w+)=)?([a-z]?)(-?\d+)(?:/(-?\d+))?")


class CallWriter(OperandWriter):
    """The calls of one function."""

    def call(self, instruction: Instruction) -> Expression:
        """Returns a call; its value is a tuple for several results."""
        if isinstance(instruction.callee, int):
            return self._internal(instruction, self.module.program.functions[instruction.callee])
        name = str(instruction.callee)
        if name in _DESCRIBED:
            return self._described(_DESCRIBED[name], instruction)
        if name in _ATTRIBUTES:
            return Attribute(self.arg(instruction.operands[0]), _ATTRIBUTES[name])
        write = _WRITERS.get(name)
        if write is None:
            raise self.refused(instruction)
        return write(self, instruction)

    # -- functions of the program --------------------------------------------------------------------

    def _internal(self, instruction: Instruction, callee: Function) -> Expression:
        arguments: list[Expression] = list(map(self.arg, instruction.operands))
        if callee.declaration is not None and callee.declaration.is_async:
            arguments[-2:] = [
                Keyword(name, fence)
                for name, fence in zip(("wait", "signal"), arguments[-2:], strict=True)
                if fence != NONE
            ]
        return method(Name("self"), method_name(callee), *arguments)

    # -- calls by a description ----------------------------------------------------------------------

    def _described(self, description: str, instruction: Instruction) -> Expression:
        name, *items = description.split()
        owner, _, last = name.rpartition(".")
        if name.startswith("."):
            return method(self.arg(instruction.operands[0]), last, *self._arguments_of(items, instruction))
        arguments = self._arguments_of(items, instruction)
        return method(_OBJECTS[owner], last, *arguments) if owner else call(name, *arguments)

    def _arguments_of(self, items: list[str], instruction: Instruction) -> Iterator[Expression]:
        for item in items:
            match = _ITEM.fullmatch(item)
            if item == "*":
                yield from map(self.arg, instruction.operands)
            elif item == "fences":
                yield from self.fences(instruction)
            elif match is None:
                yield _OBJECTS[item]
            else:
                key, form, index, default = match.groups()
                operand = instruction.operands[int(index)]
                if default is None or not (isinstance(operand, Constant) and operand.number == int(default)):
                    argument = _FORMS[form](self, operand)
                    yield Keyword(key, argument) if key else argument

    # -- executables and commands --------------------------------------------------------------------

    def executable(self, instruction: Instruction) -> Expression:
        kind, data, constants = instruction.operands[-3:]
        content = Literal(b"") if constants == NULL else call("bytes", self.data(constants))
        return method(DEVICE, "program_executable", self.text(kind), self.data(data), Keyword("constants", content))

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

    def _range(self, commands: Expression, *operands: Operand, is_written: bool = True) -> Expression:
        """Returns the expression of a range, from operands for a slot, a buffer, an offset and a size."""
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

    # -- memory and queues ---------------------------------------------------------------------------

    def alloca(self, instruction: Instruction) -> Expression:
        pool = instruction.operands[4]
        if not (isinstance(pool, Constant) and pool.number == 0):
            raise UnimplementedError(f"function {self.function.name} allocates from a pool; there are none")
        return self._described("allocator.allocate m5 u6 size=7", instruction)

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

    def queue_fill(self, instruction: Instruction) -> Expression:
        target, offset, length, *pattern = instruction.operands[4:-1]
        values = *map(self.arg, (target, offset, length)), self.pattern(*pattern)
        return call("queue_fill", CONTEXT, *values, *self.fences(instruction))

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


def method_name(function: Function) -> str:
    """Returns the name of a function's method."""
    return function.name if function.exported else f"_{function.name}"


_FORMS: Final[dict[str, Callable[[CallWriter, Operand], Expression]]] = {
    "": CallWriter.arg,
    "b": lambda writer, operand: call("bool", writer.arg(operand)),
    "d": CallWriter.data,
    "e": CallWriter.element,
    "l": lambda writer, operand: listed(writer.items(operand)),
    "m": lambda writer, operand: writer.flags(operand, MemoryTypeFlags),
    "s": lambda writer, operand: Display(writer.items(operand)),
    "t": CallWriter.text,
    "u": lambda writer, operand: writer.flags(operand, BufferUsage),
}

_ATTRIBUTES: Final = {"hal.buffer.length": "size", "hal.buffer_view.buffer": "buffer"}

_DESCRIBED: Final = {
    "hal.allocator.allocate": "allocator.allocate m2 u3 size=4",
    "hal.allocator.import": "import_memory device allocator d5 6 7 m3 u4 attempt=b1",
    "hal.buffer.allocation.discard": "discard *",
    "hal.buffer.allocation.is_terminal": "is_terminal *",
    "hal.buffer.allocation.preserve": "preserve *",
    "hal.buffer.assert": "check_compatible 0 t1 3 m4 u5",
    "hal.buffer.load": "load_word context 0 offset=1 size=2",
    "hal.buffer.store": "store_word context 0 1 offset=2 size=3",
    "hal.buffer.subspan": "subspan *",
    "hal.buffer_view.assert": "check_view 0 t1 e2 s4 encoding=3/1",
    "hal.buffer_view.create": "create_view 0 e3 s5 offset=1/0 length=2 encoding=4/1",
    "hal.buffer_view.dim": "dim_of *",
    "hal.buffer_view.element_type": "element_type_of *",
    "hal.buffer_view.encoding_type": "encoding_of *",
    "hal.buffer_view.rank": "rank_of *",
    "hal.buffer_view.trace": "trace_views context t0 l1",
    "hal.command_buffer.advise_buffer": ".check_recording",
    "hal.command_buffer.begin_debug_group": ".begin_label t1",
    "hal.command_buffer.end_debug_group": ".end_label",
    "hal.command_buffer.execution_barrier": ".execution_barrier",
    "hal.command_buffer.finalize": ".end",
    "hal.device.query.i64": "device.query t1 t2",
    "hal.device.queue.barrier": "alias 2 3",
    "hal.device.queue.copy": "queue_copy context 4 5 6 7 8 fences",
    "hal.device.queue.dealloca": "alias 2 3",
    "hal.device.queue.flush": "device.check_usable",
    "hal.device.queue.read": "queue_read context 4 5 6 7 8 fences",
    "hal.device.queue.update": "queue_update context d4 5 6 7 8 fences",
    "hal.device.queue.write": "queue_write context 4 5 6 7 8 fences",
    "hal.executable.lookup.function": ".lookup t1",
    "hal.fence.create": "HalFence device",
    "hal.fence.fail": "fail_with *",
    "hal.fence.join": "join l-1",
    "hal.fence.query": "status_of *",
    "hal.fence.signal": ".signal",
}
"""Calls by import: a function, a method of the first operand (``.name``) or of an object of the class, and arguments.

An argument consists of an optional ``keyword=``, the letter of its form, an operand's number, and an optional default
value (``/0``) with which it is left out. It may also be an object of the class, all operands (``*``), or the ``fences``
of a queue.
"""

_WRITERS: Final[dict[str, Callable[[CallWriter, Instruction], Expression]]] = {
    "hal.command_buffer.copy_buffer": CallWriter.copy,
    "hal.command_buffer.create": CallWriter.commands,
    "hal.command_buffer.dispatch": CallWriter.dispatch,
    "hal.command_buffer.dispatch.indirect": CallWriter.dispatch_indirect,
    "hal.command_buffer.fill_buffer": CallWriter.fill,
    "hal.command_buffer.update_buffer": CallWriter.update,
    "hal.device.allocator": lambda writer, instruction: ALLOCATOR,
    "hal.device.queue.alloca": CallWriter.alloca,
    "hal.device.queue.execute": CallWriter.execute,
    "hal.device.queue.execute.indirect": CallWriter.execute_indirect,
    "hal.device.queue.fill": CallWriter.queue_fill,
    "hal.ex.file.from_memory": CallWriter.file,
    "hal.executable.create": CallWriter.executable,
    "hal.fence.await": CallWriter.fence_await,
}
"""Calls whose form depends on their operands."""
