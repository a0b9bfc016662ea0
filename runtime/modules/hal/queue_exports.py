"""Exports of the ``hal`` module that submit work to a queue, and about the files that queues read and write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ....hal.buffer import Buffer
from ....hal.memory import MemoryAccess
from ....hal.program import ProgramCommandBuffer, TableEntry, check_buffer
from ....hal.programs.checks import Ref, pattern_of, require
from ....hal.programs.device_context import DeviceContext, DeviceTable
from ....hal.programs.fence import HalFence, OptionalFence, alias, optional_fence
from ....hal.programs.file import HalFile
from ....hal.programs.transfers import queue_copy, queue_fill, queue_read, queue_update, queue_write
from ....status import PermissionDeniedError, UnimplementedError
from ....vm.native.module import export
from .reference import memory_of

Fences: TypeAlias = tuple[OptionalFence, OptionalFence]
"""The wait fence and the signal fence of the work."""


def _transfer(name: str, *conventions: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Exports a method that takes the device's context and both fences, without flags."""

    def mark(method: Callable[..., None]) -> Callable[..., None]:
        @export(name, *conventions)
        def call(state: QueueExports, device: Ref, affinity: int, wait: Ref, target: Ref, *arguments: Any) -> None:
            fences = optional_fence(wait), optional_fence(target)
            method(state, state.device_context(device), fences, *arguments[:-1])

        return call

    return mark


