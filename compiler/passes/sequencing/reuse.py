"""Donation: the arguments whose memory a result may be written to, if the caller wants so.

A result may lie where an argument does if nothing reads the argument once the result is being written. Between the last
read and the first write there must be a barrier or the end of a submission; or both are one step that works in place: a
kernel that reads each element only where it writes it, or a copy, which is then elided. A loop counts as reading until
its end and writing from its beginning. The lists of a branch count as running one after another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from .steps import Barrier, Buffer, Copy, Dispatch, Loop, Repeat, Schedule, Step, lists_of, uses

MAX_NAMED: Final = 16
"""Arguments named for one result; those that it is computed from in place come first."""


def reuses(plan: Schedule) -> list[tuple[int, ...]]:
    """Returns, for each result, the numbers of arguments of the same size whose memory it may have.

    Args:
        plan: with barriers.
    """
    walked = _Walk()
    walked.steps(plan.steps)
    by_size: dict[object, list[Buffer]] = {}
    for argument in plan.arguments:
        by_size.setdefault(argument.bytes, []).append(argument)
    return [walked.arguments_for(result, by_size.get(result.bytes, ())) for result in plan.results]


def read_in_place(step: Step) -> set[Buffer]:
    """Returns operands of a step whose elements it reads only where it writes the result's."""
    if isinstance(step, Copy):
        return {step.source.root}
    if not isinstance(step, Dispatch) or step.results != 1:
        return set()
    positions = step.operation.integers("in_place")
    reads = [buffer.root for buffer in uses(step)[0]]
    return {reads[index] for index in positions} - {root for index, root in enumerate(reads) if index not in positions}


class _Walk:
    """The last reads and first writes of buffers, in the order that barriers and submissions make."""

    def __init__(self) -> None:
        self._now = 0
        self._reads: dict[Buffer, tuple[int, list[Step]]] = {}
        self._writes: dict[Buffer, tuple[int, list[Step]]] = {}

    def arguments_for(self, result: Buffer, arguments: Sequence[Buffer]) -> tuple[int, ...]:
        """Numbers of the arguments whose memory a result may have."""
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
        """Adds steps that come after those before."""
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
