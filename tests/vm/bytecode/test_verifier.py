"""Verifying: what compilers and assemblers write is accepted, and nothing that could lead an interpreter astray."""

from __future__ import annotations

import dataclasses
import random
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.vm import isa_programs as programs

from pumice.status import IncompatibleError, InvalidArgumentError, PumiceError
from pumice.vm.assembly.assembler import assemble
from pumice.vm.bytecode import isa_tables
from pumice.vm.bytecode.calling_convention import CallingConvention
from pumice.vm.bytecode.isa import FieldKind, Isa
from pumice.vm.bytecode.module_def import ExportDef, FunctionDescriptor, ImportDef, ModuleDef, Signature
from pumice.vm.bytecode.verifier import VerifiedModule, argument_registers, verify_module
from pumice.vm.bytecode.writer import write_module

ISA = Isa.for_version(17 << 16)
BLOCK = b"\x79"
EVERY = assemble(programs.program(programs.writable(ISA)))


def module(
    code: bytes,
    *,
    convention: str = "0v_v",
    blocks: int = 1,
    i32: int = 8,
    ref: int = 4,
    requirements: int = 3,
    version: int = 17 << 16,
    functions: tuple[tuple[int, int], ...] | None = None,
) -> ModuleDef:
    """A module of one function, or of one a range of the code, with something of every table to refer to."""
    ranges = ((0, len(code)),) if functions is None else functions
    return ModuleDef(
        name="test",
        types=("i32", "!vm.buffer"),
        imports=(ImportDef("m.plain", Signature("0iI_r")), ImportDef("m.tuples", Signature("0rCiID_v"))),
        exports=(ExportDef("main", 0),),
        signatures=tuple(Signature(convention) for _ in ranges),
        rodata=(memoryview(b"abc"),),
        global_bytes=16,
        global_refs=2,
        functions=tuple(FunctionDescriptor(at, size, requirements, blocks, i32, ref) for at, size in ranges),
        bytecode_version=version,
        bytecode=memoryview(code),
    )


def body(*instructions: bytes) -> bytes:
    """A block of instructions that returns nothing."""
    code = BLOCK + b"".join(instructions)
    return code + returns(len(code))


def returns(at: int, *values: int) -> bytes:
    """A return at a pc."""
    return b"\x5a" + registers(at + 1, *values)


def op(mnemonic: str, layout: str = "", *values: int) -> bytes:
    operation = ISA.operations[mnemonic]
    prefix = b"" if operation.prefix is None else bytes([operation.prefix])
    return prefix + bytes([operation.opcode]) + struct.pack("<" + layout, *values)


def registers(at: int, *values: int) -> bytes:
    """A list of registers at a pc."""
    return bytes(at & 1) + struct.pack(f"<H{len(values)}H", len(values), *values)


def refusal(definition: ModuleDef) -> str:
    with pytest.raises(InvalidArgumentError) as caught:
        verify_module(definition)
    return caught.value.message


R = 0x8000
MOVE = 0x4000
IMPORT = 0x8000_0000


def test_every_operation_is_accepted() -> None:
    verified = verify_module(EVERY)
    assert len(verified.functions) == len(programs.writable(ISA))
    assert verified.functions[0].name == "f0"
    assert verified.functions[0].signature.text == "0ir_i"
    assert verified.functions[0].argument_registers == (0, R)
    assert [each.text for each in verified.imports] == ["0iIfFr_iIfFr", "0rCiIDi_r"]


@pytest.mark.parametrize("version", isa_tables.VERSIONS)
def test_every_operation_of_a_version_is_accepted(version: tuple[int, int]) -> None:
    isa = Isa.for_version(version[0] << 16 | version[1])
    operations = programs.writable(isa)
    verified = verify_module(assemble(programs.program(operations), bytecode_version=version[0] << 16 | version[1]))
    assert [each.instructions[1].operation for each in verified.functions] == operations


