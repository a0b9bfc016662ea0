"""Batches: the work of one vkQueueSubmit, and its native structures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from ..commands.command_buffer import CommandBuffer
from ..commands.recording import Recording
from ..memory.buffer import Buffer
from ..sync.semaphore import TimelineSemaphore
from ..vulkan.functions import CData, chain, ffi, new, words_of

Points: TypeAlias = Sequence[tuple[TimelineSemaphore, int]]
Used: TypeAlias = Sequence[tuple[CommandBuffer, Recording]]

_STAGE_ALL_COMMANDS: Final = 0x10000


class SubmitStructures:
    """A VkSubmitInfo with arrays for ``capacity`` command buffers, waits and signals, made once.

    A submission only writes numbers and handles into them. The last signal is the queue's own timeline. Drivers signal
    in this order, so a thread that sees the timeline advance may destroy the other semaphores.

    Attributes:
        last_recording, last_signal: the arrays' contents from the last repeated submission.
    """

    def __init__(
        self, capacity: int, shape: tuple[int, int, int] = (0, 0, 1), *, counter_pass: int | None = None
    ) -> None:
        self.capacity = capacity
        self.command_handles: CData = ffi.new("VkCommandBuffer[]", capacity)
        self.wait_handles: CData = ffi.new("VkSemaphore[]", capacity)
        self.wait_values: CData = ffi.new("uint64_t[]", capacity)
        self.wait_stages: CData = ffi.new("VkPipelineStageFlags[]", [_STAGE_ALL_COMMANDS] * capacity)
        self.signal_handles: CData = ffi.new("VkSemaphore[]", capacity)
        signal_values = ffi.new("uint64_t[]", capacity)
        self.signal_values: memoryview[int] = words_of(signal_values)
        self._timeline = new(
            "VkTimelineSemaphoreSubmitInfo",
            pSignalSemaphoreValues=signal_values,
            pWaitSemaphoreValues=self.wait_values,
        )
        if counter_pass is not None:
            chain(self._timeline, new("VkPerformanceQuerySubmitInfoKHR", counterPassIndex=counter_pass))
        self.info: CData = new(
            "VkSubmitInfo",
            pNext=ffi.cast("void *", self._timeline),
            pWaitSemaphores=self.wait_handles,
            pWaitDstStageMask=self.wait_stages,
            pCommandBuffers=self.command_handles,
            pSignalSemaphores=self.signal_handles,
        )
        self.last_recording: Recording | None = None
        self.last_signal: TimelineSemaphore | None = None
        self.set_shape(shape)

    def set_shape(self, shape: tuple[int, int, int]) -> None:
        """Sets the counts of command buffers, waits and signals."""
        info, timeline = self.info, self._timeline
        info.commandBufferCount, info.waitSemaphoreCount, info.signalSemaphoreCount = shape
        timeline.waitSemaphoreValueCount, timeline.signalSemaphoreValueCount = shape[1:]
        self.shape = shape


class Batch:
    """The work of one vkQueueSubmit.

    It is *pending* from before its command buffers are prepared until it is noted; resources closed meanwhile are kept
    for it (``LogicalDevice.defer``).

    Attributes:
        command_buffers: the command buffers, which run in order.
        waits, signals: the payloads to wait for, and the payloads to signal at the end.
        transient: whether the command buffers are closed if the batch is dropped.
        used: the command buffers prepared so far, each with its recording.
        previous: the payloads that were scheduled before for the semaphores of ``signals``.
        number: the submission's number, once it is noted; else 0.
        serial: the batch's serial while it is pending; else 0.
        native: the native structures of this batch, or ``None`` for the queue's.
        clock, times: the clock, and its times right before and right after the native call, if there is a clock.
    """

    __slots__ = (
        "clock",
        "command_buffers",
        "native",
        "number",
        "previous",
        "serial",
        "signals",
        "times",
        "transient",
        "used",
        "waits",
    )

    def __init__(
        self,
        command_buffers: Sequence[CommandBuffer] = (),
        waits: Points = (),
        signals: Points = (),
        *,
        transient: bool = False,
    ) -> None:
        self.command_buffers: tuple[CommandBuffer, ...] = tuple(command_buffers)
        self.waits: tuple[tuple[TimelineSemaphore, int], ...] = tuple(waits)
        self.signals: tuple[tuple[TimelineSemaphore, int], ...] = tuple(signals)
        self.transient: bool = transient
        self.used: list[tuple[CommandBuffer, Recording]] = []
        self.previous: list[int] = []
        self.number: int = 0
        self.serial: int = 0
        self.native: SubmitStructures | None = None
        self.clock: Callable[[], int] | None = None
        self.times: tuple[int, int] = (0, 0)

    @property
    def is_scheduled(self) -> bool:
        """Whether all payloads that it waits for are signalled, or will be by submitted work."""
        for semaphore, value in self.waits:
            if value > semaphore.scheduled or semaphore.failure is not None:
                return False
        return True

    @property
    def reports(self) -> bool:
        return any(recording.reports for _, recording in self.used)

    def prepare(self, bindings: Sequence[Buffer] | None) -> None:
        """Prepares the command buffers; may record them. After an error ``unprepare`` undoes it."""
        is_single = len(self.command_buffers) == 1
        for commands in self.command_buffers:
            table = bindings if is_single or commands.binding_capacity else None
            self.used.append((commands, commands.prepare(table)))

    def unprepare(self) -> None:
        """Undoes ``prepare`` of a batch that was not submitted; idempotent."""
        while self.used:
            commands, recording = self.used.pop()
            commands.unprepare(recording)
            if self.transient:
                commands.close()

    def write(self, native: SubmitStructures) -> None:
        """Writes handles and payloads; the caller adds the queue's own signal."""
        shape = (len(self.used), len(self.waits), len(self.signals) + 1)
        if shape != native.shape:
            native.set_shape(shape)
        for index, (_, recording) in enumerate(self.used):
            native.command_handles[index] = recording.native.handle
        for index, (semaphore, value) in enumerate(self.waits):
            native.wait_handles[index] = semaphore.handle
            native.wait_values[index] = value
        for index, (semaphore, value) in enumerate(self.signals):
            native.signal_handles[index] = semaphore.handle
            native.signal_values[index] = value


class NativeBatch(Batch):
    """A VkCommandBuffer between two binary semaphores, all owned by the caller."""

    __slots__ = ("_handles",)

    def __init__(self, commands: CData, wait: CData, signal: CData) -> None:
        super().__init__()
        self._handles = commands, wait, signal

    def write(self, native: SubmitStructures) -> None:
        native.set_shape((1, 1, 2))
        native.command_handles[0], native.wait_handles[0], native.signal_handles[0] = self._handles
