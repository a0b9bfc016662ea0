"""Sub-allocation of one block of memory, as offsets; it touches no memory.

Best fit over the free ranges, which are stored twice: sorted by size, to find the smallest that fits, and by their two
ends, to join neighbours of a freed range. A block holds tens to thousands of ranges, where ``bisect`` on a list is
faster in Python than a tree or a two-level bitmap (``docs/design/hal.md``).

The dictionary of allocated ranges is authoritative and changes in one step; the free ranges are derived from it. An
operation interrupted by an exception from outside (Ctrl-C, a timeout) has no effect, and the next operation rebuilds
the free ranges.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Final

from ...base.lazy_dataclass import dataclass
from ...status import InternalError

GRANULARITY: Final = 256
"""Every range starts and ends on a multiple of it; at least every device's minStorageBufferOffsetAlignment."""


@dataclass(frozen=True, slots=True)
class SuballocatorStatistics:
    """A snapshot of one block: its bytes, the allocated bytes (with rounding), and the counts of both kinds of ranges.

    ``fragmentation`` is 0.0 if all free bytes are in one range, and approaches 1.0 the more they are scattered (``1 -
    largest_free / free``).
    """

    size: int
    allocated: int
    allocations: int
    free_ranges: int
    largest_free: int
    fragmentation: float


class Suballocator:
    """Hands out ranges of ``[0, size)``; ``None`` without room. Not thread-safe: the owner locks."""

    __slots__ = ("_by_end", "_by_size", "_by_start", "_torn", "_used", "allocated", "size")

    def __init__(self, size: int) -> None:
        self.size: int = size
        self.allocated: int = 0
        self._used: dict[int, int] = {}
        self._torn = False
        self._by_size: list[tuple[int, int]] = [(size, 0)]
        self._by_start: dict[int, int] = {0: size}
        self._by_end: dict[int, int] = {size: 0}

    def allocate(self, size: int, alignment: int = GRANULARITY) -> int | None:
        """Returns the offset, a multiple of ``alignment``, in the smallest free range that fits; or ``None``."""
        if self._torn:
            self._rebuild()
        size = -(-max(size, 1) // GRANULARITY) * GRANULARITY
        by_size = self._by_size
        index = bisect_left(by_size, (size, -1))
        if alignment > GRANULARITY:
            while index < len(by_size) and -by_size[index][1] % alignment + size > by_size[index][0]:
                index += 1
        if index == len(by_size):
            return None
        free_size, start = by_size[index]
        self._torn = True
        del by_size[index]
        del self._by_start[start]
        del self._by_end[start + free_size]
        if alignment > GRANULARITY and start % alignment:
            skipped = -start % alignment
            self._insert(start, skipped)
            start += skipped
            free_size -= skipped
        if free_size > size:
            self._insert(start + size, free_size - size)
        self._used[start] = size
        self.allocated += size
        self._torn = False
        return start

    def free(self, offset: int) -> None:
        """Frees a range and joins it with free neighbours; InternalError if none starts at ``offset``."""
        if self._torn:
            self._rebuild()
        size = self._used.get(offset)
        if size is None:
            raise InternalError(f"offset {offset} is not allocated in this block: freed twice?")
        self._torn = True
        start, end = offset, offset + size
        before, after = self._by_end.get(start), self._by_start.get(end)
        if before is not None:
            self._remove(before, start - before)
            start = before
        if after is not None:
            self._remove(end, after)
            end += after
        self._insert(start, end - start)
        del self._used[offset]
        self.allocated -= size
        self._torn = False

    def is_empty(self) -> bool:
        """Whether nothing is allocated."""
        return not self._used

    def statistics(self) -> SuballocatorStatistics:
        """Returns a snapshot of the block's use and fragmentation."""
        if self._torn:
            self._rebuild()
        free = self.size - self.allocated
        largest = self._by_size[-1][0] if self._by_size else 0
        return SuballocatorStatistics(
            size=self.size,
            allocated=self.allocated,
            allocations=len(self._used),
            free_ranges=len(self._by_size),
            largest_free=largest,
            fragmentation=1.0 - largest / free if free else 0.0,
        )

    def _rebuild(self) -> None:
        """Derives the free ranges from the allocated ranges, after an interrupted operation."""
        self._by_size, self._by_start, self._by_end = [], {}, {}
        end = 0
        for start, size in sorted(self._used.items()):
            if start > end:
                self._insert(end, start - end)
            end = start + size
        if end < self.size:
            self._insert(end, self.size - end)
        self.allocated = sum(self._used.values())
        self._torn = False

    def _insert(self, start: int, size: int) -> None:
        insort(self._by_size, (size, start))
        self._by_start[start] = size
        self._by_end[start + size] = start

    def _remove(self, start: int, size: int) -> None:
        del self._by_size[bisect_left(self._by_size, (size, start))]
        del self._by_start[start]
        del self._by_end[start + size]
