"""Waiting in a test for what other threads bring about."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pumice.hal_vulkan.sync.notifier import Notifier

__all__ = ["Blocked", "armed", "in_threads", "until"]

T = TypeVar("T")


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Returns as soon as a condition holds; the test fails when it does not within ``seconds``."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.0005)


def in_threads(work: Callable[[T], object], items: Iterable[T], seconds: float = 60.0) -> None:
    """Runs ``work`` with each item in a thread of its own, all at once; raises the first error."""
    items = list(items)
    with ThreadPoolExecutor(len(items)) as pool:
        for future in [pool.submit(work, item) for item in items]:
            future.result(seconds)


class Blocked:
    """A call in a thread of its own, with when and how it ended."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.error: BaseException | None = None
        self.result: object = None
        self.ended = 0.0
        self._call = call
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.result = self._call()
        except BaseException as error:
            self.error = error
        self.ended = time.monotonic()

    def join(self, seconds: float = 5.0) -> None:
        self.thread.join(seconds)
        assert not self.thread.is_alive(), "still blocked"


def armed(notifier: Notifier) -> int:
    """Notifications of a device not called yet; cancelled ones may be among them until they are swept."""
    with notifier._lock:
        return sum(len(semaphore.notifications) for semaphore in notifier._armed)
