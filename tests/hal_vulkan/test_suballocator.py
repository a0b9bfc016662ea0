"""The sub-allocator against a plain list of ranges: no overlap, alignment, joining, statistics."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.hal_vulkan import suballocator
from pumice.hal_vulkan.suballocator import Suballocator
from pumice.status import InternalError, InvalidArgumentError

GRANULARITY = 256

requests = st.lists(
    st.one_of(
        st.tuples(st.just("allocate"), st.integers(0, 40_000), st.sampled_from([1, 16, 256, 512, 4096, 65536])),
        st.tuples(st.just("free"), st.integers(0, 1000), st.just(0)),
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


@settings(max_examples=150, deadline=None)
@given(requests, st.sampled_from([256, 4096, 100_000, 1 << 20]))
def test_against_a_model(steps: list[tuple[str, int, int]], size: int) -> None:
    block, used = Suballocator(size), dict[int, int]()
    for what, number, alignment in steps:
        if what == "free":
            if used:
                offset = sorted(used)[number % len(used)]
                block.free(offset)
                del used[offset]
        else:
            offset_or_none = block.allocate(number, alignment)
            need = rounded(number)
            possible = [
                start
                for start, gap in free_ranges(size, used)
                if -(-start // max(alignment, 1)) * alignment + need <= start + gap
            ]
            if offset_or_none is None:
                assert not possible, "refused, though a gap is large enough"
            else:
                offset = offset_or_none
                assert offset % alignment == 0 and offset % GRANULARITY == 0
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


@pytest.mark.parametrize("alignment", [0, -1, 3, 300, 257])
def test_alignments_are_powers_of_two(alignment: int) -> None:
    with pytest.raises(InvalidArgumentError, match="power of two"):
        Suballocator(4096).allocate(1, alignment)


@pytest.mark.parametrize(("size", "granularity"), [(0, 256), (-1, 256), (256, 0), (256, 3), (256, -4)])
def test_bad_blocks(size: int, granularity: int) -> None:
    with pytest.raises(InvalidArgumentError):
        Suballocator(size, granularity)


def test_ten_thousand_ranges_freed_in_random_order_join_to_one() -> None:
    source = random.Random(3)
    block = Suballocator(64 << 20)
    offsets = [block.allocate(source.randint(1, 4000)) for _ in range(10_000)]
    assert None not in offsets and len(set(offsets)) == 10_000
    source.shuffle(offsets)
    for index, offset in enumerate(offsets):
        assert offset is not None
        block.free(offset)
        if index % 1000 == 0:
            seen = block.statistics()
            assert seen.allocations == 9_999 - index and 0.0 <= seen.fragmentation < 1.0
    assert block.statistics().free_ranges == 1 and block.statistics().largest_free == block.size


class Interrupted(Exception):
    """Stands for whatever a signal handler raises."""


def interrupted_after(count: int, call: Callable[[], object]) -> bool:
    """Whether ``call`` was ended by an exception before its line number ``count`` inside the sub-allocator.

    Lines, not opcodes: CPython 3.11 may loop for ever when a trace function raises before a specialised opcode.
    """
    left = count

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        nonlocal left
        if frame.f_code.co_filename != suballocator.__file__:
            return None
        if event == "line":
            left -= 1
            if left < 0:
                raise Interrupted
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except Interrupted:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize("operation", ["allocate", "free", "statistics"])
def test_an_exception_before_any_line_leaves_a_whole_block(operation: str) -> None:
    for count in range(100_000):
        block = Suballocator(16 * 1024)
        used = {block.allocate(1000): 1024 for _ in range(8)}
        for offset in (1024, 3072):
            block.free(offset)
            del used[offset]
        calls = {
            "allocate": lambda: block.allocate(300, 512),
            "free": lambda: block.free(2048),
            "statistics": lambda: block.statistics(),
        }
        interrupted = interrupted_after(count, calls[operation])
        after = {"allocate": {1024: 512}, "free": {}, "statistics": {}}[operation]
        done = {start: size for start, size in {**used, **after}.items() if operation != "free" or start != 2048}
        check(block, done if block.statistics().allocated == sum(done.values()) else used)
        assert interrupted or block.statistics().allocated == sum(done.values())
        if not interrupted:
            break
    assert count > 3
