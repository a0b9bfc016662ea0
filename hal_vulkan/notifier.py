"""One thread a device that tells whoever asked when a semaphore has reached a payload.

The thread blocks in vkWaitSemaphores, on its own wake semaphore and on the timeline of each queue with work in
flight. The wait set has one entry a queue, not one a waiter: ten thousand waiters cost what one does. A user's
semaphore moves in two ways only: a host signal, which comes through ``TimelineSemaphore.signal`` and is passed on
here, or a queue, whose own timeline moves with the same submission. Nothing polls.

The wait set is usually the wake semaphore alone, and that matters: drivers that emulate timelines in user space
block properly on one semaphore but spin on several (measured with lavapipe, docs/design/hal.md).
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ..status import CancelledError, PumiceError
from .native import UINT64_MAX, VK_SUCCESS, VK_TIMEOUT, CData, error_from_result, ffi, new

if TYPE_CHECKING:
    from .device import Device
    from .semaphore import TimelineSemaphore

__all__ = ["Notification", "Notifier"]

_log = logging.getLogger("pumice.notifier")
_WAIT_ANY: Final = 1
_order = itertools.count()


class Notification:
    """One callback armed on a semaphore; it is called once, or never if cancelled first."""

    __slots__ = ("_callback", "_order", "despite_failure", "value")

    def __init__(self, value: int, callback: Callable[[PumiceError | None], None], despite_failure: bool) -> None:
        self.value = value
        self.despite_failure = despite_failure
        self._callback: Callable[[PumiceError | None], None] | None = callback
        self._order = next(_order)

    def __lt__(self, other: Notification) -> bool:
        return (self.value, self._order) < (other.value, other._order)

    @property
    def is_done(self) -> bool:
        """Whether it was cancelled, or its callback has been or is being called."""
        return self._callback is None

    def cancel(self) -> bool:
        """Disarms it; ``False`` when the callback has been, or is being, called."""
        callback, self._callback = self._callback, None
        return callback is not None

    def take(self) -> Callable[[PumiceError | None], None] | None:
        """The callback, the first time it is asked for."""
        callback, self._callback = self._callback, None
        return callback


class Notifier:
    """The notifier thread of one device; started by the first notification.

    Callbacks run on the thread one after another, with no lock held. An exception in one is logged and does not
    stop the others.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._lock = threading.Lock()
        self._ready: deque[tuple[Notification, PumiceError | None]] = deque()
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._sleeping = False
        self._wake_value = 0
        self._wake: CData | None = None
        self._armed: set[TimelineSemaphore] = set()
        self._wake_lost = threading.Event()

    @property
    def thread_count(self) -> int:
        """0 or 1: threads that this device keeps for all notifications."""
        return 1 if self._thread is not None and self._thread.is_alive() else 0

    @property
    def armed(self) -> int:
        """Notifications not yet called, cancelled ones that are not yet swept included."""
        with self._lock:
            return sum(len(semaphore.notifications) for semaphore in self._armed)

    def arm(
        self,
        semaphore: TimelineSemaphore,
        value: int,
        callback: Callable[[PumiceError | None], None],
        *,
        despite_failure: bool = False,
    ) -> Notification:
        """Arms a callback; see ``TimelineSemaphore.notify``. ``despite_failure`` waits for the payload of a failed one."""
        notification = Notification(value, callback, despite_failure)
        with self._lock:
            if self._thread is None and not self._stopping:
                self._start()
            if len(semaphore.notifications) >= semaphore.sweep_at:
                semaphore.sweep_cancelled()
            semaphore.push_notification(notification)
            self._armed.add(semaphore)
        # Looked at after it was pushed: whoever moves the semaphore from now on sees the notification.
        failure = semaphore.failure
        if failure is None or despite_failure:
            if not self._reached(semaphore, value):
                if any(queue.next_completion() is not None for queue in self._device.queues):
                    self._wake_thread()
                return notification
            failure = None if despite_failure else semaphore.failure
        if taken := notification.take():
            self._sweep(semaphore)
            _call(taken, failure)
        return notification

    def _reached(self, semaphore: TimelineSemaphore, value: int) -> bool:
        try:
            return semaphore._query() >= value
        except PumiceError:
            return semaphore.failure is not None

    def collect(self, semaphore: TimelineSemaphore) -> None:
        """Called when a semaphore moved or failed: passes what is due to the thread."""
        failure = semaphore.failure
        due = False
        with self._lock:
            queue = semaphore.notifications
            if failure is None:
                reached = semaphore._reached
                while queue and queue[0].value <= reached:
                    self._ready.append((heapq.heappop(queue), None))
                    due = True
            else:
                kept = []
                for notification in queue:
                    if notification.despite_failure and semaphore._reached < notification.value:
                        kept.append(notification)
                    else:
                        error = None if notification.despite_failure else failure
                        self._ready.append((notification, error))
                        due = True
                queue[:] = kept
                heapq.heapify(queue)
            if not queue:
                self._armed.discard(semaphore)
        if due:
            self._wake_thread()

    def wake(self) -> None:
        """Makes the thread look again: a queue got work whose signals somebody waits for."""
        self._wake_thread()

    def _sweep(self, semaphore: TimelineSemaphore) -> None:
        with self._lock:
            queue = semaphore.notifications
            while queue and queue[0].is_done:
                heapq.heappop(queue)
            if not queue:
                self._armed.discard(semaphore)

    # -- the thread ----------------------------------------------------------------------------------

    def _start(self) -> None:
        device = self._device
        self._wake = device.create_native_timeline("notifier wake")
        self._thread = threading.Thread(target=self._run, name="pumice-notifier", daemon=True)
        self._thread.start()

    def _wake_thread(self) -> None:
        with self._lock:
            if not self._sleeping:
                return
            self._wake_lost.set()
            info = new("VkSemaphoreSignalInfo", semaphore=self._wake, value=self._wake_value + 1)
            # A driver that has lost the device may refuse; its waits return then, or the next wake finds them asleep.
            if self._device.fn.vkSignalSemaphore(self._device.handle, info) == VK_SUCCESS:
                self._sleeping = False
                self._wake_value += 1

    def _run(self) -> None:
        device = self._device
        semaphores = ffi.new("VkSemaphore[]", 1 + len(device.queues))
        values = ffi.new("uint64_t[]", 1 + len(device.queues))
        wait = new("VkSemaphoreWaitInfo", flags=_WAIT_ANY, pSemaphores=semaphores, pValues=values)
        while True:
            self._run_ready()
            for queue in device.queues:
                queue.retire()
            with self._lock:
                if self._ready:
                    continue
                if self._stopping:
                    return
                self._sleeping = True
                semaphores[0] = self._wake
                values[0] = self._wake_value + 1
                count = 1
                if self._armed:
                    for queue in device.queues:
                        next_value = queue.next_completion()
                        if next_value is not None:
                            semaphores[count] = queue.timeline
                            values[count] = next_value
                            count += 1
            if device.lost is not None:
                # A lost device's waits return at once; whoever fails its semaphores still needs this thread.
                self._wake_lost.wait()
                self._wake_lost.clear()
                continue
            wait.semaphoreCount = count
            wait.flags = _WAIT_ANY if count > 1 else 0
            result = device.fn.vkWaitSemaphores(device.handle, wait, UINT64_MAX)
            with self._lock:
                self._sleeping = False
            self._wake_lost.clear()
            if result not in (VK_SUCCESS, VK_TIMEOUT):
                device.lose(error_from_result(result, "the notifier's wait"))

    def _run_ready(self) -> None:
        while True:
            try:
                notification, error = self._ready.popleft()
            except IndexError:
                return
            if callback := notification.take():
                _call(callback, error)

    def abandon(self) -> None:
        """In a forked child, where the thread is not. For ``Device.abandon``."""
        self._lock = threading.Lock()
        self._thread = None
        self._stopping = True

    def close(self) -> None:
        """Stops the thread; notifications still armed get CANCELLED. Called by ``Device.close``."""
        with self._lock:
            self._stopping = True
            thread = self._thread
            left = [n for semaphore in self._armed for n in semaphore.notifications]
            self._armed.clear()
        self._wake_thread()
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self._run_ready()
        for notification in left:
            if callback := notification.take():
                _call(callback, CancelledError("the device was closed"))
        if self._wake is not None:
            self._device.destroy("semaphore", self._wake)
            self._wake = None


def _call(callback: Callable[[PumiceError | None], None], error: PumiceError | None) -> None:
    try:
        callback(error)
    except Exception:
        _log.exception("a notification's callback raised")
