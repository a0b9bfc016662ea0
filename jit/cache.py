"""The executables that a function keeps, the one used last at the end."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import NamedTuple

from ..status import InvalidArgumentError
from .stages import Compiled


class CacheInfo(NamedTuple):
    """What a cache did, as ``functools.lru_cache`` says it.

    Attributes:
        hits: calls that found an executable.
        misses: executables that were made.
        maxsize: the most that are kept.
        currsize: those that are kept now.
    """

    hits: int
    misses: int
    maxsize: int
    currsize: int


class ExecutableCache:
    """Executables by what they were traced for; closes what it no longer keeps.

    Calling sequence: ``acquire``, or ``put`` where there is none → call it → ``release``. An executable that leaves the
    cache is closed when the last call has released it. Thread rule: any thread.
    """

    def __init__(self, maxsize: int) -> None:
        if isinstance(maxsize, bool) or not isinstance(maxsize, int) or maxsize < 1:
            raise InvalidArgumentError(f"cache_size is a number of executables, at least 1; got {maxsize!r}")
        self._maxsize = maxsize
        self._kept: OrderedDict[Hashable, Compiled] = OrderedDict()
        self._users: dict[Compiled, int] = {}  # of those that are called, or were when they left
        self._lock = threading.Lock()
        self._hits = self._misses = 0

    def acquire(self, key: Hashable) -> Compiled | None:
        """The executable for a key, to be released; now it is the one used last."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                self._users[found] = self._users.get(found, 0) + 1
                self._hits += 1
            return found

    def put(self, key: Hashable, executable: Compiled) -> None:
        """Keeps an executable that was made for a key, acquired."""
        with self._lock:
            self._misses += 1
            self._users[executable] = 1
            self._kept[key] = executable
            while len(self._kept) > self._maxsize:
                self._leave(self._kept.popitem(last=False)[1])

    def release(self, executable: Compiled) -> None:
        """Ends a use."""
        with self._lock:
            users = self._users[executable] - 1
            if users:
                self._users[executable] = users
                return
            del self._users[executable]
            if executable.is_leaving:
                executable.close()

    def clear(self) -> None:
        """Keeps none of them, and counts from 0."""
        with self._lock:
            self._hits = self._misses = 0
            while self._kept:
                self._leave(self._kept.popitem()[1])

    def _leave(self, executable: Compiled) -> None:
        executable.is_leaving = True
        if executable not in self._users:
            executable.close()

    @property
    def executables(self) -> tuple[Compiled, ...]:
        """Those that are kept now."""
        with self._lock:
            return tuple(self._kept.values())

    @property
    def info(self) -> CacheInfo:
        """Its figures."""
        with self._lock:
            return CacheInfo(self._hits, self._misses, self._maxsize, len(self._kept))
