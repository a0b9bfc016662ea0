"""Decoding: what comes out for each kind of field, and that nothing but PumiceError comes of damaged bytes."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.vm import isa_programs as programs

from pumice.status import InvalidArgumentError
from pumice.vm.assembly.assembler import assemble
from pumice.vm.bytecode.decoder import Instruction, decode_function
from pumice.vm.bytecode.isa import Isa
from pumice.vm.bytecode.module_def import ModuleDef

ISA = Isa.for_version(17 << 16)
MODULE = assemble(programs.program(programs.writable(ISA)))


def _code(module: ModuleDef, ordinal: int) -> memoryview:
    each = module.functions[ordinal]
    return module.bytecode[each.offset : each.offset + each.length]


def _decode(code: bytes) -> tuple[Instruction, ...]:
    return decode_function(ISA, memoryview(code))


def test_every_operation_is_decoded_from_its_own_line() -> None:
    for ordinal, operation in enumerate(programs.writable(ISA)):
        instructions = decode_function(ISA, _code(MODULE, ordinal))
        assert [each.operation.mnemonic for each in instructions[:2]] == ["block", operation.mnemonic]
        assert len(instructions[1].values) == len(operation.fields)


def test_instructions_follow_each_other_without_gaps() -> None:
    for ordinal in range(len(MODULE.functions)):
        code = _code(MODULE, ordinal)
        instructions = decode_function(ISA, code)
        assert instructions[0].pc == 0
        assert [each.end for each in instructions[:-1]] == [each.pc for each in instructions[1:]]
        assert instructions[-1].end == len(code)


@given(st.integers(-(1 << 31), (1 << 31) - 1), st.integers(0, 0xFFFF))
def test_an_i32_is_signed(value: int, register: int) -> None:
    assert _decode(struct.pack("<BiH", 0x0D, value, register))[0].values == (value, register)


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_an_i64_is_signed(value: int) -> None:
    assert _decode(struct.pack("<BqH", 0x0F, value, 2))[0].values == (value, 2)


@given(st.floats(width=32, allow_nan=False), st.floats(allow_nan=False))
def test_floats(single: float, double: float) -> None:
    assert _decode(struct.pack("<BBfH", 0xE0, 0x05, single, 1))[0].values == (single, 1)
    assert _decode(struct.pack("<BBdH", 0xE1, 0x05, double, 2))[0].values == (double, 2)


@given(st.integers(0, 3), st.lists(st.integers(0, 0xFFFF), max_size=200))
def test_a_list_starts_at_an_even_pc(padding: int, registers: list[int]) -> None:
    code = b"\x79" * padding + b"\x5a"
    code += b"\xff" * (len(code) & 1) + struct.pack(f"<H{len(registers)}H", len(registers), *registers)
    last = _decode(code)[-1]
    assert (last.pc, last.end, last.values) == (padding, len(code), (tuple(registers),))


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 0xFFFF), st.integers(0, 0xFFFF)), max_size=100))
def test_branch_operands_are_pairs(pairs: list[tuple[int, int]]) -> None:
    flat = [each for pair in pairs for each in pair]
    code = struct.pack(f"<BIxH{len(flat)}H", 0x56, 0xFFFFFFFF, len(pairs), *flat)
    assert _decode(code)[0].values == (0xFFFFFFFF, tuple(pairs))


def test_a_branch_table_is_pairs_of_target_and_operands() -> None:
    code = struct.pack("<BHIxHHIHIHHH", 0x83, 7, 1, 0, 2, 10, 0, 20, 1, 5, 6)
    assert _decode(code)[0].values == (7, 1, (), ((10, ()), (20, ((5, 6),))))


def test_text_that_is_no_utf8_is_decoded_still() -> None:
    assert _decode(b"\x5b\x00\x00\x02\x00\xff\xfe")[0].values == (0, "\ufffd\ufffd")


@pytest.mark.parametrize("code", [b"\x89", b"\xff", b"\x79\xe2", b"\xe0\x3e\x00", b"\xe1\xff"])
def test_an_unknown_opcode_is_refused_with_its_pc(code: bytes) -> None:
    pc = code.count(b"\x79")
    with pytest.raises(InvalidArgumentError, match=rf"17\.0 at pc {pc} .*got 0x{code[pc]:02X}"):
        _decode(code)


def test_an_operation_of_a_newer_version_is_unknown_to_an_older_one() -> None:
    with pytest.raises(InvalidArgumentError, match="15.0"):
        decode_function(Isa.for_version(15 << 16), memoryview(b"\x85\x00\x00\x00"))
    with pytest.raises(InvalidArgumentError, match="16.0"):
        decode_function(Isa.for_version(16 << 16), memoryview(b"\x87" + bytes(20)))


def test_every_cut_is_refused_or_ends_between_two_instructions() -> None:
    for ordinal in range(len(MODULE.functions)):
        code = _code(MODULE, ordinal)
        ends = {0} | {each.end for each in decode_function(ISA, code)}
        for length in range(len(code)):
            if length in ends:
                assert all(each.end <= length for each in decode_function(ISA, code[:length]))
                continue
            with pytest.raises(InvalidArgumentError, match=rf"which has {length} bytes|at pc"):
                decode_function(ISA, code[:length])


@given(st.binary(max_size=300))
def test_any_bytes_are_decoded_or_refused(code: bytes) -> None:
    try:
        instructions = _decode(code)
    except InvalidArgumentError:
        return
    assert sum(each.end - each.pc for each in instructions) == len(code)


@pytest.mark.parametrize(
    "code",
    [
        b"\x5a\x00\xff\xff",
        b"\x5b\x00\x00\xff\xff",
        b"\x83\x00\x00" + bytes(7) + b"\xff\xff",
        b"\x56" + bytes(5) + b"\xff\xff",
    ],
)
def test_a_forged_count_is_refused(code: bytes) -> None:
    with pytest.raises(InvalidArgumentError, match="past the end"):
        _decode(code)
