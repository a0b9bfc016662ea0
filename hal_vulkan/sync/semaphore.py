"""Timeline semaphores, which order host and queues.

A semaphore holds a payload that only increases. Queues wait for and signal payloads; the host may query, signal, wait,
be notified, and fail it. A failure is sticky: every wait, present or future, raises it.

Calling sequence: ``Device.create_semaphore`` → ``signal``/``Queue.submit(signals=…)`` → ``wait`` or
``at(value).notify(…)`` → ``close``.

Thread rule: every method may be called from any thread. A blocking wait holds no lock.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable
from time import monotonic
from typing import Final, Protocol

from ...hal.semaphore import MAX_PAYLOAD
from ...hal.semaphore import Semaphore as AnySemaphore
from ...hal.timeouts import timeout_nanoseconds
from ...status import (
    CancelledError,
    ClosedError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    PumiceError,
)
from ...waits.notification import Callback, Notification
from ...waits.wait_mode import Look, WaitMode, chosen
from ..instance.logical_device import DeviceQueue, LogicalDevice, guarded
from ..vulkan.functions import CData, ffi, new
from .context import SemaphoreContext
from .look import ENDLESS, AdaptiveLook
from .notifier import NotificationHeap
from .timeline import SLICE_NS, WaitInfo, block, create_timeline, poll

_WAITERS_LEAVE_S: Final = 2.0  # for a thread stopped in a debugger


class HeldWork(Protocol):
    """The part of a ``HeldSubmission`` that a semaphore uses."""

    def try_release(self) -> None: ...

    def fail(self, error: PumiceError) -> None: ...


class ReportVerdict(Protocol):
    """The part of a report's ``Verdict`` that a semaphore uses."""

    @property
    def failure(self) -> PumiceError | None: ...