def test_an_unknown_version_or_feature_is_incompatible() -> None:
    with pytest.raises(IncompatibleError, match=r"18\.0"):
        verify_module(module(body(), version=18 << 16))
    with pytest.raises(IncompatibleError, match="0x10"):
        verify_module(module(body(), requirements=0x10))
    with pytest.raises(IncompatibleError, match="module test"):
        verify_module(dataclasses.replace(module(body()), requirements=0x20))


REGISTERS = [
    ("add.i32", "HHH", (0, 1, 8), "below 8, got %i8"),
    ("add.i32", "HHH", (0, R, 1), "bank i32, got %r0"),
    ("add.i32", "HHH", (0x7FFF, 1, 1), "below 8, got %i32767"),
    ("add.i64", "HHH", (0, 2, 5), "even register for an i64, got %i5"),
    ("add.i64", "HHH", (0, 8, 2), "below 8, got %i9"),
    ("add.f64", "HHH", (0, 2, R | 2), "bank i64"),
    ("add.f32", "HHH", (0, 2, 9), "below 8"),
    ("list.size", "HH", (R | 4, 0), "reference register below 4, got %r4"),
    ("list.size", "HH", (0, 0), "bank ref, got %i0"),
    ("list.size", "HH", (R | MOVE, 0), "no MOVE bit on list"),
    ("cmp.eq.ref", "HHH", (R, R | MOVE, 0), "no MOVE bit on right"),
    ("assign.ref", "HH", (R | MOVE, R | 0x3FFF), "below 4, got %r16383"),
    ("global.load.i32", "IH", (16, 0), "within the 16 bytes of globals, got 16"),
    ("global.load.i32", "IH", (0xFFFFFFFF, 0), "got 4294967295"),
    ("global.load.i32", "IH", (2, 0), "multiple of 4"),
    ("global.store.i64", "IH", (12, 0), "multiple of 8"),
    ("global.store.f64", "IH", (16, 0), "multiple of 8 within"),
    ("global.load.ref", "IIH", (2, 1, R), "reference global below 2, got 2"),
    ("global.load.ref", "IIH", (0, 2, R), "type ordinal below 2, got 2"),
    ("const.ref.rodata", "IH", (1, R), "rodata ordinal below 1, got 1"),
    ("list.alloc", "IHH", (0x80000000, 0, R), "type ordinal below 2"),
    ("import.resolved", "IH", (0, 0), "which has bit 31, got 0"),
    ("import.resolved", "IH", (IMPORT | 2, 0), "import ordinal below 2, got 2"),
    ("call", "IHH", (1, 0, 0), "function ordinal below 1, got 1"),
    ("call", "IHH", (IMPORT | 7, 0, 0), "import ordinal below 2, got 7"),
]


@pytest.mark.parametrize(("mnemonic", "layout", "values", "reason"), REGISTERS)
def test_operands_out_of_range_are_refused(mnemonic: str, layout: str, values: tuple[int, ...], reason: str) -> None:
    message = refusal(module(body(op(mnemonic, layout, *values))))
    assert reason in message
    assert message.startswith(f"function 0 (main), pc 1 (0x1), {mnemonic}: ")


def test_move_is_accepted_where_version_15_ignores_it() -> None:
    code = body(op("list.size", "HH", R | MOVE, 0))
    assert verify_module(module(code, version=15 << 16)).functions[0].instructions[1].values == (R | MOVE, 0)


@pytest.mark.parametrize("mnemonic", ["const.f32.zero", "const.f64.zero"])
def test_an_extension_has_to_be_required(mnemonic: str) -> None:
    code = body(op(mnemonic, "H", 0))
    verify_module(module(code))
    feature = f"EXT_{mnemonic[6:9].upper()}"
    assert f"expected feature {feature} among" in refusal(module(code, requirements=0))


