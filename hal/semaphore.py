"""Timeline semaphores, which order host and queues.

A semaphore holds a payload that only increases. Queues wait for and signal payloads; the host may query, signal, wait,
be notified, and fail it. A failure is sticky: every wait, present or future, raises it.

Thread rule: every method may be called from any thread. A blocking wait holds no lock.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import Final

from ..base.closeable import Closeable
from ..status import PumiceError
from ..waits.notification import Callback, Notification
from ..waits.source import Source
from ..waits.wait_mode import Look, WaitMode
from .logical_device import LogicalDevice

MAX_PAYLOAD: Final = (1 << 64) - 2


class Semaphore(Closeable):
    """A timeline semaphore.

    Attributes:
        reached: a payload known to be reached.
        scheduled: the highest payload that is signalled or that submitted work will signal.
        failure: the error of its failure, or ``None``.
        judged: whether the semaphore fails if instrumented shaders report faults in the work that signals it. The
            stream of arrays does not fail, as arrays are judged individually.
    """

    device: LogicalDevice
    name: str
    reached: int
    scheduled: int
    failure: PumiceError | None
    judged: bool = True
    is_closed: bool

    @abstractmethod
    def query(self) -> int:
        """Returns the current payload; raises the failure of a failed semaphore."""

    @abstractmethod
    def has_reached(self, value: int) -> bool:
        """Whether the payload is at ``value`` or beyond; raises the failure."""

    @abstractmethod
    def signal(self, value: int) -> None:
        """Raises the payload from the host and wakes its waiters.

        Args:
            value: the new payload, above the current payload and below any payload that pending work will signal.

        Raises:
            InvalidArgumentError: the payload would not increase.
            FailedPreconditionError: submitted work will signal a payload at or below it.
        """

    @abstractmethod
    def fail(self, error: PumiceError) -> None:
        """Fails the semaphore for good: every wait raises ``error`` and dependent work fails too.

        Work already on a queue is not recalled. A second failure is ignored: the first is the cause.
        """

    @abstractmethod
    def wait(self, value: int, timeout: float | None = None) -> None:
        """Blocks until the payload is at ``value`` or beyond.

        Args:
            value: the payload to wait for, scheduled or not.
            timeout: the longest wait in seconds; ``None`` is forever, 0 only queries. Ctrl-C interrupts.

        Raises:
            DeadlineExceededError: the time passed first; the semaphore is unchanged.
            PumiceError: the failure, if the semaphore was or becomes failed.
        """

    @abstractmethod
    def notify(self, value: int, callback: Callback) -> Notification:
        """Calls back once when the payload is at ``value`` or the semaphore fails. Blocks nothing.

        Args:
            value: the payload.
            callback: a function that is called with ``None``, or with the failure. It runs on a thread of the device,
                or in this call if the payload is reached already; it must not block.
        """

    def look(self, value: int, mode: WaitMode | None = None) -> Look | None:
        """Returns the look with which a loop polls before arming a callback; a ``mode`` of ``None`` is the device's."""
        return None

    def at(self, value: int) -> Timepoint:
        """Returns this semaphore at a payload, as a wait source."""
        return Timepoint(self, value)

    def __repr__(self) -> str:
        kind = type(self).__name__
        if self.is_closed:
            return f"<closed {kind} {self.name}>"
        if self.failure is not None:
            return f"<failed {kind} {self.name}: {self.failure}>"
        return f"<{kind} {self.name} reached {self.reached}, scheduled {self.scheduled}>"


class Timepoint(Source):
    """A semaphore at a payload."""

    quick_query = True
    __slots__ = ("semaphore", "value")

    def __init__(self, semaphore: Semaphore, value: int) -> None:
        self.semaphore: Semaphore = semaphore
        self.value: int = value

    def query(self) -> bool:
        """Whether it is reached; raises the failure."""
        return self.semaphore.has_reached(self.value)

    def look(self, mode: WaitMode | None = None) -> Look | None:
        """See ``Semaphore.look``."""
        return self.semaphore.look(self.value, mode)

    def wait_until(self, deadline: float | None = None) -> None:
        """Blocks until reached; DeadlineExceededError at ``deadline`` (``time.monotonic()`` seconds)."""
        self.semaphore.wait(self.value, None if deadline is None else max(0.0, deadline - time.monotonic()))

    def notify(self, callback: Callback) -> Notification:
        """Calls back once when reached or failed; see ``Semaphore.notify``."""
        return self.semaphore.notify(self.value, callback)

    def __repr__(self) -> str:
        return f"<Timepoint {self.semaphore.name} >= {self.value}>"
