"""Reads module files from untrusted writers.

Calling sequence: ``read_module(archive)`` once; its result holds views of the archive and stays valid after the archive
is closed. Every offset, length and count is checked before use. Constants and bytecode are not copied; debug
information is decoded at its first access.

Field numbers and rules are those of IREE's runtime/src/iree/schemas/bytecode_module_def.fbs and
runtime/src/iree/vm/bytecode/verifier.c, release 3.13; the layout is the same since 3.0.
"""

from __future__ import annotations

import struct
from typing import Final

from ...formats.flatbuffer import FlatBuffer, Table
from ...status import IncompatibleError, OutOfRangeError, PumiceError
from .archive import FLATBUFFER_IDENTIFIER, ModuleArchive
from .calling_convention import parse_named
from .debug_database import (
    CallSite,
    DebugDatabase,
    FileLineCol,
    FunctionSourceMap,
    FusedLocation,
    Location,
    NamedLocation,
)
from .module_def import (
    DESCRIPTOR,
    OPTIONAL,
    REQUIRED,
    DependencyDef,
    ExportDef,
    FunctionDescriptor,
    ImportDef,
    ModuleDef,
    Signature,
    check_features,
)

_BYTECODE_ALIGNMENT: Final = 8
_MAX_I32_REGISTERS: Final = 0x7FFF
_MAX_REF_REGISTERS: Final = 0x4000


def read_module(archive: ModuleArchive) -> ModuleDef:
    """Returns the module that an archive holds.

    The bytecode is not checked, and its version may be unknown: ``verify_module`` does both.

    Raises:
        InvalidArgumentError: the file is damaged or truncated; the message names the field and the byte.
        IncompatibleError: the file needs a feature, a compression or a calling convention that this version does not
            know.
        ClosedError: the archive is closed.
    """
    try:
        return _Reader(archive).read()
    except PumiceError as error:
        error.location = error.location or archive.name
        raise


class _SharingBuffer(FlatBuffer):
    """Decodes a string shared by many tables only once, so that it counts once against the read budget."""

    __slots__ = ("_strings",)

    def __init__(self, data: bytes | bytearray | memoryview, *, identifier: bytes | None, name: str) -> None:
        super().__init__(data, identifier=identifier, name=name)
        self._strings: Final[dict[int, str]] = {}

    def string_at(self, position: int, path: str) -> str:
        known = self._strings.get(position)
        if known is None:
            known = self._strings[position] = super().string_at(position, path)
        return known


class _Reader:
    def __init__(self, archive: ModuleArchive) -> None:
        self._archive = archive
        self._buffer = _SharingBuffer(archive.flatbuffer, identifier=FLATBUFFER_IDENTIFIER, name="module")
        self._signatures: dict[str, Signature] = {}

    def read(self) -> ModuleDef:
        root = self._buffer.root()
        name = _name(root, "name")
        requirements = root.u32(2, "requirements")
        check_features("module", requirements)
        bytecode = root.u8s(14, "bytecode_data")
        functions = self._functions(root, len(bytecode))
        signatures = tuple(self._signature(table) for table in root.tables(8, "function_signatures"))
        if len(signatures) != len(functions):
            raise root.error(
                8, "function_signatures", f"expected one for each of {len(functions)} functions, got {len(signatures)}"
            )
        state = root.table(11, "module_state")
        return ModuleDef(
            name=name,
            version=root.u32(1, "version"),
            requirements=requirements,
            attributes=_attributes(root, 3, "attrs"),
            types=tuple(_name(table, "full_name") for table in root.tables(4, "types")),
            dependencies=tuple(_dependency(table) for table in root.tables(5, "dependencies")),
            imports=tuple(self._import(table) for table in root.tables(6, "imported_functions")),
            exports=tuple(_export(table, len(functions)) for table in root.tables(7, "exported_functions")),
            signatures=signatures,
            rodata=tuple(self._rodata(table) for table in root.tables(9, "rodata_segments")),
            rwdata_sizes=tuple(_size(table, 0, "byte_size") for table in root.tables(10, "rwdata_segments")),
            global_bytes=0 if state is None else _size(state, 0, "global_bytes_capacity"),
            global_refs=0 if state is None else _size(state, 1, "global_ref_count"),
            functions=functions,
            bytecode_version=root.u32(13, "bytecode_version"),
            bytecode=bytecode,
            debug=self._debug(root, len(functions)),
        )

    def _functions(self, root: Table, bytecode_size: int) -> tuple[FunctionDescriptor, ...]:
        functions = []
        for index, fields in enumerate(root.structs(12, "function_descriptors", DESCRIPTOR)):
            offset, length, requirements, blocks, i32_count, ref_count = fields
            problem = None
            if offset < 0 or offset % _BYTECODE_ALIGNMENT:
                problem = f"expected an offset of a multiple of {_BYTECODE_ALIGNMENT}, got {offset}"
            elif length < 1 or offset + length > bytecode_size:
                problem = f"expected 1 to {bytecode_size - offset} bytes of bytecode at {offset}, got {length}"
            elif not 1 <= blocks <= length:
                problem = f"expected 1 to {length} blocks, got {blocks}"
            elif not 0 <= i32_count <= _MAX_I32_REGISTERS or not 0 <= ref_count <= _MAX_REF_REGISTERS:
                problem = (
                    f"expected at most {_MAX_I32_REGISTERS} i32 and {_MAX_REF_REGISTERS} ref registers, "
                    f"got {i32_count} and {ref_count}"
                )
            if problem is not None:
                raise root.error(12, f"function_descriptors[{index}]", problem)
            check_features(f"function {index}", requirements)
            functions.append(FunctionDescriptor(*fields))
        return tuple(functions)

    def _signature(self, table: Table) -> Signature:
        convention = table.string(0, "calling_convention") or ""
        attributes = _attributes(table, 1, "attrs")
        known = self._signatures.get(convention)
        if known is None:
            parse_named(table.path, convention)
            known = self._signatures[convention] = Signature(convention)
        return Signature(convention, attributes) if attributes else known

    def _import(self, table: Table) -> ImportDef:
        signature = table.table(1, "signature")
        return ImportDef(
            _name(table, "full_name"),
            Signature("") if signature is None else self._signature(signature),
            not table.u32(2, "flags", REQUIRED) & OPTIONAL,
        )

    def _rodata(self, table: Table) -> memoryview:
        compression = table.u8(0, "compression_type")
        if compression > 1:
            raise IncompatibleError(
                f"{table.path}: expected constants without compression, got type {compression}; compile again "
                "without it"
            )
        if table.has(2):
            return table.u8s(2, "embedded_data")
        try:
            return self._archive.external(table.u64(3, "external_data_offset"), table.u64(4, "external_data_length"))
        except OutOfRangeError as error:
            raise table.error(3, "external_data_offset", error.message) from None

    def _debug(self, root: Table, function_count: int) -> DebugDatabase | None:
        table = root.table(15, "debug_database")
        if table is None:
            return None
        # Bound to values that do not change, as it may be called much later, from any thread.
        data, position, path = self._buffer.data, table.position, table.path
        return DebugDatabase.deferred(function_count, lambda: _read_debug(data, position, path))


