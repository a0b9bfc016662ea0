"""Disassembling: the text assembles to the same bytecode, here and by the peer, and reads as the peer prints it."""

from __future__ import annotations

import dataclasses
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.peer import compile_module, run_peer
from support.vm import isa_programs as programs

from pumice.status import OutOfRangeError
from pumice.vm.assembly.assembler import assemble
from pumice.vm.assembly.disassembler import assembly_form, disassemble_function, disassemble_module
from pumice.vm.bytecode import isa_tables
from pumice.vm.bytecode.archive import ModuleArchive
from pumice.vm.bytecode.isa import Isa
from pumice.vm.bytecode.module_def import ExportDef, ModuleDef
from pumice.vm.bytecode.reader import read_module
from pumice.vm.bytecode.verifier import VerifiedModule, verify_module

ISA = Isa.for_version(17 << 16)
ASSEMBLY = sorted(Path(__file__).parent.glob("*.vmasm"))


def codes(module: ModuleDef) -> list[bytes]:
    return [bytes(module.bytecode[each.offset : each.offset + each.length]) for each in module.functions]


def one(line: str, header: str = "") -> VerifiedModule:
    """A module of one function with a line of assembly."""
    text = f"vm.module @m\n{header}\nvm.func @f(%r0: !vm.buffer) -> () {{\n^bb0:\n  {line}\n  vm.return\n}}"
    return verify_module(assemble(text))


def written(line: str, header: str = "") -> str:
    """Returns the disassembler's form of a line of assembly."""
    return disassemble_function(one(line, header), 0).split("^bb0:\n", 1)[1].splitlines()[0].strip()


@pytest.mark.slow
@pytest.mark.parametrize("version", isa_tables.VERSIONS)
def test_every_operation_assembles_to_the_same_bytes(version: tuple[int, int]) -> None:
    number = version[0] << 16 | version[1]
    module = assemble(programs.program(programs.writable(Isa.for_version(number))), bytecode_version=number)
    again = assemble(disassemble_module(verify_module(module)), bytecode_version=number)
    assert codes(again) == codes(module)
    assert dataclasses.replace(again, bytecode=module.bytecode) == module


@pytest.mark.parametrize("path", ASSEMBLY, ids=lambda path: path.stem)
def test_programs_assemble_to_the_same_bytes(path: Path) -> None:
    module = assemble(path.read_text(encoding="utf-8"))
    again = assemble(disassemble_module(verify_module(module), offsets=True))
    assert codes(again) == codes(module)


def test_there_are_programs() -> None:
    assert ASSEMBLY


@pytest.mark.slow
@given(st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 64) - 1))
def test_floats_keep_their_bits(single: int, double: int) -> None:
    for bits, (size, mantissa, layout, prefix) in (
        (single, (32, 23, "<I", b"\xe0")),
        (double, (64, 52, "<Q", b"\xe1")),
    ):
        template = one(f"{'%i0' if size == 32 else '%i0:1'} = vm.const.f{size} 1.0").definition
        code = bytearray(template.bytecode)
        assert code[1:3] == prefix + b"\x05"
        struct.pack_into(layout, code, 3, bits)
        module = dataclasses.replace(template, bytecode=memoryview(bytes(code)))
        text = disassemble_module(verify_module(module))
        exponent = bits >> mantissa & (1 << (size - 1 - mantissa)) - 1
        signaling = exponent == (1 << (size - 1 - mantissa)) - 1 and 0 < bits & (1 << mantissa) - 1 < 1 << (
            mantissa - 1
        )
        assert ("signaling" in text) == signaling
        again = assemble(text)
        if signaling:
            assert f"{bits:#x}" in text
        else:
            assert codes(again) == codes(module)


@pytest.mark.slow
@given(st.text(max_size=60))
def test_any_message_gives_a_text_that_assembles(message: str) -> None:
    clean = one('vm.fail %i0, "?"\n^bb1:').definition
    code = bytearray(b"\x79\x5b\x00\x00") + struct.pack("<H", len(message.encode())) + message.encode()
    module = dataclasses.replace(
        clean,
        bytecode=memoryview(bytes(code)),
        functions=(dataclasses.replace(clean.functions[0], length=len(code), block_count=1, i32_register_count=1),),
    )
    text = disassemble_module(verify_module(module))
    (line,) = [each for each in text.split("\n") if "vm.fail" in each]
    again = verify_module(assemble(text)).functions[0].instructions[1].values[1]
    assert isinstance(again, str)
    assert ("replaced" in line) == (again != message)
    # Replaced characters are of the same size, so that every pc stays what it was.
    assert len(again.encode()) == len(message.encode())


