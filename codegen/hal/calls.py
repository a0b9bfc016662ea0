"""Calls of functions and of the ``hal`` module's imports as Python on the HAL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...hal.memory import BufferUsage, MemoryTypeFlags
from ...vm.translation.expressions import NONE, Attribute, Display, Expression, Keyword, Name, call, listed, method
from ..program.ir import Constant, Function, Instruction
from .command_calls import CommandCalls
from .queue_calls import ALLOCATOR, CONTEXT, DEVICE, QueueCalls


class CallWriter(CommandCalls, QueueCalls):
    """The calls of one function."""

    def call(self, instruction: Instruction) -> Expression:
        """Returns a call; its value is a tuple for several results."""
        if isinstance(instruction.callee, int):
            return self._internal(instruction, self.module.program.functions[instruction.callee])
        writer = _WRITERS.get(str(instruction.callee))
        if writer is None:
            raise self.refused(instruction)
        return writer(self, instruction)

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

    # -- buffers and views ---------------------------------------------------------------------------

    def buffer_assert(self, instruction: Instruction) -> Expression:
        buffer, message, _, length, memory, usage = instruction.operands
        flags = self.flags(memory, MemoryTypeFlags), self.flags(usage, BufferUsage)
        return call("check_compatible", self.arg(buffer), self.text(message), self.arg(length), *flags)

    def view_assert(self, instruction: Instruction) -> Expression:
        view, message, element, encoding, shape = instruction.operands
        lengths = Display(self.items(shape))
        expected = self.element(element), lengths, *self.encoding(encoding)
        return call("check_view", self.arg(view), self.text(message), *expected)

    def view_create(self, instruction: Instruction) -> Expression:
        buffer, offset, length, element, encoding, shape = instruction.operands
        start = [] if offset == Constant("I", 0) else [Keyword("offset", self.arg(offset))]
        lengths = Display(self.items(shape))
        options = *start, Keyword("length", self.arg(length)), *self.encoding(encoding)
        return call("create_view", self.arg(buffer), self.element(element), lengths, *options)

    def trace(self, instruction: Instruction) -> Expression:
        key, views = instruction.operands
        return call("trace_views", CONTEXT, self.text(key), listed(self.items(views)))

    def load(self, instruction: Instruction) -> Expression:
        buffer, offset, size = map(self.arg, instruction.operands)
        return call("load_word", CONTEXT, buffer, Keyword("offset", offset), Keyword("size", size))

    def store(self, instruction: Instruction) -> Expression:
        value, buffer, offset, size = map(self.arg, instruction.operands)
        return call("store_word", CONTEXT, value, buffer, Keyword("offset", offset), Keyword("size", size))


def method_name(function: Function) -> str:
    """Returns the name of a function's method."""
    return function.name if function.exported else f"_{function.name}"


_Writer = Callable[[CallWriter, Instruction], Expression]


def _method(name: str) -> _Writer:
    """Writes a call of a method of the first operand, without arguments."""
    return lambda writer, instruction: method(writer.arg(instruction.operands[0]), name)


def _attribute(name: str) -> _Writer:
    """Writes an attribute of the first operand."""
    return lambda writer, instruction: Attribute(writer.arg(instruction.operands[0]), name)


def _function(name: str) -> _Writer:
    """Writes a call of a function with the same operands."""
    return lambda writer, instruction: writer.plain(name, instruction.operands)


def _queue(name: str) -> _Writer:
    """Writes a transfer on a queue."""
    return lambda writer, instruction: writer.transfer(name, instruction)


_WRITERS: Final[dict[str, _Writer]] = {
    "hal.allocator.allocate": CallWriter.allocate,
    "hal.allocator.import": CallWriter.import_memory,
    "hal.buffer.allocation.discard": _function("discard"),
    "hal.buffer.allocation.is_terminal": _function("is_terminal"),
    "hal.buffer.allocation.preserve": _function("preserve"),
    "hal.buffer.assert": CallWriter.buffer_assert,
    "hal.buffer.length": _attribute("size"),
    "hal.buffer.load": CallWriter.load,
    "hal.buffer.store": CallWriter.store,
    "hal.buffer.subspan": _function("subspan"),
    "hal.buffer_view.assert": CallWriter.view_assert,
    "hal.buffer_view.buffer": _attribute("buffer"),
    "hal.buffer_view.create": CallWriter.view_create,
    "hal.buffer_view.dim": _function("dim_of"),
    "hal.buffer_view.element_type": _function("element_type_of"),
    "hal.buffer_view.encoding_type": _function("encoding_of"),
    "hal.buffer_view.rank": _function("rank_of"),
    "hal.buffer_view.trace": CallWriter.trace,
    "hal.command_buffer.advise_buffer": _method("check_recording"),
    "hal.command_buffer.begin_debug_group": CallWriter.label,
    "hal.command_buffer.copy_buffer": CallWriter.copy,
    "hal.command_buffer.create": CallWriter.commands,
    "hal.command_buffer.dispatch": CallWriter.dispatch,
    "hal.command_buffer.dispatch.indirect": CallWriter.dispatch_indirect,
    "hal.command_buffer.end_debug_group": _method("end_label"),
    "hal.command_buffer.execution_barrier": _method("execution_barrier"),
    "hal.command_buffer.fill_buffer": CallWriter.fill,
    "hal.command_buffer.finalize": _method("end"),
    "hal.command_buffer.update_buffer": CallWriter.update,
    "hal.device.allocator": lambda writer, instruction: ALLOCATOR,
    "hal.device.query.i64": CallWriter.query,
    "hal.device.queue.alloca": CallWriter.alloca,
    "hal.device.queue.barrier": lambda writer, instruction: writer.plain("alias", instruction.operands[2:4]),
    "hal.device.queue.copy": _queue("queue_copy"),
    "hal.device.queue.dealloca": lambda writer, instruction: writer.plain("alias", instruction.operands[2:4]),
    "hal.device.queue.execute": CallWriter.execute,
    "hal.device.queue.execute.indirect": CallWriter.execute_indirect,
    "hal.device.queue.fill": _queue("queue_fill"),
    "hal.device.queue.flush": lambda writer, instruction: method(DEVICE, "check_usable"),
    "hal.device.queue.read": _queue("queue_read"),
    "hal.device.queue.update": _queue("queue_update"),
    "hal.device.queue.write": _queue("queue_write"),
    "hal.ex.file.from_memory": CallWriter.file,
    "hal.executable.create": CallWriter.executable,
    "hal.executable.lookup.function": CallWriter.lookup,
    "hal.fence.await": CallWriter.fence_await,
    "hal.fence.create": lambda writer, instruction: call("HalFence", DEVICE),
    "hal.fence.fail": _function("fail_with"),
    "hal.fence.join": CallWriter.fence_join,
    "hal.fence.query": _function("status_of"),
    "hal.fence.signal": _method("signal"),
}
