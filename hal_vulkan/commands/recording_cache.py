"""Recordings cached by the memory ranges that they name; the oldest is evicted first.

A key names ranges, not buffers: the serial of a memory block, which is never reused, with an offset and a size
(``Buffer.descriptor``). So a recording serves any owner of the same ranges, and recordings for a freed block are simply
never used again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

K = TypeVar("K")
R = TypeVar("R")


class RecordingCache(OrderedDict[K, R]):
    """A cache of at most ``capacity`` recordings. ``get`` keeps their order; ``use`` makes a recording the youngest.

    Thread rule: any thread, except for ``drop``, which requires exclusive access.
    """

    __slots__ = ("_capacity", "_give_back")

    def __init__(self, capacity: int, give_back: Callable[[R], object]) -> None:
        super().__init__()
        self._capacity = capacity
        self._give_back = give_back

    def use(self, key: K) -> R | None:
        """Returns the recording for a key and makes it the youngest; ``None`` if there is none."""
        try:
            self.move_to_end(key)
            return self[key]
        except KeyError:  # none, or evicted meanwhile
            return None

    def evict(self) -> R | None:
        """Removes the oldest recording if there is no room for another; the caller then owns it."""
        if len(self) < self._capacity:
            return None
        try:
            return self.popitem(last=False)[1]
        except KeyError:  # emptied meanwhile
            return None

    def keep(self, key: K, recording: R) -> R:
        """Keeps a recording and returns it; recycles the oldest if there is no room.

        If another thread has meanwhile kept a recording for the key, that recording is returned, and this one is
        recycled.
        """
        while len(self) >= self._capacity and (oldest := self.evict()) is not None:
            self._give_back(oldest)
        kept = self.setdefault(key, recording)
        if kept is not recording:
            self._give_back(recording)
        return kept

    def holds(self, recording: R) -> bool:
        """Whether the cache keeps a recording."""
        return any(kept is recording for kept in list(self.values()))

    def drop(self) -> None:
        """Recycles all recordings."""
        for recording in self.values():
            self._give_back(recording)
        self.clear()
