"""The structures of one vkQueueSubmit and one vkWaitSemaphores, made once for submissions that are repeated."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..commands.command_buffer import CommandBuffer
from ..vulkan.functions import CData, ffi, new
from .retirement import Used

__all__ = ["NativeSubmission"]


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
