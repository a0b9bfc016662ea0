"""The structures of vkQueueSubmit, made once: a submission only writes numbers and handles into them."""

from __future__ import annotations

from typing import Final

from ..commands.recording import Recording
from ..sync.semaphore import TimelineSemaphore
from ..vulkan.functions import CData, chain, ffi, new, words_of

_STAGE_ALL_COMMANDS: Final = 0x10000


class SubmitStructures:
    """A VkSubmitInfo with arrays for ``capacity`` command buffers, waits and signals.

    Attributes:
        shape: how many of each the VkSubmitInfo counts.
        last_recording, last_signal: what the arrays hold from a submission of one command buffer and one signal.
    """

    def __init__(self, capacity: int, counter_pass: int | None = None) -> None:
        self.capacity = capacity
        self.command_handles = ffi.new("VkCommandBuffer[]", capacity)
        self.wait_handles = ffi.new("VkSemaphore[]", capacity)
        self.wait_values = ffi.new("uint64_t[]", capacity)
        self.wait_stages = ffi.new("VkPipelineStageFlags[]", [_STAGE_ALL_COMMANDS] * capacity)
        self.signal_handles = ffi.new("VkSemaphore[]", capacity)
        signal_values = ffi.new("uint64_t[]", capacity)
        self.signal_values = words_of(signal_values)
        self._timeline = new(
            "VkTimelineSemaphoreSubmitInfo",
            signalSemaphoreValueCount=1,
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
            signalSemaphoreCount=1,
            pSignalSemaphores=self.signal_handles,
        )
        self.shape = (0, 0, 1)
        self.last_recording: Recording | None = None
        self.last_signal: TimelineSemaphore | None = None

    def set_shape(self, shape: tuple[int, int, int]) -> None:
        """Sets the counts of command buffers, waits and signals."""
        info, timeline = self.info, self._timeline
        info.commandBufferCount, info.waitSemaphoreCount, info.signalSemaphoreCount = shape
        timeline.waitSemaphoreValueCount, timeline.signalSemaphoreValueCount = shape[1], shape[2]
        self.shape = shape
