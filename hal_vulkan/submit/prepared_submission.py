"""Submissions prepared for timing: between the two readings of the clock there is nothing but the native call.

``Queue.submit`` checks, locks and keeps books, which is part of what pumice costs. To time Vulkan alone, the structures
of vkQueueSubmit are made beforehand: calling sequence ``PreparedSubmission(queue, command_buffers)`` → ``submit`` →
``wait`` …, or ``run``, any number of times. It signals the queue's own timeline and nothing else, as a program on plain
Vulkan would.

Thread rule: one thread at a time. The command buffers must stay open; Ctrl-C is served within a tenth of a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from ...status import DeadlineExceededError, InvalidArgumentError
from ..commands.command_buffer import CommandBuffer
from ..vulkan.functions import ffi
from ..vulkan.results import VK_TIMEOUT
from .native_submission import NativeSubmission
from .queue import Queue

_SLICE_NS: Final = 100_000_000


class PreparedSubmission(NativeSubmission):
    """A submission whose native structures are made once.

    Attributes:
        queue: where it goes.
    """

    def __init__(
        self,
        queue: Queue,
        command_buffers: Sequence[CommandBuffer],
        *,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Makes the structures.

        Args:
            queue: where it goes.
            command_buffers: recorded, reusable, without binding slots. They may be recorded anew between submissions.
            clock: gives the host's time in nanoseconds.

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
        super().__init__(queue.timeline, command_buffers, clock)
        self.queue = queue
        self._device = queue.device
        self._counter = ffi.new("uint64_t *")

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
        """``submit`` and ``wait`` with less Python between the two native calls.

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
        # As short as can be, see ``run``: the deadline is checked after the first slice.
        device, clock = self._device, self.clock
        self.wait_values[0] = number
        result = device.fn.vkWaitSemaphores(device.handle, self.wait_info, _SLICE_NS)
        awake = clock()
        return awake if not result else self._wait_on(result, timeout)

    def _wait_on(self, result: int, timeout: float | None) -> int:
        """Continues a wait after its first slice, or raises its failure."""
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
        """``wait`` by polling the counter: wakes soonest, and keeps a core busy."""
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
