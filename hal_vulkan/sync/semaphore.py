"""Timeline semaphores: the one thing that orders host and queues.

A semaphore holds a payload that only goes up. Queues wait for and signal payloads; the host may query, signal,
wait, be notified, and fail it. A failure is sticky: every wait, present or future, raises it.

Calling sequence: ``Device.create_semaphore`` → ``signal``/``Queue.submit(signals=…)`` → ``wait`` or
``at(value).notify(…)`` → ``close``.

Thread rule: every method may be called from any thread. A blocking wait holds no lock.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Generator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from ...awaiting import await_source
from ...status import (
    CancelledError,
    ClosedError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    PumiceError,
)
from ..instance.logical_device import DeviceQueue
from ..vulkan.functions import CData, ffi, new
from ..vulkan.results import VK_TIMEOUT
from .context import SemaphoreContext, WaitInfo
from .notifier import Notification
from .timeline import SLICE_NS, create_timeline, deadline_after, timeout_nanoseconds

if TYPE_CHECKING:
    from ..submit.held_submission import HeldSubmission

__all__ = ["TimelineSemaphore", "Timepoint", "wait_all", "wait_any"]

MAX_PAYLOAD: Final = (1 << 64) - 2
_SWEEP_AT_LEAST: Final = 64


class TimelineSemaphore:
    """A VkSemaphore of timeline type with sticky failure.

    Attributes:
        context, device: what it shares with the other semaphores of its device, and the device.
        handle: the VkSemaphore.
        name: for messages.
    """

    __slots__ = (
        "__weakref__",
        "_closed",
        "_failure",
        "_reached",
        "awaited_by",
        "claimed",
        "context",
        "device",
        "handle",
        "held",
        "held_by_value",
        "is_signalling",
        "name",
        "notifications",
        "scheduled",
        "sweep_at",
    )

    def __init__(self, context: SemaphoreContext, initial_value: int = 0, name: str | None = None) -> None:
        if not 0 <= initial_value <= MAX_PAYLOAD:
            raise InvalidArgumentError(f"a payload is between 0 and {MAX_PAYLOAD}, got {initial_value}")
        self.context = context
        self.device = context.device
        self.name = name or "semaphore"
        self.handle: CData = create_timeline(self.device, name, initial_value)
        self._closed = False
        self._failure: PumiceError | None = None
        self._reached = initial_value
        # The highest payload that is signalled or that submitted work will signal. A submission that waits for more than
        # this is held back on the host (queue.py).
        self.scheduled = initial_value
        # The highest payload that somebody has taken to signal, above ``scheduled`` while a submission is being made: of two
        # who want the same payload one is refused.
        self.claimed = initial_value
        # Whether the host looks and signals, under the signal lock: submissions make no claim meanwhile.
        self.is_signalling = False
        self.held: dict[HeldSubmission, None] = {}  # in order; what a failure drops
        self.held_by_value: list[tuple[int, int, HeldSubmission]] = []  # a heap; what a signal releases
        self.awaited_by: tuple[DeviceQueue, ...] = ()  # queues with a submission that waited for it
        self.notifications: list[Notification] = []
        self.sweep_at = _SWEEP_AT_LEAST
        context.register(self)

    # -- state ---------------------------------------------------------------------------------------

    @property
    def failure(self) -> PumiceError | None:
        """What failed the semaphore, or ``None``."""
        return self._failure

    @property
    def is_closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    def query(self) -> int:
        """The payload now.

        Raises:
            PumiceError: the failure, if the semaphore was failed.
        """
        self._check_usable()
        return self._query()

    def _query(self) -> int:
        value = ffi.new("uint64_t *")
        result = self.device.fn.vkGetSemaphoreCounterValue(self.device.handle, self.handle, value)
        if result:
            self.device.check(result, f"querying {self.name}")
        reached: int = value[0]
        if reached > self._reached and self._failure is None:
            self._reached = reached
        return reached

    def has_reached(self, value: int) -> bool:
        """Whether the payload is at ``value`` or beyond; raises the failure."""
        if self._failure is not None or self._closed:
            self._check_usable()
        return self._reached >= value or self._query() >= value

    def advance(self, value: int) -> None:
        """Notes a payload known to be reached: by a queue at retirement. Not for users."""
        if value > self._reached:
            self._reached = value
        if self.notifications:
            self.context.notifier.collect(self)

    # -- host operations -----------------------------------------------------------------------------

    def signal(self, value: int) -> None:
        """Raises the payload from the host and wakes whoever waits for it.

        Args:
            value: more than the payload now, and less than any payload that pending work will signal.

        Raises:
            InvalidArgumentError: the payload would not go up.
            FailedPreconditionError: submitted work is to signal a payload at or below it.
        """
        noted = False
        try:
            # Vulkan has no "signal if it goes up": two threads that signal must look and signal one after the other.
            with self.context.signal_lock:
                self.is_signalling = True
                try:
                    self._check_usable()
                    now = self._query()
                    self._check_signal(now, value)
                    info = new("VkSemaphoreSignalInfo", semaphore=self.handle, value=value)
                    before = self.scheduled, self.claimed
                    # To the end of the native call all is noted, or nothing: see Queue._submit_one on Ctrl-C.
                    if value > self.claimed:
                        self.scheduled = self.claimed = value
                    self._reached = value
                    noted = True
                    result = self.device.fn.vkSignalSemaphore(self.device.handle, info)
                    if result:
                        self.scheduled, self.claimed = before
                        self._reached = now
                        self.device.check(result, f"signalling {self.name}")
                finally:
                    self.is_signalling = False
            self._after_signal()
        except BaseException:
            if noted:
                self._after_signal()
            raise

    def _check_signal(self, now: int, value: int) -> None:
        if not now < value <= MAX_PAYLOAD:
            raise InvalidArgumentError(
                f"{self.name}: a payload only goes up (at most {MAX_PAYLOAD}): it is {now} and {value} was to be signalled"
            )
        if now < self.claimed:
            pending = [v for queue in self.device.queues for v in queue.pending_signals(self) if v > now]
            lowest = min(pending, default=self.claimed)
            if lowest <= value:
                raise FailedPreconditionError(
                    f"{self.name}: submitted work will signal {lowest}; the host can only signal payloads below it"
                )
        self.check_difference(value)

    def _after_signal(self) -> None:
        """Releases and tells those who wait for the payload. May be repeated."""
        self.after_schedule()
        if self.notifications:
            self.context.notifier.collect(self)

    def check_difference(self, value: int) -> None:
        """Raises for a payload further ahead than the device allows (maxTimelineSemaphoreValueDifference)."""
        most = self.device.profile.limits.max_timeline_semaphore_value_difference
        if value - self._reached > most:
            now = self._query()
            if value - now > most:
                raise InvalidArgumentError(
                    f"{self.name}: {value} is {value - now} ahead of the payload now; this device allows {most}. Count in "
                    "smaller steps"
                )

    def after_schedule(self) -> None:
        """Releases submissions held for a payload that is now scheduled. May be repeated. Not for users."""
        heap = self.held_by_value
        while heap:
            with self.device.schedule_lock:
                due = heap[0] if heap and heap[0][0] <= self.scheduled else None
            if due is None:
                return
            due[2].try_release()
            with self.device.schedule_lock:  # only now: an interrupt in between loses nothing
                if heap and heap[0] is due:
                    heapq.heappop(heap)

    def fail(self, error: PumiceError) -> None:
        """Fails the semaphore for good: every wait raises ``error`` and what depends on it fails too.

        Work already on a queue is not recalled. A second failure is ignored: the first is the cause.
        """
        noted = False
        try:
            with self.context.signal_lock:
                if self._failure is not None or self._closed:
                    return
                self._failure = error
                noted = True
            self._after_failure(error)
        except BaseException:
            if noted:  # after Ctrl-C, too: nobody else tells them
                self._after_failure(error)
            raise

    def _after_failure(self, error: PumiceError) -> None:
        """Fails and tells those who wait for a payload. May be repeated."""
        self.drop_held(error)
        if self.notifications:
            self.context.notifier.collect(self)
        self._release_blocked()

    def drop_held(self, error: PumiceError) -> None:
        """Fails the submissions held back for a payload. For ``fail`` and ``Device.close``."""
        for submission in list(self.held):
            submission.fail(error)

    def _release_blocked(self) -> None:
        """Wakes threads that block in vkWaitSemaphores on a failed semaphore, by raising the native payload.

        Vulkan forbids to signal past a pending device signal; where there is one, its own arrival wakes those
        below it, and the rest are woken once it has come.
        """
        if self.device.lost is not None:
            return  # the driver wakes them with VK_ERROR_DEVICE_LOST
        try:
            # No submission makes a claim any more, as the semaphore has failed.
            with self.context.signal_lock:
                now = self._query()
                pending = now < self.claimed
                if not pending:
                    difference = self.device.profile.limits.max_timeline_semaphore_value_difference
                    target = min(MAX_PAYLOAD, now + min(difference, 1 << 62))
                    if target > now:
                        info = new("VkSemaphoreSignalInfo", semaphore=self.handle, value=target)
                        result = self.device.fn.vkSignalSemaphore(self.device.handle, info)
                        self.device.check(result, f"signalling {self.name}")
            if pending:
                self.context.notifier.arm(self, self.claimed, lambda _: self._release_blocked(), despite_failure=True)
        except PumiceError:
            pass  # the device went meanwhile, and with it the waits

    def wait(self, value: int, timeout: float | None = None) -> None:
        """Blocks until the payload is at ``value`` or beyond.

        Args:
            value: the payload to wait for; it need not be scheduled yet.
            timeout: seconds; ``None`` waits for ever, 0 only looks. Ctrl-C interrupts.

        Raises:
            DeadlineExceededError: the time passed first; the semaphore is as it was.
            PumiceError: the failure, if the semaphore was or becomes failed.
        """
        if self._failure is not None or self._closed:
            self._check_usable()
        if self._reached >= value:
            return
        device, context = self.device, self.context
        pool = context.wait_infos
        try:
            wait = pool.pop()
        except IndexError:
            wait = WaitInfo()
        if wait.handle is not self.handle:
            wait.handle = wait.semaphores[0] = self.handle
        wait.values[0] = value
        # Whoever closes the semaphore or the device waits until nobody is in here: the handle must outlive the call.
        context.waiting[wait] = self
        try:
            if self._failure is not None:
                raise self._failure.again()
            remaining = -1 if timeout is None else timeout_nanoseconds(timeout)
            while True:
                step = SLICE_NS if remaining < 0 or remaining > SLICE_NS else remaining
                result = device.fn.vkWaitSemaphores(device.handle, wait.info, step)
                if not result:
                    break
                if result != VK_TIMEOUT:
                    device.check(result, f"waiting for {self.name} to reach {value}")
                if self.failure is not None:
                    break
                if remaining >= 0:
                    remaining -= step
                    if remaining <= 0:
                        raise DeadlineExceededError(
                            f"{self.name} did not reach {value} within {timeout} s (it is at {self._query()}); "
                            "it can be waited for again"
                        )
        finally:
            del context.waiting[wait]
            pool.append(wait)
        if self._failure is not None:
            raise self._failure.again()
        if value > self._reached:
            self._reached = value

    def at(self, value: int) -> Timepoint:
        """This semaphore at a payload, as a wait source."""
        return Timepoint(self, value)

    def notify(self, value: int, callback: Callable[[PumiceError | None], None]) -> Notification:
        """Calls back once when the payload is at ``value`` or the semaphore fails. Blocks nothing.

        Args:
            value: the payload.
            callback: gets ``None``, or the failure. It runs on the device's notifier thread, or in this call where
                the payload is reached already; it must not block.
        """
        if self._closed:
            self._check_usable()
        return self.context.notifier.arm(self, value, callback)

    def push_notification(self, notification: Notification) -> None:
        """For the notifier, under its lock."""
        heapq.heappush(self.notifications, notification)

    def sweep_cancelled(self) -> None:
        """Drops cancelled notifications, so that a payload that never comes does not collect them. For the notifier."""
        self.notifications = [n for n in self.notifications if not n.is_done]
        heapq.heapify(self.notifications)
        self.sweep_at = max(_SWEEP_AT_LEAST, 2 * len(self.notifications))

    def _check_usable(self) -> None:
        if self._closed:
            raise ClosedError(f"{self.name} was closed")
        if self._failure is not None:
            raise self._failure.again()

    # -- end -----------------------------------------------------------------------------------------

    def abandon(self, error: PumiceError) -> None:
        """In a forked child: every wait raises. For ``Device.abandon``."""
        self._failure = error
        self.held.clear()
        self.held_by_value.clear()
        self.notifications.clear()

    def close(self) -> None:
        """Destroys the semaphore once no queue uses it; idempotent. Notifications still armed and waiting threads get CANCELLED.

        Raises:
            FailedPreconditionError: a held-back submission waits for it; signal or fail it first.
        """
        if self._closed:
            return
        if self.held:
            raise FailedPreconditionError(
                f"{self.name}: {len(self.held)} submission(s) wait for a payload nobody has scheduled; signal or fail it first"
            )
        handle, context = self.handle, self.context
        with context.signal_lock:
            if self._failure is None:
                self._failure = CancelledError(f"{self.name} was closed")
        if self.notifications:
            context.notifier.collect(self)
        if context.is_waited_for(self):
            self._release_blocked()
            context.wait_for_waiters(self)
        self._closed = True
        context.unregister(self)
        queues = self.awaited_by
        self.device.defer(lambda: context.destroy(handle, queues))

    def __enter__(self) -> TimelineSemaphore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._closed:
            return f"<closed TimelineSemaphore {self.name}>"
        if self._failure is not None:
            return f"<failed TimelineSemaphore {self.name}: {self._failure}>"
        return f"<TimelineSemaphore {self.name} reached {self._reached}, scheduled {self.scheduled}>"


class Timepoint:
    """A semaphore at a payload: a wait source (vm/wait/source.py)."""

    quick_query = True  # loops ask once more before they have themselves told (vm/wait/deferred.py)
    __slots__ = ("semaphore", "value")

    def __init__(self, semaphore: TimelineSemaphore, value: int) -> None:
        self.semaphore = semaphore
        self.value = value

    def query(self) -> bool:
        """Whether it is reached; raises the failure."""
        return self.semaphore.has_reached(self.value)

    def wait_until(self, deadline: float | None = None) -> None:
        """Blocks until reached or until ``time.monotonic()`` passes ``deadline`` (``None``: for ever)."""
        self.semaphore.wait(self.value, None if deadline is None else max(0.0, deadline - time.monotonic()))

    def notify(self, callback: Callable[[PumiceError | None], None]) -> Notification:
        """Calls back once when reached or failed; see ``TimelineSemaphore.notify``."""
        return self.semaphore.notify(self.value, callback)

    def __await__(self) -> Generator[Any, Any, None]:
        """Waits in a coroutine of asyncio's, or in a native function that is one; blocks nothing."""
        return await_source(self)

    def __repr__(self) -> str:
        return f"<Timepoint {self.semaphore.name} >= {self.value}>"


