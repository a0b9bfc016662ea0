"""Budgets: limits on the bytes of one kind of memory that a program may hold at once.

A share is the part of a budget that one object takes; it is returned with the share's last reference. Finalizers run at
any point and under any lock, so they only append to a list, which the next share processes.
"""

from __future__ import annotations

import gc
import threading
from collections import deque

from ..status import ResourceExhaustedError


class MemoryBudget:
    """A limit on the bytes held at once. Thread rule: any.

    Args:
        limit: the largest number of bytes.
        kind: the kind of memory, for messages.
        option: the option that sets the limit.
    """

    def __init__(self, limit: int, kind: str, option: str) -> None:
        self.limit = limit
        self._kind, self._option = kind, option
        self._used = 0
        self._released: deque[int] = deque()
        self._lock = threading.Lock()

    @property
    def used(self) -> int:
        """The bytes held now."""
        with self._lock:
            self._count()
            return self._used

    def share(self, size: int) -> Share:
        """Takes bytes.

        Raises:
            ResourceExhaustedError: the limit would be exceeded.
        """
        share = Share(self)
        share.resize(size)
        return share

    def _count(self) -> None:
        while self._released:
            self._used -= self._released.popleft()

    def _take(self, size: int) -> None:
        for is_last in (False, True):
            with self._lock:
                self._count()
                if self._used + size <= self.limit:
                    self._used += size
                    return
                used = self._used
            if not is_last:
                gc.collect()  # reference cycles of lists
        raise ResourceExhaustedError(
            f"the program holds {used} bytes of {self._kind} and asks for {size} more, which is past its limit of "
            f"{self.limit} bytes; raise {self._option} if it may have them"
        )


class Share:
    """The bytes of a budget that an object takes until the share is dropped."""

    __slots__ = ("_budget", "size")

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self.size = 0

    def resize(self, size: int) -> None:
        """Takes more bytes, or returns some; errors as for ``MemoryBudget.share``."""
        if size > self.size:
            self._budget._take(size - self.size)
        else:
            self._budget._released.append(self.size - size)
        self.size = size

    def __del__(self) -> None:
        if self.size:
            self._budget._released.append(self.size)
