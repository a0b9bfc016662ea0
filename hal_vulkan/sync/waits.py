"""Blocking waits for several semaphores."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from ...notification import JointNotification
from ...status import DeadlineExceededError, InvalidArgumentError, PumiceError
from .semaphore import TimelineSemaphore
from .timeline import deadline_after, timeout_nanoseconds


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
    """Blocks until one of the semaphores has reached its payload; returns its index in ``points``.

    It waits through the notifier: vkWaitSemaphores with WAIT_ANY keeps a core busy in drivers that emulate timelines
    (measured with Mesa's lavapipe: 100 % of a core; docs/design/hal.md).

    Raises:
        DeadlineExceededError: the time passed first.
        PumiceError: a semaphore failed before any was reached.
    """
    if not points:
        raise InvalidArgumentError("wait_any needs at least one (semaphore, payload)")
    for index, (semaphore, value) in enumerate(points):
        if semaphore.has_reached(value):
            return index
    # threading.Event takes no infinity.
    limit = None if timeout is None or timeout_nanoseconds(timeout) < 0 else max(0.0, timeout)
    done = threading.Event()
    failures: list[PumiceError] = []

    def callback(error: PumiceError | None) -> None:
        if error is not None:
            failures.append(error)
        done.set()

    notification = JointNotification(callback, 1)
    notification.arm([semaphore.at(value) for semaphore, value in points])
    try:
        if not done.wait(limit):
            raise DeadlineExceededError(f"none of {len(points)} payloads was reached within {timeout} s")
    finally:
        notification.cancel()
    if failures:
        raise failures[0].again()
    return next(index for index, (semaphore, value) in enumerate(points) if semaphore.reached >= value)
