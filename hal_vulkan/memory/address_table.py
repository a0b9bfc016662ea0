"""The table of live buffers that sanitised shaders search device addresses in (spirv/instrument/addresses.py)."""

from __future__ import annotations

import bisect
import itertools
import struct
from typing import Final

from ...spirv.instrument.reports import MAX_RANGES
from ..vulkan.functions import CData, ffi

_ENTRY_BYTES: Final = 16
_WORD: Final = 4
# Each change writes a new table, at the next position of a ring: work in flight continues with its old table.
_RING: Final = 1 << 16
TABLE_BYTES: Final = _ENTRY_BYTES * (1 + _RING)


class AddressTable:
    """Ranges of device addresses, in memory that the host maps. The caller must have exclusive access."""

    def __init__(self, mapped: CData) -> None:
        self._mapped = mapped
        self._ranges: list[tuple[int, int]] = []
        self._next = 0

    def add(self, start: int, size: int) -> None:
        """Adds a range, with the rest of its last word: kernels access narrow types by words."""
        bisect.insort(self._ranges, (start, -(-(start + size) // _WORD) * _WORD))

    def remove(self, start: int) -> None:
        index = bisect.bisect_left(self._ranges, (start, 0))
        if index < len(self._ranges) and self._ranges[index][0] == start:
            del self._ranges[index]

    def publish(self) -> None:
        """Writes the ranges for shaders that start from now on; running shaders may see either table."""
        count = len(self._ranges)
        if count > MAX_RANGES:
            self._write(0, struct.pack("<II", 0, 1))  # more than shaders search: mark as unknown
            return
        if self._next + count > _RING:
            self._next = 0
        first, self._next = self._next, self._next + count
        self._write(_ENTRY_BYTES * (1 + first), struct.pack(f"<{2 * count}Q", *itertools.chain(*self._ranges)))
        self._write(0, struct.pack("<II", first << 12 | count, 0))

    def _write(self, offset: int, data: bytes) -> None:
        ffi.memmove(self._mapped + offset, data, len(data))