class _UnionTable(Table):
    """A table with a vector of unions, whose elements may be absent."""

    __slots__ = ()

    def unions(self, slot: int, name: str) -> list[tuple[int, Table | None]]:
        """Returns the type and table of each element; no table for type 0 and for unknown types above 255."""
        types = self.u8s(slot, f"{name}_type")
        target = self._target(slot + 1, name)
        start, count = (0, 0) if target is None else self._buffer.vector_at(target, 4, f"{self.path}.{name}")
        if count != len(types):
            raise self.error(slot + 1, name, f"expected one for each of {len(types)} types, got {count}")
        self._buffer.spend(5 * count, self.path, self.position)
        elements: list[tuple[int, Table | None]] = []
        for index, kind in enumerate(types):
            path = f"{self.path}.{name}[{index}]"
            position = start + 4 * index
            elements.append((kind, Table(self._buffer, self._buffer.follow(position, path), path) if kind else None))
        return elements


def _read_debug(
    data: memoryview, position: int, path: str
) -> tuple[tuple[FunctionSourceMap, ...], tuple[Location, ...]]:
    # A separate buffer has a separate read budget.
    table = _UnionTable(_SharingBuffer(data, identifier=None, name="module"), position, path)
    functions = []
    for entry in table.tables(2, "functions"):
        pairs = entry.vector_bytes(1, "locations", 8)
        functions.append(FunctionSourceMap(entry.string(0, "local_name") or "", b"" if pairs is None else pairs))
    return tuple(functions), tuple(_location(kind, entry) for kind, entry in table.unions(0, "location_table"))


def _location(kind: int, table: Table | None) -> Location:
    if table is None:
        return None
    if kind == 1:
        return CallSite(table.i32(0, "callee"), table.i32(1, "caller"))
    if kind == 2:
        return FileLineCol(table.string(0, "filename") or "", table.i32(1, "line"), table.i32(2, "column"))
    if kind == 3:
        children = tuple(value for (value,) in table.structs(1, "locations", struct.Struct("<i")))
        return FusedLocation(table.string(0, "metadata"), children)
    if kind == 4:
        return NamedLocation(table.string(0, "name") or "", table.i32(1, "child_location"))
    return None


def _attributes(table: Table, slot: int, name: str) -> dict[str, str]:
    if not table.has(slot):
        return {}
    return {entry.string(0, "key") or "": entry.string(1, "value") or "" for entry in table.tables(slot, name)}


def _name(table: Table, field: str) -> str:
    name = table.require_string(0, field)
    if not name:
        raise table.error(0, field, "expected a name, got an empty one")
    return name


def _dependency(table: Table) -> DependencyDef:
    required = not table.u32(2, "flags", REQUIRED) & OPTIONAL
    return DependencyDef(_name(table, "name"), table.u32(1, "minimum_version"), required)


def _export(table: Table, function_count: int) -> ExportDef:
    ordinal = table.i32(1, "internal_ordinal")
    if not 0 <= ordinal < function_count:
        raise table.error(1, "internal_ordinal", f"expected one of {function_count} functions, got {ordinal}")
    return ExportDef(_name(table, "local_name"), ordinal)


def _size(table: Table, slot: int, name: str) -> int:
    size = table.i32(slot, name)
    if size < 0:
        raise table.error(slot, name, f"expected 0 or more, got {size}")
    return size
