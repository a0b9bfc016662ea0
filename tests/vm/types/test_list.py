"""VmList: every pair of kinds against the peer's list operations, its failures, and its own limits."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.vm import programs

from pumice.status import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PumiceError,
    ResourceExhaustedError,
)
from pumice.vm.types import list as list_module
from pumice.vm.types.buffer import VmBuffer
from pumice.vm.types.list import VmList
from pumice.vm.types.numerics import bitcast_f32_i32, bitcast_f64_i64, bitcast_i32_f32, bitcast_i64_f64, round_f32
from pumice.vm.types.ref_types import ref_type_class

NUMBERS = ("i8", "i16", "i32", "i64", "f32", "f64")
ACCESS = ("i32", "i64", "f32", "f64")
REF_TYPES = ["!vm.buffer", "!vm.opaque"] + [f"!vm.list<{t}>" for t in (*NUMBERS, "!vm.buffer", "!vm.opaque")]
VALUES: dict[str, list[int]] = {
    "i32": [0, 1, -1, 127, 128, -129, 0x7FFF, 0x8000, 0x12345678, -(1 << 31)],
    "i64": [0, -1, 0x80, 0x8000, 0x8000_0000, 0x1234_5678_9ABC_DEF0, -(1 << 63)],
    "f32": [bitcast_f32_i32(round_f32(x)) for x in (0.0, -0.0, 1.5, -3e38, float("inf"), 1e-45)],
    "f64": [bitcast_f64_i64(x) for x in (0.0, -0.0, 1.1, -3.5e38, 1e300, 5e-324, float("-inf"))],
}


def _value(kind: str, word: int) -> float:
    return bitcast_i32_f32(word) if kind == "f32" else bitcast_i64_f64(word) if kind == "f64" else word


def _word(kind: str, value: float) -> int:
    return bitcast_f32_i32(value) if kind == "f32" else bitcast_f64_i64(value) if kind == "f64" else int(value)


def _new(element: str) -> VmList:
    fresh = VmList.for_type("!vm.opaque" if element == "any" else element)
    fresh.resize(2)
    return fresh


@pytest.mark.peer
def test_numbers_convert_as_the_peers(tmp_path: Path) -> None:
    """Every element kind, set as every kind and got as every kind."""
    function = programs.Function()
    expected: list[tuple[str, str, str, int, int]] = []
    for element in (*NUMBERS, "any"):
        written = "!vm.opaque" if element == "any" else element
        register = function.ref()
        function.lines.append(f"{register} = vm.list.alloc {function.constant('i32', 2)} : !vm.list<{written}>")
        function.do(f"list.resize {register}, {function.constant('i32', 2)}")
        mine = _new(element)
        index = function.constant("i32", 1)
        for source, target in itertools.product(ACCESS, ACCESS):
            for word in VALUES[source]:
                getattr(mine, f"set_{source}")(1, _value(source, word))
                function.do(f"list.set.{source} {register}, {index}, {function.constant(source, word)}")
                got = getattr(mine, f"get_{target}")(1)
                expected.append((element, source, target, word, _word(target, got)))
                function.give(target, function.op(target, f"list.get.{target} {register}, {index}"))
    program = programs.Program(tmp_path, {"convert": function}, REF_TYPES)
    for case, word in zip(expected, program.run("convert"), strict=True):
        assert case[4] == word, case


Step = Callable[[VmList, VmBuffer], object]

# (element type, operations in assembly on %r0 a list of size 2, %r1 a buffer, %r2 a list<i32>, %i0..%i3 = 0..3) → here
_OTHER = VmList("i32")
FAILURES: list[tuple[str, str, Step]] = [
    *[(e, "%i8 = vm.list.get.i32 %r0, %i2", lambda x, b: x.get_i32(2)) for e in ("i8", "any", "!vm.buffer")],
    *[(e, "%i8 = vm.list.get.i32 %r0, %i4", lambda x, b: x.get_i32(-1)) for e in ("i8", "any")],
    *[(e, "vm.list.set.f32 %r0, %i3, %i0", lambda x, b: x.set_f32(3, 0.0)) for e in ("f32", "any", "!vm.buffer")],
    *[(e, "%i8 = vm.list.get.f32 %r0, %i1", lambda x, b: x.get_f32(1)) for e in ("f64", "any", "!vm.buffer")],
    *[(e, "%i8:9 = vm.list.get.i64 %r0, %i1", lambda x, b: x.get_i64(1)) for e in ("i8", "any", "!vm.list<i8>")],
    *[(e, "vm.list.set.i32 %r0, %i1, %i1", lambda x, b: x.set_i32(1, 1)) for e in ("i8", "any", "!vm.buffer")],
    *[
        (e, "%r3 = vm.list.get.ref %r0, %i1 : !vm.buffer", lambda x, b: x.get_ref(1, (VmBuffer,)))
        for e in ("i64", "any", "!vm.buffer", "!vm.list<i8>")
    ],
    *[
        (e, "%r3 = vm.list.get.ref %r0, %i2 : !vm.buffer", lambda x, b: x.get_ref(2, (VmBuffer,)))
        for e in ("i64", "any", "!vm.buffer")
    ],
    *[
        (e, "vm.list.set.ref %r0, %i1, %r1", lambda x, b: x.set_ref(1, b))
        for e in ("i64", "any", "!vm.buffer", "!vm.list<i8>")
    ],
    *[
        (e, "vm.list.set.ref %r0, %i1, %r2", lambda x, b: x.set_ref(1, _OTHER))
        for e in ("i64", "any", "!vm.buffer", "!vm.list<i8>")
    ],
    *[(e, "vm.list.set.ref %r0, %i2, %r1", lambda x, b: x.set_ref(2, b)) for e in ("i64", "any", "!vm.buffer")],
    *[
        (e, "%r3 = vm.const.ref.zero;vm.list.set.ref %r0, %i1, %r3", lambda x, b: x.set_ref(1, None))
        for e in ("i64", "any", "!vm.buffer", "!vm.list<i8>")
    ],
    (
        "any",
        "vm.list.set.i32 %r0, %i1, %i1;%r3 = vm.list.get.ref %r0, %i1 : !vm.buffer",
        lambda x, b: (x.set_i32(1, 1), x.get_ref(1)),
    ),
    (
        "any",
        "vm.list.set.ref %r0, %i1, %r1;%i8 = vm.list.get.i32 %r0, %i1",
        lambda x, b: (x.set_ref(1, b), x.get_i32(1)),
    ),
    (
        "any",
        "vm.list.set.i32 %r0, %i1, %i1;%r3 = vm.const.ref.zero;vm.list.set.ref %r0, %i1, %r3;"
        "%i8 = vm.list.get.i32 %r0, %i1",
        lambda x, b: (x.set_i32(1, 1), x.set_ref(1, None), x.get_i32(1)),
    ),
    (
        "any",
        "vm.list.set.ref %r0, %i1, %r1;vm.list.set.i32 %r0, %i1, %i1;%i8 = vm.list.get.i32 %r0, %i1",
        lambda x, b: (x.set_ref(1, b), x.set_i32(1, 1), x.get_i32(1)),
    ),
    ("i32", "vm.list.reserve %r0, %i3", lambda x, b: x.reserve(3)),
    ("i32", "vm.list.resize %r0, %i1;%i8 = vm.list.get.i32 %r0, %i1", lambda x, b: (x.resize(1), x.get_i32(1))),
]


@pytest.mark.peer
def test_fails_with_the_peers_status(tmp_path: Path) -> None:
    functions = {}
    for number, (element, text, _) in enumerate(FAILURES):
        function = programs.Function()
        function.lines += [f"%i{n} = vm.const.i32 {word}" for n, word in enumerate((0, 1, 2, 3, -1))]
        written = "!vm.opaque" if element == "any" else element
        function.lines += [
            f"%r0 = vm.list.alloc %i2 : !vm.list<{written}>",
            "vm.list.resize %r0, %i2",
            "%r1 = vm.const.ref.rodata 0",
            "%r2 = vm.list.alloc %i2 : !vm.list<i32>",
            *text.split(";"),
        ]
        functions[f"f{number}"] = function
    types = [*REF_TYPES, "!vm.list<!vm.list<i8>>"]
    program = programs.Program(tmp_path, functions, types, [b"\1\2\3\4"])
    for number, (element, text, step) in enumerate(FAILURES):
        try:
            step(_new(element), VmBuffer.wrap(b"\1\2\3\4"))
            mine = "OK"
        except PumiceError as error:
            mine = error.code.name
        assert mine == program.failure(f"f{number}"), (element, text)


@pytest.mark.peer
def test_references_come_back_as_the_peers(tmp_path: Path) -> None:
    """`list.get.ref` of a buffer, by the type asked for; with a move, also what it leaves in the slot."""
    asked = ["!vm.buffer", "!vm.list<i32>", "i32"]
    function = programs.Function()
    expected: list[tuple[str, str, bool, int]] = []
    buffer = VmBuffer.wrap(b"\1")
    function.lines += ["%r0 = vm.const.ref.rodata 0"]
    function._next_ref = 1
    index = function.constant("i32", 1)
    size = function.constant("i32", 2)
    for element, name, move in itertools.product(("any", "!vm.buffer"), asked, (False, True)):
        written = "!vm.opaque" if element == "any" else element
        holder = function.ref()
        function.lines.append(f"{holder} = vm.list.alloc {size} : !vm.list<{written}>")
        function.do(f"list.resize {holder}, {size}")
        function.do(f"list.set.ref {holder}, {index}, %r0")
        mine = _new(element)
        mine.set_ref(1, buffer)
        got, again = function.ref(), function.ref()
        function.lines.append(f"{got.replace('r', 'R') if move else got} = vm.list.get.ref {holder}, {index} : {name}")
        function.lines.append(f"{again} = vm.list.get.ref {holder}, {index} : !vm.buffer")
        for text, value in (
            (got, mine.get_ref(1, ref_type_class(name) or (), move=move)),
            (again, mine.get_ref(1, (VmBuffer,))),
        ):
            expected.append((element, name, move, int(value is buffer)))
            function.give("i32", function.op("i32", f"cmp.eq.ref {text}, %r0"))
    program = programs.Program(tmp_path, {"get": function}, REF_TYPES, [b"\1"])
    for case, word in zip(expected, program.run("get"), strict=True):
        assert case[3] == word, case


# ---------------------------------------------------------------------------------------------------------- pure


@given(st.sampled_from([*NUMBERS, "any", "ref:vm.buffer"]), st.lists(st.integers(0, 40), max_size=8))
def test_resize_keeps_what_stays_and_clears_what_comes(kind: str, sizes: list[int]) -> None:
    mine = VmList(kind)
    model: list[object] = []
    zero: object = 0 if kind[0] == "i" else 0.0 if kind[0] == "f" else None
    buffer = VmBuffer.allocate(1)
    for size in sizes:
        mine.resize(size)
        model = model[:size] + [zero] * (size - len(model))
        assert mine.size() == len(mine) == size
        assert mine.values() == tuple(model)
        for index in range(size):
            if kind in ("any", "ref:vm.buffer"):
                mine.set_ref(index, buffer)
            else:
                mine.set_i32(index, index)
            model[index] = buffer if zero is None else index if kind[0] == "i" else 0.0
    mine.clear()
    assert mine.values() == ()


def test_variant_slots_are_empty_again_after_a_resize() -> None:
    mine = VmList("any")
    mine.resize(1)
    mine.set_i32(0, 5)
    mine.resize(0)
    mine.resize(1)
    assert mine.get_ref(0) is None
    with pytest.raises(FailedPreconditionError, match="empty"):
        mine.get_i32(0)


@pytest.mark.parametrize("count", [(1 << 24) + 1, (1 << 31) - 1, -1, -(1 << 31)])
def test_forged_counts_are_refused(count: int) -> None:
    mine = VmList("i32")
    for step in (mine.resize, mine.reserve, lambda n: VmList("any", n)):
        with pytest.raises(ResourceExhaustedError, match="MAX_LIST_SIZE"):
            step(count)
    assert mine.size() == 0


def test_the_limit_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_module, "MAX_LIST_SIZE", 3)
    mine = VmList("f64", 3)
    mine.resize(3)
    with pytest.raises(ResourceExhaustedError):
        mine.resize(4)


def test_types_as_modules_write_them() -> None:
    assert VmList.for_type("i8").element_kind == "i8"
    assert VmList.for_type("!vm.opaque").element_kind == "any"
    assert VmList.for_type("?").element_kind == "any"
    assert VmList.for_type("!vm.buffer").element_kind == "ref:vm.buffer"
    assert VmList.for_type("!vm.list<!vm.list<i32>>").element_kind == "ref:vm.list"
    with pytest.raises(NotFoundError, match="no.such"):
        VmList.for_type("!no.such")
    for wrong in ("i128", "", "ref"):
        with pytest.raises(InvalidArgumentError):
            VmList(wrong)


def test_of_takes_python_values() -> None:
    buffer = VmBuffer.allocate(1)
    mine = VmList.of("any", [1 << 40, 2.5, buffer, None])
    assert (mine.get_i64(0), mine.get_f64(1), mine.get_ref(2), mine.get_ref(3)) == (1 << 40, 2.5, buffer, None)
    assert VmList.of("ref:vm.buffer", [buffer, None]).values() == (buffer, None)
    assert VmList.of("i8", [300]).values() == (44,)
    with pytest.raises(InvalidArgumentError, match=r"vm\.list"):
        VmList.of("ref:vm.buffer", [mine])
    with pytest.raises(FailedPreconditionError):
        VmList.of("i32", [buffer])


def test_index_errors_name_index_and_size() -> None:
    mine = VmList("i32")
    mine.resize(3)
    with pytest.raises(OutOfRangeError, match=r"size 3, got 3"):
        mine.get_i32(3)
