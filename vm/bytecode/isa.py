"""The virtual machine's instruction set: operations and their fields, with one set per bytecode version.

The objects here are made from the data in ``isa_tables``, which names the sources of the facts::

    isa = Isa.for_version(definition.bytecode_version)
    isa.operations["add.i32"].fields

Register operands are 16 bits. Bit 15 (``REF_BIT``) determines the bank: without it the low 15 bits are the ordinal of a
32-bit slot; with it the low 14 bits are the ordinal of a reference register, and bit 14 (``MOVE_BIT``) means that the
register is moved, that is, null after the use. ``i64`` and ``f64`` take an even slot and the next slot, and are written
as the even slot.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from ...base.lazy_dataclass import dataclass
from ...status import IncompatibleError
from . import isa_tables
from .module_def import Feature

REF_BIT: Final = 0x8000
MOVE_BIT: Final = 0x4000
REF_MASK: Final = 0x3FFF
# The most registers of a function, by bank (isa.h of 17.0).
MAX_I32_REGISTERS: Final = 0x7FFF
MAX_REF_REGISTERS: Final = 0x3FFF
# Letters of calling conventions by bank, and the bytes of values.
LETTERS: Final = {"i32": "i", "i64": "I", "f32": "f", "f64": "F", "ref": "r"}
BANK_SIZES: Final = {"i32": 4, "i64": 8, "f32": 4, "f64": 8, "ref": 0}
# Bit 31 of a function ordinal: the low bits are an ordinal in the import table.
IMPORT_BIT: Final = 0x8000_0000
# Operations that call a function; their first field is its ordinal.
CALLS: Final = frozenset({"call", "call.variadic", "call.yieldable", "call.variadic.yieldable"})


class FieldKind(enum.Enum):
    """The content of a field, which determines its size and decoding; the value is its word in the tables' forms."""

    REGISTER = "register"  # u16; in forms its bank
    I32 = "imm.i32"  # immediates: 4, 8, 4, 8 bytes
    I64 = "imm.i64"
    F32 = "imm.f32"
    F64 = "imm.f64"
    GLOBAL = "global"  # u32 each, as are the next four
    FUNCTION = "function"
    RODATA = "rodata"
    TYPE = "type"
    BRANCH_TARGET = "target"
    STRING = "string"  # u16 length, bytes
    OPERANDS = "list"  # pc padded to 2; u16 count, count u16; the same for the next two
    RESULTS = "results"
    SEGMENT_SIZES = "segments"
    BRANCH_OPERANDS = "remap"  # pc padded to 2; u16 count, count pairs of u16
    BRANCH_TABLE = "cases"  # u16 count; count times a branch target and branch operands


class Move(enum.Enum):
    """The meaning of the MOVE bit of a reference register in a field."""

    NONE = "none"  # the field holds no reference register
    # A read register is null after the instruction. Of written registers only those of global.load.ref,
    # global.load.indirect.ref and list.get.ref heed the bit: the global, or the list's element, is null afterwards.
    ALLOW = "allow"
    REFUSE = "refuse"  # no verified module has the bit here
    IGNORE = "ignore"  # the bit may be set and has no effect


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an instruction."""

    name: str  # as in the reference page
    kind: FieldKind
    # ``i32``, ``i64``, ``f32``, ``f64`` or ``ref`` of a register, or of every register of ``OPERANDS``; ``None`` if
    # each register has its own bank, and for other fields.
    bank: str | None = None
    is_written: bool = False  # whether the instruction writes these registers; branches read and write theirs
    move: Move = Move.NONE


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One operation of one version's instruction set. There is one object per operation, so compare by identity."""

    mnemonic: str  # "block" is the marker that every block starts with
    opcode: int  # the byte, after the prefix if there is one
    prefix: int | None  # 0xE0 (f32), 0xE1 (f64)
    feature: int  # the feature that a function with it must require, or 0
    fields: tuple[Field, ...]  # in the order of their bytes
    form: str  # name of its list of fields in ``isa_tables.FORMS``
    is_terminator: bool  # whether it ends a block


