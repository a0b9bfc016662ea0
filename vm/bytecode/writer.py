"""Writes module files, flat or as a ZIP polyglot, in the form that IREE's tools of release 3.13 read.

Names and tables come first, then constants and bytecode, then external constants, so that opening a file touches only
its first pages. The layout is that of IREE's runtime/src/iree/schemas/bytecode_module_def.fbs.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from typing import Final, TypeAlias, TypeVar

import flatbuffers  # type: ignore[import-untyped]

from ...status import InvalidArgumentError
from .archive import FLATBUFFER_IDENTIFIER, SEGMENT_ALIGNMENT
from .debug_database import CallSite, DebugDatabase, FileLineCol, FusedLocation, Location, NamedLocation
from .module_def import DESCRIPTOR, OPTIONAL, REQUIRED, DependencyDef, ExportDef, ImportDef, ModuleDef, Signature

EMBEDDED_RODATA_LIMIT: Final = 4096
"""Constants of fewer bytes than this go into the FlatBuffer, as in IREE's compilers."""

_DATA_ALIGNMENT: Final = 16
_MAX_FLATBUFFER: Final = (1 << 31) - 1
_ZIP_HEADER: Final = 34  # bytes of a local header and its extra field, without the name and padding
_ZIP64_LIMIT: Final = 2_000_000_000  # larger parts have sizes of 64 bits, 20 bytes more in the header
_ZIP_PADDING_ID: Final = 0xD935  # the extra field that zipalign pads with

_Value = TypeVar("_Value")
_Part: TypeAlias = tuple[str, int, memoryview]  # name, place and content of a ZIP part


def write_module(module: ModuleDef, *, polyglot: bool = False, embedded_limit: int = EMBEDDED_RODATA_LIMIT) -> bytes:
    """Returns the file of a module; ``read_module`` returns an equal module. Equal modules give equal files.

    Args:
        module: the module to write; only checked to fit the format.
        polyglot: whether ZIP tools can list and extract the parts. IREE's tools read both forms.
        embedded_limit: the size in bytes from which a constant lies after the FlatBuffer; smaller constants lie in it.

    Raises:
        InvalidArgumentError: a number does not fit its field, or a FlatBuffer would exceed 2 GiB.
    """
    offsets = _place(module.rodata, embedded_limit, polyglot)
    embedded_size = len(module.bytecode) + sum(len(data) for data in module.rodata if len(data) < embedded_limit)
    if embedded_size > _MAX_FLATBUFFER:
        raise InvalidArgumentError(
            f"module {module.name!r}: expected less than 2 GiB of bytecode and embedded constants, got {embedded_size} "
            "bytes; pass a smaller embedded_limit"
        )
    try:
        flatbuffer = _Writer(module, offsets).write()
    except (TypeError, AttributeError, OverflowError, UnicodeEncodeError, struct.error) as error:
        raise InvalidArgumentError(
            f"module {module.name!r}: expected values that the format can hold: {error}"
        ) from None
    except flatbuffers.builder.BuilderSizeError:
        raise InvalidArgumentError(f"module {module.name!r}: expected a FlatBuffer of less than 2 GiB") from None
    start = SEGMENT_ALIGNMENT if polyglot else 0
    base = _align(start + len(flatbuffer))
    parts: list[_Part] = [("module.fb", start, flatbuffer)]
    parts += [(_part_name(index), base + offset, module.rodata[index]) for index, offset in offsets.items()]
    return _zipped(parts) if polyglot else _joined(parts)