def test_calls_pass_what_the_callee_takes() -> None:
    def call(operands: tuple[int, ...], results: tuple[int, ...], callee: int = IMPORT) -> bytes:
        code = op("call", "I", callee)
        code += registers(1 + len(code), *operands)
        return body(code + registers(1 + len(code), *results))

    verify_module(module(call((1, 2), (R | 3,))))
    assert "expected 2 operands, got 1" in refusal(module(call((1,), (R,))))
    assert "expected 2 operands, got 3" in refusal(module(call((1, 2, 3), (R,))))
    assert "expected 1 results, got 0" in refusal(module(call((1, 2), ())))
    assert "even register for an i64, got %i3" in refusal(module(call((1, 3), (R,))))
    assert "bank i32, got %r1" in refusal(module(call((R | 1, 2), (R,))))
    assert "bank ref, got %i0" in refusal(module(call((1, 2), (0,))))
    assert "without repeated tuples" in refusal(module(call((R, 1, 2), (), IMPORT | 1)))
    # A function that calls itself: arguments and results of its own convention.
    verify_module(
        module(
            BLOCK + op("call", "I", 0) + registers(6, 1) + registers(10, R) + b"\x5a" + registers(15, R),
            convention="0i_r",
        )
    )


def test_variadic_calls_have_a_size_for_each_argument() -> None:
    def call(sizes: tuple[int, ...], operands: tuple[int, ...], callee: int = IMPORT | 1) -> bytes:
        code = op("call.variadic", "I", callee)
        for each in (sizes, operands, ()):
            code += registers(1 + len(code), *each)
        return body(code)

    verify_module(module(call((0xFFFF, 0), (R,))))
    verify_module(module(call((0xFFFF, 2), (R, 1, 2, 3, 4))))
    verify_module(module(call((1, 1), (R, 1, 2))))
    assert "expected 2 segment sizes for '0rCiID_v', got 1" in refusal(module(call((0xFFFF,), (R,))))
    assert "operands for 3 times CiID, got 5 in all" in refusal(module(call((0xFFFF, 3), (R, 1, 2, 3, 4))))
    assert "operands for 65535 times" in refusal(module(call((0xFFFF, 0xFFFF), (R,))))
    assert "expected 3 operands, got 5" in refusal(module(call((0xFFFF, 1), (R, 1, 2, 3, 4))))
    assert "even register for an i64, got %i3" in refusal(module(call((0xFFFF, 1), (R, 1, 3))))
    assert "which has bit 31" in refusal(module(call((), (), 0)))


def test_returns_give_what_the_function_gives() -> None:
    def give(*values: int) -> bytes:
        return BLOCK + returns(1, *values)

    verify_module(module(give(1, R | 3), convention="0v_ir"))
    assert "expected 2 results, got 1" in refusal(module(give(1), convention="0v_ir"))
    assert "bank ref" in refusal(module(give(1, 1), convention="0v_ir"))
    assert "even register" in refusal(module(give(1), convention="0v_F"))


