"""Offsets of buffers in one arena, such that simultaneously live buffers do not overlap."""

from __future__ import annotations

import dataclasses
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ...ir.sizes import Dim, Size, estimated, upper_bound

ALIGNMENT: Final = 256
"""Alignment of every buffer in bytes: the largest offset alignment that Vulkan allows for storage buffers."""

MAX_PAIRS: Final = 500_000
"""With more pairs of simultaneously live buffers, only one order is tried."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A buffer's size and its lifetime in steps.

    Attributes:
        size: the size in bytes; may be call-dependent.
        first: the first step that writes it.
        last: the last step that reads it.
    """

    size: Dim
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Offsets of buffers in the arena.

    Attributes:
        offsets: the byte offset of each buffer; a slot number if the buffer's size is call-dependent.
        size: the arena's size in bytes.
        lower_bound: the largest number of live bytes at any step, a lower bound of every plan.
        total: the number of bytes of all buffers without sharing.
        buffers: the buffers.
        slots: the sizes of slots after the buffers of known sizes. One buffer at a time is alive in a slot.
    """

    offsets: Sequence[int]
    size: int
    lower_bound: int
    total: int
    buffers: Sequence[Interval]
    slots: Sequence[Size] = ()


def plan_memory(buffers: Sequence[Interval], alignment: int = ALIGNMENT) -> Plan:
    """Plans offsets such that simultaneously live buffers do not overlap.

    Buffers are first placed in order of birth, each into the lowest gap; apart from the search for gaps, this takes
    linear time. If that misses the lower bound and not too many buffers are live together, two more orders are tried:
    by size, and by the product of size and lifetime, both descending. The smallest arena wins; the optimum is NP-hard.
    """
    static = [(index, buffer.size) for index, buffer in enumerate(buffers) if isinstance(buffer.size, int)]
    if len(static) < len(buffers):
        return _with_slots(buffers, [index for index, _ in static], alignment)
    sizes = [-(-size // alignment) * alignment for _, size in static]
    events = _events(buffers)
    best, bound, pairs = _sweep(events, sizes)
    if best.size > bound and pairs <= MAX_PAIRS:
        together = _alive_together(events, len(sizes))
        every = range(len(buffers))
        lasting = [buffer.last - buffer.first + 1 for buffer in buffers]
        orders = (
            sorted(every, key=lambda index: -sizes[index]),
            sorted(every, key=lambda index: -sizes[index] * lasting[index]),
        )
        best = min((best, *(_placed(together, sizes, order) for order in orders)), key=lambda placed: placed.size)
    return Plan(best.offsets, best.size, bound, sum(sizes), buffers)


def _with_slots(buffers: Sequence[Interval], static: Sequence[int], alignment: int) -> Plan:
    """Places buffers of known sizes; the other buffers share slots, in descending size, each in the first free slot."""
    plan = plan_memory([buffers[index] for index in static], alignment)
    offsets = dict(zip(static, plan.offsets, strict=True))
    slots: list[list[int]] = []
    sizes: list[Size] = []
    dynamic = [(index, interval.size) for index, interval in enumerate(buffers) if isinstance(interval.size, Size)]
    for index, size in sorted(dynamic, key=lambda pair: -estimated(pair[1])):
        number = next((at for at, held in enumerate(slots) if _is_free(buffers, held, index)), len(slots))
        if number == len(slots):
            slots.append([])
            sizes.append(size)
        largest = upper_bound(sizes[number], size)
        assert isinstance(largest, Size)
        slots[number].append(index)
        sizes[number] = largest
        offsets[index] = number
    every = [offsets[index] for index in range(len(buffers))]
    return dataclasses.replace(plan, offsets=every, buffers=buffers, slots=sizes)


def _is_free(buffers: Sequence[Interval], held: Sequence[int], index: int) -> bool:
    interval = buffers[index]
    return all(interval.last < buffers[other].first or buffers[other].last < interval.first for other in held)


class _Placed(NamedTuple):
    """Offsets of buffers and the arena's size."""

    offsets: Sequence[int]
    size: int


def _events(buffers: Sequence[Interval]) -> list[tuple[int, bool, int]]:
    """Returns births and deaths in order, each as step, whether it is a birth, and buffer number."""
    begins = [(buffer.first, True, index) for index, buffer in enumerate(buffers)]
    ends = [(buffer.last + 1, False, index) for index, buffer in enumerate(buffers)]
    return sorted(begins + ends)


def _sweep(events: Sequence[tuple[int, bool, int]], sizes: Sequence[int]) -> tuple[_Placed, int, int]:
    """Places buffers in order of birth.

    Also returns the largest number of live bytes, and the number of pairs live together.
    """
    offsets = [0] * len(sizes)
    alive: list[tuple[int, int]] = []
    end = held = most = pairs = 0
    for _, begins, index in events:
        size = sizes[index]
        held += size if begins else -size
        most = max(most, held)
        if not size:
            continue
        if not begins:
            alive.remove((offsets[index], offsets[index] + size))
            continue
        pairs += len(alive)
        offset = _gap(alive, size)
        offsets[index], end = offset, max(end, offset + size)
        insort(alive, (offset, offset + size))
    return _Placed(offsets, end), most, pairs


def _gap(ranges: Sequence[tuple[int, int]], size: int) -> int:
    """Returns the start of the lowest gap of a size between sorted ranges, or after them."""
    offset = 0
    for start, end in ranges:
        if start - offset >= size:
            break
        offset = max(offset, end)
    return offset


def _alive_together(events: Sequence[tuple[int, bool, int]], count: int) -> list[list[int]]:
    """Returns the buffers that are live together with each buffer."""
    together: list[list[int]] = [[] for _ in range(count)]
    alive: dict[int, None] = {}
    for _, begins, index in events:
        if not begins:
            del alive[index]
            continue
        for other in alive:
            together[other].append(index)
        together[index].extend(alive)
        alive[index] = None
    return together


def _placed(together: Sequence[Sequence[int]], sizes: Sequence[int], order: Sequence[int]) -> _Placed:
    """Places buffers in an order, each in the lowest gap among those live with it."""
    offsets = [-1] * len(sizes)
    size = 0
    for index in order:
        around = [other for other in together[index] if offsets[other] >= 0]
        offset = _gap(sorted((offsets[other], offsets[other] + sizes[other]) for other in around), sizes[index])
        offsets[index] = offset
        size = max(size, offset + sizes[index])
    return _Placed(offsets, size)
