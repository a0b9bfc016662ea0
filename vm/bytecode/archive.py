"""Module files: finds the FlatBuffer and the constants without reading or copying them.

Calling sequence: ``with ModuleArchive.open(path) as archive: module = read_module(archive)``. The file is mapped, not
read, so untouched pages are not loaded. Views stay valid after ``close()`` and keep the map alive.

The two forms are those of IREE's compilers (runtime/src/iree/vm/bytecode/archive.c, release 3.13): flat, a 32-bit size
and the FlatBuffer of that size; and polyglot, the same after a ZIP local file header, so that ZIP tools can list the
parts. External constants follow at the next multiple of 64 bytes from the file's start. Sizes and checksums in ZIP
records are not used.

Thread rule: any thread. Ownership: an archive owns its map. The file must not be truncated while it is mapped: the
operating system then ends the process.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import stat
import struct
from pathlib import Path
from typing import Final

from ...base.closeable import Closeable
from ...formats.flatbuffer import contiguous_bytes
from ...status import (
    ClosedError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnavailableError,
    shorten,
)

FLATBUFFER_IDENTIFIER: Final = b"IREE"
SEGMENT_ALIGNMENT: Final = 64

_ZIP_SIGNATURE: Final = 0x04034B50
_ZIP_NAME_LENGTHS: Final = struct.Struct("<26xHH")
_U32: Final = struct.Struct("<I")


class ModuleArchive(Closeable):
    """One module file, mapped or in memory.

    Attributes:
        name: the name in messages: the path, or the argument of ``from_bytes``.
        rodata_base: the offset in bytes from the file's start to the origin of external constants.
    """

    def __init__(self, data: memoryview, name: str, mapping: mmap.mmap | None = None) -> None:
        self.name: Final = name
        self._map = mapping
        self._data: memoryview | None = data
        self._start, self._end = _find_flatbuffer(data, name)
        self.rodata_base: Final = -(-self._end // SEGMENT_ALIGNMENT) * SEGMENT_ALIGNMENT

    @staticmethod
    def open(path: str | os.PathLike[str]) -> ModuleArchive:
        """Maps a file read-only.

        Raises:
            NotFoundError: there is no such file.
            PermissionDeniedError: the file may not be read.
            InvalidArgumentError: the path is a directory or a device, or the file is empty or not a module file.
            ResourceExhaustedError: there is no room for the map or the file handle.
            UnavailableError: the operating system reported another error.
        """
        mapping = _map_file(Path(path))
        try:
            return ModuleArchive(memoryview(mapping), shorten(str(path)), mapping)
        except BaseException:
            _close_map(mapping)
            raise

    @staticmethod
    def from_bytes(data: bytes | bytearray | memoryview, name: str = "<memory>") -> ModuleArchive:
        """Returns an archive over bytes in memory without a copy; they must not change while it or a view is in use.

        Raises:
            InvalidArgumentError: the bytes are not contiguous, or not a module file.
        """
        return ModuleArchive(contiguous_bytes(data, name), name)

    @property
    def data(self) -> memoryview:
        """The whole file, read-only.

        Raises:
            ClosedError: the archive is closed.
        """
        if self._data is None:
            raise ClosedError(f"{self.name}: the archive is closed; open it again")
        return self._data

    @property
    def flatbuffer(self) -> memoryview:
        """The module's FlatBuffer, without its size, read-only.

        Raises:
            ClosedError: the archive is closed.
        """
        return self.data[self._start : self._end]

    @property
    def closed(self) -> bool:
        """Whether ``close()`` was called."""
        return self._data is None

    def external(self, offset: int, length: int) -> memoryview:
        """Returns a read-only view of ``length`` bytes of external constants, from ``offset`` bytes after
        ``rodata_base``.

        Raises:
            OutOfRangeError: the bytes do not lie inside the file.
            ClosedError: the archive is closed.
        """
        data = self.data
        room = len(data) - self.rodata_base
        if offset < 0 or length < 0 or offset + length > room:
            raise OutOfRangeError(
                f"{self.name}: expected constants within {max(room, 0)} bytes from byte {self.rodata_base}, got "
                f"{length} bytes at {offset}; the file is cut short or damaged"
            )
        start = self.rodata_base + offset
        return data[start : start + length]

    def close(self) -> None:
        """Unmaps the file, immediately or with its last view; idempotent."""
        mapping, self._map = self._map, None
        self._data = None
        if mapping is not None:
            _close_map(mapping)

    def __repr__(self) -> str:
        return f"<ModuleArchive {self.name}{' closed' if self.closed else f', {len(self.data)} bytes'}>"


def _close_map(mapping: mmap.mmap) -> None:
    # Views in use prevent unmapping; the map then ends with the last view, by its reference count.
    with contextlib.suppress(BufferError):
        mapping.close()


def _map_file(path: Path) -> mmap.mmap:
    where = shorten(str(path))
    try:
        # Checked before opening: opening a pipe would wait for its writer.
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            kind = "a directory" if stat.S_ISDIR(mode) else "neither a file nor a link to one"
            raise InvalidArgumentError(f"{where}: expected a module file, got {kind}; name a .vmfb file")
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise InvalidArgumentError(f"{where}: expected a module file, got an empty file; compile it again")
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(f"{where}: expected a module file, there is none; check the path") from None
    except PermissionError as error:
        raise PermissionDeniedError(f"{where}: expected a readable file, got {error.strerror}") from None
    except InvalidArgumentError:
        raise
    except ValueError as error:  # a NUL in the path, or a file truncated to nothing
        raise InvalidArgumentError(f"{where!r}: expected a path to a module file: {error}") from None
    except OSError as error:
        if error.errno in (errno.ENOMEM, errno.EMFILE, errno.ENFILE):
            raise ResourceExhaustedError(f"{where}: cannot map the file: {error.strerror}; close others") from None
        raise UnavailableError(f"{where}: cannot map the file: {error.strerror}") from None


def _find_flatbuffer(data: memoryview, name: str) -> tuple[int, int]:
    """Returns start and end of the FlatBuffer."""
    offset = 0
    if len(data) >= 30 and _U32.unpack_from(data)[0] == _ZIP_SIGNATURE:
        name_length, extra_length = _ZIP_NAME_LENGTHS.unpack_from(data)
        offset = 30 + name_length + extra_length
    if offset + 12 > len(data):
        raise InvalidArgumentError(
            f"{name}: expected a module file, of {offset + 12} bytes at least, got {len(data)}; it is cut short, or "
            "no module"
        )
    (length,) = _U32.unpack_from(data, offset)
    start = offset + 4
    identifier = bytes(data[start + 4 : start + 8])
    if identifier != FLATBUFFER_IDENTIFIER:
        raise InvalidArgumentError(
            f"{name}: expected a module file, with {FLATBUFFER_IDENTIFIER!r} at byte {start + 4}, got {identifier!r}; "
            "name the output of `pumice compile` or iree-compile"
        )
    if length < 8 or length > len(data) - start:
        raise InvalidArgumentError(
            f"{name}: expected a FlatBuffer of 8 to {len(data) - start} bytes, got one of {length}; the file is cut "
            "short or damaged"
        )
    return start, start + length