def wait_all(points: Sequence[tuple[TimelineSemaphore, int]], timeout: float | None = None) -> None:
    """Blocks until every semaphore has reached its payload.

    Raises:
        DeadlineExceededError: the time passed first.
        PumiceError: the first failure met, in the order given.
    """
    deadline = deadline_after(timeout)
    for semaphore, value in points:
        semaphore.wait(value, None if deadline is None else max(0.0, deadline - time.monotonic()))


def wait_any(points: Sequence[tuple[TimelineSemaphore, int]], timeout: float | None = None) -> int:
    """Blocks until one of the semaphores has reached its payload and returns its place in ``points``.

    It waits through the notifier: vkWaitSemaphores with WAIT_ANY keeps a core busy in drivers that emulate
    timelines (Mesa's lavapipe measured 100 % of a core; docs/design/hal.md).

    Raises:
        DeadlineExceededError: the time passed first.
        PumiceError: a semaphore failed before any was reached.
    """
    if not points:
        raise InvalidArgumentError("wait_any needs at least one (semaphore, payload)")
    for index, (semaphore, value) in enumerate(points):
        if semaphore.has_reached(value):
            return index
    # Checked here because threading.Event takes no infinity.
    limit = None if timeout is None or timeout_nanoseconds(timeout) < 0 else max(0.0, timeout)
    done = threading.Event()
    results: list[tuple[int, PumiceError | None]] = []

    def make(index: int) -> Callable[[PumiceError | None], None]:
        def callback(error: PumiceError | None) -> None:
            results.append((index, error))
            done.set()

        return callback

    notifications = [semaphore.notify(value, make(i)) for i, (semaphore, value) in enumerate(points)]
    try:
        if not done.wait(limit):
            raise DeadlineExceededError(f"none of {len(points)} payloads was reached within {timeout} s")
    finally:
        for notification in notifications:
            notification.cancel()
    index, error = results[0]
    if error is not None:
        raise error.again()
    return index
