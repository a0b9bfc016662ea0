"""Sizes: their arithmetic agrees with that of numbers, and equal sizes have one text."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.compiler.dialects.syntax.text import parse, to_text
from pumice.compiler.ir.sizes import (
    Dim,
    Size,
    evaluated,
    is_at_least,
    is_multiple,
    parse_size,
    quotient,
    solved,
    substituted,
    symbol,
    upper_bound,
)
from pumice.compiler.ir.source import CompileError

CALLS = [dict(zip(("d0", "d1"), values, strict=True)) for values in itertools.product((0, 1, 2, 5), repeat=2)]


@st.composite
def sizes(draw: st.DrawFn, depth: int = 3) -> Dim:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([symbol(0), symbol(1), -3, 0, 1, 2, 12]))
    left, right = draw(sizes(depth - 1)), draw(sizes(depth - 1))
    return draw(st.sampled_from([left + right, left - right, left * right]))


@pytest.mark.slow
@given(sizes(), sizes())
def test_arithmetic_is_that_of_numbers(left: Dim, right: Dim) -> None:
    for call in CALLS:
        a, b = evaluated(left, call), evaluated(right, call)
        assert evaluated(left + right, call) == a + b
        assert evaluated(left - right, call) == a - b
        assert evaluated(left * right, call) == a * b
        assert evaluated(upper_bound(left, right), call) >= max(a, b)
        assert evaluated(substituted(left, {"d0": right}), call) == evaluated(left, {**call, "d0": b})


@pytest.mark.slow
@given(sizes(), st.integers(-4, 4))
def test_what_is_decided_holds_in_every_call(size: Dim, low: int) -> None:
    actual = is_at_least(size, low)
    if actual is not None:
        assert all((evaluated(size, call) >= low) is actual for call in CALLS)


@given(st.integers(0, 9), st.integers(2, 6))
def test_a_quotient_is_rounded_down(constant: int, divisor: int) -> None:
    size = 2 * symbol(0) * symbol(1) + symbol(1) + constant
    actual = quotient(size, divisor)
    assert parse_size(str(actual)) == actual
    for call in CALLS:
        assert evaluated(actual * 3 - symbol(0), call) == evaluated(size, call) // divisor * 3 - call["d0"]
        assert evaluated(substituted(actual, {"d0": symbol(1)}), call) == (
            evaluated(substituted(size, {"d0": symbol(1)}), call) // divisor
        )


@pytest.mark.slow
@given(sizes(), st.integers(1, 6))
def test_a_quotient_times_its_divisor_is_the_size(size: Dim, divisor: int) -> None:
    assert quotient(size * divisor, divisor) == size
    if is_multiple(size, divisor):
        assert quotient(size, divisor) * divisor == size


@pytest.mark.slow
@given(sizes())
def test_a_size_is_read_from_its_text(size: Dim) -> None:
    assert parse_size(str(size) if isinstance(size, Size) else f"({size})") == size


@pytest.mark.slow
@given(sizes())
def test_a_solution_makes_a_difference_zero(difference: Dim) -> None:
    actual = solved(difference)
    if actual is not None:
        assert substituted(difference, dict([actual])) == 0


def test_equal_sizes_have_equal_types() -> None:
    text = "func.func private @f(tensor<(2*d0+1)x4xf32>, tensor<(d0+1+d0)x4xf32>) -> tensor<(d1*d0-d0*d1)xi8>"
    (function,) = parse(text)
    printed = to_text([function])
    assert printed.count("tensor<(2*d0+1)x4xf32>") == 2
    assert "tensor<0xi8>" in printed
    assert to_text(parse(printed)) == printed


@pytest.mark.parametrize("size", ["(d0 d1)", "(2d0)", "(d)", "(d0*)", "()", "(d0/2)", "(d0", "(2*2)"])
def test_what_is_no_size_is_refused(size: str) -> None:
    with pytest.raises(CompileError):
        parse(f"func.func private @f(memref<4xf32>) -> (tensor<{size}xf32>) attributes {{a = array<i64: {size}>}}")
