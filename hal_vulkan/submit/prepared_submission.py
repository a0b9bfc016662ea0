"""Submissions prepared for timing: between the two readings of the clock there is nothing but the native call.

``Queue.submit`` checks, locks and keeps books, which is part of what pumice costs. Who wants to know what Vulkan costs makes the structures
of vkQueueSubmit beforehand: calling sequence ``PreparedSubmission(queue, command_buffers)`` → ``submit`` → ``wait`` …, or ``run``, any
number of times. It signals the queue's own timeline and nothing else, as a program on plain Vulkan would.

Thread rule: one thread at a time. The command buffers must stay open; an interrupt (Ctrl-C) is served within a tenth of a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from ...status import DeadlineExceededError, InvalidArgumentError
from ..commands.command_buffer import CommandBuffer
from ..vulkan.functions import CData, ffi, new
from ..vulkan.results import VK_TIMEOUT
from .held_submission import Used

if TYPE_CHECKING:
    from .queue import Queue

__all__ = ["PreparedSubmission"]

_SLICE_NS: Final = 100_000_000


class PreparedSubmission:
    """A submission whose native structures are made once.

    Attributes:
        queue: where it goes.
        clock: gives the host's time in nanoseconds.
        info, values: the VkSubmitInfo and the payload that it signals. For ``Queue``.
        wait_info, wait_values: the VkSemaphoreWaitInfo and the payload that is waited for. For ``Queue``.
    """

    def __init__(
        self,
        queue: Queue,
        command_buffers: Sequence[CommandBuffer],
        *,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Args: ``command_buffers`` are recorded, reusable and without binding slots; they may be recorded anew between submissions.

        Raises:
            InvalidArgumentError: command buffers of another device or queue family, one-shot ones, or ones with slots.
        """
        for commands in command_buffers:
            if commands.device is not queue.device or commands.family != queue.family:
                raise InvalidArgumentError(
                    f"{commands.name} was made for another device or queue family than {queue.name}"
                )
            if commands.one_shot or commands.binding_capacity:
                raise InvalidArgumentError(
                    f"{commands.name} is one-shot or has binding slots; prepare reusable ones without slots"
                )
        self.queue = queue
        self.clock = clock
        self._device = queue.device
        self._command_buffers = tuple(command_buffers)
        self._handles = ffi.new("VkCommandBuffer[]", max(1, len(command_buffers)))
        self._semaphores = ffi.new("VkSemaphore[1]", [queue.timeline])
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
        self._counter = ffi.new("uint64_t *")

    def prepare(self) -> Used:
        """The recordings, with their handles in place. For ``Queue``."""
        used = tuple([(commands, commands.prepare(None)) for commands in self._command_buffers])
        for index, (_, recording) in enumerate(used):
            self._handles[index] = recording.native.handle
        return used

    def submit(self) -> tuple[int, int, int]:
        """Submits.

        Returns:
            the submission's number, and the host's time before and after vkQueueSubmit.

        Raises:
            ClosedError: something used was closed.
            DeviceLostError: the device is lost.
        """
        number, before, after, _, _ = self.queue.submit_prepared(self)
        return number, before, after

    def run(self, timeout: float | None = None) -> tuple[int, int, int]:
        """``submit`` and ``wait`` with less between the two native calls: what is there is Python's time in the samples.

        Returns:
            the host's time before and after vkQueueSubmit, and right after the wait.
        """
        _, before, after, awake, result = self.queue.submit_prepared(self, _SLICE_NS)
        return before, after, self._wait_on(result, timeout) if result else awake

    def wait(self, number: int, timeout: float | None = None) -> int:
        """Sleeps in vkWaitSemaphores until a submission of the queue is done; returns the host's time right after.

        Raises:
            DeadlineExceededError: the time (in seconds) passed first.
            DeviceLostError: the device is lost.
        """
        # As short as can be, see ``run``: the deadline is looked at once it is late.
        device, clock = self._device, self.clock
        self.wait_values[0] = number
        result = device.fn.vkWaitSemaphores(device.handle, self.wait_info, _SLICE_NS)
        awake = clock()
        return awake if not result else self._wait_on(result, timeout)

    def _wait_on(self, result: int, timeout: float | None) -> int:
        """Goes on with a wait that took its first slice, or failed."""
        device, clock = self._device, self.clock
        wait, handle, info = device.fn.vkWaitSemaphores, device.handle, self.wait_info
        deadline = None if timeout is None else time.monotonic() - _SLICE_NS / 1e9 + timeout
        while result:
            if result != VK_TIMEOUT:
                device.check(result, f"waiting for {self.queue.name}")
            _check_deadline(deadline, timeout)
            result = wait(handle, info, _SLICE_NS)
            awake = clock()
        return awake

    def poll(self, number: int, timeout: float | None = None) -> int:
        """As ``wait``, by asking for the counter again and again: wakes soonest, and keeps a core busy."""
        device, clock, counter = self._device, self.clock, self._counter
        query, handle, timeline = device.fn.vkGetSemaphoreCounterValue, device.handle, self.queue.timeline
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            for _ in range(1000):
                result = query(handle, timeline, counter)
                if counter[0] >= number and not result:
                    return clock()
            device.check(result, f"waiting for {self.queue.name}")
            _check_deadline(deadline, timeout)


def _check_deadline(deadline: float | None, timeout: float | None) -> None:
    if deadline is not None and time.monotonic() > deadline:
        raise DeadlineExceededError(f"the submission was not done within {timeout:g} s")
