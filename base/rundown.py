"""Rundown: tears an object of many threads down when the last thread has left it.

Calling sequence: each use is ``with rundown.guard.lock:`` around a check of ``is_over`` and the use itself → ``end``,
which refuses new uses and waits for current uses → tear down.

Each thread has its own lock, so threads never wait for each other. Locks are used instead of a count, because ``with``
takes and releases them in C, where Ctrl-C cannot interrupt. A count in Python would be wrong after Ctrl-C between the
count and the ``try``. The lock is reentrant: uses may nest.

Thread rule: any thread.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Final

from .locks import RLock

_POLL_S: Final = 0.0005


class Guard(threading.local):
    """The lock that each thread holds during a use."""

    def __init__(self, register: Callable[[threading.RLock], None]) -> None:  # called once in each thread
        lock = RLock()
        register(lock)
        self.lock: threading.RLock = lock


class Rundown:
    """The threads in uses, and whether more may enter.

    Attributes:
        guard: the guard, with the calling thread's lock.
        is_over: whether uses are refused; each use checks it with the lock held.
    """

    def __init__(self) -> None:
        self.is_over: bool = False
        self._registering = RLock()
        self._locks: list[weakref.ref[threading.RLock]] = []
        self.guard: Guard = Guard(self._register)

    def _register(self, lock: threading.RLock) -> None:
        with self._registering:  # locks of ended threads are dropped
            self._locks = [*(known for known in self._locks if known() is not None), weakref.ref(lock)]

    def inside(self) -> list[threading.RLock]:
        """Returns the locks of the threads that are inside now, including the calling thread."""
        return busy([lock for reference in self._locks if (lock := reference()) is not None])

    def is_inside(self) -> bool:
        """Whether this thread is inside."""
        return bool(busy([self.guard.lock]))

    def end(self, timeout: float | None) -> bool:
        """Refuses uses from now on, and waits until no thread is inside; may be repeated.

        Args:
            timeout: the longest wait in seconds; ``None`` waits for ever. It does not wait for uses by this thread.

        Returns:
            Whether no thread is inside; ``False`` after the timeout.
        """
        self.is_over = True
        with self._registering:  # a lock that is not among them was taken after is_over was set
            pass
        deadline = None if timeout is None else time.monotonic() + timeout
        own = self.guard.lock
        while True:
            left = self.inside()
            if not left:
                return True
            if left == [own] or (deadline is not None and time.monotonic() >= deadline):
                return False
            time.sleep(_POLL_S)


def busy(locks: list[threading.RLock]) -> list[threading.RLock]:
    """Returns the locks that are held now."""
    if sys.version_info >= (3, 14):
        return [lock for lock in locks if lock.locked()]
    # Earlier versions have no other sign. Taking it is no way: Ctrl-C before the release would keep its owner out.
    return [lock for lock in locks if not repr(lock).startswith("<unlocked")]
