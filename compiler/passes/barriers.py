"""Barriers between steps of a command buffer, where one needs what another wrote, or writes what another needs."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict

from .steps import Barrier, Buffer, Copy, Dispatch, Schedule, Step, is_recorded, lists_of, uses


def add_barriers(plan: Schedule) -> None:
    """Puts barriers into the steps of a schedule whose buffers have places.

    There are none between command buffers, since these wait for each other.
    """
    _Placer(plan).steps(plan.steps)


class _Placer:
    def __init__(self, plan: Schedule) -> None:
        self._plan = plan
        self._read: dict[tuple[str, int], _Ranges] = defaultdict(_Ranges)
        self._written: dict[tuple[str, int], _Ranges] = defaultdict(_Ranges)

    def steps(self, steps: list[Step]) -> None:
        """Adds barriers to a list, at whose end there may be hazards open."""
        found: list[Step] = []
        for step in steps:
            if isinstance(step, Dispatch | Copy):
                if self._conflicts(step):
                    self._clear()
                    found.append(Barrier())
                self._note(step)
            else:
                # Each round of a recorded loop ends with a barrier; the host decides about what is not recorded.
                if is_recorded(step) and self._written | self._read:
                    found.append(Barrier())
                for inner in lists_of(step):
                    self._clear()
                    self.steps(inner)
                self._clear()
            found.append(step)
        steps[:] = found

    def _clear(self) -> None:
        self._read.clear()
        self._written.clear()

    def _conflicts(self, step: Step) -> bool:
        reads, writes = uses(step)
        return any(self._overlap(self._written, each) for each in (*reads, *writes)) or any(
            self._overlap(self._read, each) for each in writes
        )

    def _note(self, step: Step) -> None:
        reads, writes = uses(step)
        for ranges, buffers in ((self._read, reads), (self._written, writes)):
            for buffer in buffers:
                memory, start, stop = self._range(buffer)
                ranges[memory].add(start, stop)

    def _overlap(self, ranges: dict[tuple[str, int], _Ranges], buffer: Buffer) -> bool:
        memory, start, stop = self._range(buffer)
        return memory in ranges and ranges[memory].overlaps(start, stop)

    def _range(self, buffer: Buffer) -> tuple[tuple[str, int], int, int]:
        """The memory in which a buffer lies, and its bytes there."""
        root = buffer.root
        size, start = root.size, 0
        if root.kind != "transient":
            memory = (root.kind, root.number)
        elif isinstance(size, int):
            memory, start = ("arena", 0), self._plan.plan.offsets[root.number]
        else:
            memory = ("slot", self._plan.plan.offsets[root.number])
        return memory, start, start + (max(size, 4) if isinstance(size, int) else 4)


class _Ranges:
    """A union of ranges of bytes, kept as disjoint ones in order."""

    __slots__ = ("_starts", "_stops")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []

    def overlaps(self, start: int, stop: int) -> bool:
        """Whether a range shares a byte with the union."""
        index = bisect_left(self._starts, stop)
        return index > 0 and self._stops[index - 1] > start

    def add(self, start: int, stop: int) -> None:
        """Adds a range."""
        first = bisect_left(self._stops, start)
        last = first
        while last < len(self._starts) and self._starts[last] <= stop:
            start, stop = min(start, self._starts[last]), max(stop, self._stops[last])
            last += 1
        self._starts[first:last] = [start]
        self._stops[first:last] = [stop]
