"""Opens parameter files: detects the format, maps the file, and reads its entries.

The first bytes determine the format, because suffixes are often changed: ``.irpa``, ``.gguf``, ``.npy`` and ``.npz``
have a magic, and safetensors is recognized by its length and its JSON.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import BinaryIO

from ...base.files import reading_errors
from ...formats.npy import NPY_MAGIC
from ...status import InvalidArgumentError, shown
from .entry import ParameterEntry
from .gguf import GGUF_MAGIC, read_gguf
from .irpa import ARCHIVE_MAGIC, read_parameter_archive
from .numpy import ZIP_MAGIC, read_npy, read_npz
from .safetensors import is_safetensors, read_safetensors


def read_parameter_file(path: str | os.PathLike[str], *, writable: bool = False) -> list[ParameterEntry]:
    """Returns the parameters of a file, in the order of the file; see ``ParameterIndex.from_file``.

    The file is mapped: only the header is read until the bytes are used. The mapping lives as long as an entry or a
    view of it. Do not truncate a mapped file: the operating system ends programs that access missing pages.
    """
    source = Path(path)
    if "\0" in str(source):
        raise InvalidArgumentError(f"expected the path of a file, got {shown(str(source))}")
    with reading_errors(source):
        if source.exists() and not source.is_file():
            raise InvalidArgumentError(f"expected a regular file, which can be mapped, at {shown(str(source))}")
        with source.open("r+b" if writable else "rb") as file:
            access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
            mapped = mmap.mmap(file.fileno(), 0, access=access) if os.fstat(file.fileno()).st_size else b""
            return _read(file, memoryview(mapped), source)


def _read(file: BinaryIO, data: memoryview, path: Path) -> list[ParameterEntry]:
    start = bytes(data[:8])
    if start.startswith(ARCHIVE_MAGIC):
        return read_parameter_archive(data)
    if start.startswith(GGUF_MAGIC):
        return read_gguf(data)
    if start.startswith(NPY_MAGIC):
        return [read_npy(data, path.stem)]
    if start.startswith(ZIP_MAGIC):
        return read_npz(file, data)
    if is_safetensors(data) or path.suffix.lower() == ".safetensors":
        return read_safetensors(data)
    raise InvalidArgumentError(
        f"expected {shown(str(path))} to be an .irpa, .safetensors, .gguf, .npy or .npz file; its first bytes are "
        f"{start!r}"
    )
