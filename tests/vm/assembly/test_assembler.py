"""The assembler: how names are resolved, what is refused, where errors point, and that no other error is raised."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.status import IncompatibleError, InvalidArgumentError
from pumice.vm.assembly.assembler import assemble
from pumice.vm.assembly.disassembler import disassemble_module
from pumice.vm.bytecode.archive import ModuleArchive
from pumice.vm.bytecode.decoder import Instruction, decode_function
from pumice.vm.bytecode.isa import IMPORT_BIT, Isa
from pumice.vm.bytecode.isa_tables import VERSIONS
from pumice.vm.bytecode.module_def import DependencyDef, ExportDef, ModuleDef
from pumice.vm.bytecode.reader import read_module
from pumice.vm.bytecode.verifier import verify_module
from pumice.vm.bytecode.writer import write_module

PROGRAMS = sorted(Path(__file__).parent.glob("*.vmasm"))
NEWEST = VERSIONS[-1][0] << 16 | VERSIONS[-1][1]


def text_of(line: str, *, header: str = "", arguments: str = "") -> str:
    """A module with one function of a line and a return."""
    return f"vm.module @m\n{header}\nvm.func @f({arguments}) -> () {{\n^bb0:\n  {line}\n  vm.return\n}}\n"


def instructions(module: ModuleDef, function: int = 0) -> tuple[Instruction, ...]:
    descriptor = module.functions[function]
    code = module.bytecode[descriptor.offset : descriptor.offset + descriptor.length]
    return decode_function(Isa.for_version(module.bytecode_version), code)


def values(line: str, *, header: str = "") -> tuple[object, ...]:
    """The fields of the instruction that a line is."""
    return instructions(assemble(text_of(line, header=header)))[1].values


def refusal(text: str) -> InvalidArgumentError:
    with pytest.raises(InvalidArgumentError) as caught:
        assemble(text, file_name="x.vmasm")
    return caught.value


def pointed_at(error: InvalidArgumentError) -> str:
    """The text from the caret of an error to the end of the shown line, after checking that the location agrees."""
    line, caret = error.message.split("\n")[-2:]
    assert set(caret) == {" ", "^"}
    assert error.location is not None
    column = int(error.location.rsplit(":", 1)[1])
    assert caret.index("^") == 2 + column - 1
    return line[caret.index("^") :]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs_verify_and_survive_a_file(path: Path) -> None:
    module = assemble(path.read_text(encoding="utf-8"), file_name=str(path))
    verify_module(module)
    again = read_module(ModuleArchive.from_bytes(write_module(module)))
    assert again == module


@pytest.mark.slow
def test_programs_use_every_operation() -> None:
    used = set()
    for path in PROGRAMS:
        module = assemble(path.read_text(encoding="utf-8"))
        for ordinal in range(len(module.functions)):
            used |= {each.operation.mnemonic for each in instructions(module, ordinal)}
    assert used == set(Isa.for_version(NEWEST).operations)


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_programs_of_older_bytecode(version: tuple[int, int]) -> None:
    number = version[0] << 16 | version[1]
    for name in ("i32", "i64", "f32", "f64", "buffers", "lists"):
        text = (Path(__file__).parent / f"{name}.vmasm").read_text(encoding="utf-8")
        module = assemble(text, bytecode_version=number)
        assert module.bytecode_version == number
        verify_module(module)
        # No encoding changed from version to version.
        assert module.bytecode == assemble(text).bytecode


def test_operation_of_a_newer_version_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"vm\.discard\.refs is of bytecode version 16\.0 and not of 15\.0"):
        assemble(text_of("vm.discard.refs %r0"), bytecode_version=15 << 16)


def test_unknown_bytecode_version() -> None:
    with pytest.raises(IncompatibleError, match=r"18\.0"):
        assemble(text_of("vm.return"), bytecode_version=18 << 16)


def test_module_level() -> None:
    module = assemble((Path(__file__).parent / "extensions.vmasm").read_text(encoding="utf-8"))
    assert (module.name, module.version) == ("extensions", 2)
    assert module.attributes == {"author": "nobody", "a key": "a // value"}
    assert module.dependencies == (DependencyDef("hal", 6), DependencyDef("check", required=False))
    assert module.signatures[0].attributes == {"iree.abi.declaration": "sync func @test_switch_ref()"}
    assert module.exports == (ExportDef("test_switch_ref", 0), ExportDef("exported with spaces", 1))
    assert [bytes(each) for each in module.rodata] == [b"text", b"\0\1\2"]
    assert (module.global_refs, module.global_bytes) == (2, 8)


def test_functions_start_at_multiples_of_eight() -> None:
    text = "vm.module @m\n" + "".join(f"vm.func @f{i}() -> () {{\n  vm.return\n}}\n" for i in range(3))
    module = assemble(text)
    assert [each.offset for each in module.functions] == [0, 8, 16]
    assert {each.length for each in module.functions} == {4}
    assert len(module.bytecode) == 24


def test_function_names() -> None:
    header = 'vm.import @a.b cconv "0v_v"\nvm.import @m.imported cconv "0v_v"'
    for name, ordinal in (
        ("@a.b", IMPORT_BIT),
        ("@m.imported", IMPORT_BIT | 1),
        ("@f", 0),
        ("@m.f", 0),
        ("@m:0", 0),
    ):
        assert values(f"vm.call {name}()", header=header)[0] == ordinal
    for name in ("@b", "@a.f", "@m:1", "@a:0", "@m.b"):
        assert pointed_at(refusal(text_of(f"vm.call {name}()", header=header))).startswith(f"{name}(")


def test_functions_may_be_called_before_they_are_written() -> None:
    text = text_of("vm.call @later()") + "vm.func @later() -> () {\n  vm.return\n}\n"
    assert instructions(assemble(text))[1].values[0] == 1


def test_globals_are_laid_out_by_size() -> None:
    header = (
        "vm.global.i64 @a\nvm.global.i32 @b\nvm.global.ref @c\nvm.global.f64 @d\nvm.global.f32 @e\nvm.global.i32 @g"
    )
    assert values("%i0 = vm.global.load.i32 @b", header=header)[0] == 0
    assert values("%i0 = vm.global.load.f32 @e", header=header)[0] == 4
    assert values("%i0 = vm.global.load.i32 @g", header=header)[0] == 8
    assert values("%i0:1 = vm.global.load.i64 @a", header=header)[0] == 16
    assert values("%i0:1 = vm.global.load.f64 @d", header=header)[0] == 24
    assert values("%r0 = vm.global.load.ref @c : !vm.buffer", header=header)[0] == 0
    module = assemble(text_of("vm.return", header=header))
    assert (module.global_bytes, module.global_refs) == (32, 1)
    module = assemble(text_of("%i0 = vm.global.load.i32 .rwdata[100]", header=header))
    assert (module.global_bytes, module.global_refs) == (104, 1)
    assert "of 8 bytes" in refusal(text_of("%i0 = vm.global.load.i32 @a", header=header)).message
    assert "of a reference" in refusal(text_of("%i0 = vm.global.load.i32 @c", header=header)).message
    assert "did you mean @a" in refusal(text_of("%i0 = vm.global.load.i32 @aa", header=header)).message


def test_types_are_collected_in_order_of_use() -> None:
    line = "%r0 = vm.list.alloc %i0 : !vm.list<!hal.buffer>\n  %r1 = vm.list.get.ref %r0, %i0 : vm.buffer"
    assert assemble(text_of(line)).types == ("!hal.buffer", "vm.buffer")
    assert assemble(text_of(line, header="vm.type i8\nvm.type !vm.buffer")).types == ("i8", "!vm.buffer", "!hal.buffer")


def test_register_counts() -> None:
    (function,) = assemble(text_of("%i7 = vm.const.i32 1\n  %r4 = vm.const.ref.zero")).functions
    assert (function.i32_register_count, function.ref_register_count) == (8, 5)
    (function,) = assemble(text_of("vm.return", arguments="%i0: i32, %i2:3: i64, %r0: !vm.buffer, %i4: f32")).functions
    assert (function.i32_register_count, function.ref_register_count) == (5, 1)
    signature = assemble(text_of("vm.return", arguments="%i0: i32, %i2:3: i64, %r0: !vm.buffer, %i4: f32")).signatures[
        0
    ]
    assert signature.calling_convention == "0iIrf_v"


def test_register_counts_of_results_named_by_half() -> None:
    for name, header in (("@a.b", 'vm.import @a.b cconv "0v_iIFr"'), ("@g", "")):
        text = text_of(f"%i0, %i2, %i4, %r0 = vm.call {name}()", header=header)
        text += "vm.func @g() -> (i32, i64, f64, !vm.buffer) {\n  vm.return %i0, %i2:3, %i4:5, %r0\n}"
        assert assemble(text).functions[0].i32_register_count == 6


def test_blocks() -> None:
    text = """vm.module @m
    vm.func @f() -> () {
      vm.br ^later()
    ^middle:
    ^later:
      vm.br ^middle(%i0->%i1)
    }"""
    module = assemble(text)
    blocks = [each for each in instructions(module) if each.operation.mnemonic == "block"]
    assert module.functions[0].block_count == len(blocks) == 3
    first, second = [each for each in instructions(module) if each.operation.mnemonic == "br"]
    assert first.values == (blocks[2].pc, ())
    assert second.values == (blocks[1].pc, ((0, 1),))


def test_listings_and_comments() -> None:
    plain = assemble(text_of('vm.fail %i0, "a // b # c"'))
    noisy = """
    // comment
    vm.module @m # comment
    vm.func @f() -> () {\r
    [00000000]^bb0: // comment
    [00000001]    vm.fail   %i0 ,"a // b # c"// comment "
    [00000010]    vm.return
    }"""
    assert assemble(noisy) == plain


def test_two_ways_to_write_one_instruction() -> None:
    header = "vm.type !vm.buffer"
    for one, other in (
        ("vm.global.store.indirect.i32 %i1, .rwdata[%i0]", "vm.global.store.indirect.i32 %i0, %i1"),
        ("%i1 = vm.global.load.indirect.i32 .rwdata[%i0]", "%i1 = vm.global.load.indirect.i32 %i0"),
        (
            "vm.global.store.indirect.ref %R1, .refs[%i0] : !vm.buffer",
            "vm.global.store.indirect.ref %i0 : !vm.buffer, %R1",
        ),
        (
            "%r1 = vm.global.load.indirect.ref .refs[%i0] : !vm.buffer",
            "%r1 = vm.global.load.indirect.ref %i0 : !vm.buffer",
        ),
        ("%r1 = vm.cast.any.ref %r0 : !vm.ref<?> -> !vm.buffer", "%r1 = vm.cast.any.ref %r0 -> !vm.buffer"),
        ('vm.trace "x"(%i0, %r1)', 'vm.trace "x", %i0, %r1'),
        ('vm.print "x"()', 'vm.print "x"'),
        ("vm.br ^bb0()", "br ^bb0"),
        ("vm.call @f(%i0:1)", "vm.call @f(%i0)"),
    ):
        assert values(one, header=header) == values(other, header=header)


@pytest.mark.parametrize(
    ("line", "at", "message"),
    [
        ("%i2 = vm.ad.i32 %i0, %i1", "vm.ad.i32", "or vm.add.i32"),
        ("%i2 = vm.add.i32 %i0", "", "expected ',', got the end of the line"),
        ("%i2 = vm.add.i32 %i0, %r1", "%r1", "such as %i0, got '%r1'"),
        ("%i2 = vm.add.i32 %i0, 5", "5", "the right of vm.add.i32, a register such as %i0, got '5'"),
        ("%i2 = vm.add.i32 %i0, %i1, %i2", ", %i2", "expected the end of the line"),
        ("vm.add.i32 %i0, %i1", "vm.add.i32", "expected one result register"),
        ("%i2, %i3 = vm.add.i32 %i0, %i1", "%i3", "expected one result register"),
        ("%i2 = vm.return", "%i2", "expected no result registers"),
        ("%i2 vm.return", "vm.return", "expected '='"),
        ("%i2 = vm.add.i64 %i0:1, %i2:3", "%i2 =", "such as %i0:1"),
        ("%i2:3 = vm.add.i64 %i0:1, %i3:4", "%i3:4", "an even register and the one after it"),
        ("%i2:3 = vm.add.i64 %i0:1, %i4:6", "%i4:6", "an even register and the one after it"),
        ("%i2:3 = vm.add.i32 %i0, %i1", "%i2:3", "such as %i0, got"),
        ("%i40000 = vm.const.i32 0", "%i40000", "below 32767"),
        ("%r20000 = vm.const.ref.zero", "%r20000", "below 16383"),
        ("%i1234567 = vm.const.i32 0", "%i1234567", "below 32767"),
        ("%i01 = vm.const.i32 0", "%i01", "leading zeros"),
        ("%x1 = vm.const.i32 0", "%x1", "such as %i0"),
        ("%r1 = vm.list.size %r0", "%r1", "such as %i0"),
        ("%i0 = vm.list.size %R0", "%R0", "a reference that is kept"),
        ("%i0 = vm.const.i32 4294967296", "4294967296", "from -2147483648 to 4294967295"),
        ("%i0 = vm.const.i32 -2147483649", "-2147483649", "from -2147483648"),
        ("%i0 = vm.const.i32 1.5", "1.5", "an integer, decimal or hexadecimal"),
        ("%i0 = vm.const.i32 010", "010", "leading zeros"),
        ("%i0 = vm.const.i32 12abc", "12abc", "got the character '1'"),
        ("%i0 = vm.const.i32 " + "9" * 5000, "999", "at most 63 characters"),
        ("%i0 = vm.const.f32 1e39", "1e39", "a number that an f32 can hold"),
        ("%i0 = vm.const.f32 1e-60", "1e-60", "rounds to 0"),
        ("%i0 = vm.const.f32 x", "x", "the value of vm.const.f32"),
        ("vm.br ^nowhere", "^nowhere", "a block of @f, got '^nowhere'"),
        ("vm.br ^bb00()", "^bb00", "did you mean ^bb0"),
        ("vm.br ^bb0(%i0)", ")", "expected '->'"),
        ("vm.br ^bb0(%i0->%i1", "", "expected ','"),
        ("vm.br_table %i0 { default: ^bb0(), 1: ^bb0() }", "1:", "expected case 0"),
        ("vm.call @g()", "@g", "the name of a function"),
        ("vm.call @m:7()", "@m:7", "a function below 1"),
        ("vm.call @f(", "", "expected ')'"),
        ("vm.call.variadic @f(%i0)", "(%i0)", "expected 'segments'"),
        ("vm.call.variadic @f segments[70000](%i0)", "70000", "from 0 to 65535"),
        ('vm.fail %i0, "unterminated', '"unterminated', "expected a closing quote"),
        ("vm.fail %i0, text", "text", "a quoted string"),
        ("vm.fail %i0, \"" + "x" * 65536 + '"', '"xxx', "at most 65535 bytes, got 65536"),
        ("%r0 = vm.list.alloc %i0 : !vm.buffer", "!vm.buffer", "a list type such as !vm.list<i32>"),
        ("%r0 = vm.list.alloc %i0 : !vm.list<i32", "!vm.list", "closes the type's '<'"),
        ("%r0 = vm.const.ref.rodata -1", "-1", "from 0"),
        ("%i0 = vm.global.load.i32 .refs[0]", ".refs", "@name or .rwdata[0]"),
        ("%i0 = vm.global.load.i32 .rwdata[2147483647]", ".rwdata", "ends below"),
        ("vm.block", "vm.block", "expected an instruction"),
        ("^bb0:", "^bb0:", "each block once"),
        ("^bb1", "", "expected ':'"),
        ("é", "é", "got the character 'é'"),
        ("vm.func @g() -> () {", "vm.func", "expected an instruction"),
    ],
)  # fmt: skip
def test_refused_lines(line: str, at: str, message: str) -> None:
    error = refusal(text_of(line))
    assert message in error.message
    assert pointed_at(error).startswith(at)
    assert error.location is not None
    assert re.fullmatch(r"x\.vmasm:5:[0-9]+", error.location)


@pytest.mark.parametrize(
    ("text", "location", "message"),
    [
        ("", "1:1", "expected a module"),
        ("vm.func @f() -> () {", "1:1", "expected 'vm.module'"),
        ("vm.module @m", "1:13", "at least one vm.func"),
        ("vm.module m\n", "1:11", "a module name such as @name"),
        ("vm.module @m version -1\n", "1:22", "from 0 to 4294967295"),
        ("vm.module @m\nvm.module @m", "2:1", "expected one vm.module"),
        ("vm.module @m\nvm.func @f() -> () {\n", "2:21", "expected '}' that closes @f"),
        ("vm.module @m\nvm.func @f() -> () {\n}\n", "3:1", "ends the block"),
        ("vm.module @m\nvm.func @f() -> () {\n  %i0 = vm.const.i32 0\n}\n", "4:1", "ends the block"),
        ("vm.module @m\nvm.func @f() {", "2:14", "expected '->'"),
        ("vm.module @m\nvm.func @f(%i1: i32) -> () {", "2:12", "expected %i0: arguments take the registers in order"),
        ("vm.module @m\nvm.func @f(%i0: i32, %i1:2: i64) -> () {", "2:22", "an even register"),
        ("vm.module @m\nvm.func @f(%i0: i32, %i4:5: i64) -> () {", "2:22", "expected %i2:3"),
        ("vm.module @m\nvm.func @f(%R0: !vm.buffer) -> () {", "2:12", "a reference that is kept"),
        ("vm.module @m\nvm.func @f(%i0: i16) -> () {", "2:17", "expected i32, i64, f32, f64"),
        ("vm.module @m\nvm.func @f() -> (i16) {", "2:18", "expected i32, i64, f32, f64"),
        ("vm.module @m\nvm.export @g\nvm.func @f() -> () {\nvm.return\n}", "2:11", "a function of this module"),
        ("vm.module @m\nvm.export @f\nvm.export @f = @g", "3:11", "each export once"),
        ("vm.module @m\nvm.type i32\nvm.type i32", "3:9", "each type once"),
        ('vm.module @m\nvm.import @a.b cconv "0x"', "2:22", "expected one of i, I, f, F, r"),
        ('vm.module @m\nvm.import @a.b cconv "1v_v"', "2:22", "version 0"),
        ('vm.module @m\nvm.import @a.b cconv ""\nvm.import @a.b cconv ""', "3:11", "each import once"),
        ("vm.module @m\nvm.import @a.b", "2:15", "expected 'cconv'"),
        ("vm.module @m\nvm.rodata[1] = 00", "2:11", "expected segment 0"),
        ("vm.module @m\nvm.rodata[0] = 0", "2:14", "two hexadecimal digits a byte"),
        ("vm.module @m\nvm.rodata[0] = zz", "2:14", "two hexadecimal digits a byte"),
        ("vm.module @m\nvm.global.i32 @g = 1 : i32", "2:20", "initial value 0"),
        ("vm.module @m\nvm.global.f32 @g = 0.5 : f32", "2:20", "initial value 0"),
        ("vm.module @m\nvm.global.i32 @g = 0 : i64", "2:24", "expected the type i32"),
        ("vm.module @m\nvm.global.i32 @g\nvm.global.f32 @g", "3:15", "each global once"),
        ("vm.module @m\nvm.nonsense", "2:1", "expected vm.func, vm.type"),
        ("vm.module @m attributes {a = \"b\", a = \"c\"}", "1:35", "each attribute once"),
        ("vm.module @m attributes {a b}", "1:28", "expected '='"),
        ("vm.module @m\nvm.dependency @hal\nvm.dependency @hal", "3:15", "each dependency once"),
        ("vm.module @\nx", "1:11", "expected a function or global name after '@'"),
    ],
)  # fmt: skip
def test_refused_texts(text: str, location: str, message: str) -> None:
    error = refusal(text)
    assert message in error.message
    assert error.location == f"x.vmasm:{location}"
    pointed_at(error)


def test_far_columns_are_shown_near_the_caret() -> None:
    error = refusal(text_of("vm.discard.refs " + "%r0, " * 1000 + "oops"))
    assert error.location == f"x.vmasm:5:{3 + 16 + 5000}"
    line, caret = error.message.split("\n")[-2:]
    assert line[caret.index("^") :].startswith("oops")
    assert len(line) < 120


def test_messages_are_utf8() -> None:
    assert values('vm.fail %i0, "grüße, 数"')[1] == "grüße, 数"
    assert "UTF-8" in refusal(text_of('vm.fail %i0, "\ud800"')).message


@pytest.mark.slow
@given(st.binary(max_size=40))
def test_strings_with_escapes_are_any_bytes(data: bytes) -> None:
    module = assemble(text_of(f'vm.fail %i0, e"{"".join(f"{chr(92)}x{byte:02X}" for byte in data)}"\n^bb1:'))
    assert bytes(module.bytecode[4 : 6 + len(data)]) == len(data).to_bytes(2, "little") + data
    text = disassemble_module(verify_module(module), exact=True)
    assert assemble(text).bytecode == module.bytecode


def test_escapes() -> None:
    assert values(r'vm.fail %i0, e"\"a\\ \n\r\t\x41ü"')[1] == '"a\\ \n\r\tAü'
    for bad in (r"\q", r"\x4", r"\u0041"):
        assert "the escapes" in refusal(text_of(f'vm.fail %i0, e"{bad}"')).message
    error = refusal('vm.module @m attributes {a = e"\\xff"}')
    assert "expected UTF-8" in error.message
    assert pointed_at(error).startswith('e"')


@pytest.mark.slow
@given(st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 64) - 1))
def test_floats_by_their_bits(single: int, double: int) -> None:
    module = assemble(text_of(f"%i0 = vm.const.f32 bits({single:#x})\n  %i2:3 = vm.const.f64 bits({double:#x})"))
    assert bytes(module.bytecode[3:7]) == single.to_bytes(4, "little")
    assert bytes(module.bytecode[11:19]) == double.to_bytes(8, "little")
    assert assemble(disassemble_module(verify_module(module), exact=True)).bytecode == module.bytecode


@pytest.mark.sample(4)
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_exact_disassembly_is_the_module(path: Path) -> None:
    module = assemble(path.read_text(encoding="utf-8"))
    again = assemble(disassemble_module(verify_module(module), exact=True))
    # Exports stand with their functions, and names of globals are gone: the text may need fewer bytes of them.
    assert sorted(again.exports, key=str) == sorted(module.exports, key=str)
    assert again.global_bytes <= module.global_bytes
    assert (
        replace(again, exports=module.exports, global_bytes=module.global_bytes, global_refs=module.global_refs)
        == module
    )


def test_exact_disassembly_keeps_moves_without_effect() -> None:
    text = text_of("%i0 = vm.list.size %R0", arguments="%r0: !vm.buffer")
    module = assemble(text, bytecode_version=15 << 16)
    exact = disassemble_module(verify_module(module), exact=True)
    assert "vm.list.size %R0" in exact
    assert assemble(exact, bytecode_version=15 << 16) == module


PIECES = st.sampled_from(
    [
        "vm.module @m",
        "vm.func @f(%i0: i32) -> () {",
        "^bb0:",
        "vm.return",
        "}",
        "vm.rodata[0] = 00",
        "%i0",
        "%r1",
        "%i2:3",
        "=",
        ",",
        "(",
        ")",
        "[",
        "]",
        "{",
        "->",
        ":",
        "?",
        "vm.br",
        "^bb0",
        "vm.br_table",
        "default:",
        "vm.call.variadic",
        "segments",
        "else",
        ".refs",
        "vm.list.alloc",
        "!vm.list<i32>",
        "@f",
        "@m:0",
        '"s"',
        '"',
        "//",
        "0",
        "-1",
        "nan(0x1)",
        "1e9",
        "vm.const.f64",
        "attributes",
        "vm.import",
        "cconv",
        "vm.global.i32",
        "vm.global.store.ref",
        "\n",
        "\n",
        "\n",
        " ",
    ]
)


def only_refuses(text: str) -> None:
    try:
        assemble(text)
    except InvalidArgumentError as error:
        assert error.location is not None
        assert "\n" in error.message


@pytest.mark.slow
@given(st.text())
def test_any_text_assembles_or_is_refused(text: str) -> None:
    only_refuses(text)
    only_refuses("vm.module @m\n" + text)
    only_refuses(text_of(text))


@pytest.mark.slow
@settings(max_examples=300)
@given(st.lists(PIECES, max_size=30))
def test_any_sequence_of_tokens_assembles_or_is_refused(pieces: list[str]) -> None:
    only_refuses(" ".join(pieces))
    only_refuses(text_of(" ".join(pieces)))


LINES = [line for path in PROGRAMS for line in path.read_text(encoding="utf-8").split("\n")]


@pytest.mark.slow
@settings(max_examples=300)
@given(st.sampled_from(LINES), st.integers(0, 80), st.integers(0, 3), st.text(max_size=3))
def test_damaged_lines_assemble_or_are_refused(line: str, start: int, length: int, replacement: str) -> None:
    damaged = line[:start] + replacement + line[start + length :]
    only_refuses(text_of(damaged))
    only_refuses(f"vm.module @m\n{damaged}\nvm.func @f() -> () {{\nvm.return\n}}")
