"""Queues, which submit work ordered by semaphores.

A submission waits for timepoints, runs command buffers, and signals timepoints. Submissions are ordered by their
semaphores; those of one queue also start in the order they were submitted.

A submission whose waits are not yet *scheduled* (nobody has signalled the payload or submitted work that will) is
**held back** on the host, so that it cannot block other submissions on the same VkQueue or hang it. The call that
schedules its last awaited payload submits it. If one of its semaphores fails, it is dropped, and the semaphores in its
signals fail with the same error.

A queue keeps a submission's resources alive until it has retired. Thread rule: a queue may be used from any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import BinaryIO

from ...hal.buffer import Buffer as AnyBuffer
from ...hal.memory import BufferUsage, MemoryTypeFlags
from ...status import InvalidArgumentError, OutOfRangeError, PumiceError
from ..commands.command_buffer import CommandBuffer
from ..memory.buffer import Buffer
from .batch import Batch, Points
from .submission import SubmissionQueue


class Queue(SubmissionQueue):
    """A VkQueue with operations of a single command."""

    def barrier(self, *, waits: Points = (), signals: Points = ()) -> None:
        """Signals when the waits are reached and all earlier work on this queue is done."""
        self.submit((), waits=waits, signals=signals)

    def execute(
        self,
        commands: CommandBuffer,
        *,
        waits: Points = (),
        signals: Points = (),
        bindings: Sequence[Buffer] | None = None,
    ) -> None:
        """Runs one command buffer; see ``submit``."""
        self.submit((commands,), waits=waits, signals=signals, bindings=bindings)

    def alloca(
        self,
        size: int,
        *,
        memory_type: MemoryTypeFlags = MemoryTypeFlags.DEVICE_LOCAL,
        usage: BufferUsage = BufferUsage.DEFAULT,
        waits: Points = (),
        signals: Points = (),
    ) -> Buffer:
        """Makes a buffer that may be used once the signals are reached; raises ResourceExhaustedError immediately."""
        buffer = Buffer.create(self.command_context.allocator, size, memory_type=memory_type, usage=usage)
        try:
            self.barrier(waits=waits, signals=signals)
        except PumiceError:
            buffer.close()
            raise
        return buffer

    def dealloca(self, buffer: Buffer, *, waits: Points = (), signals: Points = ()) -> None:
        """Closes a buffer once the waits are reached and the queue is past it."""
        self.barrier(waits=waits, signals=signals)
        buffer.close()

    def fill(
        self,
        target: AnyBuffer,
        pattern: bytes,
        offset: int = 0,
        size: int | None = None,
        *,
        waits: Points = (),
        signals: Points = (),
    ) -> None:
        """Fills memory in the queue's order; see ``CommandBuffer.fill``."""
        self._once("fill", lambda commands: commands.fill(target, pattern, offset, size), waits, signals)

    def update(
        self, target: AnyBuffer, data: bytes, offset: int = 0, *, waits: Points = (), signals: Points = ()
    ) -> None:
        """Updates memory in the queue's order; see ``CommandBuffer.update``. The data is captured immediately."""
        self._once("update", lambda commands: commands.update(target, data, offset), waits, signals)

    def copy(
        self,
        source: AnyBuffer,
        target: AnyBuffer,
        size: int | None = None,
        *,
        source_offset: int = 0,
        target_offset: int = 0,
        waits: Points = (),
        signals: Points = (),
    ) -> None:
        """Copies memory in the queue's order; see ``CommandBuffer.copy``."""
        self._once(
            "copy",
            lambda commands: commands.copy(
                source, target, size, source_offset=source_offset, target_offset=target_offset
            ),
            waits,
            signals,
        )

    def read(
        self,
        source: bytes | bytearray | memoryview | BinaryIO,
        target: AnyBuffer,
        size: int,
        *,
        source_offset: int = 0,
        target_offset: int = 0,
        waits: Points = (),
        signals: Points = (),
    ) -> None:
        """Reads ``size`` bytes of host memory or of a binary file into a buffer, in queue order.

        The bytes are read immediately, into staging memory, and copied when the waits are reached.

        Raises:
            OutOfRangeError: the source is shorter than ``size``.
        """
        if size < 0 or source_offset < 0:
            raise InvalidArgumentError(f"offset and size must not be negative, got {source_offset} and {size}")
        if isinstance(source, (bytes, bytearray, memoryview)):
            data: bytes | memoryview = memoryview(source).cast("B")[source_offset : source_offset + size]
        else:
            source.seek(source_offset)
            data = source.read(size)
        if len(data) != size:
            raise OutOfRangeError(f"read: {size} bytes at {source_offset} were asked for; the source gave {len(data)}")
        if not size:
            self.barrier(waits=waits, signals=signals)
            return
        memory_type = MemoryTypeFlags.HOST_VISIBLE | MemoryTypeFlags.DEVICE_VISIBLE
        staged = Buffer.create(self.command_context.allocator, size, memory_type=memory_type)
        try:
            staged.write(data)
            self.copy(staged, target, size, target_offset=target_offset, waits=waits, signals=signals)
        finally:
            staged.close()

    def _once(self, name: str, record: Callable[[CommandBuffer], None], waits: Points, signals: Points) -> None:
        commands = CommandBuffer(self.command_context, one_shot=True, name=name, family=self.family)
        try:
            record(commands.begin())
            commands.end()
            self._submit(Batch((commands,), waits, signals, transient=True), None)
        except BaseException:
            commands.close()
            raise

    def __repr__(self) -> str:
        return f"<Queue {self.name} (family {self.family}), {self.submitted - self.completed} in flight>"