class QueueExports(DeviceTable):
    """``hal.device.queue.*`` and ``hal.ex.file.*``."""

    @export("ex.file.from_memory", "0rIirIIi_r")
    def file_from_memory(
        self, device: Ref, affinity: int, access: int, buffer: Ref, offset: int, size: int, flags: int
    ) -> HalFile:
        """Returns a file over host bytes, in place."""
        self.device_context(device)
        if access & ~int(MemoryAccess.READ):
            raise PermissionDeniedError("ex.file.from_memory: files over memory may only be read")
        file = HalFile(memory_of(buffer, "buffer").toreadonly())
        return HalFile(file.range(offset, file.view.nbytes - offset if size == -1 else size, "ex.file.from_memory"))

    @export("device.queue.alloca", "0rIrrIiiII_r", "0rIrriiiI_r")
    def queue_alloca(
        self,
        device: Ref,
        affinity: int,
        wait: Ref,
        target: Ref,
        pool: int,
        memory_types: int,
        usage: int,
        size: int,
        flags: int = 0,
    ) -> Buffer:
        """Returns a buffer, allocated immediately; the signal fence is reached with the wait fence."""
        try:
            context = self.contexts[device]
        except (KeyError, TypeError):
            context = self.device_context(device)
        if pool:
            raise UnimplementedError(f"queue.alloca: allocation pool {pool} was asked for; there are none")
        buffer = context.allocator.allocate(memory_types, usage, size)
        if wait is not None or type(target) is not HalFence or not target.bind(()):
            alias(optional_fence(wait), optional_fence(target))
        return buffer

    @export("device.queue.dealloca", "0rIrrrI_v", "0rIrrr_v")
    def queue_dealloca(self, device: Ref, affinity: int, wait: Ref, target: Ref, buffer: Ref, flags: int = 0) -> None:
        """Reaches the signal fence with the wait fence; the memory is freed with the last reference.

        Compilers drop the last reference here. IREE 3.11 also deallocates buffers that its loops use again.
        """
        self.device_context(device)
        check_buffer(buffer, "queue.dealloca")
        alias(optional_fence(wait), optional_fence(target))

    @export("device.queue.barrier", "0rIrrI_v")
    def queue_barrier(self, device: Ref, affinity: int, wait: Ref, target: Ref, flags: int) -> None:
        """Reaches the signal fence with the wait fence."""
        self.device_context(device)
        alias(optional_fence(wait), optional_fence(target))

    @export("device.queue.flush", "0rI_v")
    def queue_flush(self, device: Ref, affinity: int) -> None:
        """Does nothing, as work is submitted immediately."""
        self.device_context(device)

    @export("device.queue.execute.indirect", "0rIrrrICrIID_v")
    def queue_execute_indirect(
        self,
        device: Ref,
        affinity: int,
        wait: Ref,
        target: Ref,
        commands: Ref,
        flags: int,
        table: tuple[TableEntry, ...],
    ) -> None:
        """Runs a command buffer with a binding table."""
        try:
            context = self.contexts[device]
        except (KeyError, TypeError):
            context = self.device_context(device)
        if not isinstance(commands, ProgramCommandBuffer):
            require(commands, ProgramCommandBuffer, "command_buffer")
        context.submit((commands,), wait, target, table if commands.binding_capacity else None)

    @export("device.queue.execute.indirect", "0rIrrrCrIID_v")
    def queue_execute_indirect_v5(
        self, device: Ref, affinity: int, wait: Ref, target: Ref, commands: Ref, table: tuple[TableEntry, ...]
    ) -> None:
        """``queue.execute.indirect`` of version 5, which has no flags."""
        self.queue_execute_indirect(device, affinity, wait, target, commands, 0, table)

    @export("device.queue.execute", "0rIrrrI_v")
    def queue_execute(self, device: Ref, affinity: int, wait: Ref, target: Ref, commands: Ref, flags: int) -> None:
        """Runs a command buffer."""
        self.queue_execute_v5(device, affinity, wait, target, (commands,))

    @export("device.queue.execute", "0rIrrCrD_v")
    def queue_execute_v5(
        self, device: Ref, affinity: int, wait: Ref, target: Ref, command_buffers: tuple[Ref, ...]
    ) -> None:
        """``queue.execute`` of version 5: runs any number of command buffers, in order."""
        if not command_buffers:
            self.queue_barrier(device, affinity, wait, target, 0)
            return
        recordings = [require(commands, ProgramCommandBuffer, "command_buffer") for commands in command_buffers]
        self.device_context(device).submit(recordings, wait, target)

    @_transfer("device.queue.fill", "0rIrrrIIIiI_v")
    def queue_fill(
        self, context: DeviceContext, fences: Fences, buffer: Ref, offset: int, size: int, pattern: int, width: int
    ) -> None:
        """Fills a range of a buffer."""
        wait, signal = fences
        queue_fill(context, buffer, offset, size, pattern_of(pattern, width), wait=wait, signal=signal)

    @_transfer("device.queue.update", "0rIrrrIrIII_v")
    def queue_update(
        self, context: DeviceContext, fences: Fences, source: Ref, start: int, buffer: Ref, offset: int, size: int
    ) -> None:
        """Writes host bytes, captured immediately."""
        wait, signal = fences
        queue_update(context, memory_of(source, "source"), start, buffer, offset, size, wait=wait, signal=signal)

    @_transfer("device.queue.copy", "0rIrrrIrIII_v")
    def queue_copy(
        self, context: DeviceContext, fences: Fences, source: Ref, start: int, buffer: Ref, offset: int, size: int
    ) -> None:
        """Copies a range."""
        wait, signal = fences
        queue_copy(context, source, start, buffer, offset, size, wait=wait, signal=signal)

    @_transfer("device.queue.read", "0rIrrrIrIII_v", "0rIrrrIrIIi_v")
    def queue_read(
        self, context: DeviceContext, fences: Fences, file: Ref, start: int, buffer: Ref, offset: int, size: int
    ) -> None:
        """Reads bytes of a file into a buffer."""
        wait, signal = fences
        queue_read(context, file, start, buffer, offset, size, wait=wait, signal=signal)

    @_transfer("device.queue.write", "0rIrrrIrIII_v", "0rIrrrIrIIi_v")
    def queue_write(
        self, context: DeviceContext, fences: Fences, buffer: Ref, offset: int, file: Ref, start: int, size: int
    ) -> None:
        """Writes bytes of a buffer to a file."""
        wait, signal = fences
        queue_write(context, buffer, offset, file, start, size, wait=wait, signal=signal)
