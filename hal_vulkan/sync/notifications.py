"""The callbacks armed on one semaphore. The notifier keeps them, under its lock."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from typing import Final, Protocol, TypeAlias

from ...notification import Callback, Notification
from ...status import PumiceError

Due: TypeAlias = tuple[Notification, PumiceError | None]
"""A notification, and what its callback gets."""

_MIN_SWEEP: Final = 64
_order = itertools.count()


class Notified(Protocol):
    """What the notifier knows of a semaphore.

    Attributes:
        notifications: the callbacks armed on it.
        reached: a payload that it is known to have reached.
    """

    notifications: NotificationHeap
    reached: int

    @property
    def failure(self) -> PumiceError | None:
        """What failed the semaphore, or ``None``."""
        ...

    def read_payload(self) -> int:
        """The payload now, as the driver says."""
        ...


class Disarms(Protocol):
    """What a cancelled notification calls."""

    def cancelled(self, semaphore: Notified) -> None:
        """A notification on the semaphore was cancelled. Never blocks."""
        ...


class SemaphoreNotification(Notification):
    """One callback armed on a semaphore.

    Attributes:
        despite_failure: whether it waits for the native payload of a failed semaphore.
    """

    __slots__ = ("_notifier", "_semaphore", "despite_failure")

    def __init__(self, notifier: Disarms, semaphore: Notified, callback: Callback, despite_failure: bool) -> None:
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

    def pop_done(self) -> None:
        """Removes those at the front that were called or cancelled."""
        while self and self[0][2].is_done:
            heapq.heappop(self)

    def _keep(self, entries: list[tuple[int, int, SemaphoreNotification]]) -> None:
        self[:] = entries
        heapq.heapify(self)
