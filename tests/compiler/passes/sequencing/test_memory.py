"""Plans of one arena: buffers alive at the same time do not overlap, and little memory is wasted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pumice.compiler.passes.sequencing.memory import ALIGNMENT, Interval, plan_memory

INTERVALS = st.lists(
    st.builds(
        lambda size, first, length: Interval(size, first, first + length),
        st.integers(0, 10_000),
        st.integers(0, 30),
        st.integers(0, 10),
    ),
    max_size=40,
)


@given(INTERVALS)
def test_buffers_that_are_alive_together_do_not_overlap(buffers: list[Interval]) -> None:
    plan = plan_memory(buffers)
    for index, one in enumerate(buffers):
        start = plan.offsets[index]
        assert start % ALIGNMENT == 0 and start + one.size <= plan.size
        for other_index, other in enumerate(buffers[:index]):
            if one.last < other.first or other.last < one.first:
                continue
            apart = start + one.size <= plan.offsets[other_index] or plan.offsets[other_index] + other.size <= start
            assert apart or not one.size or not other.size
    assert plan.lower_bound <= plan.size <= plan.total


def test_layers_of_one_size_take_two_buffers() -> None:
    plan = plan_memory([Interval(1000, step, step + 1) for step in range(50)])
    assert plan.size == plan.lower_bound == 2048


def test_an_empty_program_has_an_empty_arena() -> None:
    assert plan_memory([]).size == 0
