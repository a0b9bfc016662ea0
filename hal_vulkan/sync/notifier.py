"""The callbacks of one device's semaphores, and the waits of its poll thread.

While callbacks wait for work in flight, the device's thread (waits/poll_thread.py) blocks in vkWaitSemaphores on the
timeline of each queue. The wait set has one entry for each queue, not for each waiter: ten thousand waiters cost no
more than one. A user's semaphore advances in two ways only: by a host signal, which ``TimelineSemaphore.signal`` passes
on to the notifier, or by a queue, whose own timeline advances with the same submission.

The wait is never interrupted. It includes every queue's next completion, even of idle queues, so that new work ends it;
the shared poll thread makes the calls that a host signal makes due. A wake semaphore in the set would be the obvious
solution, but drivers that emulate timelines in user space spin on waits for several semaphores (docs/design/hal.md).
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections import deque
from typing import Final, Protocol

from ...status import CancelledError, PumiceError
from ...waits.notification import Callback, Notification
from ...waits.poll_thread import Due, PollThread
from ..instance.logical_device import LogicalDevice
from ..vulkan.functions import UINT64_MAX, CData, ffi, new
from ..vulkan.results import VK_ERROR_DEVICE_LOST, VK_NOT_READY, VK_SUCCESS, error_from_result

_WAIT_ANY: Final = 1
_MIN_SWEEP: Final = 64
_MOST_FAILURES: Final = 100
_PAUSE_S: Final = 0.01  # after each
_BRIEF_S: Final = 0.0005
_order = itertools.count()


class Notified(Protocol):
    """The part of a ``TimelineSemaphore`` that the notifier uses; ``TimelineSemaphore`` documents the attributes."""

    notifications: NotificationHeap
    reached: int
    failure: PumiceError | None

    def read_payload(self) -> int: ...

    def peek(self) -> int: ...


class SemaphoreNotification(Notification):
    """A callback armed on a semaphore; ``despite_failure`` waits for the native payload even of a failed semaphore."""

    __slots__ = ("_notifier", "_semaphore", "despite_failure")

    def __init__(self, notifier: Notifier, semaphore: Notified, callback: Callback, despite_failure: bool) -> None:
        super().__init__(callback)
        self._notifier = notifier
        self._semaphore: Notified | None = semaphore
        self.despite_failure: bool = despite_failure

    def _ended(self, *, is_cancelled: bool) -> None:
        semaphore, self._semaphore = self._semaphore, None  # a kept notification does not keep the semaphore
        if is_cancelled and semaphore is not None:
            self._notifier.cancelled(semaphore)


class NotificationHeap(list[tuple[int, int, SemaphoreNotification]]):
    """Callbacks by payload, then by the order of arming. A list, for its cheap truth value."""

    __slots__ = ("_sweep_at",)

    def __init__(self) -> None:
        self._sweep_at = _MIN_SWEEP

    def push(self, value: int, notification: SemaphoreNotification) -> None:
        """Adds a callback. Regularly drops cancelled callbacks, which would pile up for a payload that never comes."""
        if len(self) >= self._sweep_at:
            self._keep([entry for entry in self if not entry[2].is_done])
            self._sweep_at = max(_MIN_SWEEP, 2 * len(self))
        heapq.heappush(self, (value, next(_order), notification))

    def move_due(self, ready: deque[Due], reached: int, failure: PumiceError | None) -> None:
        """Moves callbacks that are due to ``ready``. May be repeated after an interrupt."""
        if failure is None:
            while self and self[0][0] <= reached:
                ready.append((self[0][2], None))
                heapq.heappop(self)
            return
        kept = []
        for entry in self:
            value, _, notification = entry
            if notification.despite_failure and reached < value:
                kept.append(entry)
            else:
                ready.append((notification, None if notification.despite_failure else failure))
        self._keep(kept)

    def _keep(self, entries: list[tuple[int, int, SemaphoreNotification]]) -> None:
        self[:] = entries
        heapq.heapify(self)


class Notifier:
    """The notifications of one device. Callbacks run one after another, with no lock held.

    Attributes:
        thread: the device's poll thread.
    """

    def __init__(self, device: LogicalDevice) -> None:
        self._device = device
        self.thread: PollThread = PollThread("pumice-device-poll", self)
        self._lock = threading.Lock()
        self._armed: set[Notified] = set()
        self._unswept: deque[Notified] = deque()
        self._awaited: list[tuple[CData, int]] = []
        self._result = VK_SUCCESS  # the result of the last ``collect``
        self._failures = 0  # consecutive failures of native calls

    # -- callbacks -----------------------------------------------------------------------------------

    def arm(
        self, semaphore: Notified, value: int, callback: Callback, *, despite_failure: bool = False
    ) -> Notification:
        """Arms a callback; see ``TimelineSemaphore.notify`` and ``SemaphoreNotification``."""
        notification = SemaphoreNotification(self, semaphore, callback, despite_failure)
        self.thread.start()
        with self._lock:
            self._sweep_cancelled()
            semaphore.notifications.push(value, notification)
            self._armed.add(semaphore)
        # After the push: a thread that advances the semaphore from now on, under the device's lock, sees the
        # notification.
        with self._device.lock:
            failure = semaphore.failure
            is_pending = (failure is None or despite_failure) and 0 <= semaphore.peek() < value
            is_busy = any(queue.next_completion() is not None for queue in self._device.queues)
        if is_pending or ((failure is None or despite_failure) and not _has_reached(semaphore, value)):
            if is_busy:
                self.thread.wake()
            return notification
        failure = None if despite_failure else semaphore.failure
        notification.call(failure)
        with self._lock:
            self._sweep(semaphore)
        return notification

    def collect_due(self, semaphore: Notified) -> None:
        """Makes the calls that are due after the semaphore advanced or failed. May be repeated after an interrupt."""
        with self._lock:
            notifications = semaphore.notifications
            notifications.move_due(self.thread.due, semaphore.reached, semaphore.failure)
            if not notifications:
                self._armed.discard(semaphore)
        self.thread.flush()

    def cancelled(self, semaphore: Notified) -> None:
        """Drops cancelled callbacks, so that a semaphore without waiters is released.

        A finalizer may cancel at any point, so this does not wait for the lock, but leaves its work to the next call.
        """
        self._unswept.append(semaphore)
        self._try_sweep()

    def _try_sweep(self) -> None:
        if self._lock.acquire(blocking=False):
            try:
                self._sweep_cancelled()
            finally:
                self._lock.release()

    def _sweep_cancelled(self) -> None:
        while self._unswept:
            self._sweep(self._unswept.popleft())

    def _sweep(self, semaphore: Notified) -> None:
        notifications = semaphore.notifications
        while notifications and notifications[0][2].is_done:
            heapq.heappop(notifications)
        if not notifications:
            self._armed.discard(semaphore)

    # -- the thread's waits -------------------------------------------------------------------

    def collect(self) -> None:
        """Retires the queues' finished work, which notifies."""
        self._result = min(filter(None, [queue.retire() for queue in self._device.queues]), default=VK_SUCCESS)
        if self._unswept:
            self._try_sweep()  # callbacks cancelled while another thread held the lock

    def is_pending(self) -> bool:
        """Returns whether callbacks wait for work in flight. A lost device's waits would return at once."""
        if not self._armed or self._device.lost is not None:
            return False
        completions = [(queue, queue.next_completion()) for queue in self._device.queues]
        # Read now: work in flight ends the wait, even if another thread retires it meanwhile.
        self._awaited = [(queue.timeline, value or queue.submitted + 1) for queue, value in completions]
        return any(value for _, value in completions)

    def wait(self) -> None:
        """Blocks until a queue completes a submission.

        A driver that is out of memory is asked again after a pause. If that lasts, the callbacks get the error, as a
        waiting thread would.
        """
        result = self._result or self._wait()
        if result == VK_ERROR_DEVICE_LOST:
            self._device.lose(error_from_result(result, "the notifier's wait"))
        elif result == VK_NOT_READY:
            time.sleep(_BRIEF_S)  # else it would return at once, until the retiring thread is done
        elif result >= 0:
            self._failures = 0
        elif self._failures < _MOST_FAILURES:
            self._failures += 1
            time.sleep(_PAUSE_S)
        else:
            self._failures = 0
            self._end_all(error_from_result(result, "waiting for callbacks"))

    def _wait(self) -> int:
        """Does the native wait, and returns its result."""
        device, awaited = self._device, self._awaited
        wait = new(
            "VkSemaphoreWaitInfo",
            flags=_WAIT_ANY if len(awaited) > 1 else 0,
            semaphoreCount=len(awaited),
            pSemaphores=ffi.new("VkSemaphore[]", [timeline for timeline, _ in awaited]),
            pValues=ffi.new("uint64_t[]", [value for _, value in awaited]),
        )
        return int(device.fn.vkWaitSemaphores(device.handle, wait, UINT64_MAX))

    def _end_all(self, error: PumiceError) -> None:
        """Makes all armed calls, with an error."""
        with self._lock:
            for semaphore in self._armed:
                semaphore.notifications.move_due(self.thread.due, UINT64_MAX, error)
            self._armed.clear()

    # -- the end -------------------------------------------------------------------------------------

    def close(self, timeout: float | None) -> bool:
        """Stops the thread; notifications still armed get CANCELLED. Called by ``Device.close``; may be repeated.

        Returns:
            ``False``, without further effect, if the thread is still in a callback after ``timeout`` seconds.
        """
        device = self._device
        if self.thread.is_alive and device.lost is None:
            # The queues are idle. The thread may wait for a withdrawn submission, or for the next.
            counter = ffi.new("uint64_t *")
            for queue in device.queues:
                value = queue.submitted + 1
                device.fn.vkGetSemaphoreCounterValue(device.handle, queue.timeline, counter)
                if counter[0] < value:
                    info = new("VkSemaphoreSignalInfo", semaphore=queue.timeline, value=value)
                    device.fn.vkSignalSemaphore(device.handle, info)
        if not self.thread.stop(timeout):
            return False
        with self._lock:
            left = [notification for semaphore in self._armed for _, _, notification in semaphore.notifications]
        for notification in left:
            notification.call(CancelledError("the device was closed"))
        self._armed.clear()
        return True

    def abandon(self) -> None:
        """Forgets the thread in a forked child, where it does not run. Called by ``Device.abandon``."""
        self._lock = threading.Lock()
        self.thread.abandon()


def _has_reached(semaphore: Notified, value: int) -> bool:
    try:
        return semaphore.read_payload() >= value
    except PumiceError:
        return semaphore.failure is not None or semaphore.reached >= value