class TimelineSemaphore(AnySemaphore):
    """A VkSemaphore of timeline type with sticky failure.

    Attributes:
        reached: a payload known to be reached.
        scheduled: the highest payload that is signalled or that submitted work will signal; it changes under the
            device's lock. A submission that waits for a higher payload is held back on the host (queue.py).
        held: the submissions held back for the semaphore, in order; a failure drops them.
        held_by_value: the same submissions as a heap by payload; a signal releases them.
        awaited_by: the queues with a submission that waited for the semaphore.
    """

    device: LogicalDevice
    is_closed = True  # until construction is complete: finalisers also run after an interrupt during it

    def __init__(self, context: SemaphoreContext, initial_value: int = 0, name: str | None = None) -> None:
        if not 0 <= initial_value <= MAX_PAYLOAD:
            raise InvalidArgumentError(f"a payload is between 0 and {MAX_PAYLOAD}, got {initial_value}")
        self.context = context
        self.device = context.device
        self.name: str = name or "semaphore"
        self.failure: PumiceError | None = None
        self.reached = initial_value
        self.scheduled = initial_value
        self.held: dict[HeldWork, None] = {}
        self.held_by_value: list[tuple[int, int, HeldWork]] = []
        self.awaited_by: tuple[DeviceQueue, ...] = ()
        self._look = AdaptiveLook(context.look_budget)
        self._counter = ffi.new("uint64_t *")
        self._unjudged: deque[tuple[int, ReportVerdict]] = deque()
        self.notifications: NotificationHeap = NotificationHeap()
        self.handle: CData = create_timeline(self.device, name, initial_value)
        self.is_closed = False
        context.register(self)

    def query(self) -> int:
        """Returns the current payload; raises the failure of a failed semaphore."""
        self._check_usable()
        payload = self.read_payload()
        self._check_usable()
        return payload

    @guarded
    def read_payload(self) -> int:
        """Reads the payload from the driver, even of a failed semaphore. Not for users."""
        counter = self._counter  # shared: concurrent readers write the same payload, or a later one
        result = self.device.fn.vkGetSemaphoreCounterValue(self.device.handle, self.handle, counter)
        if result:
            self.device.check(result, f"querying {self.name}")
        reached: int = counter[0]
        if reached > self.reached and self.failure is None:
            if self._unjudged:
                self._judge(reached)
            self.reached = reached
        return reached

    def peek(self) -> int:
        """Returns the current payload, or -1 after an error; raises and notes nothing.

        The caller holds the device's lock, and has checked under it that the semaphore is open.
        """
        counter = self.context.peeked
        result = self.device.fn.vkGetSemaphoreCounterValue(self.device.handle, self.handle, counter)
        return -1 if result else int(counter[0])

    def judge_at(self, value: int, verdicts: Iterable[ReportVerdict]) -> None:
        """Makes it fail with a verdict's failure once it reaches a payload. Called by queues, before they submit."""
        if self.judged:
            self._unjudged.extend([(value, verdict) for verdict in verdicts])

    def _judge(self, reached: int) -> None:
        """Fails it if work up to a payload has a report."""
        self.device.reports.collect()
        unjudged = self._unjudged
        failure: PumiceError | None = None
        with self.device.lock:
            while unjudged and unjudged[0][0] <= reached:
                failure = unjudged[0][1].failure
                if failure is not None and self.failure is None and not self.is_closed:
                    self.failure = failure
                unjudged.popleft()  # last: before this the payload does not count as reached
            failure = self.failure
        if failure is not None:
            self._after_failure(failure)

    def has_reached(self, value: int) -> bool:
        """Whether the payload is at ``value`` or beyond; raises the failure."""
        if self.failure is not None or self.is_closed:
            self._check_usable()
        if self.reached >= value:
            return True
        is_reached = self.read_payload() >= value
        if self.failure is not None:
            self._check_usable()
        return is_reached

    def advance(self, value: int) -> None:
        """Notes that a payload is reached. Called by queues, at retirement."""
        if value > self.reached:
            if self._unjudged:
                self._judge(value)
            self.reached = value
        if self.notifications:
            self.context.notifier.collect_due(self)

    def signal(self, value: int) -> None:
        """Raises the payload from the host and wakes its waiters.

        Args:
            value: the new payload, above the current payload and below any payload that pending work will signal.

        Raises:
            InvalidArgumentError: the payload would not increase.
            FailedPreconditionError: submitted work will signal a payload at or below it, or may signal one above it at
                any moment.
        """
        noted = False
        try:
            if self._unjudged:
                self.read_payload()
            # Vulkan has no "signal if higher": threads must check and signal one after another.
            with self.device.lock:
                self._check_usable()
                counter = self.context.peeked
                result = self.device.fn.vkGetSemaphoreCounterValue(self.device.handle, self.handle, counter)
                if not result:
                    self._check_signal(counter[0], value)
                    info = new("VkSemaphoreSignalInfo", semaphore=self.handle, value=value)
                    before, reached = self.scheduled, self.reached
                    # Until the end of the native call either all or nothing is noted: see SubmissionQueue.resubmit on
                    # Ctrl-C.
                    if value > before:
                        self.scheduled = value
                    self.reached = value
                    noted = True
                    result = self.device.fn.vkSignalSemaphore(self.device.handle, info)
                    if result:
                        self.scheduled: int
                        self.scheduled, self.reached = before, reached
            if result:
                self.device.check(result, f"signalling {self.name}")
            self._after_signal()
        except BaseException:
            if noted:  # even after Ctrl-C: no other thread does it
                self._after_signal()
            raise

    def _check_signal(self, now: int, value: int) -> None:
        if not now < value <= MAX_PAYLOAD:
            raise InvalidArgumentError(
                f"{self.name}: a payload only increases (to at most {MAX_PAYLOAD}): it is {now}, got {value}"
            )
        if now < self.scheduled:
            signals = [signal for queue in self.device.queues for signal in queue.pending_signals(self)]
            pending = [(payload, may_come) for payload, may_come in signals if payload > now]
            lowest = min((payload for payload, _ in pending), default=self.scheduled)
            if lowest <= value:
                raise FailedPreconditionError(
                    f"{self.name}: submitted work will signal {lowest}; the host can only signal payloads below it"
                )
            if not pending or any(may_come for _, may_come in pending):
                raise FailedPreconditionError(
                    f"{self.name}: submitted work that waits for nothing may signal {lowest} before the host signals "
                    f"{value}, and payloads only go up: signal first, or let that work wait"
                )
        self._check_difference(value, now)

    def _after_signal(self) -> None:
        """Releases held submissions and notifies. May be repeated after an interrupt."""
        self.after_schedule()
        if self.notifications:
            self.context.notifier.collect_due(self)

    def check_difference(self, value: int) -> None:
        """Raises if a payload is further ahead than maxTimelineSemaphoreValueDifference allows."""
        self._check_difference(value, self.read_payload())

    def _check_difference(self, value: int, now: int) -> None:
        most = self.device.profile.limits.max_timeline_semaphore_value_difference
        if value - now > most:
            raise InvalidArgumentError(
                f"{self.name}: {value} is {value - now} ahead of the payload now; this device allows {most}. Count "
                "in smaller steps"
            )

    def after_schedule(self) -> None:
        """Releases submissions held for payloads that are now scheduled. May be repeated after an interrupt."""
        heap = self.held_by_value
        while heap:
            with self.device.lock:
                due = heap[0] if heap and heap[0][0] <= self.scheduled else None
            if due is None:
                return
            due[2].try_release()
            with self.device.lock:  # only now, so that after an interrupt it is still on the heap
                if heap and heap[0] is due:
                    heapq.heappop(heap)

    def fail(self, error: PumiceError) -> None:
        """Fails the semaphore for good: every wait raises ``error`` and dependent work fails too.

        Work already on a queue is not recalled. A second failure is ignored: the first is the cause.
        """
        noted = False
        try:
            with self.device.lock:
                if self.failure is not None or self.is_closed:
                    return
                self.failure = error
                noted = True
            self._after_failure(error)
        except BaseException:
            if noted:  # see signal()
                self._after_failure(error)
            raise

    def _after_failure(self, error: PumiceError) -> None:
        """Fails held submissions and notifies. May be repeated after an interrupt."""
        self.drop_held(error)
        if self.notifications:
            self.context.notifier.collect_due(self)
        self._release_blocked()

    def drop_held(self, error: PumiceError) -> None:
        """Fails the submissions held back for a payload. Called by ``fail`` and ``Device.close``."""
        for submission in list(self.held):
            submission.fail(error)

    def _release_blocked(self) -> None:
        """Wakes threads that block in vkWaitSemaphores on a failed semaphore, by raising the native payload.

        Vulkan forbids signals past a pending device signal. If there is one, this wakes the threads that wait for at
        most its payload; the others are woken once it has come.
        """
        if self.device.lost is not None:
            return  # the driver wakes them with VK_ERROR_DEVICE_LOST
        try:
            result = 0
            with self.device.lock:
                if self.is_closed:
                    return
                now = self.peek()
                if now < 0:
                    return  # waiting threads see the failure at the end of their slice
                pending = now < self.scheduled
                if not pending:
                    difference = self.device.profile.limits.max_timeline_semaphore_value_difference
                    target = min(MAX_PAYLOAD, now + min(difference, 1 << 62))
                    if target > now:
                        info = new("VkSemaphoreSignalInfo", semaphore=self.handle, value=target)
                        result = self.device.fn.vkSignalSemaphore(self.device.handle, info)
            if result:
                self.device.check(result, f"signalling {self.name}")
            if pending:
                self.context.notifier.arm(self, self.scheduled, lambda _: self._release_blocked(), despite_failure=True)
        except PumiceError:
            pass  # the device was lost or closed meanwhile, which ends the waits

    def wait(self, value: int, timeout: float | None = None) -> None:
        """Waits until the payload is at ``value`` or beyond, in the mode of the calling thread or the device.

        Args:
            value: the payload to wait for, scheduled or not.
            timeout: the longest wait in seconds; ``None`` is forever, 0 only queries. Ctrl-C interrupts.

        Raises:
            DeadlineExceededError: the time passed first; the semaphore is unchanged.
            PumiceError: the failure, if the semaphore was or becomes failed.
        """
        if self.failure is not None or self.is_closed:
            self._check_usable()
        if self.reached >= value:
            return
        context = self.context
        pool = context.wait_infos
        try:
            wait = pool.pop()
        except IndexError:
            wait = WaitInfo()
        if wait.handle is not self.handle:
            wait.handle = wait.semaphores[0] = self.handle
        try:
            # The handle must outlive the call: a thread that closes the semaphore or the device sets the failure, and
            # then waits until this is empty.
            context.waiting[wait] = self
            if self.failure is not None:
                raise self.failure.again()
            budget = context.look_budget
            budget.left -= 1
            if budget.left <= 0:
                budget.count_cores()
            is_reached = False
            if timeout is None and chosen.mode is None and context.mode == "adaptive":
                # The usual cases inline (benchmarks/submit_wait.py, call_latency.py).
                device = self.device
                if budget.longest:  # the first look, which usually succeeds
                    counter = wait.counter
                    result = device.fn.vkGetSemaphoreCounterValue(device.handle, self.handle, counter)
                    is_reached = not result and counter[0] >= value
                else:
                    # On one core polling is useless: the driver's thread has finished, or waits for this core.
                    wait.values[0] = value
                    is_reached = not device.fn.vkWaitSemaphores(device.handle, wait.info, SLICE_NS)
            if not is_reached and not self._wait(wait, value, timeout):
                raise DeadlineExceededError(
                    f"{self.name} did not reach {value} within {timeout} s (it is at {self.read_payload()}); "
                    "it can be waited for again"
                )
        finally:
            context.waiting.pop(wait, None)
            pool.append(wait)
        if self._unjudged:
            self._judge(value)
        if self.failure is not None:
            raise self.failure.again()
        if value > self.reached:
            self.reached: int = value

    def _wait(self, wait: WaitInfo, value: int, timeout: float | None) -> bool:
        """Waits in the mode of the thread or the device; ``False`` after ``timeout`` seconds."""
        mode = chosen.mode or self.context.mode
        if mode == "spin":
            limit = -1 if timeout is None else timeout_nanoseconds(timeout)
            poll(self.device, wait, value, math.inf if limit < 0 else monotonic() + limit / 1e9, self._check_usable)
            return int(wait.counter[0]) >= value
        return (
            mode == "adaptive"
            and self.context.look_budget.longest > 0
            and value <= self.scheduled  # else no submitted work can be about to reach it
            and self._look_at(wait, value, timeout)
        ) or block(self.device, wait, value, timeout, self.name, self._check_usable)

    def look(self, value: int, mode: WaitMode | None = None) -> Look | None:
        """Returns the look with which a loop polls for a payload before arming a callback; ``None`` for no polling."""
        mode = mode or chosen.mode or self.context.mode
        if mode == "adaptive":
            return self._look if value <= self.scheduled else None
        return ENDLESS if mode == "spin" else None

    def _look_at(self, wait: WaitInfo, value: int, timeout: float | None) -> bool:
        """Polls the payload for a while; returns whether it is reached."""
        look = self._look
        begin = monotonic()
        length = look.length(begin)
        if not length or (timeout is not None and not timeout > length):
            return False
        passed = poll(self.device, wait, value, begin + length, self._check_usable) - begin
        if wait.counter[0] >= value:
            look.found(passed)
            return True
        look.missed(passed)
        return False

    def notify(self, value: int, callback: Callback) -> Notification:
        """Calls back once when the payload is at ``value`` or the semaphore fails. Blocks nothing.

        Args:
            value: the payload.
            callback: a function that is called with ``None``, or with the failure. It runs on a poll thread, or in this
                call if the payload is reached already; it must not block.
        """
        if self.is_closed:
            self._check_usable()
        return self.context.notifier.arm(self, value, callback)

    def _check_usable(self) -> None:
        if self.is_closed:
            raise ClosedError(f"{self.name} was closed")
        if self.failure is not None:
            raise self.failure.again()

    def abandon(self, error: PumiceError) -> None:
        """Makes every wait raise, in a forked child. Called by ``Device.abandon``."""
        self.failure = error
        self.held.clear()
        self.held_by_value.clear()
        self.notifications.clear()

    def close(self) -> None:
        """Destroys the semaphore once no queue uses it; idempotent.

        Waiting threads get CANCELLED, and so do armed notifications, except those whose payload is known to be reached.

        Raises:
            FailedPreconditionError: a held-back submission waits for it; signal the semaphore or fail it first.
        """
        if self.is_closed:
            return
        if self.held:
            raise FailedPreconditionError(
                f"{self.name}: {len(self.held)} submission(s) wait for a payload nobody has scheduled; signal or fail "
                "it first"
            )
        handle, context = self.handle, self.context
        if self.notifications:
            context.notifier.collect_due(self)
        with self.device.lock:
            if self.failure is None:
                self.failure = CancelledError(f"{self.name} was closed")
        if self.notifications:
            context.notifier.collect_due(self)
        if context.is_waited_for(self):
            self._release_blocked()
            context.wait_for_waiters(_WAITERS_LEAVE_S, self)
        self.is_closed = True
        context.unregister(self)
        queues = self.awaited_by
        self.device.defer(lambda: context.destroy(handle, queues))
