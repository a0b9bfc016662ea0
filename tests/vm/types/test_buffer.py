"""VmBuffer: against the peer's buffer operations on random programs, NumPy, and its own limits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.vm import programs

from pumice.status import (
    InvalidArgumentError,
    OutOfRangeError,
    PermissionDeniedError,
    PumiceError,
    ResourceExhaustedError,
)
from pumice.vm.types import buffer as buffer_module
from pumice.vm.types.buffer import VmBuffer, require_buffer
from pumice.vm.types.numerics import bitcast_f32_i32, bitcast_f64_i64, bitcast_i32_f32, bitcast_i64_f64, wrap32, wrap64
from pumice.vm.types.ref_types import ref_type_class

SIZES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "f32": 4, "f64": 8}
LOADS = {
    "i8.s": "i32",
    "i8.u": "i32",
    "i16.s": "i32",
    "i16.u": "i32",
    "i32": "i32",
    "i64": "i64",
    "f32": "f32",
    "f64": "f64",
}
RODATA = bytes((i * 37 + 11) & 0xFF for i in range(61))
LENGTH = 61
NAN_WORDS = {"f32": [0x7F80_0001, -1, 0x7FC0_1234, -0x40_0000], "f64": [0x7FF0_0000_0000_0001, -1, 0x7FF8 << 48]}


def _value(kind: str, word: int) -> float:
    return bitcast_i32_f32(word) if kind == "f32" else bitcast_i64_f64(word) if kind == "f64" else word


def _word(kind: str, value: float) -> int:
    return bitcast_f32_i32(value) if kind == "f32" else bitcast_f64_i64(value) if kind == "f64" else int(value)


def _random_word(rng: np.random.Generator, kind: str) -> int:
    if kind in NAN_WORDS and rng.random() < 0.3:
        return NAN_WORDS[kind][int(rng.integers(len(NAN_WORDS[kind])))]
    bits = int(rng.integers(0, 1 << 64, dtype=np.uint64))
    return wrap64(bits) if SIZES[kind] == 8 else wrap32(bits)


def _random_program(seed: int) -> tuple[programs.Function, list[int]]:
    """The same random steps as assembly and on VmBuffers; returns the function and the words that it should give."""
    rng = np.random.default_rng(seed)
    function = programs.Function()
    expected: list[int] = []

    def i64(value: int) -> str:
        return str(function.constant("i64", value))

    def ref(text: str) -> str:
        name = function.ref()
        function.lines.append(f"{name} = vm.{text}")
        return str(name)

    constant = VmBuffer.wrap(RODATA)
    mine = VmBuffer.allocate(LENGTH, 16)
    constant_ref = ref("const.ref.rodata 0")
    mine_ref = ref(f"buffer.alloc {i64(LENGTH)}, {function.constant('i32', 16)}")
    for _ in range(40):
        step = int(rng.integers(0, 7))
        kind = list(SIZES)[int(rng.integers(len(SIZES)))]
        count = LENGTH // SIZES[kind]
        register_kind = kind if kind[0] == "f" or kind == "i64" else "i32"
        if step == 0:
            index, word = int(rng.integers(count)), _random_word(rng, kind)
            getattr(mine, f"store_{kind}")(index, _value(kind, word))
            value = function.constant(register_kind, word)
            function.do(f"buffer.store.{kind} {value}, {mine_ref}, {i64(index)}")
        elif step == 1:
            index, word = int(rng.integers(count + 1)), _random_word(rng, kind)
            length = int(rng.integers(count - index + 1))
            getattr(mine, f"fill_{kind}")(index, length, _value(kind, word))
            function.do(
                f"buffer.fill.{kind} {mine_ref}, {i64(index)}, {i64(length)}, {function.constant(register_kind, word)}"
            )
        elif step == 2:
            length = int(rng.integers(LENGTH + 1))
            source, target = (int(rng.integers(LENGTH - length + 1)) for _ in range(2))
            mine.copy(constant, source, target, length)
            function.do(f"buffer.copy {constant_ref}, {i64(source)}, {mine_ref}, {i64(target)}, {i64(length)}")
        elif step == 3:
            load = list(LOADS)[int(rng.integers(len(LOADS)))]
            index = int(rng.integers(LENGTH // SIZES[load.split(".")[0]]))
            expected.append(_word(LOADS[load], getattr(mine, f"load_{load.replace('.', '_')}")(index)))
            function.give(LOADS[load], function.op(LOADS[load], f"buffer.load.{load} {mine_ref}, {i64(index)}"))
        elif step == 4:
            length = int(rng.integers(4))
            left, right = (int(rng.integers(LENGTH - length + 1)) for _ in range(2))
            expected.append(mine.compare(left, constant, right, length))
            text = f"buffer.compare {mine_ref}, {i64(left)}, {constant_ref}, {i64(right)}, {i64(length)}"
            function.give("i32", function.op("i32", text))
        elif step == 5:
            length = int(rng.integers(LENGTH + 1))
            offset = int(rng.integers(LENGTH - length + 1))
            expected.append(mine.hash(offset, length))
            function.give("i64", function.op("i64", f"buffer.hash {mine_ref}, {i64(offset)}, {i64(length)}"))
        else:
            # A clone of the whole, so that the length stays.
            mine = mine.clone(0, LENGTH, 1 << int(rng.integers(0, 8)))
            mine_ref = ref(f"buffer.clone {mine_ref}, {i64(0)}, {i64(LENGTH)}, {function.constant('i32', 8)}")
            expected.append(mine.length)
            function.give("i64", function.op("i64", f"buffer.length {mine_ref}"))
    for index in range(LENGTH // 4):
        expected.append(mine.load_i32(index))
        function.give("i32", function.op("i32", f"buffer.load.i32 {mine_ref}, {i64(index)}"))
    return function, expected


@pytest.mark.peer
def test_random_programs_give_the_peers_words(tmp_path: Path) -> None:
    cases = {f"f{seed}": _random_program(seed) for seed in range(40)}
    program = programs.Program(tmp_path, {n: f for n, (f, _) in cases.items()}, ["!vm.buffer"], [RODATA])
    for name, (_, expected) in cases.items():
        assert program.run(name) == expected, name


# operation on %r0 (12 bytes of constants) or %r1 (a writable buffer of 12 bytes) → the same here
FAILURES = {
    "buffer.load.i8.u %r1, 12": lambda c, b: b.load_i8_u(12),
    "buffer.load.i32 %r1, 3": lambda c, b: b.load_i32(3),
    "buffer.load.i32 %r0, -2": lambda c, b: c.load_i32(-2),
    "buffer.load.i64 %r1, 1": lambda c, b: b.load_i64(1),
    "buffer.load.f64 %r1, 1": lambda c, b: b.load_f64(1),
    "buffer.load.i32 %r1, 2": lambda c, b: b.load_i32(2),
    "buffer.store.i32 i32, %r1, 3": lambda c, b: b.store_i32(3, 0),
    "buffer.store.i16 i32, %r1, 6": lambda c, b: b.store_i16(6, 0),
    "buffer.store.i32 i32, %r0, 0": lambda c, b: c.store_i32(0, 0),
    "buffer.store.i8 i32, %r0, 99": lambda c, b: c.store_i8(99, 0),
    "buffer.fill.i16 %r1, 3, 4, i32": lambda c, b: b.fill_i16(3, 4, 0),
    "buffer.fill.i16 %r1, 3, 3, i32": lambda c, b: b.fill_i16(3, 3, 0),
    "buffer.fill.i8 %r0, 0, 1, i32": lambda c, b: c.fill_i8(0, 1, 0),
    "buffer.copy %r1, 0, %r0, 0, 1": lambda c, b: c.copy(b, 0, 0, 1),
    "buffer.copy %r1, 13, %r0, 0, 1": lambda c, b: c.copy(b, 13, 0, 1),
    "buffer.copy %r0, 4, %r1, 5, 8": lambda c, b: b.copy(c, 4, 5, 8),
    "buffer.copy %r0, 4, %r1, 4, 8": lambda c, b: b.copy(c, 4, 4, 8),
    "buffer.compare %r0, 0, %r1, 1, 12": lambda c, b: c.compare(0, b, 1, 12),
    "buffer.hash %r0, 1, 12": lambda c, b: c.hash(1, 12),
    "buffer.clone %r0, 8, 5, i32": lambda c, b: c.clone(8, 5, 0),
    "buffer.clone %r0, 8, 4, i32=3": lambda c, b: c.clone(8, 4, 3),
    "buffer.clone %r0, 8, 4, i32=64": lambda c, b: c.clone(8, 4, 64),
    "buffer.alloc 8, i32=12": lambda c, b: VmBuffer.allocate(8, 12),
    "buffer.alloc 8, i32=-4": lambda c, b: VmBuffer.allocate(8, -4),
    "buffer.alloc 8, i32=0": lambda c, b: VmBuffer.allocate(8, 0),
}


@pytest.mark.peer
def test_fails_with_the_peers_status(tmp_path: Path) -> None:
    functions = {}
    for number, text in enumerate(FAILURES):
        function = programs.Function()
        name, _, operands = text.partition(" ")
        function.lines.append("%r0 = vm.const.ref.rodata 0")
        function.lines.append(f"%r1 = vm.buffer.alloc {function.constant('i64', 12)}, {function.constant('i32', 16)}")
        registers = []
        for operand in operands.split(", "):
            if operand.startswith("i32"):
                registers.append(function.constant("i32", int(operand[4:] or 0)))
            else:
                registers.append(operand if operand[0] == "%" else function.constant("i64", int(operand)))
        call = f"{name} {', '.join(registers)}"
        kind = name.split(".")[-1]
        if name in ("buffer.clone", "buffer.alloc"):
            function.lines.append(f"%r2 = vm.{call}")
        elif name in ("buffer.compare", "buffer.hash") or ".load" in name:
            function.op("i64" if kind in ("hash", "i64", "f64") else "i32", call)
        else:
            function.do(call)
        functions[f"f{number}"] = function
    program = programs.Program(tmp_path, functions, ["!vm.buffer"], [RODATA[:12]])
    for number, (text, step) in enumerate(FAILURES.items()):
        try:
            step(VmBuffer.wrap(RODATA[:12]), VmBuffer.allocate(12))
            mine = "OK"
        except PumiceError as error:
            mine = error.code.name
        assert mine == program.failure(f"f{number}"), text


# -------------------------------------------------------------------------------------------------------- pure


@pytest.mark.slow
@given(st.binary(max_size=40), st.sampled_from(sorted(LOADS)), st.integers(-3, 45))
def test_loads_are_numpys_or_out_of_range(data: bytes, load: str, index: int) -> None:
    buffer = VmBuffer.wrap(data)
    code = {"i8.s": "<i1", "i8.u": "<u1", "i16.s": "<i2", "i16.u": "<u2"}.get(
        load, f"<{load[0]}{SIZES[load.split('.')[0]]}"
    )
    size = SIZES[load.split(".")[0]]
    elements = np.frombuffer(data[: len(data) // size * size], dtype=code)
    call = getattr(buffer, f"load_{load.replace('.', '_')}")
    if 0 <= index < len(elements):
        value = call(index)
        word = _word(LOADS[load], value) if load[0] == "f" else value
        assert word == elements[index : index + 1].view(code.replace("f", "i"))[0]
    else:
        with pytest.raises(OutOfRangeError):
            call(index)


@given(
    st.sampled_from(sorted(SIZES)), st.integers(-3, 45), st.integers(*(-(1 << 31), (1 << 31) - 1)), st.integers(0, 41)
)
def test_stores_touch_their_element_and_nothing_else(kind: str, index: int, word: int, length: int) -> None:
    buffer = VmBuffer.allocate(length)
    expected = bytearray(length)
    size = SIZES[kind]
    value = _value(kind, word)
    if 0 <= index < length // size:
        getattr(buffer, f"store_{kind}")(index, value)
        expected[index * size : (index + 1) * size] = (word & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    else:
        with pytest.raises(OutOfRangeError):
            getattr(buffer, f"store_{kind}")(index, value)
    assert bytes(buffer.as_memoryview()) == bytes(expected)


@pytest.mark.parametrize("kind", SIZES)
def test_big_fills_are_numpys(kind: str) -> None:
    """Past 64 KiB fills take another path."""
    size = SIZES[kind]
    buffer = VmBuffer.allocate(300_001)
    count = 250_000 // size
    word = 0x1234_5678 if size < 8 else 0x1234_5678_9ABC_DEF0
    getattr(buffer, f"fill_{kind}")(3, count, _value(kind, word))
    expected = np.zeros(300_001, np.uint8)
    pattern = (word & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    expected[3 * size : (3 + count) * size] = np.tile(np.frombuffer(pattern, np.uint8), count)
    assert np.array_equal(np.frombuffer(buffer.as_memoryview(), np.uint8), expected)


def test_copy_within_one_buffer_may_overlap() -> None:
    buffer = VmBuffer.wrap(bytearray(range(16)))
    buffer.copy(buffer, 0, 4, 12)
    assert bytes(buffer.as_memoryview()) == bytes([0, 1, 2, 3, *range(12)])


def test_wrap_shares_memory_both_ways() -> None:
    memory = np.arange(8, dtype=np.int32)
    buffer = VmBuffer.wrap(memory.data)
    assert buffer.length == 32 and buffer.load_i32(5) == 5
    buffer.store_i32(5, -7)
    memory[6] = 9
    assert memory[5] == -7 and buffer.load_i32(6) == 9
    assert np.shares_memory(memory, np.frombuffer(buffer.as_memoryview(), np.int32))


def test_wrap_read_only() -> None:
    memory = bytearray(8)
    buffer = VmBuffer.wrap(memory, writable=False)
    assert not buffer.writable and buffer.as_memoryview().readonly
    for step in (
        lambda: buffer.store_i8(0, 1),
        lambda: buffer.store_f32(0, float("nan")),
        lambda: buffer.fill_f64(0, 1, 1.0),
        lambda: buffer.copy(buffer, 0, 0, 0),
    ):
        with pytest.raises(PermissionDeniedError):
            step()
    memory[3] = 5
    assert buffer.load_i8_u(3) == 5
    assert buffer.clone(0, 8, 0).writable
    with pytest.raises(InvalidArgumentError, match="read-only"):
        VmBuffer.wrap(b"abc", writable=True)
    with pytest.raises(InvalidArgumentError, match="contiguous"):
        VmBuffer.wrap(memoryview(b"abcdef")[::2])


@pytest.mark.parametrize("length", [0, 1, 100, 70_000])
@pytest.mark.parametrize("alignment", [0, 1, 8, 16, 64, 4096])
def test_allocations_are_aligned_and_zero(length: int, alignment: int) -> None:
    buffer = VmBuffer.allocate(length, alignment)
    view = np.frombuffer(buffer.as_memoryview(), np.uint8)
    assert view.size == length and not view.any() and buffer.writable
    if length:
        assert view.ctypes.data % max(alignment, buffer.alignment) == 0


@pytest.mark.parametrize("length", [1 << 33, 1 << 62, (1 << 63) - 1])
def test_forged_lengths_are_refused(length: int) -> None:
    with pytest.raises(ResourceExhaustedError, match="MAX_BUFFER_LENGTH"):
        VmBuffer.allocate(length, 16)
    with pytest.raises(OutOfRangeError):
        VmBuffer.allocate(8).clone(0, length, 0)
    with pytest.raises(OutOfRangeError):
        VmBuffer.allocate(8).fill_i64(0, length, 0)
    with pytest.raises(OutOfRangeError):
        VmBuffer.allocate(8).load_i64(length)


def test_the_limit_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffer_module, "MAX_BUFFER_LENGTH", 100)
    VmBuffer.allocate(100)
    with pytest.raises(ResourceExhaustedError):
        VmBuffer.allocate(101)
    with pytest.raises(ResourceExhaustedError):
        VmBuffer.allocate(90, 64)


def test_negative_sizes_are_invalid() -> None:
    buffer = VmBuffer.allocate(8)
    for step in (
        lambda: VmBuffer.allocate(-1),
        lambda: buffer.fill_i8(0, -1, 0),
        lambda: buffer.copy(buffer, 0, 0, -1),
        lambda: buffer.compare(0, buffer, 0, -1),
        lambda: buffer.clone(0, -1, 0),
        lambda: buffer.hash(0, -1),
    ):
        with pytest.raises(InvalidArgumentError):
            step()


def test_values_out_of_canonical_form_are_an_error() -> None:
    buffer = VmBuffer.allocate(8)
    with pytest.raises(InvalidArgumentError, match="canonical"):
        buffer.store_i32(0, 1 << 31)


def test_hash_is_the_siphash_of_its_authors() -> None:
    """The worked example of the paper's appendix A, and the first of the reference implementation's vectors."""
    assert VmBuffer.wrap(bytes(range(15))).hash(0, 15) & 0xFFFF_FFFF_FFFF_FFFF == 0xA129CA6149BE45E5
    assert VmBuffer.wrap(b"").hash(0, 0) & 0xFFFF_FFFF_FFFF_FFFF == 0x726FDB47DD0E0E31


def test_require_buffer() -> None:
    buffer = VmBuffer.allocate(1)
    assert require_buffer(buffer) is buffer
    for wrong in (None, b"x"):
        with pytest.raises(InvalidArgumentError, match=r"vm\.buffer"):
            require_buffer(wrong)
        with pytest.raises(InvalidArgumentError):
            buffer.copy(wrong, 0, 0, 0)  # type: ignore[arg-type]
    assert ref_type_class("!vm.buffer") == (VmBuffer,)
    with pytest.raises(AttributeError, match="nothing"):
        buffer.nothing  # noqa: B018