def branch(target: int, *pairs: int) -> bytes:
    return op("br", "IxH" + "H" * len(pairs), target, len(pairs) // 2, *pairs)


def test_branches_go_to_block_markers() -> None:
    # 0 block, 1 br (9 bytes with padding: 1 opcode, 4 target, 0 padding at pc 6), 8 block, 9 return
    def code(target: int) -> bytes:
        first = BLOCK + op("br", "IH", target, 0)
        assert len(first) == 8
        return first + BLOCK + returns(9)

    verify_module(module(code(8), blocks=2))
    verify_module(module(code(0), blocks=2))
    for target in (1, 2, 7, 9, 10, 1000, 0xFFFFFFFF):
        assert f"got pc {target} (" in refusal(module(code(target), blocks=2))


def test_a_marker_byte_inside_an_instruction_is_no_block() -> None:
    constant = op("const.i32", "iH", 0x79797979, 0)
    code = BLOCK + constant + op("br", "I", 2) + registers(13)
    assert "got pc 2 (0x2)" in refusal(module(code))


def test_branch_operands_stay_within_a_bank() -> None:
    def code(*pairs: int) -> bytes:
        return BLOCK + op("br", "I", 0) + struct.pack(f"<H{len(pairs)}H", len(pairs) // 2, *pairs)

    verify_module(module(code(0, 1, R | MOVE, R | 3)))
    assert "within one bank, got %i0 to %r0" in refusal(module(code(0, R)))
    assert "within one bank, got %r0 to %i0" in refusal(module(code(R, 0)))
    assert "below 8, got %i8" in refusal(module(code(0, 8)))
    assert "below 8, got %i8" in refusal(module(code(8, 0)))
    assert "below 4, got %R4" in refusal(module(code(R | MOVE | 4, R)))
    assert "below 4, got %r9" in refusal(module(code(R, R | 9)))


def test_every_case_of_a_branch_table_is_verified() -> None:
    def code(target: int, register: int) -> bytes:
        table = op("br_table", "HIHHIHHH", 0, 0, 0, 2, 0, 1, 0, 1)
        table += struct.pack("<IHHH", target, 1, 0, register)
        return BLOCK + table

    verify_module(module(code(0, 1)))
    assert "got pc 1 (" in refusal(module(code(1, 1)))
    assert "below 8" in refusal(module(code(0, 99)))
    assert "bank i32" in refusal(module(BLOCK + op("br_table", "HIHH", R, 0, 0, 0)))


def test_switch_values_are_of_the_operations_bank() -> None:
    def code(mnemonic: str, default: int, *values: int, result: int) -> bytes:
        first = op(
            mnemonic,
            "HIH" if mnemonic == "switch.ref" else "HH",
            *((0, 1, default) if mnemonic == "switch.ref" else (0, default)),
        )
        first += registers(1 + len(first), *values)
        return body(first + struct.pack("<H", result))

    verify_module(module(code("switch.i64", 0, 2, 4, result=6)))
    verify_module(module(code("switch.ref", R, R | MOVE | 1, R, result=R)))
    assert "even register" in refusal(module(code("switch.i64", 0, 2, 3, result=6)))
    assert "bank ref, got %i2" in refusal(module(code("switch.ref", R, R, 2, result=R)))
    assert "bank i32, got %r0" in refusal(module(code("switch.i32", 0, R, result=0)))


def test_only_references_are_discarded() -> None:
    assert "bank ref" in refusal(module(body(op("discard.refs") + registers(2, R, 1))))


@pytest.mark.parametrize(
    ("code", "blocks", "reason"),
    [
        (returns(0), 1, "expected a block marker at pc 0 (0x0), got return"),
        (BLOCK, 1, "expected a terminator at the end of the last block"),
        (BLOCK + op("const.i32.zero", "H", 0), 1, "expected a terminator at the end of the last block"),
        (BLOCK + BLOCK + returns(2), 2, "expected a terminator before the block at pc 1"),
        (
            body() + op("const.i32.zero", "H", 0) + returns(7),
            1,
            "expected a block marker at pc 4 (0x4), got const.i32.zero",
        ),
        (body(), 2, "expected 2 blocks, got 1"),
        (body(), 0, "expected 0 blocks, got 1"),
        (body(), -1, "expected -1 blocks, got 1"),
        (body() + body(), 1, "expected 1 blocks, got 2"),
    ],
)
def test_blocks_begin_with_a_marker_and_end_with_a_terminator(code: bytes, blocks: int, reason: str) -> None:
    assert reason in refusal(module(code, blocks=blocks))


@pytest.mark.parametrize(
    ("ranges", "reason"),
    [
        (((0, 0),), "at least one byte"),
        (((-1, 4),), "at -1"),
        (((0, 5),), "5 bytes at 0"),
        (((4, 1),), "1 bytes at 4"),
        (((0, -4),), "-4 bytes"),
        (((0, 4), (0, 4)), "function 1 at 0 expected to begin after function 0"),
        (((2, 2), (0, 3)), "function 0 at 2 expected to begin after function 1"),
    ],
)
def test_functions_lie_within_the_bytecode_and_apart(ranges: tuple[tuple[int, int], ...], reason: str) -> None:
    assert len(body()) == 4
    assert reason in refusal(module(body(), functions=ranges))


@pytest.mark.parametrize(("i32", "ref"), [(-1, 0), (0, -1), (0x8000, 0), (0, 0x4001)])
def test_register_counts_are_possible(i32: int, ref: int) -> None:
    assert "registers, got" in refusal(module(body(), i32=i32, ref=ref))


def test_arguments_have_registers() -> None:
    # Assemblers do not count registers that no instruction names; runtimes round counts up to a power of two.
    verified = verify_module(module(body(), convention="0i_v", i32=0, ref=0))
    assert verified.functions[0].i32_count == 1
    assert verify_module(module(body(), convention="0iI_v", i32=3)).functions[0].i32_count == 4
    assert "registers for the arguments of '0iI_v', got 2" in refusal(module(body(), convention="0iI_v", i32=2))
    assert "registers for the arguments" in refusal(module(body(), convention="0" + "r" * 5 + "_v"))
    assert "repeated tuple" in refusal(module(body(), convention="0CiD_v"))
    assert "registers for the arguments" in refusal(module(body(), convention="0" + "i" * 60000 + "_v", i32=0x7FFF))


def test_a_frame_holds_the_pair_that_only_a_call_names() -> None:
    code = op("call", "I", IMPORT)
    code += registers(1 + len(code), 0, 6)
    code = body(code + registers(1 + len(code), R))
    assert verify_module(module(code, i32=7)).functions[0].i32_count == 8
    assert "below 4, got %i7" in refusal(module(code, i32=4))


@pytest.mark.parametrize(
    ("convention", "expected"),
    [
        ("0v_v", ()),
        ("0iIrfFr_v", (0, 2, R, 4, 6, R | 1)),
        ("0IiI_v", (0, 2, 4)),
        ("0iii_I", (0, 1, 2)),
    ],
)
def test_argument_registers(convention: str, expected: tuple[int, ...]) -> None:
    assert argument_registers(CallingConvention.parse(convention)) == expected


def test_tables_fit_together() -> None:
    good = module(body())
    assert "0 signatures for 1 functions" in refusal(dataclasses.replace(good, signatures=()))
    for ordinal in (-1, 1):
        assert f"got {ordinal}" in refusal(dataclasses.replace(good, exports=(ExportDef("x", ordinal),)))
    assert "import m.x: " in refusal(dataclasses.replace(good, imports=(ImportDef("m.x", Signature("0q_v")),)))
    assert "function 0 (main): " in refusal(dataclasses.replace(good, signatures=(Signature("0i_C"),)))


def test_an_internal_function_is_named_by_its_ordinal() -> None:
    definition = dataclasses.replace(module(body(op("add.i32", "HHH", 9, 9, 9))), exports=())
    assert refusal(definition).startswith("function 0, pc 1 (0x1), add.i32: ")


def in_range(verified: VerifiedModule) -> bool:
    """Whether nothing that the instructions name is outside of what there is: the property that verifying is for."""
    definition = verified.definition
    for function in verified.functions:
        markers = {each.pc for each in function.instructions if each.operation.mnemonic == "block"}

        def register(value: int, slots: int = 1, function: object = function) -> bool:
            if value & R:
                return value & 0x3FFF < function.ref_count  # type: ignore[attr-defined,no-any-return]
            return value + slots <= function.i32_count  # type: ignore[attr-defined,no-any-return]

        for each in function.instructions:
            for field, value in zip(each.operation.fields, each.values, strict=True):
                match field.kind:
                    case FieldKind.REGISTER:
                        good = bool(value & R) == (field.bank == "ref") and register(
                            value, 2 if field.bank in ("i64", "f64") else 1
                        )
                    case FieldKind.OPERANDS | FieldKind.RESULTS:
                        good = all(register(each, 2 if field.bank in ("i64", "f64") else 1) for each in value)
                    case FieldKind.BRANCH_OPERANDS:
                        good = all(register(a) and register(b) and not (a ^ b) & R for a, b in value)
                    case FieldKind.BRANCH_TABLE:
                        good = all(pc in markers for pc, _ in value)
                    case FieldKind.BRANCH_TARGET:
                        good = value in markers
                    case FieldKind.FUNCTION:
                        count = len(definition.imports) if value & IMPORT else len(definition.functions)
                        good = value & ~IMPORT < count
                    case FieldKind.RODATA:
                        good = value < len(definition.rodata)
                    case FieldKind.TYPE:
                        good = value < len(definition.types)
                    case FieldKind.GLOBAL:
                        good = value < max(definition.global_bytes, definition.global_refs)
                    case _:
                        good = True
                if not good:
                    return False
    return True


def mutated(seed: int, definition: ModuleDef) -> ModuleDef:
    """One function of a module alone, with a few bytes changed, moved or cut, and sometimes its descriptor."""
    chance = random.Random(seed)
    ordinal = chance.randrange(len(definition.functions))
    each = definition.functions[ordinal]
    code = bytearray(definition.bytecode[each.offset : each.offset + each.length])
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        at = chance.randrange(len(code))
        match chance.randrange(4):
            case 0:
                code[at] = chance.randrange(256)
            case 1:
                code[at] ^= 1 << chance.randrange(8)
            case 2:
                code[at] = chance.choice(bytes(code))
            case 3:
                del code[at : at + chance.choice((1, 2, 4))]
        code = code or bytearray(b"\x79")
    counts = {
        "i32_register_count": each.i32_register_count - chance.choice((0, 0, 0, 1, 20)),
        "ref_register_count": each.ref_register_count - chance.choice((0, 0, 0, 1, 8)),
    }
    return dataclasses.replace(
        definition,
        bytecode=memoryview(bytes(code)),
        exports=(ExportDef("f", 0),),
        signatures=(definition.signatures[ordinal],),
        functions=(dataclasses.replace(each, offset=0, length=len(code), **counts),),
    )


def accepted(definition: ModuleDef) -> VerifiedModule | None:
    try:
        return verify_module(definition)
    except PumiceError:
        return None


@given(st.integers(0, 1 << 32))
def test_a_mutated_function_is_refused_or_in_range(seed: int) -> None:
    verified = accepted(mutated(seed, EVERY))
    assert verified is None or in_range(verified)


def test_mutations_are_both_refused_and_accepted() -> None:
    verified = [accepted(mutated(seed, EVERY)) for seed in range(2000)]
    count = sum(each is not None for each in verified)
    assert 200 < count < 1800
    assert all(in_range(each) for each in verified if each is not None)


def test_the_property_would_be_seen_to_fail() -> None:
    verified = verify_module(EVERY)
    functions = tuple(dataclasses.replace(each, i32_count=2) for each in verified.functions)
    assert not in_range(dataclasses.replace(verified, functions=functions))


@pytest.mark.slow
def test_time_grows_with_size() -> None:
    def seconds(count: int) -> float:
        code = body(op("add.i32", "HHH", 1, 2, 3) * count)
        start = time.process_time()
        verify_module(module(code))
        return time.process_time() - start

    few = min(seconds(2000) for _ in range(3))
    many = min(seconds(20000) for _ in range(3))
    # Ten times as many take ten times as long; a square would take a hundred times.
    assert many < 40 * max(few, 1e-3)


_PEER = """
import sys
from pathlib import Path
import iree.runtime as rt
instance = rt.VmInstance()
for path in sorted(Path(sys.argv[1]).iterdir()):
    try:
        rt.VmModule.copy_buffer(instance, path.read_bytes())
    except (RuntimeError, ValueError) as error:
        print(path.name, str(error).replace("\\n", " ")[:300])
"""


@pytest.mark.peer
def test_what_is_accepted_the_peer_accepts_too(tmp_path: Path) -> None:
    pytest.importorskip("iree.runtime")
    count = 0
    for seed in range(1500):
        definition = mutated(seed, EVERY)
        if accepted(definition) is not None:
            (tmp_path / f"{seed:05}.vmfb").write_bytes(write_module(definition))
            count += 1
    assert count > 100
    result = subprocess.run([sys.executable, "-c", _PEER, tmp_path], capture_output=True, text=True, check=True)
    assert result.stdout == ""
