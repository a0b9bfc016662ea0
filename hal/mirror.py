"""Stand-ins for buffers of other devices, which a device cannot access."""

from __future__ import annotations

from typing import TypeAlias

from .buffer import Buffer

Use: TypeAlias = tuple[int, int, bool]
"""Offset and size in bytes, and whether the range may be written."""


class Mirror:
    """A stand-in for bytes from ``start`` of a buffer of another device.

    Commands use ``local``, which is host-visible, instead of ``foreign``, which owns the memory.
    """

    def __init__(self, local: Buffer, foreign: Buffer, start: int) -> None:
        self.local = local
        self.foreign = foreign
        self.start = start
        self.uses: set[Use] = set()

    def part(self, offset: int, size: int, written: bool) -> Buffer:
        """Returns the stand-in for a range of ``foreign``; notes its use."""
        self.uses.add((offset, size, written))
        return self.local.subspan(offset - self.start, size)

    def ranges(self, *, written: bool) -> list[tuple[int, int]]:
        """Returns offsets and sizes of used (or only of written) ranges, with overlapping ranges merged."""
        merged: list[tuple[int, int]] = []
        for offset, size, writes in sorted(self.uses):
            if not size or (written and not writes):
                continue
            if merged and offset <= sum(merged[-1]):
                start, length = merged[-1]
                merged[-1] = (start, max(length, offset + size - start))
            else:
                merged.append((offset, size))
        return merged

    def close(self) -> None:
        """Frees the memory; idempotent."""
        self.local.close()
