"""Places for buffers in one arena, such that those alive at the same time do not overlap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

ALIGNMENT: Final = 256
"""Bytes to which every buffer is aligned: the most that Vulkan lets a device ask of offsets of storage buffers."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A buffer and the steps during which it is alive.

    Attributes:
        size: in bytes.
        first: the step that writes it first.
        last: the last step that reads it.
    """

    size: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Places of buffers.

    Attributes:
        offsets: in bytes, one a buffer.
        size: of the arena in bytes.
        lower_bound: the most bytes that are alive at any step; no plan is smaller.
        total: bytes of all buffers, as they would take without sharing.
    """

    offsets: Sequence[int]
    size: int
    lower_bound: int
    total: int


def plan_memory(buffers: Sequence[Interval], alignment: int = ALIGNMENT) -> Plan:
    """Places buffers one after another, each into the lowest gap among those alive with it.

    What is best depends on the order, and an optimum is NP-hard: of three orders (the largest first, those that take
    the most memory for the longest time first, as they come) the smallest arena is taken.
    """
    sizes = [-(-buffer.size // alignment) * alignment for buffer in buffers]
    every = range(len(buffers))
    orders = (
        sorted(every, key=lambda index: -sizes[index]),
        sorted(every, key=lambda index: -sizes[index] * (buffers[index].last - buffers[index].first + 1)),
        sorted(every, key=lambda index: buffers[index].first),
    )
    bound = _most_alive(buffers, sizes)
    best: tuple[int, list[int]] | None = None
    for order in orders:
        found = _placed(buffers, sizes, order)
        if best is None or found[0] < best[0]:
            best = found
        if best[0] <= bound:
            break
    assert best is not None
    return Plan(best[1], best[0], bound, sum(sizes))


def _placed(buffers: Sequence[Interval], sizes: Sequence[int], order: Sequence[int]) -> tuple[int, list[int]]:
    """Size of the arena and the offsets, with buffers placed in an order."""
    offsets = [0] * len(buffers)
    at_step: dict[int, list[int]] = defaultdict(list)
    size = 0
    for index in order:
        steps = range(buffers[index].first, buffers[index].last + 1)
        others = {other for step in steps for other in at_step[step]}
        offset = 0
        for start, end in sorted((offsets[other], offsets[other] + sizes[other]) for other in others):
            if start - offset >= sizes[index]:
                break
            offset = max(offset, end)
        offsets[index] = offset
        size = max(size, offset + sizes[index])
        for step in steps:
            at_step[step].append(index)
    return size, offsets


def _most_alive(buffers: Sequence[Interval], sizes: Sequence[int]) -> int:
    changes: dict[int, int] = {}
    for buffer, size in zip(buffers, sizes, strict=True):
        changes[buffer.first] = changes.get(buffer.first, 0) + size
        changes[buffer.last + 1] = changes.get(buffer.last + 1, 0) - size
    alive = most = 0
    for step in sorted(changes):
        alive += changes[step]
        most = max(most, alive)
    return most
