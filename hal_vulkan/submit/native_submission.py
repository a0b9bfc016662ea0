"""The structures of vkQueueSubmit, made once: a submission only writes numbers and handles into them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ..commands.command_buffer import CommandBuffer
from ..commands.recording import Recording
from ..sync.semaphore import TimelineSemaphore
from ..vulkan.functions import CData, ffi, new
from .retirement import Used

_STAGE_ALL_COMMANDS: Final = 0x10000


class SubmitStructures:
    """A VkSubmitInfo with arrays for a number of command buffers, waits and signals.

    Attributes:
        info: the VkSubmitInfo.
        capacity: how many of each the arrays hold.
        shape: how many of each the VkSubmitInfo counts.
        last_recording, last_signal: what the arrays hold from a submission of one command buffer and one signal.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.command_handles = ffi.new("VkCommandBuffer[]", capacity)
        self.wait_handles = ffi.new("VkSemaphore[]", capacity)
        self.wait_values = ffi.new("uint64_t[]", capacity)
        self.wait_stages = ffi.new("VkPipelineStageFlags[]", [_STAGE_ALL_COMMANDS] * capacity)
        self.signal_handles = ffi.new("VkSemaphore[]", capacity)
        self.signal_values = ffi.new("uint64_t[]", capacity)
        self.timeline = new(
            "VkTimelineSemaphoreSubmitInfo",
            signalSemaphoreValueCount=1,
            pSignalSemaphoreValues=self.signal_values,
            pWaitSemaphoreValues=self.wait_values,
        )
        self.info: CData = new(
            "VkSubmitInfo",
            pNext=ffi.cast("void *", self.timeline),
            pWaitSemaphores=self.wait_handles,
            pWaitDstStageMask=self.wait_stages,
            pCommandBuffers=self.command_handles,
            signalSemaphoreCount=1,
            pSignalSemaphores=self.signal_handles,
        )
        self.shape = (0, 0, 1)
        self.last_recording: Recording | None = None
        self.last_signal: TimelineSemaphore | None = None

    def set_shape(self, shape: tuple[int, int, int]) -> None:
        """Sets the counts of command buffers, waits and signals."""
        info, timeline = self.info, self.timeline
        info.commandBufferCount, info.waitSemaphoreCount, info.signalSemaphoreCount = shape
        timeline.waitSemaphoreValueCount, timeline.signalSemaphoreValueCount = shape[1], shape[2]
        self.shape = shape


class NativeSubmission:
    """Command buffers that run without waits and signal a queue's own timeline.

    Attributes:
        clock: gives the host's time in nanoseconds.
        info, values: the VkSubmitInfo and the payload that it signals.
        wait_info, wait_values: the VkSemaphoreWaitInfo and the payload that is waited for.
    """

    def __init__(self, timeline: CData, command_buffers: Sequence[CommandBuffer], clock: Callable[[], int]) -> None:
        self.clock = clock
        self._command_buffers = tuple(command_buffers)
        self._handles = ffi.new("VkCommandBuffer[]", max(1, len(command_buffers)))
        self._semaphores = ffi.new("VkSemaphore[1]", [timeline])
        self.values: CData = ffi.new("uint64_t[1]")
        self._timeline = new(
            "VkTimelineSemaphoreSubmitInfo", signalSemaphoreValueCount=1, pSignalSemaphoreValues=self.values
        )
        self.info: CData = new(
            "VkSubmitInfo",
            pNext=ffi.cast("void *", self._timeline),
            commandBufferCount=len(command_buffers),
            pCommandBuffers=self._handles,
            signalSemaphoreCount=1,
            pSignalSemaphores=self._semaphores,
        )
        self.wait_values: CData = ffi.new("uint64_t[1]")
        self.wait_info: CData = new(
            "VkSemaphoreWaitInfo", semaphoreCount=1, pSemaphores=self._semaphores, pValues=self.wait_values
        )

    def prepare(self) -> Used:
        """The recordings, with their handles in place."""
        used = tuple([(commands, commands.prepare(None)) for commands in self._command_buffers])
        for index, (_, recording) in enumerate(used):
            self._handles[index] = recording.native.handle
        return used
