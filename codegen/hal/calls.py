"""Calls of functions and of the ``hal`` module's imports as Python on the HAL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...hal.memory import BufferUsage, MemoryTypeFlags
from ..program.ir import Constant, Function, Instruction
from .command_calls import CommandCalls
from .expressions import Text
from .queue_calls import QueueCalls


class CallTexts(CommandCalls, QueueCalls):
    """The texts of calls of one function."""

    def call(self, one: Instruction) -> Text:
        """A call as an expression; its value is a tuple for several results."""
        if isinstance(one.callee, int):
            return self._internal(one)
        name = str(one.callee)
        writer = _WRITERS.get(name)
        if writer is None:
            raise self.refused(one)
        return writer(self, one)

    # -- functions of the program --------------------------------------------------------------------

    def _internal(self, one: Instruction) -> Text:
        assert isinstance(one.callee, int)
        callee = self.module.program.functions[one.callee]
        arguments = [self.arg(operand) for operand in one.operands]
        if callee.declaration is not None and callee.declaration.is_async:
            arguments[-2:] = [
                f"{name}={text}"
                for name, text in zip(("wait", "signal"), arguments[-2:], strict=True)
                if text != "None"
            ]
        return Text(f"self.{method_name(callee)}({', '.join(arguments)})")

    # -- buffers and views ---------------------------------------------------------------------------

    def buffer_assert(self, one: Instruction) -> Text:
        buffer, message, _, length, memory, usage = one.operands
        return Text(
            f"check_compatible({self.arg(buffer)}, {self.text(message)}, {self.arg(length)}, "
            f"{self.flags(memory, MemoryTypeFlags)}, {self.flags(usage, BufferUsage)})"
        )

    def view_assert(self, one: Instruction) -> Text:
        view, message, element, encoding, shape = one.operands
        return Text(
            f"check_view({self.arg(view)}, {self.text(message)}, {self.element(element)}, "
            f"{self.shape(shape)}{self.encoding(encoding)})"
        )

    def view_create(self, one: Instruction) -> Text:
        buffer, offset, length, element, encoding, shape = one.operands
        start = "" if offset == Constant("I", 0) else f", offset={self.arg(offset)}"
        return Text(
            f"create_view({self.arg(buffer)}, {self.element(element)}, {self.shape(shape)}"
            f"{start}, length={self.arg(length)}{self.encoding(encoding)})"
        )

    def view_buffer(self, one: Instruction) -> Text:
        return Text(f"{self.arg(one.operands[0])}.buffer")

    def trace(self, one: Instruction) -> Text:
        key, views = one.operands
        texts = [self.arg(row) for row in self.rows(views) if not isinstance(row, tuple)]
        return Text(f"trace_views(self.context, {self.text(key)}, [{', '.join(texts)}])")

    def load(self, one: Instruction) -> Text:
        buffer, offset, size = (self.arg(each) for each in one.operands)
        return Text(f"load_word(self.context, {buffer}, offset={offset}, size={size})")

    def store(self, one: Instruction) -> Text:
        value, buffer, offset, size = (self.arg(each) for each in one.operands)
        return Text(f"store_word(self.context, {value}, {buffer}, offset={offset}, size={size})")


def method_name(function: Function) -> str:
    """The method that is a function."""
    return function.name if function.exported else f"_{function.name}"


_Writer = Callable[[CallTexts, Instruction], Text]


def _method(name: str) -> _Writer:
    return lambda texts, one: texts.method(name)(one)


def _function(name: str) -> _Writer:
    return lambda texts, one: texts.plain(name)(one)


def _queue(name: str) -> _Writer:
    return lambda texts, one: texts.queue(name)(one)


_WRITERS: Final[dict[str, _Writer]] = {
    "hal.allocator.allocate": CallTexts.allocate,
    "hal.allocator.import": CallTexts.import_memory,
    "hal.buffer.allocation.discard": _function("discard"),
    "hal.buffer.allocation.is_terminal": _function("is_terminal"),
    "hal.buffer.allocation.preserve": _function("preserve"),
    "hal.buffer.assert": CallTexts.buffer_assert,
    "hal.buffer.length": lambda texts, one: Text(f"{texts.arg(one.operands[0])}.size"),
    "hal.buffer.load": CallTexts.load,
    "hal.buffer.store": CallTexts.store,
    "hal.buffer.subspan": _function("subspan"),
    "hal.buffer_view.assert": CallTexts.view_assert,
    "hal.buffer_view.buffer": CallTexts.view_buffer,
    "hal.buffer_view.create": CallTexts.view_create,
    "hal.buffer_view.dim": _function("dim_of"),
    "hal.buffer_view.element_type": _function("element_type_of"),
    "hal.buffer_view.encoding_type": _function("encoding_of"),
    "hal.buffer_view.rank": _function("rank_of"),
    "hal.buffer_view.trace": CallTexts.trace,
    "hal.command_buffer.advise_buffer": _method("check_recording"),
    "hal.command_buffer.begin_debug_group": CallTexts.label,
    "hal.command_buffer.copy_buffer": CallTexts.copy,
    "hal.command_buffer.create": CallTexts.commands,
    "hal.command_buffer.dispatch": CallTexts.dispatch,
    "hal.command_buffer.dispatch.indirect": CallTexts.dispatch_indirect,
    "hal.command_buffer.end_debug_group": _method("end_label"),
    "hal.command_buffer.execution_barrier": _method("execution_barrier"),
    "hal.command_buffer.fill_buffer": CallTexts.fill,
    "hal.command_buffer.finalize": _method("end"),
    "hal.command_buffer.update_buffer": CallTexts.update,
    "hal.device.allocator": lambda texts, one: Text("self.context.allocator"),
    "hal.device.query.i64": CallTexts.query,
    "hal.device.queue.alloca": CallTexts.alloca,
    "hal.device.queue.barrier": lambda texts, one: texts.plain("alias")(
        Instruction("call", one.operands[2:4], callee=one.callee)
    ),
    "hal.device.queue.copy": _queue("queue_copy"),
    "hal.device.queue.dealloca": lambda texts, one: texts.plain("alias")(
        Instruction("call", one.operands[2:4], callee=one.callee)
    ),
    "hal.device.queue.execute": CallTexts.execute,
    "hal.device.queue.execute.indirect": CallTexts.execute_indirect,
    "hal.device.queue.fill": _queue("queue_fill"),
    "hal.device.queue.flush": lambda texts, one: Text("self.device.check_usable()"),
    "hal.device.queue.read": _queue("queue_read"),
    "hal.device.queue.update": _queue("queue_update"),
    "hal.device.queue.write": _queue("queue_write"),
    "hal.ex.file.from_memory": CallTexts.file,
    "hal.executable.create": CallTexts.executable,
    "hal.executable.lookup.function": CallTexts.lookup,
    "hal.fence.await": CallTexts.fence_await,
    "hal.fence.create": CallTexts.fence_create,
    "hal.fence.fail": _function("fail_with"),
    "hal.fence.join": CallTexts.fence_join,
    "hal.fence.query": _function("status_of"),
    "hal.fence.signal": _method("signal"),
}
