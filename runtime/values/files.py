"""The files that values are read from: raw bytes, and NumPy's ``.npy``, which may have several arrays."""

from __future__ import annotations

import math
import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ...base.files import reading_errors
from ...formats.element_type import MAX_RANK, ElementType, format_shape_and_type
from ...formats.npy import read_npy_header
from ...status import InvalidArgumentError, ResourceExhaustedError, shorten, shown

Array: TypeAlias = npt.NDArray[np.generic]


class ValueFiles:
    """The files that a list of arguments reads, each with its position.

    Calling sequence: enter, read in the order of the arguments, ``finish`` after all reads; leaving closes the files.
    Errors are those of ``parse_value``.
    """

    def __init__(self) -> None:
        self._open: dict[str, BufferedReader] = {}
        self._raw: set[str] = set()

    def __enter__(self) -> ValueFiles:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            file.close()

    def array(self, path: str, *, restart: bool) -> Array:
        """Reads the next array of a ``.npy`` file."""
        self._require_npy(path)
        return self._read_npy(path, self._file(path, restart=restart))

    def arrays(self, path: str) -> list[Array]:
        """Reads the remaining arrays of a ``.npy`` file."""
        self._require_npy(path)
        file = self._file(path, restart=False)
        arrays = []
        while file.peek(1):
            arrays.append(self._read_npy(path, file))
        return arrays

    def raw(self, path: str, shape: tuple[int, ...], element_type: ElementType, *, restart: bool) -> Array:
        """Reads the next bytes of any file as an array."""
        element_type.require_dtype()
        file = self._file(path, restart=restart)
        self._raw.add(path)
        needed = element_type.storage_bytes(math.prod(shape))
        data = self._read(path, file, needed, format_shape_and_type(shape, element_type))
        return element_type.unpack(data, shape)

    def finish(self) -> None:
        """Checks that files of raw bytes were read to their ends."""
        for path in sorted(self._raw):
            file = self._open[path]
            if file.peek(1):
                status = os.fstat(file.fileno())
                sizes = (
                    f"{file.tell()}, got {status.st_size}" if stat.S_ISREG(status.st_mode) else "what is read, got more"
                )
                raise InvalidArgumentError(f"expected the bytes in {shown(path)} to be {sizes}; check shape and type")

    def _file(self, path: str, *, restart: bool) -> BufferedReader:
        with reading_errors(Path(path)):
            if "\0" in path or Path(path).is_dir():
                raise InvalidArgumentError(f"expected the path of a file, got {shown(path)}")
            if path not in self._open:
                self._open[path] = Path(path).open("rb")  # noqa: SIM115 (closed by __exit__)
            elif restart:
                self._open[path].seek(0)
        return self._open[path]

    def _read(self, path: str, file: BufferedReader, size: int, noun: str) -> bytes:
        try:
            with reading_errors(Path(path)):
                status = os.fstat(file.fileno())
                # The size of a regular file is known, unlike that of a pipe.
                left = status.st_size - file.tell() if stat.S_ISREG(status.st_mode) else size
                data = file.read(size) if left >= size else b""
        except (MemoryError, OverflowError):
            raise ResourceExhaustedError(f"expected {noun} to fit memory, it takes {size} bytes") from None
        if len(data) != size:
            got = left if left < size else len(data)
            raise InvalidArgumentError(f"expected {size} bytes in {shown(path)} for {noun}, got {got}")
        return data

    def _read_npy(self, path: str, file: BufferedReader) -> Array:
        with reading_errors(Path(path)):
            shape, fortran_order, stored = read_npy_header(file, shorten(path))
        if len(shape) > MAX_RANK:
            raise InvalidArgumentError(f"{shorten(path)}: expected at most {MAX_RANK} axes, got {len(shape)}")
        element_type = ElementType.from_dtype(stored.newbyteorder("="))
        noun = format_shape_and_type(shape, element_type)
        data = self._read(path, file, math.prod(shape) * stored.itemsize, noun)
        array = np.frombuffer(data, stored) if data else np.empty(0, stored)
        ordered = array.reshape(shape, order="F" if fortran_order else "C")
        return np.array(ordered, element_type.require_dtype(), order="C")

    @staticmethod
    def _require_npy(path: str) -> None:
        if not path.endswith(".npy"):
            raise InvalidArgumentError(
                f"expected a .npy file where no shape and type are given, got {shown(path)}; write "
                f"4xf32=@{shorten(path)} instead"
            )
