"""Retirement: a submission's resources are kept until the device is done with it.

Each submission signals the queue's own timeline with its number. Once the timeline reaches that number, the submission
has retired: its semaphores are known to be reached, its command buffers are recycled, and deferred actions are run.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..sync.context import SemaphoreContext
from ..sync.owned_semaphores import QueueTimeline
from ..sync.timeline import wait_timeline
from ..vulkan.functions import CData, ffi
from ..vulkan.results import VK_NOT_READY, VK_SUCCESS
from .batch import Points, Used

if TYPE_CHECKING:
    from ..instance.logical_device import LogicalDevice

_log = logging.getLogger("pumice.queue")


class RetiringQueue:
    """A VkQueue and the submissions that have not retired.

    Attributes:
        family, index: the queue family, and the queue's index within.
        stream: the queue's own semaphore, whose payload is the number of the last finished submission.
        timeline: the handle of ``stream``.
        submitted: the payload of ``timeline`` at which all work submitted so far retires.
        completed: the payload last read.
    """

    def __init__(self, semaphores: SemaphoreContext, family: int, index: int, name: str) -> None:
        self.device: LogicalDevice
        device = self.device = semaphores.device
        self.family = family
        self.index = index
        self.name = name
        handle = ffi.new("VkQueue *")
        device.fn.vkGetDeviceQueue(device.handle, family, index, handle)
        self.handle: CData = handle[0]
        device.set_name("VK_OBJECT_TYPE_QUEUE", self.handle, name)
        self.stream: QueueTimeline = QueueTimeline(semaphores, f"{name} timeline")
        self.timeline: CData = self.stream.handle
        self._lock = threading.Lock()
        self._retire_lock = threading.Lock()
        self._inflight_lock = threading.Lock()  # for removals and copies; additions use the device's lock
        self.submitted: int = 0
        self.completed: int = 0
        self._ended = False
        # Number, commands, signals, and whether some of the commands are one-shot.
        self._inflight: deque[tuple[int, Used, Points, bool]] = deque()
        self._waits: dict[int, Points] = {}
        self._deferred: deque[tuple[int, Callable[[], None]]] = deque()
        self._after_next: deque[tuple[int, Callable[[], None]]] = deque()
        self._counter = ffi.new("uint64_t *")

    def retire(self) -> int:
        """Releases resources of finished submissions; cheap if nothing has finished. Called every few submissions.

        Returns the VkResult: nothing is released after a failure, or if another thread is releasing (VK_NOT_READY).
        """
        if not self._inflight and not self._deferred:
            return VK_SUCCESS
        if self._retire_lock.locked():
            return VK_NOT_READY  # another thread is releasing, or this thread further up its stack
        device = self.device
        with self._retire_lock:  # unlike acquire(), this cannot stay locked after an interrupt
            if self._ended:
                return VK_SUCCESS
            result: int = device.fn.vkGetSemaphoreCounterValue(device.handle, self.timeline, self._counter)
            # Even on a lost device only work that is known to be done: the rest may still run, and is dropped with the
            # device.
            if not result:
                self._retire_up_to(min(self._counter[0], self.submitted))
        return result

    def end_retirement(self) -> None:
        """Retires everything at the closing of the device, and ends retirement. Called by the device."""
        with self._retire_lock:
            if not self._ended:
                self._retire_up_to(self.submitted)
            self._ended = True

    def _retire_up_to(self, completed: int) -> None:
        if completed >= self.completed:
            self.completed = completed
            if completed > self.stream.reached or self.stream.notifications:
                self.stream.advance(completed)
            inflight = self._inflight
            while inflight:
                number, used, signals, is_told = inflight[0]
                if number > completed:
                    break
                for semaphore, value in signals:
                    if value > semaphore.reached or semaphore.notifications:
                        semaphore.advance(value)
                if is_told:
                    try:
                        for commands, recording in used:
                            if commands.one_shot:
                                commands.retired(recording)
                    except Exception:
                        _log.exception("recycling a command buffer raised")
                if self._waits:
                    self._waits.pop(number, None)
                with self._inflight_lock:
                    inflight.popleft()  # last: after an interrupt the next call repeats this
            _run_due(self._deferred, completed)
            _run_due(self._after_next, completed)

    def pending_signals(self, semaphore: object) -> list[tuple[int, bool]]:
        """Returns the payloads of a semaphore that submitted work will signal, and whether each may come at any moment.

        A payload cannot come while its submission, or an earlier submission on this queue, waits for an unreached
        payload. The caller holds the device's lock.
        """
        with self._inflight_lock:
            inflight = self._inflight.copy()
        pending = []
        may_come = True
        for number, _, signals, _ in inflight:
            waits = self._waits.get(number, ())
            may_come = may_come and all(semaphore.peek() >= value for semaphore, value in waits)
            pending += [(value, may_come) for signalled, value in signals if signalled is semaphore]
        return pending

    def next_completion(self) -> int | None:
        """Returns the payload of ``timeline`` at which the next submission retires, or ``None`` if idle."""
        completed = self.completed
        return completed + 1 if completed < self.submitted else None

    @property
    def is_idle(self) -> bool:
        """Whether everything submitted has retired."""
        if self.completed < self.submitted:
            self.retire()
        return self.completed >= self.submitted

    @property
    def in_flight(self) -> tuple[str, ...]:
        """Names of the command buffers submitted and not yet retired."""
        with self.device.lock, self._inflight_lock:
            inflight = self._inflight.copy()
        return tuple(commands.name for _, used, _, _ in inflight for commands, _ in used)

    def defer(self, action: Callable[[], None]) -> None:
        """Runs ``action`` when all work submitted so far has retired."""
        self._deferred.append((self.submitted, action))

    def after_next(self, action: Callable[[], None]) -> None:
        """Runs ``action`` when the next submission has retired; see ``SemaphoreContext.destroy``."""
        self._after_next.append((self.submitted + 1, action))

    def pass_idle(self) -> None:
        """Runs the actions of ``after_next`` once the driver has made the queue idle."""
        if self._after_next:
            with self.device.guard.lock, self.device.lock:
                self.device.check_not_ended()
                result = self.device.fn.vkQueueWaitIdle(self.handle)
                reached = self.submitted + 1
            self.device.check(result, f"making {self.name} idle")
            with self._retire_lock:
                _run_due(self._after_next, reached)

    def wait_idle(self, timeout: float | None = None) -> None:
        """Blocks until everything submitted has retired; DeadlineExceededError if the time passes first."""
        self.device.check_usable()
        wait_timeline(self.device, self.timeline, self.submitted, timeout, f"{self.name} to become idle")
        self.retire()

    def close_to_submissions(self) -> None:
        """Waits until no thread is inside a submission; later ones see the device closed. Called by the device."""
        with self._lock, self.device.lock:
            pass

    def abandon(self) -> None:
        """Replaces the locks after a fork. Called by ``Device.abandon``."""
        self._lock = threading.Lock()
        self._retire_lock = threading.Lock()
        self._inflight_lock = threading.Lock()
        self._inflight.clear()
        self._waits.clear()
        self._deferred.clear()
        self.completed = self.submitted


def _run_due(actions: deque[tuple[int, Callable[[], None]]], completed: int) -> None:
    """Runs the actions that waited for a submission.

    An exception is logged, as the caller may be a poll thread.
    """
    while actions and actions[0][0] <= completed:
        action = actions.popleft()[1]
        try:
            action()
        except Exception:
            _log.exception("an action deferred to the end of a submission raised")
