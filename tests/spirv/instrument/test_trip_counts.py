"""What is said of a loop's length holds when it is counted out, with counters that wrap as a device's do."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.devices.shader_tools import needs_compiler

from pumice.spirv.binary.builder import Builder, Id
from pumice.spirv.instrument.blocks import Flow
from pumice.spirv.instrument.editor import Editor
from pumice.spirv.instrument.trip_counts import UNKNOWN, TripCounts, _count
from pumice.spirv.sources.glsl import compile_glsl

RELATIONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "!=": operator.ne}
MOST = 400

near = st.integers(-60, 60)
numbers = near | near.map(lambda n: n + (1 << 31)) | near.map(lambda n: n - (1 << 31))


@given(numbers, numbers, st.integers(-7, 7), st.sampled_from(sorted(RELATIONS)), st.booleans())
@example(10, 0, -1, ">=", False)  # never ends: unsigned numbers are at least 0
@example(10, (1 << 32) - 1, 1, "<=", False)
@example(10, 3, -4, ">", False)  # wraps past 0
def test_counts_hold(start: int, bound: int, step: int, sign: str, is_signed: bool) -> None:
    claimed = _count(start, bound, step, sign, is_signed=is_signed)

    def wrapped(value: int) -> int:
        value &= 0xFFFFFFFF
        return value - (1 << 32) if is_signed and value >> 31 else value

    at, passes = wrapped(start), 0
    while RELATIONS[sign](at, wrapped(bound)) and passes <= MOST:
        at, passes = wrapped(at + step), passes + 1
    if claimed != UNKNOWN:
        assert passes == min(claimed, MOST + 1)


def total_of(code: bytes) -> float:
    editor = Editor(code)
    flows = {flow.id: flow for flow in map(Flow.of, editor.functions)}
    return TripCounts(editor, flows).of_function(editor.entry_points[0][2])


@pytest.mark.parametrize(("bound", "most"), [(10, 12), (65_000, 65_002), (None, None)])
def test_loops_of_generated_kernels_have_a_bound(bound: int | None, most: int | None) -> None:
    builder = Builder()
    target = builder.buffer(0, "target", True)
    most_trips = builder.load(target, builder.word(0)) if bound is None else builder.word(bound)

    def step(values: Sequence[Id]) -> tuple[Sequence[Id], Id]:
        number, total = values
        return [number + 1, total * 3], number + 1 < most_trips

    builder.store(target, builder.word(0), builder.loop([builder.word(0), builder.word(1)], step)[1])
    assert total_of(builder.finish("main", (1, 1, 1))) == (UNKNOWN if most is None else most)


@pytest.mark.sample(10)
@needs_compiler
@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize(
    ("body", "most"),
    [
        ("for (uint i = 0; i < 10; i++) f();", 11),
        ("for (int i = 9; i >= 0; i -= 3) f();", 5),
        ("for (uint i = 0; i < 10; i++) for (uint j = 0; j < 20; j += 2) f();", 11 * 12),
        ("for (uint i = 0; i < 10; i++) f(); for (uint i = 0; 5 > i; i++) f();", 11 + 6),
        ("for (uint i = 0; i < 10; i++) g();", 11 * (1 + 8)),
        ("g(); g();", 16),
        ("for (uint i = 0; i < 10; i++) { if (c == 5) i = 0; f(); }", None),
        ("for (uint i = c; i < 10; i++) f();", None),
        ("for (uint i = 0; i < c; i++) f();", None),
        ("for (uint i = 10; i >= 0; i--) f();", None),
        ("while (c < 10) f();", None),
        ("for (uint i = 0; i < 10; i++) { f(); if (c == 7) break; }", 11),
        ("for (uint i = 0; i < 10; i++) for (uint j = 0; j < c; j++) f();", None),
    ],
)
def test_totals(body: str, most: int | None, optimize: bool) -> None:
    source = f"""#version 450
    layout(binding = 0) buffer B {{ uint c; }};
    void f() {{ c = c * 3 + 1; }}
    void g() {{ for (uint k = 3; k < 10; k++) f(); }}
    void main() {{ {body} }}"""
    total = total_of(compile_glsl(source, optimize=optimize))
    if most is None:
        assert total == UNKNOWN
    elif not optimize:
        assert total == most
    else:
        assert total in (0, most, UNKNOWN) or total < most  # unrolled, or in a form that is not followed
