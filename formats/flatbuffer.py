"""Checked reading of FlatBuffers whose writer is not trusted.

The layout is that of https://flatbuffers.dev/internals: little-endian; a table starts with a signed offset back to its
vtable, which holds two sizes and then the position of each field, by slot; vectors and strings start with a 32-bit
count. The accessors of the ``flatbuffers`` package check nothing; here all offsets and counts are checked before use.

Calling sequence: ``FlatBuffer(data, identifier=b"VKE1", name="executable").root()`` returns a ``Table``, whose methods
read one field each, by slot index; the field's name is only for messages. Tables are read on demand, one level a call,
so nothing here recurses. Objects are immutable but for the read budget and may be shared by threads.
"""

from __future__ import annotations

import struct
from typing import Final

from ..status import InvalidArgumentError

_U8: Final = struct.Struct("<B")
_U16: Final = struct.Struct("<H")
_U32: Final = struct.Struct("<I")
_U64: Final = struct.Struct("<Q")
_I32: Final = struct.Struct("<i")

_VTABLE_HEADER: Final = 4
_BUDGET_FACTOR: Final = 8
_BUDGET_FLOOR: Final = 1 << 16


def contiguous_bytes(data: bytes | bytearray | memoryview, name: str) -> memoryview:
    """Returns a read-only view of ``data`` as single bytes.

    Raises:
        InvalidArgumentError: the data is strided; the message begins with ``name``.
    """
    view = memoryview(data).toreadonly()
    if not view.c_contiguous:
        raise InvalidArgumentError(f"{name}: expected contiguous bytes, got a strided view; copy it first")
    return view.cast("B") if view.nbytes else memoryview(b"")


class FlatBuffer:
    """One FlatBuffer, without a size prefix.

    Offsets only point forward, so a chain of them ends; but many may share one target, and a small file could expand
    to a huge tree. Decoded bytes are therefore counted, and reading stops at 8 times the buffer's size plus 64 KiB,
    far more than any writer needs.

    Args:
        data: the whole buffer; bytes that the root does not reach are ignored.
        identifier: the four bytes at offset 4 that the schema requires, or ``None`` to accept any.
        name: the root's name in messages.

    Raises:
        InvalidArgumentError: the data is too short, or has another identifier.
    """

    __slots__ = ("_budget", "_limit", "data", "name")

    def __init__(self, data: bytes | bytearray | memoryview, *, identifier: bytes | None, name: str) -> None:
        self.data: Final = contiguous_bytes(data, name)
        self.name: Final = name
        self._limit: Final = _BUDGET_FACTOR * len(self.data) + _BUDGET_FLOOR
        self._budget = self._limit
        needed = 4 if identifier is None else 8
        if len(self.data) < needed:
            raise self.error("", 0, f"expected a FlatBuffer of at least {needed} bytes, got {len(self.data)}")
        if identifier is not None and self.data[4:8] != identifier:
            actual = bytes(self.data[4:8])
            raise self.error("", 4, f"expected the file identifier {identifier!r}, got {actual!r}")

    def root(self) -> Table:
        """Returns the root table."""
        return Table(self, self.follow(0, self.name), self.name)

    def error(self, path: str, offset: int, message: str) -> InvalidArgumentError:
        """Returns an error that names the field and the byte offset from the start of the FlatBuffer."""
        return InvalidArgumentError(
            f"{path or self.name}, byte {offset}: {message}; the file is damaged or not of this kind"
        )

    def spend(self, size: int, path: str, offset: int) -> None:
        """Counts ``size`` decoded bytes against the budget."""
        self._budget -= size
        if self._budget < 0:
            raise self.error(
                path, offset, f"expected each byte to be used a few times, got over {self._limit} bytes read"
            )

    def follow(self, position: int, path: str) -> int:
        """Returns the position that the forward offset at ``position`` (which must lie inside) points to, 4-byte
        aligned.
        """
        (offset,) = _U32.unpack_from(self.data, position)
        target = position + int(offset)
        if offset == 0 or target + 4 > len(self.data):
            raise self.error(
                path, position, f"expected an offset of 1 to {len(self.data) - 4 - position}, got {offset}"
            )
        if target % 4:
            raise self.error(path, position, f"expected an offset to a multiple of 4, got one to byte {target}")
        return target

    def vector_at(self, position: int, size: int, path: str) -> tuple[int, int]:
        """Returns start and count of the vector at ``position``, whose elements take ``size`` bytes each."""
        (count,) = _U32.unpack_from(self.data, position)
        room = (len(self.data) - position - 4) // size
        if count > room:
            raise self.error(path, position, f"expected at most {room} elements of {size} bytes, got {count}")
        return position + 4, int(count)

    def string_at(self, position: int, path: str) -> str:
        """Returns the UTF-8 string at ``position``, its terminating NUL checked."""
        start, count = self.vector_at(position, 1, path)
        self.spend(count + 4, path, position)
        end = start + count
        if end >= len(self.data) or self.data[end] != 0:
            raise self.error(path, position, f"expected a NUL after the string's {count} bytes")
        try:
            return str(self.data[start:end], "utf-8")
        except UnicodeDecodeError as error:
            raise self.error(path, start + error.start, f"expected UTF-8, got an {error.reason}") from None


