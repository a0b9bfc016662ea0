"""The tables of SPIR-V's names and numbers against the grammar they are made of and against the SPIRV-Tools."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from support.devices.build_grammar import grammar_tables as build
from support.import_graph import ROOT

from pumice.spirv.binary import grammar, grammar_tables
from pumice.spirv.binary.grammar import ENUMERATIONS, LAYOUTS, Decoration, Enumeration, Op, operand_kinds
from pumice.spirv.binary.words import encode, string_words

INCLUDES = [*filter(None, [os.environ.get("VULKAN_SDK")]), "/usr", "/usr/local"]


def _installed_grammar() -> bytes:
    files = [Path(folder) / "include/spirv/unified1/spirv.core.grammar.json" for folder in INCLUDES]
    found = [file for file in files if file.is_file()]
    if not found:
        pytest.skip("needs spirv.core.grammar.json (package spirv-headers, or the Vulkan SDK)")
    return found[0].read_bytes()


def test_tables_are_what_the_generator_gives() -> None:
    installed = _installed_grammar()
    if hashlib.sha256(installed).hexdigest() != grammar_tables.GRAMMAR_SHA256:
        pytest.skip("the installed grammar is of another release than the tables")
    assert build(installed) == Path(str(grammar_tables.__file__)).read_text(encoding="utf-8")


def test_numbers_equal_those_of_any_release() -> None:
    """A number never changes its meaning, so an older or newer grammar agrees on what both know."""
    namespace: dict[str, str] = {}
    exec(build(_installed_grammar()), namespace)
    for table, rows in (("INSTRUCTIONS", 2), ("ENUMERANTS", 1)):
        theirs, ours = (
            {
                (line.split("|")[0] if rows == 1 else "", name): number
                for line in text.replace("\n ", " ").strip().splitlines()
                for name, number in zip(
                    line.split("|")[rows].split()[::2], line.split("|")[rows].split()[1::2], strict=True
                )
            }
            for text in (namespace[table], getattr(grammar_tables, table))
        )
        common = theirs.keys() & ours.keys()
        assert len(common) > 500
        assert {key: theirs[key] for key in common} == {key: ours[key] for key in common}


def test_generator_keeps_names_and_numbers_only() -> None:
    text = build(
        b"""{"magic_number": "0x07230203", "major_version": 1, "minor_version": 6, "revision": 1, "instructions": [
        {"opname": "OpNop", "class": "Miscellaneous", "opcode": 0, "version": "1.0"},
        {"opname": "OpFooINTEL", "class": "Miscellaneous", "opcode": 9},
        {"opname": "OpLoad", "class": "Memory", "opcode": 61, "operands": [
            {"kind": "IdResultType"}, {"kind": "IdResult"}, {"kind": "IdRef", "name": "Pointer"},
            {"kind": "MemoryAccess", "quantifier": "?"}]}],
        "operand_kinds": [
        {"category": "BitEnum", "kind": "MemoryAccess", "enumerants": [
            {"enumerant": "Volatile", "value": "0x0001"},
            {"enumerant": "Aligned", "value": "0x0002", "parameters": [{"kind": "LiteralInteger"}]}]},
        {"category": "Composite", "kind": "PairIdRefIdRef", "bases": ["IdRef", "IdRef"]},
        {"category": "ValueEnum", "kind": "Capability", "enumerants": [{"enumerant": "FooINTEL", "value": 7}]}]}"""
    )
    assert "Memory | IdResultType IdResult IdRef MemoryAccess? | Load 61" in text
    assert "MemoryAccess | Volatile 1 Aligned 2" in text
    assert "MemoryAccess | LiteralInteger | Aligned" in text
    assert "Capability | FooINTEL 7" in text
    assert "PairIdRefIdRef | IdRef IdRef" in text
    assert "OpFooINTEL" not in text and "Pointer" not in text and " FooINTEL 9" not in text


@pytest.mark.slow
def test_capabilities_equal_spirv_tools() -> None:
    """spirv-dis names them alike; the installed tool may not know the newest."""
    dis = shutil.which("spirv-dis")
    if dis is None:
        pytest.skip("needs spirv-dis (package spirv-tools)")
    compared = 0
    for number, name in ENUMERATIONS["Capability"].names.items():
        if number > 5400 and number % 7:
            continue  # a process each, so a sample of the newer ones
        code = struct.pack("<7I", 0x07230203, 0x10600, 0, 1, 0, *encode(Op.Capability, number))
        done = subprocess.run([dis, "--no-color", "-"], input=code, capture_output=True, timeout=30, check=False)
        match = re.search(r"OpCapability (\w+)", done.stdout.decode())
        if match is None:
            continue
        compared += 1
        # Names promoted from extensions lose their suffix with time.
        assert re.sub(r"(KHR|EXT|NV|INTEL|ALTERA)$", "", match[1]) == re.sub(r"(KHR|EXT|NV|INTEL|ALTERA)$", "", name)
    assert compared > 140


def test_every_name_used_exists() -> None:
    """Attributes of enumerations are looked up as the program runs: a misspelt one must not wait for that."""
    known = {name: value for name, value in vars(grammar).items() if isinstance(value, Enumeration)}
    used = 0
    for file in (ROOT / "spirv").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known:
                assert hasattr(known[node.value.id], node.attr), f"{file.name}:{node.lineno}: {node.attr}"
                used += 1
    assert used > 100


def test_lookup() -> None:
    assert (Op.TypeVector, Decoration.SpecId) == (23, 1)
    assert Decoration.name(33) == "Binding"
    assert Decoration.name(60000) == "Decoration(60000)"
    assert LAYOUTS[Op.EntryPoint].minimum == 4
    assert LAYOUTS[Op.EntryPoint].operands == ("ExecutionModel", "IdRef", "LiteralString", "IdRef*")
    assert LAYOUTS[Op.IAdd].group == "Arithmetic"


@pytest.mark.parametrize(
    ("instruction", "kinds"),
    [
        (
            encode(Op.EntryPoint, 5, 2, *string_words("main"), 7, 8),
            [(1, "ExecutionModel"), (2, "IdRef"), (3, "LiteralString"), (5, "IdRef"), (6, "IdRef")],
        ),
        (encode(Op.Decorate, 7, Decoration.Binding, 3), [(1, "IdRef"), (2, "Decoration"), (3, "LiteralInteger")]),
        (
            encode(Op.Load, 1, 2, 3, 0x1 | 0x2, 16),
            [(1, "IdResultType"), (2, "IdResult"), (3, "IdRef"), (4, "MemoryAccess"), (5, "LiteralInteger")],
        ),
        (
            encode(Op.Phi, 1, 2, 3, 4, 5, 6),
            [(1, "IdResultType"), (2, "IdResult"), *((at, "IdRef") for at in range(3, 7))],
        ),
        (encode(Op.Switch, 1, 2, 10, 3), [(1, "IdRef"), (2, "IdRef"), (3, "LiteralInteger"), (4, "IdRef")]),
        (
            encode(Op.SpecConstantOp, 1, 2, Op.CompositeExtract, 3, 0),
            [
                (1, "IdResultType"),
                (2, "IdResult"),
                (3, "LiteralSpecConstantOpInteger"),
                (4, "IdRef"),
                (5, "LiteralInteger"),
            ],
        ),
        ((2 << 16 | 0xFFFF, 1), []),
    ],
)
def test_operand_kinds(instruction: tuple[int, ...], kinds: list[tuple[int, str]]) -> None:
    assert list(operand_kinds(instruction, 0, len(instruction))) == kinds
