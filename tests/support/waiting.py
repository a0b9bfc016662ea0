"""Waiting in a test for what another thread brings about."""

from __future__ import annotations

import time
from collections.abc import Callable

from pumice.hal_vulkan.sync.notifier import Notifier

__all__ = ["armed", "until"]


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Returns as soon as a condition holds; the test fails when it does not within ``seconds``."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.0005)


def armed(notifier: Notifier) -> int:
    """Notifications of a device not called yet; cancelled ones may be among them until they are swept."""
    with notifier._lock:
        return sum(len(semaphore.notifications) for semaphore in notifier._armed)
