"""The instruction set's table: what differs between versions, and that the peer encodes every operation as it does."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.peer import run_peer
from support.vm import isa_programs as programs

from pumice.status import IncompatibleError
from pumice.vm.assembly.assembler import assemble
from pumice.vm.assembly.isa_reference import reference_page
from pumice.vm.bytecode import isa_tables
from pumice.vm.bytecode.archive import ModuleArchive
from pumice.vm.bytecode.isa import FieldKind, Isa, Move
from pumice.vm.bytecode.reader import read_module
from pumice.vm.translation.operations import EFFECTS, OPERATIONS

ISAS = [Isa.for_version(major << 16 | minor) for major, minor in isa_tables.VERSIONS]


def test_a_version_is_one_object() -> None:
    assert Isa.for_version(16 << 16) is Isa.for_version(16 << 16)
    assert [isa.version for isa in ISAS] == [(15, 0), (16, 0), (17, 0)]


@pytest.mark.parametrize("version", [0, 14 << 16, 15 << 16 | 1, 17 << 16 | 1, 18 << 16, 0xFFFFFFFF])
def test_an_unknown_version_is_incompatible(version: int) -> None:
    with pytest.raises(IncompatibleError) as caught:
        Isa.for_version(version)
    assert f"{version >> 16}.{version & 0xFFFF}" in caught.value.message
    assert "15.0, 16.0, 17.0" in caught.value.message
    assert "compile it again" in caught.value.message


def test_versions_differ_by_the_operations_that_were_added() -> None:
    names = [set(isa.operations) for isa in ISAS]
    assert names[1] - names[0] == {"discard.refs", "assign.ref"}
    assert names[2] - names[1] == {"call.yieldable", "call.variadic.yieldable"}
    assert names[0] < names[1] < names[2]


@pytest.mark.parametrize("isa", ISAS, ids=str)
def test_each_operation_has_a_code_of_its_own(isa: Isa) -> None:
    for mnemonic, operation in isa.operations.items():
        assert operation.mnemonic == mnemonic
    codes = {(each.prefix, each.opcode) for each in isa.operations.values()}
    assert len(codes) == len(isa.operations)
    assert codes.isdisjoint({(None, isa_tables.PREFIX_EXT_F32), (None, isa_tables.PREFIX_EXT_F64)})


def test_an_operation_that_two_versions_have_is_encoded_alike() -> None:
    older, newer = ISAS[0], ISAS[2]
    for mnemonic, operation in older.operations.items():
        other = newer.operations[mnemonic]
        assert (operation.prefix, operation.opcode) == (other.prefix, other.opcode)
        assert [(each.name, each.kind, each.bank, each.is_written) for each in operation.fields] == [
            (each.name, each.kind, each.bank, each.is_written) for each in other.fields
        ]


def test_only_version_15_ignores_move_in_single_fields() -> None:
    for isa in ISAS:
        moves = {
            each.move
            for operation in isa.operations.values()
            for each in operation.fields
            if each.kind is FieldKind.REGISTER and each.bank == "ref"
        }
        assert moves == ({Move.IGNORE} if isa.version[0] == 15 else {Move.ALLOW, Move.REFUSE})
        assert isa.operations["return"].fields[0].move is Move.ALLOW


def test_every_name_in_the_tables_is_one_of_an_operation() -> None:
    names = set(ISAS[-1].operations)
    assert set(isa_tables.TERMINATORS) <= names
    assert set(isa_tables.FIRST_VERSION) <= names
    assert {each.form for each in ISAS[-1].operations.values()} == set(isa_tables.FORMS)


def test_semantics_are_of_operations_there_are() -> None:
    assert set(OPERATIONS) | set(EFFECTS) <= set(ISAS[-1].operations)


def test_the_reference_page_is_what_the_table_gives() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "isa.md"
    assert page.read_text(encoding="utf-8") == reference_page(), (
        "run python -m pumice.vm.assembly.isa_reference > docs/reference/isa.md"
    )


def test_the_reference_page_has_every_operation() -> None:
    rows = [line for line in reference_page().splitlines() if line.startswith("| 0x")]
    assert len(rows) == len(ISAS[-1].operations)


@pytest.mark.peer
def test_the_peer_encodes_every_operation_alike(tmp_path: Path) -> None:
    # The peer's assembler has no text for switch.ref.
    operations = [each for each in programs.writable(ISAS[-1]) if each.mnemonic != "switch.ref"]
    source = tmp_path / "every.vmasm"
    source.write_text(programs.program(operations), encoding="utf-8")
    run_peer("iree-as-module", f"--output={tmp_path / 'every.vmfb'}", source)
    with ModuleArchive.open(tmp_path / "every.vmfb") as archive:
        theirs = read_module(archive)
        ours = assemble(source.read_text(encoding="utf-8"))
        assert len(theirs.functions) == len(operations)
        for operation, mine, peers in zip(operations, ours.functions, theirs.functions, strict=True):
            code = bytes(theirs.bytecode[peers.offset : peers.offset + peers.length])
            assert bytes(ours.bytecode[mine.offset : mine.offset + mine.length]) == code, operation.mnemonic
            # Everything in the table was asked of the peer: the first byte after the marker is the operation's.
            start = [operation.prefix, operation.opcode] if operation.prefix is not None else [operation.opcode]
            assert list(code[1 : 1 + len(start)]) == start
