"""The virtual machine's instruction set: operations, their fields, and one set a bytecode version.

The objects here are made from the data in :mod:`.isa_tables`, which names the sources of the facts::

    isa = Isa.for_version(definition.bytecode_version)
    isa.operations["add.i32"].fields        # for an assembler
    isa.by_code(None, 0x22)                 # for a decoder

Register operands are 16 bits. Bit 15 (``REF_BIT``) tells the bank: without it the low 15 bits are the ordinal of a
32-bit slot, with it the low 14 bits are the ordinal of a reference register and bit 14 (``MOVE_BIT``) says that the
register is moved: it is null after the use. ``i64`` and ``f64`` take an even slot and the one after it, and are
named by the even one.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final

from ...status import IncompatibleError
from . import isa_tables
from .module_def import Feature

REF_BIT: Final = 0x8000
MOVE_BIT: Final = 0x4000
REF_MASK: Final = 0x3FFF
# Most registers a function has, by bank (isa.h of 17.0).
MAX_I32_REGISTERS: Final = 0x7FFF
MAX_REF_REGISTERS: Final = 0x3FFF
# Bit 31 of a function ordinal: the low bits are an ordinal in the import table.
IMPORT_BIT: Final = 0x8000_0000
# Operations that call a function; their first field is its ordinal.
CALLS: Final = frozenset({"call", "call.variadic", "call.yieldable", "call.variadic.yieldable"})
# Segment size of an argument that is no repeated tuple.
SEGMENT_NOT_REPEATED: Final = 0xFFFF


class FieldKind(enum.Enum):
    """The content of a field, which determines its size and decoding."""

    REGISTER = "register"  # u16
    I32 = "i32"  # immediates: 4, 8, 4, 8 bytes
    I64 = "i64"
    F32 = "f32"
    F64 = "f64"
    GLOBAL = "global"  # u32 each, as are the next four
    FUNCTION = "function"
    RODATA = "rodata"
    TYPE = "type"
    BRANCH_TARGET = "branch target"
    STRING = "string"  # u16 length, bytes
    OPERANDS = "operands"  # pc padded to 2; u16 count, count u16; the same for the next two
    RESULTS = "results"
    SEGMENT_SIZES = "segment sizes"
    BRANCH_OPERANDS = "branch operands"  # pc padded to 2; u16 count, count pairs of u16
    BRANCH_TABLE = "branch table"  # u16 count; count times a branch target and branch operands


class Access(enum.Enum):
    """Whether an instruction reads or writes a register."""

    READ = "read"
    WRITE = "write"


class Move(enum.Enum):
    """The meaning of the MOVE bit of a reference register in a field."""

    NONE = "none"  # the field holds no reference register
    # A register that is read is null after the instruction. Of registers that are written only those of
    # global.load.ref, global.load.indirect.ref and list.get.ref heed the bit: the global, or the list's element, is
    # null after.
    ALLOW = "allow"
    REFUSE = "refuse"  # no verified module has the bit here
    IGNORE = "ignore"  # the bit may be there and has no effect


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an instruction.

    Attributes:
        name: as in the reference page.
        kind: its content.
        bank: ``i32``, ``i64``, ``f32``, ``f64`` or ``ref`` of a register, or of every register of ``OPERANDS``;
            ``None`` where each register has its own bank, and for other fields.
        access: of registers, otherwise ``None``. ``BRANCH_OPERANDS`` and ``BRANCH_TABLE`` do both: ``None``.
        move: the meaning of the MOVE bit here.
    """

    name: str
    kind: FieldKind
    bank: str | None = None
    access: Access | None = None
    move: Move = Move.NONE


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One operation of one version's instruction set. There is one object for each: compare by identity.

    Attributes:
        mnemonic: ``"add.i32"``; ``"block"`` is the marker that every block starts with.
        opcode: the byte, after the prefix where there is one.
        prefix: ``0xE0`` (f32), ``0xE1`` (f64), or ``None``.
        feature: the feature that a function with it has to require, or 0.
        fields: in the order of their bytes.
        semantics: names its effect. Equal names in two versions mean the same effect, except for ``Field.move``.
        form: name of its list of fields in :data:`.isa_tables.FORMS`.
        is_terminator: whether it ends a block.
    """

    mnemonic: str
    opcode: int
    prefix: int | None
    feature: int
    fields: tuple[Field, ...]
    semantics: str
    form: str
    is_terminator: bool

    def __str__(self) -> str:
        return self.mnemonic


def version_text(version: int) -> str:
    """``"17.0"`` for the u32 of a module file, ``major << 16 | minor``."""
    return f"{version >> 16}.{version & 0xFFFF}"


class Isa:
    """The instruction set of one bytecode version. Immutable, and one object a version: use :meth:`for_version`.

    Attributes:
        version: (major, minor).
        operations: by mnemonic.
    """

    __slots__ = ("_by_code", "operations", "version")

    def __init__(self, version: tuple[int, int]) -> None:
        self.version: Final = version
        operations: dict[str, Operation] = {}
        for prefix, feature, rows in (
            (None, 0, isa_tables.CORE),
            (isa_tables.PREFIX_EXT_F32, Feature.EXT_F32, isa_tables.EXT_F32),
            (isa_tables.PREFIX_EXT_F64, Feature.EXT_F64, isa_tables.EXT_F64),
        ):
            for row in rows:
                opcode, mnemonic, form = row[:3]
                if isa_tables.FIRST_VERSION.get(mnemonic, 0) > version[0]:
                    continue
                operations[mnemonic] = Operation(
                    mnemonic=mnemonic,
                    opcode=opcode,
                    prefix=prefix,
                    feature=int(feature),
                    fields=_fields(form, row[3:], version[0]),
                    semantics=mnemonic,
                    form=form,
                    is_terminator=mnemonic in isa_tables.TERMINATORS,
                )
        self.operations: Final[Mapping[str, Operation]] = MappingProxyType(operations)
        self._by_code: Final = {(each.prefix, each.opcode): each for each in operations.values()}

    @staticmethod
    def for_version(version: int) -> Isa:
        """The instruction set for a module file's bytecode version.

        Args:
            version: u32, ``major << 16 | minor``.

        Raises:
            IncompatibleError: unknown major version, or a minor version newer than the known one.
        """
        known = {major: (major, minor) for major, minor in isa_tables.VERSIONS}.get(version >> 16)
        if known is None or (version & 0xFFFF) > known[1]:
            versions = ", ".join(f"{major}.{minor}" for major, minor in isa_tables.VERSIONS)
            raise IncompatibleError(
                f"the module has bytecode version {version_text(version)}, known are {versions}: "
                "compile it again with a release of the IREE compiler that writes one of these (3.0 to 3.13 do)"
            )
        return _isa(known)

    def by_code(self, prefix: int | None, opcode: int) -> Operation | None:
        """The operation of a prefix byte (``None`` without) and an opcode byte, or ``None`` where there is none."""
        return self._by_code.get((prefix, opcode))

    def __repr__(self) -> str:
        return f"Isa({self.version[0]}.{self.version[1]})"


@cache
def _isa(version: tuple[int, int]) -> Isa:
    return Isa(version)


_SIMPLE_KINDS: Final = {
    "global": FieldKind.GLOBAL,
    "function": FieldKind.FUNCTION,
    "rodata": FieldKind.RODATA,
    "type": FieldKind.TYPE,
    "string": FieldKind.STRING,
    "target": FieldKind.BRANCH_TARGET,
    "segments": FieldKind.SEGMENT_SIZES,
}
_IMMEDIATES: Final = {"i32": FieldKind.I32, "i64": FieldKind.I64, "f32": FieldKind.F32, "f64": FieldKind.F64}


def _fields(form: str, banks: tuple[str | int, ...], major: int) -> tuple[Field, ...]:
    fields = []
    for word in isa_tables.FORMS[form].split():
        name, _, kind = word.partition(":")
        if banks:
            kind = kind.replace("$1", str(banks[0])).replace("$2", str(banks[-1])).replace("$", str(banks[0]))
        fields.append(_field(name, kind, major))
    return tuple(fields)


def _field(name: str, kind: str, major: int) -> Field:
    if kind in _SIMPLE_KINDS:
        return Field(name, _SIMPLE_KINDS[kind])
    if kind.startswith("imm."):
        return Field(name, _IMMEDIATES[kind[4:]])
    if kind == "remap":
        return Field(name, FieldKind.BRANCH_OPERANDS, move=Move.ALLOW)
    if kind == "cases":
        return Field(name, FieldKind.BRANCH_TABLE, move=Move.ALLOW)
    if kind == "results":
        return Field(name, FieldKind.RESULTS, access=Access.WRITE, move=Move.ALLOW)
    if kind.startswith("list."):
        bank = None if kind == "list.any" else kind[5:]
        move = Move.ALLOW if bank in (None, "ref") else Move.NONE
        return Field(name, FieldKind.OPERANDS, bank, Access.READ, move)
    access = Access.WRITE if kind.startswith(">") else Access.READ
    bank = kind.lstrip(">").rstrip("!")
    if bank != "ref":
        move = Move.NONE
    elif major in isa_tables.VERSIONS_IGNORING_FIELD_MOVES:
        move = Move.IGNORE
    else:
        move = Move.ALLOW if kind.endswith("!") else Move.REFUSE
    return Field(name, FieldKind.REGISTER, bank, access, move)
