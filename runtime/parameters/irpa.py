"""Parameter archives (``.irpa``): a reader that maps and checks them, and a writer.

The format is IREE's (``runtime/src/iree/schemas/parameter_archive.h``, version 0.0 in releases 3.1 to 3.13):
little-endian packed structures. A header has a table of entries, a segment with names and metadata, and a segment with
data; it may link to a later header in the file. A header's offsets count from that header, so archives can be
concatenated.

The reader checks every range against the file before it follows it, and its work is bounded by the file's size.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Iterator
from typing import BinaryIO, Final

from ...base.files import write_whole
from ...status import AlreadyExistsError, IncompatibleError, InvalidArgumentError, UnimplementedError, shown
from .entry import ParameterEntry, checked_slice, decode_name

ARCHIVE_MAGIC: Final = b"IRPA"

# magic, version major and minor, header size, next header's offset, flags
_PREFIX: Final = struct.Struct("<4sHHQQQ")
# entry count; offset and length of the entry, metadata and storage segments
_SEGMENTS: Final = struct.Struct("<QQQQQQQ")
# entry size, type, flags; offset and length of name and metadata; minimum alignment
_ENTRY: Final = struct.Struct("<QIQQQQQQ")
_SPLAT: Final = struct.Struct("<Q16sB")  # length, pattern, pattern length
_RANGE: Final = struct.Struct("<QQ")
_HEADER_SIZE: Final = _PREFIX.size + _SEGMENTS.size

_SKIPPED, _SPLATTED, _STORED, _EXTERNAL = range(4)
_ENTRY_ALIGNMENT: Final = 16
_FILE_ALIGNMENT: Final = 4096
_DATA_ALIGNMENT: Final = 64


def read_parameter_archive(data: memoryview) -> list[ParameterEntry]:
    """Returns the entries of an archive's bytes, in place and in order; writable if the bytes are."""
    entries: list[ParameterEntry] = []
    names = 0
    for count, entry in enumerate(_entries(data), 1):
        if entry is not None:
            entries.append(entry)
            names += len(entry.name)
        # Overlapping tables or names could cause endless work for a small file.
        if count * _ENTRY.size > len(data) or names > len(data):
            raise InvalidArgumentError(
                "parameter archive: its tables or names overlap and take more bytes than the file has; write the "
                "archive again"
            )
    return entries


def _entries(data: memoryview) -> Iterator[ParameterEntry | None]:
    """Yields the entries of each header; ``None`` for skipped entries."""
    base = 0
    while True:
        header = f"parameter archive header at byte {base}"
        magic, major, minor, header_size, next_offset, _ = _PREFIX.unpack(
            checked_slice(data, base, _PREFIX.size, header)
        )
        if magic != ARCHIVE_MAGIC:
            raise InvalidArgumentError(
                f"{header}: expected the bytes {ARCHIVE_MAGIC!r} of an .irpa file, got {magic!r}"
            )
        if (major, minor) != (0, 0):
            raise IncompatibleError(
                f"{header}: its version is {major}.{minor}, known is 0.0; convert it with a tool of that version, or "
                "upgrade pumice"
            )
        if header_size != _HEADER_SIZE:
            raise InvalidArgumentError(
                f"{header}: a header of version 0.0 has {_HEADER_SIZE} bytes, this one says {header_size}"
            )
        count, *ranges = _SEGMENTS.unpack(checked_slice(data, base + _PREFIX.size, _SEGMENTS.size, header))
        table, names, storage = (
            checked_slice(data, base + offset if length else 0, length, f"{header}, {segment} segment")
            for segment, offset, length in zip(("entry", "metadata", "storage"), ranges[::2], ranges[1::2], strict=True)
        )
        position = 0
        for ordinal in range(count):
            where = f"{header}, entry {ordinal} of {count}"
            entry_header = checked_slice(table, position, _ENTRY.size, where)
            entry_size = _ENTRY.unpack(entry_header)[0]
            if entry_size < _ENTRY.size:
                raise InvalidArgumentError(f"{where}: expected a size of {_ENTRY.size} bytes or more, got {entry_size}")
            yield _read_entry(checked_slice(table, position, entry_size, where), names, storage, where)
            position += _align(entry_size, _ENTRY_ALIGNMENT)
        if not next_offset:
            return
        if next_offset < _HEADER_SIZE or next_offset % _ENTRY_ALIGNMENT:
            raise InvalidArgumentError(
                f"{header}: the next header lies at a multiple of {_ENTRY_ALIGNMENT} bytes after this one, not at "
                f"{next_offset}"
            )
        base += next_offset


