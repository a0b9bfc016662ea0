"""Merging of buffers: the two of a copy, which is then elided, and those of a dispatch that works in place."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence

from .liveness import Liveness
from .steps import Buffer, Copy, Dispatch, Loop, Repeat, Schedule, Step, lists_of, walk


def elide_copies(plan: Schedule) -> None:
    """Merges the buffers of copies where they are never live at the same point, inner loops first.

    Then merges operands that a dispatch reads for the last time with its results, where it can work in place. Each
    merge
    adds the shorter list of intervals to the longer, so that all take n log n together.
    """
    live = Liveness(plan)
    copies = [(-depth, live.numbers[id(copy)], copy) for copy, depth in _copies(plan.steps, 0)]
    for _, _, copy in sorted(copies, key=lambda item: item[:2]):
        _merge(copy.source.root, copy.target.root, live.intervals)
    _drop_elided(plan.steps)
    for step in walk(plan.steps):
        if isinstance(step, Dispatch) and step.results == 1:
            inputs = [step.buffers[index].root for index in step.operation.integers("in_place")]
            result = step.buffers[-1].root
            if result.kind == "result" and any(_ends_in(live, item, step) for item in inputs):
                continue  # the caller may pass that argument's memory: nothing else may be there before
            for item in inputs:
                _merge(item, result, live.intervals)
    plan.results = [buffer.root for buffer in plan.results]


def _merge(left: Buffer, right: Buffer, intervals: dict[Buffer, list[tuple[int, int]]]) -> None:
    """Merges two buffers if one is transient, and the other belongs neither to the caller nor to the module."""
    gone, kept = (left, right) if left.kind == "transient" else (right, left)
    if gone is kept or gone.kind != "transient" or kept.kind in ("argument", "constant") or gone.size != kept.size:
        return
    if kept.kind == "result" and not kept.is_whole:
        return  # kernels write whole words, which may go past the end of the caller's memory
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
    """Whether an interval overlaps one of a sequence of disjoint intervals in order."""
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
