"""Generates ``docs/reference/isa.md`` from the table of the instruction set.

Run ``python -m pumice.vm.assembly.isa_reference > docs/reference/isa.md``.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from typing import Final

from ..bytecode import isa_tables
from ..bytecode.isa import Field, FieldKind, Isa, Move, Operation
from .disassembler import assembly_form

_HEAD: Final = """\
# Instruction set of the virtual machine

This page is generated from `vm/bytecode/isa_tables.py` by `python -m pumice.vm.assembly.isa_reference`; do not edit it.

A module's bytecode has a version, and pumice runs {versions}. The tables are those of version {newest}; the column
*since* names the first version of operations that older ones do not have. Operations keep opcode, encoding and meaning
from one version to the next, but for one: version {ignoring} ignores the MOVE bit of a single register field.

## Encoding

Everything is little-endian. A function is a sequence of blocks; a block is the marker byte `0x79` (`block`),
instructions, and a terminator, which is its last instruction. A branch names the pc of a marker. The pc counts bytes
from the function's start.

An instruction is its opcode byte, behind a prefix byte for the f32 (`0xE0`) and f64 (`0xE1`) sets, and its fields
without gaps:

| field | bytes |
| -- | -- |
| register | u16 |
| immediate `i32`, `i64`, `f32`, `f64` | 4, 8, 4, 8 |
| global, function, rodata, type, branch target | u32 |
| string | u16 length, then UTF-8 |
| list of registers or of segment sizes | a zero byte if the pc is odd; u16 count; that many u16 |
| branch operands | a zero byte if the pc is odd; u16 count; that many pairs of u16, source and destination |
| branch table | u16 count; that many times a branch target and branch operands |

Bit 15 of a register is its bank. Without it the rest is the ordinal of a 32-bit slot (`%i7`), which an `i32` or an
`f32` takes; `i64` and `f64` take an even slot and the next one (`%i6:7`) and are named by the even one. With it the low
14 bits are the ordinal of a reference register (`%r3`), and bit 14 is MOVE (`%R3`): the register is null after the
instruction. Where a register is written, MOVE matters for `global.load.ref`, `global.load.indirect.ref` and
`list.get.ref` only: the global or list element that they read is null afterwards. Fields that allow MOVE are marked
`!`; references in lists and those that are the sources of branch operands always do.

Bit 31 of a function ordinal marks an import. Segment sizes of variadic calls have one entry an argument of the callee's
calling convention: how often a repeated tuple is passed, and 65535 for other arguments. In lists an `i64` is one
register, in branch operands it is two pairs. Branch operands are copied in order, one pair after the other.

In the tables a field is written `name: kind`, `*` marks lists and `→` registers that are written.
"""


def reference_page() -> str:
    """Returns the text of the page; ends with a line feed."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    major, minor = isa_tables.VERSIONS[-1]
    isa = Isa.for_version(major << 16 | minor)
    yield _HEAD.format(
        versions=_listed([f"{item[0]}.{item[1]}" for item in isa_tables.VERSIONS]),
        newest=f"{major}.{minor}",
        ignoring=_listed([str(item) for item in sorted(isa_tables.VERSIONS_IGNORING_FIELD_MOVES)]),
    )
    for title, prefix in (
        ("Core", None),
        ("f32, prefix 0xE0, feature EXT_F32", isa_tables.PREFIX_EXT_F32),
        ("f64, prefix 0xE1, feature EXT_F64", isa_tables.PREFIX_EXT_F64),
    ):
        yield f"## {title}\n"
        yield "| opcode | operation | fields | assembly | since |"
        yield "| -- | -- | -- | -- | -- |"
        rows = [item for item in isa.operations.values() if item.prefix == prefix]
        for operation in sorted(rows, key=lambda item: item.opcode):
            yield _row(operation)
        yield ""
    yield "## Terminators\n"
    terminators = _listed([f"`{item}`" for item in sorted(isa_tables.TERMINATORS)])
    yield textwrap.fill(
        f"{terminators}. `fail` with status 0 does nothing: control continues with the next block.", 120
    )


def _row(operation: Operation) -> str:
    fields = ", ".join(_field(field) for field in operation.fields)
    since = isa_tables.FIRST_VERSION.get(operation.mnemonic)
    return (
        f"| 0x{operation.opcode:02X} | `{operation.mnemonic}` | {fields} | `{assembly_form(operation)}` | "
        f"{'' if since is None else f'{since}.0'} |"
    )


def _field(field: Field) -> str:
    if field.kind is FieldKind.REGISTER:
        kind = f"{field.bank}{'!' if field.move is Move.ALLOW else ''}"
    elif field.kind is FieldKind.OPERANDS:
        kind = f"{field.bank or 'any'}\\*"
    elif field.kind is FieldKind.RESULTS:
        kind = "any\\*"
    elif field.kind in (FieldKind.I32, FieldKind.I64, FieldKind.F32, FieldKind.F64):
        kind = f"immediate {field.kind.name.lower()}"
    else:
        kind = field.kind.name.lower().replace("_", " ")
    text = field.name if field.name == kind else f"{field.name}: {kind}"
    return f"→ {text}" if field.is_written else text


def _listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


if __name__ == "__main__":
    sys.stdout.write(reference_page())
