"""Submissions prepared for timing, with only the native call between the two clock readings.

The checks, locks and notes of ``Queue.submit`` are part of pumice's cost. To time Vulkan alone, the structures of
vkQueueSubmit are made beforehand. It signals only the queue's own timeline, as a program on plain Vulkan would. Calling
sequence: ``PreparedSubmission(queue, command_buffers)`` → ``submit`` → ``wait`` …, or ``run``, any number of times.

Thread rule: one thread at a time. The command buffers must stay open; Ctrl-C is served within a tenth of a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from ...status import DeadlineExceededError, InvalidArgumentError
from ..commands.command_buffer import CommandBuffer
from ..sync.timeline import WaitInfo, poll
from ..vulkan.functions import ffi
from ..vulkan.results import VK_TIMEOUT
from .batch import Batch, SubmitStructures
from .queue import Queue

_SLICE_NS: Final = 100_000_000


class PreparedSubmission:
    """A submission whose native structures are made once, for ``queue``."""

    def __init__(
        self,
        queue: Queue,
        command_buffers: Sequence[CommandBuffer],
        *,
        clock: Callable[[], int] = time.monotonic_ns,
        counter_pass: int | None = None,
    ) -> None:
        """Prepares reusable command buffers without slots; they may be recorded anew between submissions.

        ``clock`` returns the host's time in nanoseconds, ``counter_pass`` is the pass of their performance query.
        InvalidArgumentError for other command buffers.
        """
        for commands in command_buffers:
            queue.check_commands(commands)
            if commands.one_shot or commands.binding_capacity:
                raise InvalidArgumentError(
                    f"{commands.name} is one-shot or has binding slots; prepare reusable ones without slots"
                )
        self.queue = queue
        self._device = queue.device
        self._clock = clock
        self._batch = Batch(command_buffers)
        self._batch.native = SubmitStructures(max(1, len(command_buffers)), counter_pass=counter_pass)
        self._batch.clock = clock
        self._wait = WaitInfo(queue.timeline)
        self._counter = ffi.new("uint64_t *")

    def submit(self) -> tuple[int, int, int]:
        """Submits; returns the submission's number, and the host's time before and after vkQueueSubmit."""
        return self._submit()[:3]

    def run(self, timeout: float | None = None) -> tuple[int, int, int]:
        """Submits and waits; returns the host's time before and after vkQueueSubmit, and right after the wait."""
        _, before, after, awake, result = self._submit(_SLICE_NS)
        return before, after, self._wait_on(result, timeout) if result else awake

    def _submit(self, wait_ns: int = 0) -> tuple[int, int, int, int, int]:
        """Submits; returns the submission's number, and the host's time before and after vkQueueSubmit.

        With ``wait_ns`` it then immediately waits for up to that time, and also returns the host's time after
        vkWaitSemaphores and the result of the wait; else 0 and 0.
        """
        device, clock, batch, wait_info = self._device, self._clock, self._batch, self._wait.info
        wait, device_handle = device.fn.vkWaitSemaphores, device.handle
        with device.guard.lock:
            with device.lock:  # from here on closed objects are kept, as after a submission
                if device.lost is not None or device.is_closed:
                    device.check_usable()
                batch.number = 0
                batch.used = [(commands, commands.prepare(None)) for commands in batch.command_buffers]
                self.queue.commit(batch)
                number = self._wait.values[0] = batch.number
            before, after = batch.times
            if not wait_ns:
                return number, before, after, 0, 0
            result = wait(device_handle, wait_info, wait_ns)
            return number, before, after, clock(), result

    def wait(self, number: int, timeout: float | None = None) -> int:
        """Sleeps in vkWaitSemaphores for at most ``timeout`` seconds; returns the host's time right after."""
        # As little as possible, see ``run``: the deadline is checked after the first slice.
        device, clock = self._device, self._clock
        self._wait.values[0] = number
        with device.guard.lock:
            device.check_not_ended()
            result = device.fn.vkWaitSemaphores(device.handle, self._wait.info, _SLICE_NS)
            awake = clock()
        return awake if not result else self._wait_on(result, timeout)

    def _wait_on(self, result: int, timeout: float | None) -> int:
        """Continues a wait after its first slice, or raises its failure."""
        device, clock = self._device, self._clock
        wait, handle, info = device.fn.vkWaitSemaphores, device.handle, self._wait.info
        deadline = None if timeout is None else time.monotonic() - _SLICE_NS / 1e9 + timeout
        while result:
            if result != VK_TIMEOUT:
                device.check(result, f"waiting for {self.queue.name}")
            _check_deadline(deadline, timeout)
            with device.guard.lock:
                device.check_not_ended()
                result = wait(handle, info, _SLICE_NS)
                awake = clock()
        return awake

    def look(self, number: int, seconds: float, timeout: float | None = None) -> int:
        """Polls the counter for some seconds, yielding the core between polls, and then waits."""
        with self._device.guard.lock:
            self._device.check_not_ended()
            poll(self._device, self._wait, number, time.monotonic() + seconds, self._device.check_usable)
            awake = self._clock()
        return awake if self._wait.counter[0] >= number else self.wait(number, timeout)

    def poll(self, number: int, timeout: float | None = None) -> int:
        """Waits by polling the counter, which wakes soonest but keeps a core busy."""
        device, clock, counter = self._device, self._clock, self._counter
        query, handle, timeline = device.fn.vkGetSemaphoreCounterValue, device.handle, self.queue.timeline
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            with device.guard.lock:
                device.check_not_ended()
                for _ in range(1000):
                    result = query(handle, timeline, counter)
                    if counter[0] >= number and not result:
                        return clock()
            device.check(result, f"waiting for {self.queue.name}")
            _check_deadline(deadline, timeout)


def _check_deadline(deadline: float | None, timeout: float | None) -> None:
    if deadline is not None and time.monotonic() > deadline:
        raise DeadlineExceededError(f"the submission was not done within {timeout:g} s")