def _read_entry(record: memoryview, names: memoryview, storage: memoryview, where: str) -> ParameterEntry | None:
    _, kind, _, name_offset, name_length, metadata_offset, metadata_length, _ = _ENTRY.unpack_from(record)
    body = record[_ENTRY.size :]
    if kind == _SKIPPED:
        return None
    name = decode_name(checked_slice(names, name_offset if name_length else 0, name_length, f"{where}, name"))
    where = f"{where}, {shown(name)}"
    metadata = checked_slice(
        names, metadata_offset if metadata_length else 0, metadata_length, f"{where}, metadata"
    ).toreadonly()
    if kind == _SPLATTED:
        length, pattern, pattern_length = _SPLAT.unpack(checked_slice(body, 0, _SPLAT.size, where))
        if pattern_length > len(pattern):
            raise InvalidArgumentError(f"{where}: a splat's pattern has 1, 2, 4, 8 or 16 bytes, got {pattern_length}")
        return ParameterEntry.of_splat(name, pattern[:pattern_length], length, metadata=metadata)
    if kind == _STORED:
        offset, length = _RANGE.unpack(checked_slice(body, 0, _RANGE.size, where))
        stored = checked_slice(storage, offset if length else 0, length, f"{where}, data")
        return ParameterEntry.of_data(name, stored, metadata=metadata)
    if kind == _EXTERNAL:
        raise UnimplementedError(
            f"{where}: its data is in another file; convert the archive to one that holds its data"
        )
    raise UnimplementedError(f"{where}: entry type {kind} is not known; upgrade pumice")


def write_parameter_archive(path: str | os.PathLike[str], entries: Collection[ParameterEntry]) -> None:
    """Writes an archive of one header; see ``ParameterIndex.save``."""
    # The entries may be in a mapping of the replaced file, which must not be truncated.
    write_whole(path, lambda file: _write(file, entries))


def _write(file: BinaryIO, entries: Collection[ParameterEntry]) -> None:
    table, names, offsets, storage_size = _lay_out(entries)
    table_start = _align(_HEADER_SIZE, _ENTRY_ALIGNMENT)
    names_start = table_start + len(table)
    storage_start = _align(names_start + len(names), _DATA_ALIGNMENT)
    file.write(_PREFIX.pack(ARCHIVE_MAGIC, 0, 0, _HEADER_SIZE, 0, 0))
    file.write(
        _SEGMENTS.pack(len(entries), table_start, len(table), names_start, len(names), storage_start, storage_size)
    )
    file.write(bytes(table_start - _HEADER_SIZE))
    file.write(table)
    file.write(names)
    for entry, offset in zip(entries, offsets, strict=True):
        if entry.splat is None:
            file.seek(storage_start + offset)
            file.write(entry.view())
    file.truncate(_align(storage_start + storage_size, _FILE_ALIGNMENT))


def _lay_out(entries: Collection[ParameterEntry]) -> tuple[bytes, bytes, list[int], int]:
    """Returns the entry table, names and metadata, the offset of each entry's data, and the byte count of all data."""
    table, names, offsets, storage_size = bytearray(), bytearray(), [], 0
    seen: set[str] = set()
    for entry in entries:
        if entry.name in seen:
            raise AlreadyExistsError(f"two parameters are named {shown(entry.name)}; an archive's names are distinct")
        seen.add(entry.name)
        try:
            name = entry.name.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise InvalidArgumentError(f"parameter name {shown(entry.name)} has no UTF-8 form; rename it") from None
        metadata = entry.metadata
        table += bytes(_align(len(table), _ENTRY_ALIGNMENT) - len(table))
        if entry.splat is not None:
            kind, minimum_alignment, offset = _SPLATTED, 0, 0
            body = _SPLAT.pack(entry.length, entry.splat, len(entry.splat))
        else:
            kind, minimum_alignment, offset = _STORED, _DATA_ALIGNMENT, _align(storage_size, _DATA_ALIGNMENT)
            body = _RANGE.pack(offset, entry.length)
            storage_size = offset + entry.length
        offsets.append(offset)
        table += _ENTRY.pack(
            _ENTRY.size + len(body),
            kind,
            0,
            len(names),
            len(name),
            len(names) + len(name) if metadata else 0,
            len(metadata),
            minimum_alignment,
        )
        table += body
        names += name + metadata
    return bytes(table), bytes(names), offsets, storage_size


def _align(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment
