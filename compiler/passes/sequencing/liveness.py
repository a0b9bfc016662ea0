"""Liveness of buffers, and the merging of buffers that are never live at the same point.

Steps are numbered in the order of recording: a loop's condition, its test, its body; a branch's index, its lists. Step
``n`` reads at point ``2 n`` and writes at point ``2 n + 1``. A buffer is live from each write to the last read of the
written value, which in a loop may be earlier in the text.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence

from .steps import Branch, Buffer, Copy, Dispatch, Loop, Repeat, Schedule, Step, held, lists_of, uses, walk

_Live = dict[Buffer, int]
"""Live buffers, each with the last point at which it is live, during a backward walk."""


class Liveness:
    """The intervals in which each buffer of a schedule is live, computed in linear time.

    Attributes:
        numbers: the steps' numbers, by identity.
        intervals: the intervals of each buffer in order, inclusive; buffers are in the order of first use. A write that
            is never read is a separate interval.
    """

    def __init__(self, plan: Schedule) -> None:
        self.numbers: dict[int, int] = {}
        self.intervals: dict[Buffer, list[tuple[int, int]]] = {}
        self._starts: dict[int, int] = {}
        self._ends: dict[int, list[int]] = {}
        self._summaries: dict[int, _Summary] = {}
        self._count = 0
        self._number(plan.steps)
        live = {buffer.root: 2 * self._count for buffer in plan.results}
        self._walk(plan.steps, live)
        self._close(live, 0)
        for intervals in self.intervals.values():
            intervals.reverse()
        # The walk visits buffers in the order of sets, which varies between processes.
        used = [buffer.root for step in walk(plan.steps) for buffers in uses(step) for buffer in buffers]
        order = dict.fromkeys([*used, *self.intervals])
        self.intervals = {buffer: self.intervals[buffer] for buffer in order if buffer in self.intervals}

    def hull(self, buffer: Buffer) -> tuple[int, int]:
        """Returns the first and the last step of a buffer's intervals."""
        intervals = self.intervals[buffer]
        return intervals[0][0] // 2, intervals[-1][1] // 2

    # -- numbers ---------------------------------------------------------------------------------------

    def _number(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self._starts[id(step)] = self._count
            if isinstance(step, Loop):
                self._number(step.condition)
            self.numbers[id(step)] = self._next()
            ends = self._ends[id(step)] = []
            for inner in lists_of(step)[isinstance(step, Loop) :]:
                self._number(inner)
                ends.append(self._count - 1)

    def _next(self) -> int:
        self._count += 1
        return self._count - 1

    # -- intervals, from the last step to the first ------------------------------------------------------

    def _walk(self, steps: Sequence[Step], live: _Live) -> None:
        for step in reversed(steps):
            number = self.numbers[id(step)]
            if isinstance(step, Loop | Repeat):
                self._loop(step, number, live)
                continue
            if isinstance(step, Branch):
                self._branch(step, number, live)
            reads, writes = uses(step)
            for buffer in writes:
                root = buffer.root
                self._add(root, 2 * number + 1, live.pop(root, 2 * number + 1))
            for buffer in held(step):
                live.setdefault(buffer.root, 2 * number + 1)
            for buffer in reads:
                live.setdefault(buffer.root, 2 * number)

    def _loop(self, step: Loop | Repeat, number: int, live: _Live) -> None:
        (end,) = self._ends[id(step)]
        tested = {buffer.root for buffer in uses(step)[0]}
        conditions = step.condition if isinstance(step, Loop) else []
        condition, body = self._summary_of(conditions), self._summary_of(step.body)
        after = self._split(self._summary(step).touched, 2 * end + 2, live)
        needed = (body.exposed | after | tested) - condition.written
        inside = dict.fromkeys(condition.exposed | needed, 2 * end + 1)
        self._walk(step.body, inside)
        if _always_runs(step):
            live.update(inside)
            return
        self._close(inside, 2 * number + 2)
        before = dict.fromkeys([*inside, *after, *tested], 2 * number + 1)
        self._walk(conditions, before)
        live.update(before)
        if isinstance(step, Loop) and step.guard is not None:
            self._add(step.guard, 2 * self._starts[id(step)], 2 * end + 1)

    def _branch(self, step: Branch, number: int, live: _Live) -> None:
        starts = [number, *self._ends[id(step)]]
        after = self._split(self._summary(step).touched, 2 * starts[-1] + 2, live)
        before: set[Buffer] = set()
        for branch, start, end in zip(step.branches[::-1], starts[-2::-1], starts[:0:-1], strict=True):
            inside = dict.fromkeys(after, 2 * end + 1)
            self._walk(branch, inside)
            before |= inside.keys()
            self._close(inside, 2 * start + 2)
        live.update(dict.fromkeys(before, 2 * number + 1))
        for guard in step.guards:
            self._add(guard, 2 * number, 2 * starts[-1] + 1)

    def _split(self, touched: Iterable[Buffer], start: int, live: _Live) -> set[Buffer]:
        """Ends the walk after a point for the buffers that a step touches; returns the live ones."""
        after = {buffer: live.pop(buffer) for buffer in touched if buffer in live}
        self._close(after, start)
        return set(after)

    def _close(self, live: _Live, start: int) -> None:
        for buffer, end in live.items():
            if start <= end:
                self._add(buffer, start, end)

    def _add(self, buffer: Buffer, start: int, end: int) -> None:
        self.intervals.setdefault(buffer, []).append((start, end))

    # -- buffers of lists of steps -----------------------------------------------------------------------

    def _summary_of(self, steps: Sequence[Step]) -> _Summary:
        summary = self._summaries.get(id(steps))
        if summary is None:
            summary = self._summaries[id(steps)] = _Summary()
            for step in reversed(steps):
                summary.precede(self._summary(step))
        return summary

    def _summary(self, step: Step) -> _Summary:
        summary = _Summary()
        inner = [self._summary_of(steps) for steps in lists_of(step)]
        for part in inner:
            summary.exposed |= part.exposed
            summary.touched |= part.touched
        if isinstance(step, Branch):
            summary.written = set.intersection(*(part.written for part in inner))
        elif _always_runs(step):
            summary.written |= inner[0].written
        reads, writes = uses(step)
        summary.written |= {buffer.root for buffer in writes}
        summary.exposed |= {buffer.root for buffer in reads}
        summary.touched |= {buffer.root for buffer in (*reads, *writes)}
        if isinstance(step, Loop):
            # The body may never run; the test and the body follow the condition.
            summary.precede(inner[0])
        return summary


def _always_runs(step: Step) -> bool:
    """Whether a step repeats nested steps at least once."""
    return isinstance(step, Repeat) and isinstance(step.trips, int)


class _Summary:
    """The effects of steps on buffers.

    Attributes:
        exposed: the buffers whose earlier contents are read.
        written: the buffers that are always written.
        touched: all buffers that are read or written.
    """

    __slots__ = ("exposed", "touched", "written")

    def __init__(self) -> None:
        self.exposed: set[Buffer] = set()
        self.written: set[Buffer] = set()
        self.touched: set[Buffer] = set()

    def precede(self, earlier: _Summary) -> None:
        """Adds the effects of earlier steps."""
        self.exposed -= earlier.written
        self.exposed |= earlier.exposed
        self.written |= earlier.written
        self.touched |= earlier.touched


def elide_copies(plan: Schedule) -> None:
    """Merges the buffers of copies if they are never live at the same point, inner loops first.

    Then merges operands that a dispatch reads for the last time with its results, if it can work in place. Each merge
    adds the shorter list of intervals to the longer one, so all merges together take n log n.
    """
    live = Liveness(plan)
    copies = [(-depth, live.numbers[id(copy)], copy) for copy, depth in _copies(plan.steps, 0)]
    for _, _, copy in sorted(copies, key=lambda item: item[:2]):
        _merge(copy.source.root, copy.target.root, live.intervals)
    _drop_elided(plan.steps)
    for step in walk(plan.steps):
        if isinstance(step, Dispatch) and step.results == 1:
            inputs = [step.buffers[index] for index in step.operation.integers("in_place")]
            result = step.buffers[-1]
            if result.root.kind == "result" and any(_ends_in(live, item.root, step) for item in inputs):
                continue  # the caller may pass that argument's memory, which must not be used before
            for item in inputs:
                _merge(item.root, result.root, live.intervals)  # a merge may change the roots of later merges
    plan.results = [buffer.root for buffer in plan.results]


def _merge(left: Buffer, right: Buffer, intervals: dict[Buffer, list[tuple[int, int]]]) -> None:
    """Merges two buffers if one is transient, and the other belongs neither to the caller nor to the module."""
    gone, kept = (left, right) if left.kind == "transient" else (right, left)
    if gone is kept or gone.kind != "transient" or kept.kind in ("argument", "constant") or gone.size != kept.size:
        return
    if kept.kind == "result" and not kept.is_whole:
        return  # kernels write whole words, which may exceed the caller's memory
    few, many = sorted((intervals[gone], intervals[kept]), key=len)
    if any(_is_live(many, interval) for interval in few):
        return
    for interval in few:
        insort(many, interval)
    gone.merged = kept
    intervals[kept] = many
    del intervals[gone]


def _ends_in(live: Liveness, buffer: Buffer, step: Step) -> bool:
    """Whether a buffer is an argument whose last reader is a step."""
    return buffer.kind == "argument" and live.intervals[buffer][-1][1] == 2 * live.numbers[id(step)]


def _is_live(intervals: Sequence[tuple[int, int]], at: tuple[int, int]) -> bool:
    """Whether an interval overlaps any of a sorted sequence of disjoint intervals."""
    index = bisect_left(intervals, (at[1] + 1, 0))
    return index > 0 and intervals[index - 1][1] >= at[0]


def _copies(steps: Sequence[Step], depth: int) -> Iterator[tuple[Copy, int]]:
    for step in steps:
        if isinstance(step, Copy):
            yield step, depth
        for inner in lists_of(step):
            yield from _copies(inner, depth + isinstance(step, Loop | Repeat))


def _drop_elided(steps: list[Step]) -> None:
    steps[:] = [step for step in steps if not (isinstance(step, Copy) and step.source.root is step.target.root)]
    for step in steps:
        for inner in lists_of(step):
            _drop_elided(inner)