def version_text(version: int) -> str:
    """Returns ``"17.0"`` for the u32 of a module file, ``major << 16 | minor``."""
    return f"{version >> 16}.{version & 0xFFFF}"


def register_text(register: int, bank: str | None = None) -> str:
    """Returns a register operand as assembly: ``%i0``, ``%i0:1`` for a bank of pairs, ``%r0``, ``%R0`` with the MOVE
    bit.
    """
    if register & REF_BIT:
        return f"%{'R' if register & MOVE_BIT else 'r'}{register & REF_MASK}"
    return f"%i{register}:{register + 1}" if bank in ("i64", "f64") else f"%i{register}"


class Isa:
    """The instruction set of one bytecode version. Immutable, and one object for each version: use ``for_version``."""

    def __init__(self, version: tuple[int, int]) -> None:
        self.version: Final = version  # (major, minor)
        operations: dict[str, Operation] = {}
        for prefix, feature, rows in (
            (None, 0, isa_tables.CORE),
            (isa_tables.PREFIX_EXT_F32, int(Feature.EXT_F32), isa_tables.EXT_F32),
            (isa_tables.PREFIX_EXT_F64, int(Feature.EXT_F64), isa_tables.EXT_F64),
        ):
            for first, form, banks, mnemonics in rows:
                fields = _fields(form, banks.split(), version[0])
                for opcode, mnemonic in enumerate(mnemonics.split(), first):
                    if isa_tables.FIRST_VERSION.get(mnemonic, 0) <= version[0]:
                        ends = mnemonic in isa_tables.TERMINATORS
                        operations[mnemonic] = Operation(mnemonic, opcode, prefix, feature, fields, form, ends)
        self.operations: Final[Mapping[str, Operation]] = MappingProxyType(operations)

    @staticmethod
    def for_version(version: int) -> Isa:
        """Returns the instruction set for a module file's bytecode version, ``major << 16 | minor``.

        IncompatibleError for an unknown major version, or a minor version newer than the known one.
        """
        known = {major: (major, minor) for major, minor in isa_tables.VERSIONS}.get(version >> 16)
        if known is None or (version & 0xFFFF) > known[1]:
            versions = ", ".join(f"{major}.{minor}" for major, minor in isa_tables.VERSIONS)
            raise IncompatibleError(
                f"the module has bytecode version {version_text(version)}, known are {versions}: "
                "compile it again with a release of the IREE compiler that writes one of these (3.0 to 3.13 do)"
            )
        return _isa(known)

    def __repr__(self) -> str:
        return f"Isa({self.version[0]}.{self.version[1]})"


@cache
def _isa(version: tuple[int, int]) -> Isa:
    return Isa(version)


_WORDS: Final = {kind.value: kind for kind in FieldKind}


def _fields(form: str, banks: list[str], major: int) -> tuple[Field, ...]:
    fields = []
    for word in isa_tables.FORMS[form].split():
        name, _, kind = word.partition(":")
        if banks:
            kind = kind.replace("$1", banks[0]).replace("$2", banks[-1]).replace("$", banks[0])
        fields.append(_field(name, kind, major))
    return tuple(fields)


def _field(name: str, kind: str, major: int) -> Field:
    words = _WORDS.get(kind)
    if words is FieldKind.RESULTS:
        return Field(name, words, is_written=True, move=Move.ALLOW)
    if words is not None:
        return Field(name, words, move=Move.ALLOW if kind in ("remap", "cases") else Move.NONE)
    if kind.startswith("list."):
        bank = None if kind == "list.any" else kind[5:]
        return Field(name, FieldKind.OPERANDS, bank, move=Move.ALLOW if bank in (None, "ref") else Move.NONE)
    bank = kind.lstrip(">").rstrip("!")
    if bank != "ref":
        move = Move.NONE
    elif major in isa_tables.VERSIONS_IGNORING_FIELD_MOVES:
        move = Move.IGNORE
    else:
        move = Move.ALLOW if kind.endswith("!") else Move.REFUSE
    return Field(name, FieldKind.REGISTER, bank, kind.startswith(">"), move)
