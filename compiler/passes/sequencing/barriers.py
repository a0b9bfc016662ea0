"""Barriers between conflicting steps, and the arguments whose memory a result may reuse.

A step conflicts with an earlier step of its command buffer if it reads or overwrites memory that the earlier step uses.

A result may reuse an argument's memory if no step reads the argument after the first write of the result. Between the
last read and the first write there must be a barrier or the end of a submission, unless both are one step that works in
place: a kernel that reads each element only where it writes it, or a copy, which is then elided. A loop counts as
reading until its end and writing from its beginning. The lists of a branch count as running one after another.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from .steps import Barrier, Buffer, Copy, Dispatch, Loop, Repeat, Schedule, Step, is_recorded, lists_of, uses

MAX_NAMED: Final = 16
"""The most arguments listed for a result; those that it is computed from in place come first."""


def reuses(plan: Schedule) -> list[tuple[int, ...]]:
    """Returns, for each result, the numbers of arguments of the same size whose memory it may reuse.

    Args:
        plan: the schedule, with barriers.
    """
    walked = _Walk()
    walked.steps(plan.steps)
    by_size: dict[object, list[Buffer]] = {}
    for argument in plan.arguments:
        by_size.setdefault(argument.bytes, []).append(argument)
    return [walked.arguments_for(result, by_size.get(result.bytes, ())) for result in plan.results]


def read_in_place(step: Step) -> set[Buffer]:
    """Returns the operands of which a step reads each element only where it writes that element of the result."""
    if isinstance(step, Copy):
        return {step.source.root}
    if not isinstance(step, Dispatch) or step.results != 1:
        return set()
    positions = step.operation.integers("in_place")
    reads = [buffer.root for buffer in uses(step)[0]]
    return {reads[index] for index in positions} - {root for index, root in enumerate(reads) if index not in positions}


class _Walk:
    """The last reads and first writes of buffers, in the order set by barriers and submissions."""

    def __init__(self) -> None:
        self._now = 0
        self._reads: dict[Buffer, tuple[int, list[Step]]] = {}
        self._writes: dict[Buffer, tuple[int, list[Step]]] = {}

    def arguments_for(self, result: Buffer, arguments: Sequence[Buffer]) -> tuple[int, ...]:
        """Returns the numbers of the arguments whose memory a result may reuse."""
        first, writers = self._writes.get(result, (self._now + 1, []))
        places = read_in_place(writers[0]) if len(writers) == 1 else set()
        numbers = []
        for argument in arguments:
            last, readers = self._reads.get(argument, (-1, []))
            is_in_place = last == first and readers == writers and argument in places
            if last < first or is_in_place:
                numbers.append((not is_in_place, argument.number))
        return tuple(number for _, number in sorted(numbers)[:MAX_NAMED])

    def steps(self, steps: Sequence[Step]) -> None:
        """Adds steps after the earlier steps."""
        for step in steps:
            reads, writes = uses(step)
            if isinstance(step, Dispatch | Copy):
                self._note(reads, writes, step)
                continue
            self._now += 1
            if isinstance(step, Loop | Repeat):
                inner = _Walk()
                for nested in lists_of(step):
                    inner.steps(nested)
                self._note((), inner._writes, step)
                self._now += 1
                self._note([*reads, *inner._reads], (), step)
            elif not isinstance(step, Barrier):
                self._note(reads, writes, step)
                for nested in lists_of(step):
                    self._now += 1
                    self.steps(nested)
            self._now += 1

    def _note(self, reads: Iterable[Buffer], writes: Iterable[Buffer], step: Step) -> None:
        for root in {buffer.root for buffer in reads}:
            last, readers = self._reads.get(root, (-1, []))
            self._reads[root] = self._now, [*readers * (last == self._now), step]
        for root in {buffer.root for buffer in writes}:
            first, writers = self._writes.setdefault(root, (self._now, []))
            if first == self._now:
                writers.append(step)


_Range: TypeAlias = tuple[tuple[str, int], int, int]
"""The kind and number of a memory, and a range of its bytes."""

MAX_MOVED: Final = 16
"""The most barriers that a step is moved over."""


def add_barriers(plan: Schedule) -> None:
    """Adds barriers to a schedule whose buffers have offsets.

    A step goes after the last barrier that it needs, so that independent steps share barriers. Command buffers wait for
    each other, so there are no barriers between them.
    """
    _Placer(plan).steps(plan.steps)


class _Placer:
    def __init__(self, plan: Schedule) -> None:
        self._plan = plan
        self._ranges: dict[Buffer, _Range] = {}

    def steps(self, steps: list[Step]) -> None:
        """Adds barriers to a list; hazards may remain open at its end."""
        placed: list[Step] = []
        groups: list[_Group] = []
        for step in steps:
            if isinstance(step, Dispatch | Copy):
                self._add(groups, step)
                continue
            placed.extend(self._joined(groups))
            # Each round of a recorded repetition ends with a barrier; other repetitions are up to the host.
            if groups and is_recorded(step):
                placed.append(Barrier())
            groups = []
            for inner in lists_of(step):
                self.steps(inner)
            placed.append(step)
        steps[:] = [*placed, *self._joined(groups)]

    def _add(self, groups: list[_Group], step: Step) -> None:
        reads, writes = self._ranges_of(step)
        first = max(len(groups) - MAX_MOVED, 0)
        index = len(groups)
        while index > first and not groups[index - 1].conflicts(reads, writes):
            index -= 1
        if index == len(groups):
            groups.append(_Group())
        groups[index].add(step, reads, writes)

    def _joined(self, groups: Sequence[_Group]) -> list[Step]:
        """Joins groups of steps by barriers."""
        readers: dict[Buffer, list[tuple[int, Step]]] = defaultdict(list)
        for number, group in enumerate(groups):
            for step in group.steps:
                for buffer in uses(step)[0]:
                    if buffer.kind == "argument":
                        readers[buffer].append((number, step))
        for number, group in enumerate(groups):
            for step in [candidate for candidate in group.steps if uses(candidate)[1][0].root.kind == "result"]:
                behind = [
                    max((at for at, other in readers[buffer] if other is not step), default=-1)
                    for buffer in read_in_place(step)
                    if buffer.kind == "argument"
                ]
                if behind and min(behind) >= number:
                    self._sink(step, number, min(behind) + 1, groups)
        joined: list[Step] = []
        for group in groups:
            joined += [Barrier()] * bool(joined and group.steps) + group.steps
        return joined

    def _sink(self, step: Step, index: int, least: int, groups: Sequence[_Group]) -> None:
        """Moves a step to a later group if no step in between needs it.

        A step that computes a result in an argument's memory goes after all other readers of that argument. So the
        caller may pass the argument's memory for the result (``reuse``) without another barrier.
        """
        reads, writes = self._ranges_of(step)
        for number in range(index + 1, min(least + 1, len(groups))):
            if groups[number].conflicts(reads, writes):
                return
        if least < len(groups):
            groups[index].steps.remove(step)
            groups[least].add(step, reads, writes)

    def _ranges_of(self, step: Step) -> tuple[list[_Range], list[_Range]]:
        reads, writes = uses(step)
        return [self._range(buffer) for buffer in reads], [self._range(buffer) for buffer in writes]

    def _range(self, buffer: Buffer) -> _Range:
        """Returns the memory of a buffer, and the buffer's bytes in it."""
        root = buffer.root
        known = self._ranges.get(root)
        if known is None:
            size, start = root.size, 0
            if root.kind != "transient":
                memory = (root.kind, root.number)
            elif isinstance(size, int):
                memory, start = ("arena", 0), self._plan.plan.offsets[root.number]
            else:
                memory = ("slot", self._plan.plan.offsets[root.number])
            known = self._ranges[root] = memory, start, start + (max(size, 4) if isinstance(size, int) else 4)
        return known