class _Writer:
    def __init__(self, module: ModuleDef, offsets: Mapping[int, int]) -> None:
        self._module = module
        self._external = offsets  # of external constants by index
        self._builder = flatbuffers.Builder(1 << 12)
        self._string = self._builder.CreateSharedString

    def write(self) -> memoryview:
        module, builder = self._module, self._builder
        has_state = module.global_bytes or module.global_refs
        # By slot, in the order of writing: the file has the last one first.
        objects = {
            14: self._bytes(module.bytecode),
            12: self._structs([DESCRIPTOR.pack(*astuple(function)) for function in module.functions], 4),
            9: self._tables(list(enumerate(module.rodata)), self._rodata),
            15: None if module.debug is None else self._debug(module.debug),
            8: self._tables(module.signatures, self._signature),
            7: self._tables(module.exports, self._export),
            6: self._tables(module.imports, self._import),
            5: self._tables(module.dependencies, self._dependency),
            4: self._tables(module.types, lambda name: self._table(1, [(0, self._string(name))])),
            10: self._tables(module.rwdata_sizes, lambda size: self._table(1, [], [(0, size)])),
            11: self._table(2, [], [(0, module.global_bytes), (1, module.global_refs)]) if has_state else None,
            3: self._attributes(module.attributes),
            0: self._string(module.name),
        }
        numbers = [(1, module.version, 0), (2, module.requirements, 0), (13, module.bytecode_version, 0)]
        root = self._table(16, sorted(objects.items()), [], numbers)
        builder.FinishSizePrefixed(root, FLATBUFFER_IDENTIFIER)
        return memoryview(builder.Output())

    def _table(
        self,
        slots: int,
        objects: Sequence[tuple[int, int | None]],
        i32: Sequence[tuple[int, int]] = (),
        u32: Sequence[tuple[int, int, int]] = (),
    ) -> int:
        builder = self._builder
        builder.StartObject(slots)
        for slot, value in objects:
            if value is not None:
                builder.PrependUOffsetTRelativeSlot(slot, value, 0)
        for slot, number in i32:
            builder.PrependInt32Slot(slot, number, 0)
        for slot, number, default in u32:
            builder.PrependUint32Slot(slot, number, default)
        return int(builder.EndObject())

    def _tables(self, values: Sequence[_Value], write: Callable[[_Value], int]) -> int | None:
        # Backwards, so that the file has them in order.
        return self._offsets([write(value) for value in reversed(values)][::-1])

    def _offsets(self, offsets: Sequence[int | None]) -> int | None:
        if not offsets:
            return None
        builder = self._builder
        builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            if offset is None:
                builder.PrependUint32(0)
            else:
                builder.PrependUOffsetTRelative(offset)
        return int(builder.EndVector())

    def _bytes(self, data: bytes | memoryview, size: int = 1, alignment: int = _DATA_ALIGNMENT) -> int | None:
        """Returns a vector of scalars or structs of ``size`` bytes each, copied as they are."""
        builder = self._builder
        builder.StartVector(size, len(data) // size, alignment)
        builder.head -= len(data)
        builder.Bytes[builder.head : builder.head + len(data)] = data
        return int(builder.EndVector())

    def _structs(self, packed: Sequence[bytes], alignment: int) -> int | None:
        return self._bytes(b"".join(packed), len(packed[0]), alignment) if packed else None

    def _attributes(self, attributes: Mapping[str, str]) -> int | None:
        return self._tables(
            list(attributes.items()),
            lambda item: self._table(2, [(0, self._string(item[0])), (1, self._string(item[1]))]),
        )

    def _signature(self, signature: Signature) -> int:
        attributes = self._attributes(signature.attributes)
        return self._table(2, [(0, self._string(signature.calling_convention)), (1, attributes)])

    def _export(self, entry: ExportDef) -> int:
        return self._table(2, [(0, self._string(entry.name))], [(1, entry.ordinal)])

    def _dependency(self, entry: DependencyDef) -> int:
        numbers = [(1, entry.minimum_version, 0), (2, REQUIRED if entry.required else OPTIONAL, REQUIRED)]
        return self._table(3, [(0, self._string(entry.name))], [], numbers)

    def _import(self, entry: ImportDef) -> int:
        signature = self._signature(entry.signature)
        flags = REQUIRED if entry.required else OPTIONAL
        return self._table(3, [(0, self._string(entry.name)), (1, signature)], [], [(2, flags, REQUIRED)])

    def _rodata(self, item: tuple[int, memoryview]) -> int:
        index, data = item
        builder = self._builder
        offset = self._external.get(index)
        embedded = self._bytes(data) if offset is None else None
        builder.StartObject(5)
        if offset is None:
            builder.PrependUOffsetTRelativeSlot(2, embedded, 0)
        else:
            builder.PrependUint64Slot(3, offset, 0)
            builder.PrependUint64Slot(4, len(data), 0)
        return int(builder.EndObject())

    def _debug(self, debug: DebugDatabase) -> int:
        functions = self._tables(
            debug.functions,
            lambda entry: self._table(2, [(0, self._string(entry.local_name)), (1, self._bytes(entry.table, 8, 4))]),
        )
        written = [self._location(location) for location in reversed(debug.locations)][::-1]
        locations = self._offsets([offset for _, offset in written])
        kinds = self._bytes(bytes(kind for kind, _ in written), alignment=1) if written else None
        return self._table(3, [(0, kinds), (1, locations), (2, functions)])

    def _location(self, location: Location) -> tuple[int, int | None]:
        """Returns union type and table."""
        if isinstance(location, CallSite):
            return 1, self._table(2, [], [(0, location.callee), (1, location.caller)])
        if isinstance(location, FileLineCol):
            filename = self._string(location.filename)
            return 2, self._table(3, [(0, filename)], [(1, location.line), (2, location.column)])
        if isinstance(location, FusedLocation):
            metadata = None if location.metadata is None else self._string(location.metadata)
            children = self._structs([struct.pack("<i", child) for child in location.locations], 4)
            return 3, self._table(2, [(0, metadata), (1, children)])
        if isinstance(location, NamedLocation):
            return 4, self._table(2, [(0, self._string(location.name))], [(1, location.child)])
        return 0, None


def _align(size: int) -> int:
    return -(-size // SEGMENT_ALIGNMENT) * SEGMENT_ALIGNMENT


def _part_name(index: int) -> str:
    return f"rodata_{index}.bin"


def _place(rodata: Sequence[memoryview], embedded_limit: int, polyglot: bool) -> dict[int, int]:
    """Returns offsets of external constants from the boundary after the FlatBuffer, known before that is built."""
    offsets = {}
    end = 0
    for index, data in enumerate(rodata):
        if len(data) >= embedded_limit:
            offsets[index] = _align(end + (_header_size(_part_name(index), data) if polyglot else 0))
            end = offsets[index] + len(data)
    return offsets


def _header_size(name: str, data: memoryview) -> int:
    return _ZIP_HEADER + len(name) + (20 if len(data) > _ZIP64_LIMIT else 0)


def _joined(parts: Sequence[_Part]) -> bytes:
    pieces: list[bytes | memoryview] = []
    end = 0
    for _, start, data in parts:
        pieces += [bytes(start - end), data]
        end = start + len(data)
    return b"".join(pieces)


def _zipped(parts: Sequence[_Part]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, start, data in parts:
            entry = zipfile.ZipInfo(name)  # of 1980-01-01: equal modules make equal files
            padding = start - file.tell() - _header_size(name, data)
            entry.extra = struct.pack("<HH", _ZIP_PADDING_ID, padding) + bytes(padding)
            with archive.open(entry, "w", force_zip64=len(data) > _ZIP64_LIMIT) as part:
                part.write(data)
    return file.getvalue()
