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
from ..sync.timeline import WaitInfo, poll
from ..vulkan.functions import NULL, ffi
from ..vulkan.results import VK_TIMEOUT
from .queue import Queue
from .retirement import Used
from .submit_structures import SubmitStructures

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
        """Takes command buffers that are reusable and without slots; they may be recorded anew between submissions.

        ``clock`` gives the host's time in nanoseconds, ``counter_pass`` is the pass of their performance query.
        InvalidArgumentError: command buffers that do not fit.
        """
        for commands in command_buffers:
            queue._check_commands(commands)
            if commands.one_shot or commands.binding_capacity:
                raise InvalidArgumentError(
                    f"{commands.name} is one-shot or has binding slots; prepare reusable ones without slots"
                )
        self.queue = queue
        self._device = queue.device
        self._clock = clock
        self._command_buffers = tuple(command_buffers)
        count = len(command_buffers)
        self._native = SubmitStructures(max(1, count), counter_pass)
        self._native.set_shape((count, 0, 1))
        self._native.signal_handles[0] = queue.timeline
        self._wait = WaitInfo(queue.timeline)
        self._counter = ffi.new("uint64_t *")

    def submit(self) -> tuple[int, int, int]:
        """Submits; returns the submission's number, and the host's time before and after vkQueueSubmit."""
        return self._submit()[:3]

    def run(self, timeout: float | None = None) -> tuple[int, int, int]:
        """``submit`` and ``wait`` in one: the host's time before and after vkQueueSubmit, and right after the wait."""
        _, before, after, awake, result = self._submit(_SLICE_NS)
        return before, after, self._wait_on(result, timeout) if result else awake

    def _submit(self, wait_ns: int = 0) -> tuple[int, int, int, int, int]:
        """The submission's number, and the host's time before and after vkQueueSubmit.

        With ``wait_ns`` it then waits for at most so long, with as little in between as possible, and also returns the
        host's time after vkWaitSemaphores and what that returned; else 0 and 0.
        """
        queue, device, native, clock = self.queue, self._device, self._native, self._clock
        wait, device_handle, wait_info = device.fn.vkWaitSemaphores, device.handle, self._wait.info
        with queue._lock:
            if device.lost is not None or device.is_closed:
                device.check_usable()
            used: Used = ()
            queue.preparing = number = queue._submitted + 1  # first, see SubmissionQueue._submit_one
            native.signal_values[0] = self._wait.values[0] = number
            submit, handle, info = device.fn.vkQueueSubmit, queue.handle, native.info
            try:
                used = tuple([(commands, commands.prepare(None)) for commands in self._command_buffers])
                for index, (_, recording) in enumerate(used):
                    native.command_handles[index] = recording.native.handle
                    recording.queue = queue
                    recording.number = number
                queue._inflight.append((number, used, (), False))
                before = clock()
                queue._submitted = queue.stream.scheduled = number  # see SubmissionQueue._submit_one
                result = submit(handle, 1, info, NULL)
                after = clock()
            except BaseException:
                if queue._submitted < number:
                    queue._take_back(number, used, (), ())
                raise
            finally:
                queue.preparing = 0
            if result or device.validation:
                queue._check_submitted(result, used, (), ())
        if not wait_ns:
            return number, before, after, 0, 0
        result = wait(device_handle, wait_info, wait_ns)
        return number, before, after, clock(), result

    def wait(self, number: int, timeout: float | None = None) -> int:
        """Sleeps in vkWaitSemaphores, for at most ``timeout`` seconds; returns the host's time right after."""
        # As short as can be, see ``run``: the deadline is checked after the first slice.
        device, clock = self._device, self._clock
        self._wait.values[0] = number
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
            result = wait(handle, info, _SLICE_NS)
            awake = clock()
        return awake

    def look(self, number: int, seconds: float, timeout: float | None = None) -> int:
        """``wait`` that looks at the counter for some seconds first, and gives way between looks."""
        poll(self._device, self._wait, number, time.monotonic() + seconds, self._device.check_usable)
        awake = self._clock()
        return awake if self._wait.counter[0] >= number else self.wait(number, timeout)

    def poll(self, number: int, timeout: float | None = None) -> int:
        """``wait`` by polling the counter: wakes soonest, and keeps a core busy."""
        device, clock, counter = self._device, self._clock, self._counter
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