class _Group:
    """Steps without hazards between them."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._read: dict[tuple[str, int], _Ranges] = defaultdict(_Ranges)
        self._written: dict[tuple[str, int], _Ranges] = defaultdict(_Ranges)

    def conflicts(self, reads: Sequence[_Range], writes: Sequence[_Range]) -> bool:
        """Whether a step conflicts with any of these."""
        return any(_overlaps(self._written, span) for span in (*reads, *writes)) or any(
            _overlaps(self._read, span) for span in writes
        )

    def add(self, step: Step, reads: Sequence[_Range], writes: Sequence[_Range]) -> None:
        """Adds a step that does not conflict with the others."""
        self.steps.append(step)
        for ranges, several in ((self._read, reads), (self._written, writes)):
            for memory, start, stop in several:
                ranges[memory].add(start, stop)


def _overlaps(ranges: dict[tuple[str, int], _Ranges], span: _Range) -> bool:
    memory, start, stop = span
    return memory in ranges and ranges[memory].overlaps(start, stop)


class _Ranges:
    """A union of ranges of bytes, as disjoint ranges in order."""

    __slots__ = ("_starts", "_stops")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []

    def overlaps(self, start: int, stop: int) -> bool:
        """Whether a range shares a byte with the union."""
        index = bisect_left(self._starts, stop)
        return index > 0 and self._stops[index - 1] > start

    def add(self, start: int, stop: int) -> None:
        first = bisect_left(self._stops, start)
        last = first
        while last < len(self._starts) and self._starts[last] <= stop:
            start, stop = min(start, self._starts[last]), max(stop, self._stops[last])
            last += 1
        self._starts[first:last] = [start]
        self._stops[first:last] = [stop]