def test_a_move_without_effect_is_not_written() -> None:
    number = 15 << 16
    text = "vm.module @m\nvm.func @f(%r0: !vm.buffer) -> () {\n^bb0:\n  %i0 = vm.list.size %r0\n  vm.return\n}"
    module = assemble(text, bytecode_version=number)
    code = bytearray(module.bytecode)
    assert code[2:4] == b"\x00\x80"
    code[3] = 0xC0
    moved = dataclasses.replace(module, bytecode=memoryview(bytes(code)))
    assert disassemble_module(verify_module(moved)) == disassemble_module(verify_module(module))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%i0 = vm.const.i32 -1", "%i0 = vm.const.i32 -1  // 0xFFFFFFFF"),
        ("%i0:1 = vm.const.i64 3", "%i0:1 = vm.const.i64 3  // 0x0000000000000003"),
        ("%i0 = vm.const.f32 -nan(0x5)", "%i0 = vm.const.f32 -nan(0x5)"),
        ("%i0 = vm.const.f32 inf", "%i0 = vm.const.f32 inf"),
        ("%r1 = vm.assign.ref %R0", "%r1 = vm.assign.ref %R0"),
        ("vm.discard.refs %r0", "vm.discard.refs %r0"),
        ("vm.br ^bb0(%R0->%r1, %i0->%i1)\n^x:", "vm.br ^bb0(%R0->%r1, %i0->%i1)"),
        ("vm.call @f(%r0)", "vm.call @m.f(%r0)"),
        ('vm.trace "t"(%i0, %r0)', 'vm.trace "t", %i0, %r0'),
        ('vm.print "t"', 'vm.print "t"'),
        ("%r1 = vm.switch.ref %i0[%r0] else %R0 -> !vm.buffer", "%r1 = vm.switch.ref %i0[%r0] else %R0 -> !vm.buffer"),
    ],
)
def test_lines(line: str, expected: str) -> None:
    assert written(line, "vm.type !vm.buffer\nvm.export @f") == expected


def test_functions_without_an_export_have_names_that_nothing_else_has() -> None:
    module = assemble(
        "vm.module @m\nvm.export @fn1 = @a\nvm.export @other = @a\n"
        "vm.func @a() -> () {\n^bb0:\n  vm.call @b()\n  vm.return\n}\n"
        "vm.func @b() -> () {\n^bb0:\n  vm.call @a()\n  vm.return\n}\n"
    )
    text = disassemble_module(verify_module(module))
    assert "vm.export @fn1\nvm.export @other = @fn1\nvm.func @fn1() -> () {" in text
    assert "vm.func @fn1_() -> () {" in text
    assert "vm.call @m:1()" in text
    assert "vm.call @m.fn1()" in text
    assert codes(assemble(text)) == codes(module)


def test_names_that_are_no_symbols_are_quoted() -> None:
    module = dataclasses.replace(one("vm.call @f(%r0)").definition, name='a "b"', exports=(ExportDef("c d", 0),))
    text = disassemble_module(verify_module(module))
    assert "vm.module @\"a 'b'\" version 0" in text
    assert 'vm.export @"c d"' in text
    assert codes(assemble(text)) == codes(module)


def test_offsets_are_the_pcs() -> None:
    verified = verify_module(assemble(programs.program(programs.writable(ISA))))
    for function in verified.functions:
        text = disassemble_function(verified, function.ordinal, offsets=True)
        found = [int(each, 16) for each in re.findall(r"^\[([0-9A-F]{8})\]", text, re.MULTILINE)]
        assert found == [each.pc for each in function.instructions]


def test_constants_may_be_left_out() -> None:
    module = one("%r0 = vm.const.ref.rodata 0", "vm.rodata[0] = 0A0B")
    assert "vm.rodata[0] = 0A0B\n" in disassemble_module(module)
    assert "// vm.rodata[0]: 2b\n" in disassemble_module(module, rodata=False)
    assert "0A0B" not in disassemble_module(module, rodata=False)


@pytest.mark.parametrize("ordinal", [-1, 1])
def test_there_has_to_be_such_a_function(ordinal: int) -> None:
    with pytest.raises(OutOfRangeError, match=f"got {ordinal}"):
        disassemble_function(one(""), ordinal)


def test_every_operation_has_a_form() -> None:
    assert assembly_form(ISA.operations["add.i32"]) == "<result> = vm.add.i32 <left>, <right>"
    for operation in ISA.operations.values():
        names = set(re.findall(r"<(\w+)>", assembly_form(operation)))
        assert {each.name for each in operation.fields} <= names


