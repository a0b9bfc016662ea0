"""NumPy's files as parameters: one per ``.npy``, one per member of an ``.npz``. Both are mapped.

The members of an archive that ``numpy.savez`` writes are stored uncompressed and can be mapped; those of
``numpy.savez_compressed`` cannot.
"""

from __future__ import annotations

import io
import struct
import zipfile
from typing import BinaryIO, Final

import numpy as np

from ...formats.npy import read_npy_header
from ...status import InvalidArgumentError, UnimplementedError, shorten, shown
from .entry import ParameterEntry, checked_slice, element_count

ZIP_MAGIC: Final = b"PK\x03\x04"

_LOCAL_HEADER: Final = struct.Struct("<4s22xHH")  # signature; lengths of name and extra field
_MAX_HEADER: Final = 1 << 16


def read_npy(data: memoryview, name: str) -> ParameterEntry:
    """Returns the array of a ``.npy`` file's bytes: in place if it is little-endian and in C order, else a copy."""
    where = f"NumPy array {shown(name)}"
    start = io.BytesIO(bytes(data[:_MAX_HEADER]))
    shape, fortran_order, dtype = read_npy_header(start, where)
    if dtype.hasobject:
        raise InvalidArgumentError(f"{where}: its elements are Python objects, not bytes; save it with a plain dtype")
    count = element_count(shape, len(data))
    stored = checked_slice(data, start.tell(), count * dtype.itemsize, where)
    little = dtype.newbyteorder("<")
    if len(stored) and (dtype != little or (fortran_order and len(shape) > 1)):
        array = np.frombuffer(stored, dtype).reshape(shape, order="F" if fortran_order else "C")
        stored = memoryview(array.astype(little, order="C").tobytes())
    return ParameterEntry.of_data(name, stored, dtype=little, shape=shape, type_name=str(little))


def read_npz(file: BinaryIO, data: memoryview) -> list[ParameterEntry]:
    """Returns the arrays of an open ``.npz`` file, in place in its bytes, named like members without ``.npy``."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError, EOFError, struct.error) as error:
        raise InvalidArgumentError(f"expected a .npz file, a zip archive: {shorten(str(error))}") from None
    return [_read_member(member, data) for member in members if not member.filename.endswith("/")]


def _read_member(member: zipfile.ZipInfo, data: memoryview) -> ParameterEntry:
    where = f"member {shown(member.filename)}"
    if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
        raise UnimplementedError(
            f"{where} is compressed or encrypted and cannot be mapped; save the file with numpy.savez, which stores"
        )
    header = checked_slice(data, member.header_offset, _LOCAL_HEADER.size, f"{where}, header")
    signature, name_length, extra_length = _LOCAL_HEADER.unpack(header)
    if signature != ZIP_MAGIC:
        raise InvalidArgumentError(f"{where}: expected a local header at byte {member.header_offset}")
    start = member.header_offset + _LOCAL_HEADER.size + name_length + extra_length
    return read_npy(checked_slice(data, start, member.file_size, where), member.filename.removesuffix(".npy"))
