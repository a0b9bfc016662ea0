"""The sub-allocator against a plain list of ranges: no overlap, granularity, joining, statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.hal_vulkan.memory import suballocator
from pumice.hal_vulkan.memory.suballocator import GRANULARITY, Suballocator
from pumice.status import InternalError

requests = st.lists(
    st.one_of(
        st.tuples(st.just("allocate"), st.integers(0, 40_000)),
        st.tuples(st.just("free"), st.integers(0, 1000)),
    ),
    max_size=120,
)


def rounded(size: int) -> int:
    return -(-max(size, 1) // GRANULARITY) * GRANULARITY


def free_ranges(size: int, used: dict[int, int]) -> list[tuple[int, int]]:
    """The gaps between the used ranges, as (start, size)."""
    gaps, start = [], 0
    for offset in sorted(used):
        if offset > start:
            gaps.append((start, offset - start))
        start = offset + used[offset]
    if start < size:
        gaps.append((start, size - start))
    return gaps


def check(block: Suballocator, used: dict[int, int]) -> None:
    gaps = free_ranges(block.size, used)
    seen = block.statistics()
    assert seen.size == block.size
    assert seen.allocations == len(used)
    assert seen.allocated == block.allocated == sum(used.values())
    # Free neighbours are always joined: as many free ranges as there are gaps, and no smaller ones.
    assert seen.free_ranges == len(gaps)
    assert seen.largest_free == max((size for _, size in gaps), default=0)
    free = sum(size for _, size in gaps)
    assert seen.fragmentation == pytest.approx(1 - seen.largest_free / free if free else 0.0)
    assert block.is_empty() == (not used)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(requests, st.sampled_from([256, 4096, 100_000, 1 << 20]))
def test_against_a_model(steps: list[tuple[str, int]], size: int) -> None:
    block, used = Suballocator(size), dict[int, int]()
    for what, number in steps:
        if what == "free":
            if used:
                offset = sorted(used)[number % len(used)]
                block.free(offset)
                del used[offset]
        else:
            offset_or_none = block.allocate(number)
            need = rounded(number)
            possible = [start for start, gap in free_ranges(size, used) if need <= gap]
            if offset_or_none is None:
                assert not possible, "refused, though a gap is large enough"
            else:
                offset = offset_or_none
                assert offset % GRANULARITY == 0
                assert offset >= 0 and offset + need <= size
                assert all(offset + need <= o or o + s <= offset for o, s in used.items()), "overlap"
                used[offset] = need
        check(block, used)
    for offset in list(used):
        block.free(offset)
    check(block, {})
    assert block.statistics().free_ranges == 1 and block.statistics().largest_free == size


def test_best_fit_takes_the_smallest_gap() -> None:
    block = Suballocator(16 * GRANULARITY)
    offsets = [block.allocate(GRANULARITY * n) for n in (4, 1, 2, 1, 8)]
    assert None not in offsets and block.allocate(1) is None
    block.free(offsets[0])  # type: ignore[arg-type]
    block.free(offsets[2])  # type: ignore[arg-type]
    assert block.allocate(2 * GRANULARITY) == offsets[2]


def test_freeing_twice_or_something_else_is_an_internal_error() -> None:
    block = Suballocator(4096)
    offset = block.allocate(300)
    assert offset is not None
    for wrong in (offset + 1, offset + GRANULARITY, 4096, -1):
        with pytest.raises(InternalError, match="not allocated"):
            block.free(wrong)
    block.free(offset)
    with pytest.raises(InternalError, match="freed twice"):
        block.free(offset)
    assert block.is_empty() and block.statistics().largest_free == 4096


class Interrupted(Exception):
    """Stands for whatever a signal handler raises."""


@contextmanager
def interrupted_at(point: int) -> Iterator[list[int]]:
    """Raises at one of the places where a signal handler may run, which are calls: before them, and when they return.

    Yields:
        a list of one number, of places that were passed.
    """
    passed = [0]

    def reach() -> None:
        passed[0] += 1
        if passed[0] - 1 == point:
            raise Interrupted

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            reach()
            result = function(*arguments, **options)
            reach()
            return result

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("insort", "bisect_left"):
            patch.setattr(suballocator, name, wrap(getattr(suballocator, name)))
        for name in ("_insert", "_remove", "_rebuild"):
            patch.setattr(Suballocator, name, wrap(getattr(Suballocator, name)))
        yield passed


@pytest.mark.parametrize("operation", ["allocate", "free"])
def test_an_exception_from_outside_leaves_a_whole_block(operation: str) -> None:
    for point in range(1000):
        block = Suballocator(16 * 1024)
        used = {block.allocate(1000): 1024 for _ in range(8)}
        for offset in (1024, 3072):
            block.free(offset)
            del used[offset]
        done = {**used, 1024: 512} if operation == "allocate" else {k: v for k, v in used.items() if k != 2048}
        with interrupted_at(point) as passed:
            try:
                if operation == "allocate":
                    assert block.allocate(300) == 1024
                else:
                    block.free(2048)
            except Interrupted:
                interrupted = True
            else:
                interrupted = False
        check(block, used if interrupted else done)
        # Whatever came of it, it can be done now.
        if interrupted and operation == "allocate":
            assert block.allocate(300) == 1024
        elif interrupted:
            block.free(2048)
        check(block, done)
        if not interrupted:
            break
    assert point == passed[0] >= 4
