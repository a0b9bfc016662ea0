"""Fences: sets of (semaphore, payload) pairs, ready when all are reached.

A fence holds at most one payload a semaphore, the largest. An empty fence is ready. Thread rule: build a fence in
one thread; query, wait, notify, signal and fail from any.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterable
from typing import Any

from ...awaiting import await_source
from ...status import PumiceError
from .notifier import Notification
from .semaphore import TimelineSemaphore, wait_all

__all__ = ["Fence", "FenceNotification"]


class FenceNotification:
    """A callback armed on every semaphore of a fence."""

    __slots__ = ("_callback", "_lock", "_parts", "_waiting")

    def __init__(self, callback: Callable[[PumiceError | None], None], waiting: int) -> None:
        self._callback: Callable[[PumiceError | None], None] | None = callback
        self._waiting = waiting
        self._lock = threading.Lock()
        self._parts: list[Notification] = []

    def arm(self, points: Iterable[tuple[TimelineSemaphore, int]]) -> None:
        """Arms one notification a semaphore; for ``Fence.notify``."""
        for semaphore, value in points:
            self._parts.append(semaphore.notify(value, self._one))
        if self._callback is None:  # called meanwhile: the later ones are not waited for any more
            for part in self._parts:
                part.cancel()

    def _one(self, error: PumiceError | None) -> None:
        with self._lock:
            self._waiting -= 1
            if error is None and self._waiting:
                return
            callback, self._callback = self._callback, None
        if callback is not None:
            callback(error)
            for part in self._parts:
                part.cancel()

    def cancel(self) -> bool:
        """Disarms it; ``False`` when the callback has been, or is being, called."""
        with self._lock:
            callback, self._callback = self._callback, None
        for part in self._parts:
            part.cancel()
        return callback is not None


class Fence:
    """A set of timepoints; a wait source (vm/wait/source.py)."""

    quick_query = True  # loops ask once more before they have themselves told (vm/wait/deferred.py)
    __slots__ = ("_points",)

    def __init__(self, points: Iterable[tuple[TimelineSemaphore, int]] = ()) -> None:
        self._points: dict[TimelineSemaphore, int] = {}
        for semaphore, value in points:
            self.insert(semaphore, value)

    @classmethod
    def join(cls, fences: Iterable[Fence | None]) -> Fence:
        """A fence that is ready when all of ``fences`` are; ``None`` entries are ready."""
        joined = cls()
        for fence in fences:
            if fence is not None:
                for semaphore, value in fence._points.items():
                    joined.insert(semaphore, value)
        return joined

    def insert(self, semaphore: TimelineSemaphore, value: int) -> None:
        """Adds a timepoint; of two for the same semaphore the larger payload stays."""
        known = self._points.get(semaphore)
        if known is None or known < value:
            self._points[semaphore] = value

    @property
    def points(self) -> tuple[tuple[TimelineSemaphore, int], ...]:
        """The (semaphore, payload) pairs, as ``Queue.submit`` takes them."""
        return tuple(self._points.items())

    def query(self) -> bool:
        """Whether every payload is reached; raises the first failure met."""
        ready = True
        for semaphore, value in self._points.items():  # all of them: a failure behind an unreached payload counts
            ready = semaphore.has_reached(value) and ready
        return ready

    def wait(self, timeout: float | None = None) -> None:
        """Blocks until ready.

        Args:
            timeout: seconds; ``None`` waits for ever.

        Raises:
            DeadlineExceededError: the time passed first.
            PumiceError: the failure of a semaphore.
        """
        wait_all(self.points, timeout)

    def wait_until(self, deadline: float | None = None) -> None:
        """Blocks until ready or until ``time.monotonic()`` passes ``deadline``."""
        self.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))

    def notify(self, callback: Callable[[PumiceError | None], None]) -> FenceNotification:
        """Calls back once, when all payloads are reached or the first semaphore fails; see ``TimelineSemaphore.notify``."""
        points = self.points
        notification = FenceNotification(callback, max(len(points), 1))
        if points:
            notification.arm(points)
        else:
            notification._one(None)
        return notification

    def signal(self) -> None:
        """Signals every timepoint from the host that is not reached yet."""
        for semaphore, value in self._points.items():
            if not semaphore.has_reached(value):
                semaphore.signal(value)

    def fail(self, error: PumiceError) -> None:
        """Fails every semaphore of the fence."""
        for semaphore in self._points:
            semaphore.fail(error)

    def __await__(self) -> Generator[Any, Any, None]:
        """Waits in a coroutine of asyncio's, or in a native function that is one; blocks nothing."""
        return await_source(self)

    def __len__(self) -> int:
        return len(self._points)

    def __repr__(self) -> str:
        inner = ", ".join(f"{s.name} >= {v}" for s, v in self._points.items())
        return f"<Fence {inner or 'empty'}>"
