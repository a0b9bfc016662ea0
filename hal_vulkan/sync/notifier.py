"""One thread a device that tells whoever asked when a semaphore has reached a payload.

While work is in flight that somebody wants to hear of, the thread blocks in vkWaitSemaphores on the timeline of each queue; otherwise it
sleeps until it is woken. The wait set has one entry a queue, not one a waiter: ten thousand waiters cost what one does. A user's
semaphore moves in two ways only: a host signal, which comes through ``TimelineSemaphore.signal`` and is passed on
here, or a queue, whose own timeline moves with the same submission. Nothing polls.

A device with one queue is waited for by that queue's timeline alone: drivers that emulate timelines in user space block properly on
one semaphore but spin on several (measured with lavapipe, docs/design/hal.md). That wait cannot be broken off, so what becomes
due by a host signal meanwhile is called by a second thread, started when that first happens. With several queues a wake semaphore is in
the set, and one thread does everything.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ...status import CancelledError, PumiceError
from ..instance.logical_device import LogicalDevice
from ..vulkan.functions import UINT64_MAX, CData, ffi, new
from ..vulkan.results import VK_SUCCESS, VK_TIMEOUT, error_from_result
from .timeline import create_timeline

if TYPE_CHECKING:
    from .semaphore import TimelineSemaphore

__all__ = ["Notification", "Notifier"]

_log = logging.getLogger("pumice.notifier")
_WAIT_ANY: Final = 1
_order = itertools.count()


class Notification:
    """One callback armed on a semaphore; it is called once, or never if cancelled first."""

    __slots__ = ("_callback", "_order", "_semaphore", "despite_failure", "value")

    def __init__(
        self,
        semaphore: TimelineSemaphore,
        value: int,
        callback: Callable[[PumiceError | None], None],
        despite_failure: bool,
    ) -> None:
        self._semaphore: TimelineSemaphore | None = semaphore
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
        semaphore, self._semaphore = self._semaphore, None
        if callback is None:
            return False
        if semaphore is not None:
            semaphore.context.notifier.cancelled(semaphore)
        return True

    def take(self) -> Callable[[PumiceError | None], None] | None:
        """The callback, the first time it is asked for."""
        callback, self._callback = self._callback, None
        self._semaphore = None
        return callback


# What the thread is doing.
_RUNNING: Final = 0  # looking for something to do; looks again before it sleeps
_SLEEPING: Final = 1  # until its event is set
_WAITING: Final = 2  # in a native wait


class Notifier:
    """The notifier thread of one device; started by the first notification.

    Callbacks run on the thread one after another, with no lock held. An exception in one is logged and does not
    stop the others.
    """

    def __init__(self, device: LogicalDevice) -> None:
        self._device = device
        self._lock = threading.Lock()
        self._ready: deque[tuple[Notification, PumiceError | None]] = deque()
        self._thread: threading.Thread | None = None
        self._helper: threading.Thread | None = None
        self._stopping = False
        self._doing = _RUNNING
        self._asleep = threading.Lock()  # held while there is nothing to wake up for; cheaper than an Event
        self._asleep.acquire()
        self._help = threading.Event()
        self._calling = threading.RLock()  # one callback after another, whichever thread
        self._wake_value = 0
        self._wake: CData | None = None  # of devices with several queues
        self._armed: set[TimelineSemaphore] = set()
        self._unswept: deque[TimelineSemaphore] = deque()

    @property
    def thread_count(self) -> int:
        """0 or 1: threads that this device keeps for all waits."""
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
        notification = Notification(semaphore, value, callback, despite_failure)
        with self._lock:
            self._sweep_cancelled()
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

    def cancelled(self, semaphore: TimelineSemaphore) -> None:
        """A notification was cancelled: a semaphore that nobody waits for any more is let go.

        It may be a finalizer that cancels, in the middle of anything: it never waits, and what it cannot do now the next one does.
        """
        self._unswept.append(semaphore)
        if self._lock.acquire(False):
            try:
                self._sweep_cancelled()
            finally:
                self._lock.release()

    def _sweep_cancelled(self) -> None:
        """With the lock."""
        while self._unswept:
            self._sweep_done(self._unswept.popleft())

    def _sweep(self, semaphore: TimelineSemaphore) -> None:
        with self._lock:
            self._sweep_done(semaphore)

    def _sweep_done(self, semaphore: TimelineSemaphore) -> None:
        queue = semaphore.notifications
        while queue and queue[0].is_done:
            heapq.heappop(queue)
        if not queue:
            self._armed.discard(semaphore)

    # -- the thread ----------------------------------------------------------------------------------

    def _start(self) -> None:
        device = self._device
        if len(device.queues) > 1:
            self._wake = create_timeline(device, "notifier wake")
        self._thread = threading.Thread(target=self._run, name="pumice-notifier", daemon=True)
        self._thread.start()

    def _wake_thread(self) -> None:
        with self._lock:
            if self._doing == _SLEEPING:
                self._doing = _RUNNING
                self._asleep.release()
            elif self._doing == _WAITING:
                if self._wake is not None:
                    info = new("VkSemaphoreSignalInfo", semaphore=self._wake, value=self._wake_value + 1)
                    # A driver that has lost the device may refuse; its waits return then.
                    if self._device.fn.vkSignalSemaphore(self._device.handle, info) == VK_SUCCESS:
                        self._doing = _RUNNING
                        self._wake_value += 1
                elif self._ready:
                    if self._helper is None:
                        self._helper = threading.Thread(target=self._assist, name="pumice-callbacks", daemon=True)
                        self._helper.start()
                    self._help.set()

    def _assist(self) -> None:
        """The second thread: calls what is due by host signals while the first is in a wait that cannot be broken off."""
        while True:
            self._help.wait()
            self._help.clear()
            self._run_ready()
            if self._stopping:
                return

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
                count = 0
                # A lost device's waits return at once; whoever fails its semaphores still needs this thread.
                if self._armed and device.lost is None:
                    for queue in device.queues:
                        next_value = queue.next_completion()
                        if next_value is not None:
                            semaphores[count] = queue.timeline
                            values[count] = next_value
                            count += 1
                if not count:
                    self._doing = _SLEEPING
                else:
                    self._doing = _WAITING
                    if self._wake is not None:
                        semaphores[count] = self._wake
                        values[count] = self._wake_value + 1
                        count += 1
            if not count:
                self._asleep.acquire()
                continue
            wait.semaphoreCount = count
            wait.flags = _WAIT_ANY if count > 1 else 0
            result = device.fn.vkWaitSemaphores(device.handle, wait, UINT64_MAX)
            with self._lock:
                self._doing = _RUNNING
            if result not in (VK_SUCCESS, VK_TIMEOUT):
                device.lose(error_from_result(result, "the notifier's wait"))

    def _run_ready(self) -> None:
        while self._ready:
            with self._calling:
                try:
                    notification, error = self._ready.popleft()
                except IndexError:
                    return
                if callback := notification.take():
                    _call(callback, error)

    def abandon(self) -> None:
        """In a forked child, where the thread is not. For ``Device.abandon``."""
        self._lock = threading.Lock()
        self._calling = threading.RLock()
        self._thread = self._helper = None
        self._stopping = True

    def close(self) -> None:
        """Stops the thread; notifications still armed get CANCELLED. Called by ``Device.close``."""
        with self._lock:
            self._stopping = True
            thread = self._thread
            left = [n for semaphore in self._armed for n in semaphore.notifications]
            self._armed.clear()
        self._wake_thread()
        self._help.set()
        for one in (thread, self._helper):
            if one is not None and one is not threading.current_thread():
                one.join()
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
