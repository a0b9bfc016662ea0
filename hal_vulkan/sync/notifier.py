"""The notifier: one thread a device that calls back when semaphores reach payloads.

While work is in flight that callbacks wait for, the thread blocks in vkWaitSemaphores on the timeline of each queue;
otherwise it sleeps until it is woken. The wait set has one entry a queue, not one a waiter: ten thousand waiters cost
what one does. A user's semaphore moves in two ways only: by a host signal, which comes through
``TimelineSemaphore.signal`` and is passed on here, or by a queue, whose own timeline moves with the same submission.
Nothing polls.

A device with one queue is waited for by that queue's timeline alone: drivers that emulate timelines in user space block
properly on one semaphore but spin on several (measured with lavapipe, docs/design/hal.md). That wait cannot be broken
off, so callbacks that a host signal makes due meanwhile are called by a second thread, started when that first happens.
With several queues a wake semaphore is in the set, and one thread does everything.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections import deque
from typing import Final, Protocol, TypeAlias

from ...status import CancelledError, PumiceError
from ...waits.notification import Callback, Notification
from ..instance.logical_device import LogicalDevice
from ..vulkan.functions import UINT64_MAX, CData, ffi, new
from ..vulkan.results import VK_SUCCESS, VK_TIMEOUT, error_from_result
from .timeline import create_timeline

Due: TypeAlias = tuple[Notification, PumiceError | None]
"""A notification, and what its callback gets."""

_WAIT_ANY: Final = 1
_MIN_SWEEP: Final = 64
_order = itertools.count()

# What the thread is doing.
_RUNNING: Final = 0  # looks for something to do, and again before it sleeps
_SLEEPING: Final = 1  # until its event is set
_WAITING: Final = 2  # in a native wait


class Notified(Protocol):
    """What the notifier knows of a ``TimelineSemaphore``, which documents the attributes."""

    notifications: NotificationHeap
    reached: int
    failure: PumiceError | None

    def read_payload(self) -> int: ...


class SemaphoreNotification(Notification):
    """One callback armed on a semaphore; ``despite_failure`` waits for the native payload of a failed one."""

    __slots__ = ("_notifier", "_semaphore", "despite_failure")

    def __init__(self, notifier: Notifier, semaphore: Notified, callback: Callback, despite_failure: bool) -> None:
        super().__init__(callback)
        self._notifier = notifier
        self._semaphore: Notified | None = semaphore
        self.despite_failure = despite_failure

    def call(self, error: Exception | None = None) -> None:
        """Calls back, unless it was called or cancelled before."""
        self._semaphore = None  # whoever keeps the notification does not keep the semaphore
        super().call(error)

    def _cancelled(self) -> None:
        semaphore, self._semaphore = self._semaphore, None
        if semaphore is not None:
            self._notifier.cancelled(semaphore)


class NotificationHeap(list[tuple[int, int, SemaphoreNotification]]):
    """Callbacks by payload, then in the order of arming. A list, so that asking whether there are any costs nothing."""

    __slots__ = ("_sweep_at",)

    def __init__(self) -> None:
        self._sweep_at = _MIN_SWEEP

    def push(self, value: int, notification: SemaphoreNotification) -> None:
        """Adds one. Now and then it drops cancelled ones, so that a payload that never comes does not collect them."""
        if len(self) >= self._sweep_at:
            self._keep([entry for entry in self if not entry[2].is_done])
            self._sweep_at = max(_MIN_SWEEP, 2 * len(self))
        heapq.heappush(self, (value, next(_order), notification))

    def move_due(self, ready: deque[Due], reached: int, failure: PumiceError | None) -> None:
        """Moves those that are due to ``ready``. May be repeated after an interrupt."""
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
    """The notifier of one device. Callbacks run on its thread one after another, with no lock held."""

    def __init__(self, device: LogicalDevice) -> None:
        self._device = device
        self._lock = threading.Lock()
        self._ready: deque[Due] = deque()
        self._thread: threading.Thread | None = None
        self._helper: threading.Thread | None = None
        self._stopping = False
        self._doing = _RUNNING
        self._asleep = threading.Lock()  # held while there is nothing to do; cheaper than an Event
        self._asleep.acquire()
        self._help = threading.Event()
        self._calling = threading.RLock()  # held while a callback runs, in either thread
        self._wake_value = 0
        self._wake: CData | None = None  # of devices with several queues
        self._armed: set[Notified] = set()
        self._unswept: deque[Notified] = deque()

    def arm(
        self, semaphore: Notified, value: int, callback: Callback, *, despite_failure: bool = False
    ) -> Notification:
        """Arms a callback; see ``TimelineSemaphore.notify`` and ``SemaphoreNotification``."""
        notification = SemaphoreNotification(self, semaphore, callback, despite_failure)
        with self._lock:
            if self._unswept:
                self._sweep_cancelled()
            if self._thread is None and not self._stopping:
                self._start()
            semaphore.notifications.push(value, notification)
            self._armed.add(semaphore)
        # Queried after it was pushed: whoever moves the semaphore from now on sees the notification.
        failure = semaphore.failure
        if failure is None or despite_failure:
            if not _has_reached(semaphore, value):
                if any(queue.next_completion() is not None for queue in self._device.queues):
                    self.wake()
                return notification
            failure = None if despite_failure else semaphore.failure
        notification.call(failure)
        with self._lock:
            self._sweep(semaphore)
        return notification

    def collect(self, semaphore: Notified) -> None:
        """Passes what is due to the thread: the semaphore has moved or failed. May be repeated after an interrupt."""
        with self._lock:
            notifications = semaphore.notifications
            notifications.move_due(self._ready, semaphore.reached, semaphore.failure)
            if not notifications:
                self._armed.discard(semaphore)
        # A running thread looks whether something is ready, with the lock, before it sleeps or waits.
        if self._ready and self._doing != _RUNNING:
            self.wake()

    def cancelled(self, semaphore: Notified) -> None:
        """Drops what was cancelled, so that a semaphore that nobody waits for is let go.

        A finalizer may cancel, in the middle of anything. So this never waits for the lock: what it cannot do now, the
        next call does.
        """
        self._unswept.append(semaphore)
        self._try_sweep()

    def _try_sweep(self) -> None:
        if self._lock.acquire(False):
            try:
                self._sweep_cancelled()
            finally:
                self._lock.release()

    def _sweep_cancelled(self) -> None:
        """With the lock."""
        while self._unswept:
            self._sweep(self._unswept.popleft())

    def _sweep(self, semaphore: Notified) -> None:
        """With the lock."""
        notifications = semaphore.notifications
        while notifications and notifications[0][2].is_done:
            heapq.heappop(notifications)
        if not notifications:
            self._armed.discard(semaphore)

    def _start(self) -> None:
        device = self._device
        if len(device.queues) > 1:
            self._wake = create_timeline(device, "notifier wake")
        self._thread = threading.Thread(target=self._run, name="pumice-notifier", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Makes the thread look again: a callback is due, or a queue got work whose signals callbacks wait for."""
        if self._doing == _WAITING and self._wake is None and not self._ready:
            return  # it looks again at the queue's next completion
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
        """The second thread: runs callbacks while the first is in a wait that cannot be broken off."""
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
                # A lost device's waits return at once; the thread is still needed to pass failures on.
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
            if self._unswept:
                self._try_sweep()  # what was cancelled while this thread held the lock
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
                notification.call(error)

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
            left = [one for semaphore in self._armed for _, _, one in semaphore.notifications]
            self._armed.clear()
        self.wake()
        self._help.set()
        for one in (thread, self._helper):
            if one is not None and one is not threading.current_thread():
                one.join()
        self._run_ready()
        for notification in left:
            notification.call(CancelledError("the device was closed"))
        if self._wake is not None:
            self._device.destroy("semaphore", self._wake)
            self._wake = None


def _has_reached(semaphore: Notified, value: int) -> bool:
    try:
        return semaphore.read_payload() >= value
    except PumiceError:
        return semaphore.failure is not None
