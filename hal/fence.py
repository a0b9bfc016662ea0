"""Fences: sets of (semaphore, payload) pairs, ready when all are reached.

A fence holds at most one payload per semaphore, the largest. An empty fence is ready. Thread rule: build a fence in one
thread; query, wait, notify, signal and fail from any.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence

from ..status import InvalidArgumentError, PumiceError
from ..waits.armed_wait import wait_several
from ..waits.notification import Callback, JointNotification, Notification
from ..waits.source import Source
from ..waits.wait_mode import Look, WaitMode, give_way
from .semaphore import Semaphore
from .timeouts import deadline_after, timeout_nanoseconds


class Fence(Source):
    """A set of timepoints."""

    quick_query = True
    __slots__ = ("_points",)

    def __init__(self, points: Iterable[tuple[Semaphore, int]] = ()) -> None:
        self._points: dict[Semaphore, int] = {}
        for semaphore, value in points:
            self.insert(semaphore, value)

    @classmethod
    def join(cls, fences: Iterable[Fence | None]) -> Fence:
        """Returns a fence that is ready when all of ``fences`` are; ``None`` entries count as ready."""
        joined = cls()
        for fence in fences:
            if fence is not None:
                for semaphore, value in fence._points.items():
                    joined.insert(semaphore, value)
        return joined

    def insert(self, semaphore: Semaphore, value: int) -> None:
        """Adds a timepoint; if the semaphore has one already, the larger payload stays."""
        known = self._points.get(semaphore)
        if known is None or known < value:
            self._points[semaphore] = value

    @property
    def points(self) -> tuple[tuple[Semaphore, int], ...]:
        """The (semaphore, payload) pairs, in the form for ``Queue.submit``."""
        return tuple(self._points.items())

    def query(self) -> bool:
        """Whether every payload is reached; raises the first failure."""
        ready = True
        for semaphore, value in self._points.items():  # all of them: a failure after an unreached payload counts
            ready = semaphore.has_reached(value) and ready
        return ready

    def look(self, mode: WaitMode | None = None) -> Look | None:
        """Returns the look with which a loop polls before arming a callback, for one payload; ``None`` for several."""
        points = self.points
        return points[0][0].look(points[0][1], mode) if len(points) == 1 else None

    def wait(self, timeout: float | None = None) -> None:
        """Blocks until ready, for at most ``timeout`` seconds (DeadlineExceededError), or until a semaphore fails."""
        wait_all(self.points, timeout)

    def wait_until(self, deadline: float | None = None) -> None:
        """Blocks until ready or until ``time.monotonic()`` passes ``deadline``."""
        self.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))

    def notify(self, callback: Callback) -> Notification:
        """Calls back once, when all payloads are reached or a semaphore fails; see ``Semaphore.notify``."""
        notification = JointNotification(callback, len(self._points))
        notification.arm([semaphore.at(value) for semaphore, value in self._points.items()])
        return notification

    def signal(self) -> None:
        """Signals every unreached timepoint from the host."""
        for semaphore, value in self._points.items():
            if not semaphore.has_reached(value):
                semaphore.signal(value)

    def fail(self, error: PumiceError) -> None:
        """Fails every semaphore of the fence."""
        for semaphore in self._points:
            semaphore.fail(error)

    def __len__(self) -> int:
        return len(self._points)

    def __repr__(self) -> str:
        inner = ", ".join(f"{s.name} >= {v}" for s, v in self._points.items())
        return f"<Fence {inner or 'empty'}>"


def wait_all(points: Sequence[tuple[Semaphore, int]], timeout: float | None = None) -> None:
    """Blocks until every semaphore has reached its payload; raises DeadlineExceededError or the first failure met."""
    deadline = deadline_after(timeout)
    for semaphore, value in points:
        semaphore.wait(value, None if deadline is None else max(0.0, deadline - time.monotonic()))


def _look_for_any(points: Sequence[tuple[Semaphore, int]], deadline: float) -> int | None:
    """Polls for a while; returns the index of a reached point, or ``None``."""
    looks = next((look for semaphore, value in points if (look := semaphore.look(value)) is not None), None)
    if looks is None:
        return None
    began = now = time.monotonic()
    until = min(deadline, now + looks.length(now))
    while now < until:
        give_way()
        for index, (semaphore, value) in enumerate(points):
            if semaphore.has_reached(value):
                looks.found(time.monotonic() - began)
                return index
        now = time.monotonic()
    looks.missed(now - began)
    return None


def wait_any(points: Sequence[tuple[Semaphore, int]], timeout: float | None = None) -> int:
    """Blocks until one of the semaphores has reached its payload; returns its index in ``points``.

    It polls for a while, and then waits for callbacks: vkWaitSemaphores with WAIT_ANY keeps a core busy in
    drivers that emulate timelines (measured with Mesa's lavapipe: 100 % of a core; docs/design/hal.md).

    Raises:
        DeadlineExceededError: the time passed first.
        PumiceError: a semaphore failed before any was reached.
    """
    if not points:
        raise InvalidArgumentError("wait_any needs at least one (semaphore, payload)")
    for index, (semaphore, value) in enumerate(points):
        if semaphore.has_reached(value):
            return index
    limit = None if timeout is None or timeout_nanoseconds(timeout) < 0 else max(0.0, timeout)
    deadline = math.inf if limit is None else time.monotonic() + limit
    ready = _look_for_any(points, deadline)
    if ready is not None:
        return ready
    wait_several([semaphore.at(value) for semaphore, value in points], True, None if limit is None else deadline)
    return next(index for index, (semaphore, value) in enumerate(points) if semaphore.reached >= value)