_COMPILED = {
    "loop": """
        func.func @count(%limit: tensor<i32>, %step: tensor<4xf32>) -> tensor<4xf32> {
          %zero = arith.constant dense<0> : tensor<i32>
          %one = arith.constant dense<1> : tensor<i32>
          %init = arith.constant dense<0.5> : tensor<4xf32>
          %r:2 = scf.while (%i = %zero, %x = %init) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>) {
            %a = tensor.extract %i[] : tensor<i32>
            %b = tensor.extract %limit[] : tensor<i32>
            %c = arith.cmpi slt, %a, %b : i32
            scf.condition(%c) %i, %x : tensor<i32>, tensor<4xf32>
          } do {
          ^bb0(%i: tensor<i32>, %x: tensor<4xf32>):
            %j = arith.addi %i, %one : tensor<i32>
            %y = arith.addf %x, %step : tensor<4xf32>
            scf.yield %j, %y : tensor<i32>, tensor<4xf32>
          }
          return %r#1 : tensor<4xf32>
        }""",
    "globals": """
        util.global private mutable @state = 7 : i64
        util.global private mutable @scale = 2.5 : f32
        func.func @next(%by: i64) -> i64 {
          %old = util.global.load @state : i64
          %new = arith.addi %old, %by : i64
          util.global.store %new, @state : i64
          return %old : i64
        }
        func.func @scaled(%x: f32) -> f32 {
          %s = util.global.load @scale : f32
          %y = arith.mulf %x, %s : f32
          util.global.store %y, @scale : f32
          return %y : f32
        }
        func.func @dynamic(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
          %y = arith.mulf %x, %x : tensor<?x3xf32>
          return %y : tensor<?x3xf32>
        }""",
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Module files of the peer's compiler and assembler, by name."""
    folder = tmp_path_factory.mktemp("compiled")
    files: dict[str, Path] = {}
    for name, source in _COMPILED.items():
        for device in ("vulkan", "local"):
            flags = [f"--iree-hal-target-device={device}", "--iree-hal-local-target-device-backends=vmvx"]
            files[f"{name}_{device}"] = compile_module(source, device=flags, name=f"{name}.mlir")
    # The peer's assembler has no text for the first, its disassembler none for the second.
    unwritten = ("switch.ref", "cast.ui64.f32")
    operations = [each for each in programs.writable(ISA) if each.mnemonic not in unwritten]
    files["every"] = folder / "every.vmfb"
    _peer_assemble(programs.program(operations), files["every"])
    return files


def _peer_assemble(text: str, target: Path) -> None:
    source = target.with_suffix(".vmasm")
    source.write_text(text, encoding="utf-8")
    run_peer("iree-as-module", f"--output={target}", source)


def _modules(files: dict[str, Path]) -> Iterator[tuple[str, VerifiedModule, Path]]:
    for name, path in files.items():
        with ModuleArchive.open(path) as archive:
            yield name, verify_module(read_module(archive)), path


# The peer takes names of internal functions from debug information, prints quotes as they are, and writes these so that
# its own assembler does not read them.
_OTHERWISE = re.compile(r"vm\.(global\.(load|store)\.indirect|trace|print)")


def _comparable(text: str) -> list[str]:
    text = re.sub(r"@[\w.$]+(:\d+)?", "@", text.replace('"', "'"))
    lines = [re.sub("  // quotes or line breaks replaced", "", each).rstrip() for each in text.splitlines()]
    return [each[:10] if _OTHERWISE.search(each) else each for each in lines]


@pytest.mark.peer
def test_the_text_is_what_the_peer_prints(compiled: dict[str, Path]) -> None:
    seen = set()
    for name, module, path in _modules(compiled):
        peer = run_peer("iree-dump-module", "--output=disassembly", "--bytecode_offsets", path)
        ours = disassemble_module(module, offsets=True)
        assert _comparable(ours) == _comparable(peer.stdout), name
        seen |= {each.operation.mnemonic for function in module.functions for each in function.instructions}
    assert {"call.variadic.yieldable", "global.load.i64", "global.store.f32", "cond_br"} <= seen


@pytest.mark.peer
def test_the_peer_assembles_the_text_to_the_same_instructions(compiled: dict[str, Path], tmp_path: Path) -> None:
    for name, module, _ in _modules(compiled):
        target = tmp_path / f"{name}.vmfb"
        _peer_assemble(disassemble_module(module), target)
        with ModuleArchive.open(target) as archive:
            again = verify_module(read_module(archive))
            assert _comparable(disassemble_module(again, offsets=True)) == _comparable(
                disassemble_module(module, offsets=True)
            ), name
