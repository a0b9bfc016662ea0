"""The executables that a function keeps, in order of their last use."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import NamedTuple

from ..status import InvalidArgumentError
from .stages import Compiled


class CacheInfo(NamedTuple):
    """The counts of a cache, with the names that ``functools.lru_cache`` uses.

    Attributes:
        hits: the number of calls that found an executable.
        misses: the number of executables that were made.
        maxsize: the largest number of executables that the cache keeps.
        currsize: the number of executables that it keeps now.
    """

    hits: int
    misses: int
    maxsize: int
    currsize: int


class ExecutableCache:
    """Executables by the key of their trace; closes those that it no longer keeps.

    Calling sequence: ``acquire``, or ``put`` if there is none → call it → ``release``. An executable that leaves the
    cache is closed when the last call has released it. Thread rule: any thread.
    """

    def __init__(self, maxsize: int) -> None:
        if isinstance(maxsize, bool) or not isinstance(maxsize, int) or maxsize < 1:
            raise InvalidArgumentError(f"cache_size is a number of executables, at least 1; got {maxsize!r}")
        self._maxsize = maxsize
        self._kept: OrderedDict[Hashable, Compiled] = OrderedDict()
        self._users: dict[Compiled, int] = {}  # calls under way, by executable
        self._lock = threading.Lock()
        self._hits = self._misses = 0

    def acquire(self, key: Hashable) -> Compiled | None:
        """Returns the executable for a key, which becomes the most recently used. The caller releases it."""
        with self._lock:
            executable = self._kept.get(key)
            if executable is not None:
                self._kept.move_to_end(key)
                self._users[executable] = self._users.get(executable, 0) + 1
                self._hits += 1
            return executable

    def put(self, key: Hashable, executable: Compiled) -> None:
        """Adds a new executable for a key and acquires it."""
        with self._lock:
            self._misses += 1
            self._users[executable] = 1
            self._kept[key] = executable
            while len(self._kept) > self._maxsize:
                self._leave(self._kept.popitem(last=False)[1])

    def release(self, executable: Compiled) -> None:
        """Ends a use of an acquired executable."""
        with self._lock:
            users = self._users[executable] - 1
            if users:
                self._users[executable] = users
                return
            del self._users[executable]
            if executable.is_leaving:
                executable.close()

    def clear(self) -> None:
        """Removes all executables and resets the counts."""
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
        """The executables kept now."""
        with self._lock:
            return tuple(self._kept.values())

    @property
    def info(self) -> CacheInfo:
        with self._lock:
            return CacheInfo(self._hits, self._misses, self._maxsize, len(self._kept))
