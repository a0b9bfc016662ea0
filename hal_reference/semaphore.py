"""Timeline semaphores on the host.

Thread rule: any thread. A device's semaphores and its queue share one lock, which is not held during computations or
callbacks.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

from ..hal.semaphore import MAX_PAYLOAD
from ..hal.semaphore import Semaphore as AnySemaphore
from ..hal.timeouts import deadline_after
from ..status import (
    CancelledError,
    ClosedError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    PumiceError,
)
from ..waits.notification import Callback, Notification
from .logical_device import LogicalDevice

_SLICE_S: Final = 0.25  # waits also end at a fork, which sends no notification

Due = list[tuple[Notification, PumiceError | None]]


class Semaphore(AnySemaphore):
    """A payload that only increases.

    Attributes:
        pending: the payloads that submitted work will signal, in order.
    """

    device: LogicalDevice

    def __init__(self, device: LogicalDevice, initial_value: int = 0, name: str | None = None) -> None:
        if not 0 <= initial_value <= MAX_PAYLOAD:
            raise InvalidArgumentError(f"a payload is between 0 and {MAX_PAYLOAD}, got {initial_value}")
        device.check_usable()
        self.device = device
        self.name: str = name or "semaphore"
        self.reached = initial_value
        self.scheduled = initial_value
        self.pending: list[int] = []
        self.failure: PumiceError | None = None
        self.is_closed = False
        self._armed: list[tuple[int, Notification]] = []
        device.semaphores.add(self)

    def query(self) -> int:
        self._check_usable()
        return self.reached

    def has_reached(self, value: int) -> bool:
        self._check_usable()
        return self.reached >= value

    def signal(self, value: int) -> None:
        with self.device.lock:
            self._check_usable()
            if not self.reached < value <= MAX_PAYLOAD:
                raise InvalidArgumentError(
                    f"{self.name}: a payload only increases (to at most {MAX_PAYLOAD}): it is {self.reached}, "
                    f"got {value}"
                )
            if self.pending and self.pending[0] <= value:
                raise FailedPreconditionError(
                    f"{self.name}: submitted work will signal {self.pending[0]}; the host can only signal payloads "
                    "below it"
                )
            due = self.advance(value)
        self.device.on_change()
        notify_all(due)

    def advance(self, value: int) -> Due:
        """Raises the payload; returns the notifications to call. The caller holds the lock."""
        self.reached: int = max(self.reached, value)
        self.scheduled: int = max(self.scheduled, value)
        self.device.changed.notify_all()
        return self._due()

    def fail(self, error: PumiceError) -> None:
        with self.device.lock:
            if self.failure is not None or self.is_closed:
                return
            due = self.set_failure(error)
        self.device.on_change()
        notify_all(due)

    def set_failure(self, error: PumiceError) -> Due:
        """Fails it, the first time; returns the notifications to call. The caller holds the lock."""
        self.failure = self.failure or error
        self.device.changed.notify_all()
        return self._due()

    def _due(self) -> Due:
        due = [entry for entry in self._armed if self.failure is not None or entry[0] <= self.reached]
        self._armed = [entry for entry in self._armed if entry not in due]
        return [(notification, self.failure) for _, notification in due]

    def wait(self, value: int, timeout: float | None = None) -> None:
        deadline = deadline_after(timeout)
        while not self.has_reached(value):
            left = _SLICE_S if deadline is None else min(_SLICE_S, deadline - time.monotonic())
            if left <= 0:
                raise DeadlineExceededError(
                    f"{self.name} did not reach {value} within {timeout} s (it is at {self.reached}); it can be waited "
                    "for again"
                )
            with self.device.lock:
                if self.reached < value and self.failure is None and not self.is_closed:
                    self.device.changed.wait(left)

    def notify(self, value: int, callback: Callback) -> Notification:
        notification = Notification(callback)
        with self.device.lock:
            if self.is_closed:
                raise ClosedError(f"{self.name} was closed")
            if self.failure is None and self.reached < value:
                self._armed = [entry for entry in self._armed if not entry[1].is_done]
                self._armed.append((value, notification))
                return notification
        notification.call(self.failure)
        return notification

    def _check_usable(self) -> None:
        if self.is_closed:
            raise ClosedError(f"{self.name} was closed")
        if self.failure is not None:
            raise self.failure.again()
        if self.device.lost is not None:
            raise self.device.lost.again()

    def close(self) -> None:
        """Refuses further use; idempotent. Its waiters get CANCELLED."""
        self.fail(CancelledError(f"{self.name} was closed"))
        self.is_closed: bool = True


def notify_all(due: Iterable[tuple[Notification, PumiceError | None]]) -> None:
    """Calls back. The caller holds no lock."""
    for notification, error in due:
        notification.call(error)