class Table:
    """One table. Each method reads the field of a slot; for an absent field it returns the default or, for an object,
    ``None``.

    Every method raises ``InvalidArgumentError`` with the field's path and byte offset if the field does not lie inside
    the buffer, and the ``require_*`` methods if the field is absent.

    Attributes:
        path: the table's path from the root (``"executable.pipelines[2]"``), for messages.
        position: the byte offset of the table from the start of the FlatBuffer.
    """

    __slots__ = ("_buffer", "_size", "_slots", "_vtable", "path", "position")

    def __init__(self, buffer: FlatBuffer, position: int, path: str) -> None:
        data = buffer.data
        self._buffer: Final = buffer
        self.position: Final = position
        self.path: Final = path
        (back,) = _I32.unpack_from(data, position)
        vtable = position - int(back)
        if vtable < 0 or vtable + _VTABLE_HEADER > len(data) or vtable % 2:
            raise buffer.error(path, position, f"expected an even vtable position inside the buffer, got {vtable}")
        (vtable_size,) = _U16.unpack_from(data, vtable)
        if vtable_size < _VTABLE_HEADER or vtable_size % 2 or vtable + vtable_size > len(data):
            raise buffer.error(
                path, vtable, f"expected an even vtable size of 4 or more inside the buffer, got {vtable_size}"
            )
        (size,) = _U16.unpack_from(data, vtable + 2)
        if size < 4 or position + size > len(data):
            raise buffer.error(path, vtable + 2, f"expected a table size of 4 to {len(data) - position}, got {size}")
        self._vtable: Final = vtable
        self._slots: Final = (vtable_size - _VTABLE_HEADER) // 2
        self._size: Final[int] = size
        buffer.spend(size, path, position)

    def error(self, slot: int, name: str, message: str) -> InvalidArgumentError:
        """Returns an error about the value of a field, for checks that the caller makes."""
        return self._buffer.error(self._path(name), self._field(slot, name, 1) or self.position, message)

    def has(self, slot: int) -> bool:
        """Whether the field is present."""
        return slot < self._slots and bool(_U16.unpack_from(self._buffer.data, self._entry(slot))[0])

    def u8(self, slot: int, name: str, default: int = 0) -> int:
        """Returns a field of type uint8 (also bool and union types)."""
        return self._integer(_U8, slot, name, default)

    def u32(self, slot: int, name: str, default: int = 0) -> int:
        """Returns a field of type uint32."""
        return self._integer(_U32, slot, name, default)

    def u64(self, slot: int, name: str, default: int = 0) -> int:
        """Returns a field of type uint64."""
        return self._integer(_U64, slot, name, default)

    def i32(self, slot: int, name: str, default: int = 0) -> int:
        """Returns a field of type int32."""
        return self._integer(_I32, slot, name, default)

    def string(self, slot: int, name: str) -> str | None:
        """Returns a field of type string."""
        target = self._target(slot, name)
        return None if target is None else self._buffer.string_at(target, self._path(name))

    def require_string(self, slot: int, name: str) -> str:
        """Returns a field of type string that must be present."""
        text = self.string(slot, name)
        if text is None:
            raise self._buffer.error(self._path(name), self.position, "expected a value, the field is absent")
        return text

    def table(self, slot: int, name: str) -> Table | None:
        """Returns a field that is another table (also the value slot of a union)."""
        target = self._target(slot, name)
        return None if target is None else Table(self._buffer, target, self._path(name))

    def tables(self, slot: int, name: str) -> tuple[Table, ...]:
        """Returns a vector of tables; an absent one is empty."""
        target = self._target(slot, name)
        if target is None:
            return ()
        path = self._path(name)
        start, count = self._buffer.vector_at(target, 4, path)
        self._buffer.spend(4 * count, path, target)
        tables = []
        for index in range(count):
            element = f"{path}[{index}]"
            tables.append(Table(self._buffer, self._buffer.follow(start + 4 * index, element), element))
        return tuple(tables)

    def vector_bytes(self, slot: int, name: str, element_size: int = 1) -> memoryview | None:
        """Returns the bytes of a vector of scalars or structs of ``element_size`` bytes: a read-only view, no copy."""
        target = self._target(slot, name)
        if target is None:
            return None
        start, count = self._buffer.vector_at(target, element_size, self._path(name))
        return self._buffer.data[start : start + count * element_size]

    def structs(self, slot: int, name: str, layout: struct.Struct) -> tuple[tuple[int, ...], ...]:
        """Returns a vector of structs of integers, each unpacked with ``layout``; an absent one is empty."""
        data = self.vector_bytes(slot, name, layout.size)
        if data is None:
            return ()
        self._buffer.spend(len(data), self._path(name), self.position)
        return tuple(layout.iter_unpack(data))

    def u32s(self, slot: int, name: str) -> tuple[int, ...]:
        """Returns a vector of uint32; an absent one is empty."""
        return tuple(value for (value,) in self.structs(slot, name, _U32))

    def u8s(self, slot: int, name: str) -> memoryview:
        """Returns a vector of uint8 (bytes, or the types of a vector of unions), no copy; an absent one is empty."""
        return self.vector_bytes(slot, name) or memoryview(b"")

    def _path(self, name: str) -> str:
        return f"{self.path}.{name}"

    def _entry(self, slot: int) -> int:
        return self._vtable + _VTABLE_HEADER + 2 * slot

    def _field(self, slot: int, name: str, size: int) -> int | None:
        if slot >= self._slots:
            return None
        entry = self._entry(slot)
        (offset,) = _U16.unpack_from(self._buffer.data, entry)
        if offset == 0:
            return None
        if offset < 4 or offset + size > self._size:
            limit = self._size - size
            raise self._buffer.error(
                self._path(name), entry, f"expected a field position of 4 to {limit} in the table, got {offset}"
            )
        return self.position + int(offset)

    def _target(self, slot: int, name: str) -> int | None:
        position = self._field(slot, name, 4)
        return None if position is None else self._buffer.follow(position, self._path(name))

    def _integer(self, packer: struct.Struct, slot: int, name: str, default: int) -> int:
        position = self._field(slot, name, packer.size)
        return default if position is None else int(packer.unpack_from(self._buffer.data, position)[0])
