"""GGUF files: a reader that maps and checks them.

The format (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little-endian): key-value
metadata, tensor descriptions, and the tensors' bytes from a multiple of ``general.alignment`` on.

Tests compare this reader with the ``gguf`` package's, which trusts the file: an array that claims 2**40 elements in a
file of 100 bytes exhausts its memory, and it makes an object for every token of a vocabulary. This reader skips all
metadata except the alignment; its time and memory are bounded by the file's size.
"""

from __future__ import annotations

import struct
from typing import Final

import ml_dtypes
import numpy as np

from ...status import DataLossError, IncompatibleError, InvalidArgumentError, UnimplementedError, shown
from .entry import ParameterEntry, checked_slice, decode_name, element_count

GGUF_MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_ALIGNMENT_KEY: Final = "general.alignment"
_DEFAULT_ALIGNMENT: Final = 32

_UINT32, _STRING, _ARRAY = 4, 8, 9
_VALUE_SIZES: Final = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

GGML_TYPES: Final[dict[int, tuple[str, int, int]]] = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    9: ("Q8_1", 32, 40),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1),
    25: ("I16", 1, 2),
    26: ("I32", 1, 4),
    27: ("I64", 1, 8),
    28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56),
    30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17),
    40: ("NVFP4", 64, 36),
    41: ("Q1_0", 128, 18),
}
"""The name of each tensor type, and the elements and bytes of its blocks."""

_DTYPES: Final[dict[str, np.dtype[np.generic]]] = {
    name: np.dtype(kind)
    for name, kind in {
        "F32": np.float32,
        "F16": np.float16,
        "F64": np.float64,
        "BF16": ml_dtypes.bfloat16,
        "I8": np.int8,
        "I16": np.int16,
        "I32": np.int32,
        "I64": np.int64,
    }.items()
}


class _Cursor:
    """A position in the file. Reads are checked against the file's size."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self.position = 0

    def take(self, size: int, noun: str) -> memoryview:
        taken = checked_slice(self._data, self.position, size, f"GGUF {noun} at byte {self.position}")
        self.position += size
        return taken

    def u32(self, noun: str) -> int:
        return int.from_bytes(self.take(4, noun), "little")

    def u64(self, noun: str) -> int:
        return int.from_bytes(self.take(8, noun), "little")

    def string(self, noun: str) -> str:
        return decode_name(self.take(self.u64(f"{noun} length"), noun))


def read_gguf(data: memoryview) -> list[ParameterEntry]:
    """Returns the tensors of a file's bytes, in place, in the order of the file.

    Shapes have the outermost dimension first, the reverse of the file's. Quantised tensors have no dtype; their bytes
    are blocks.
    """
    cursor = _Cursor(data)
    magic = bytes(cursor.take(len(GGUF_MAGIC), "magic"))
    if magic != GGUF_MAGIC:
        raise InvalidArgumentError(f"expected the bytes {GGUF_MAGIC!r} of a .gguf file, got {magic!r}")
    version = cursor.u32("version")
    if version not in _VERSIONS:
        kind = "it is big-endian" if not version & 0xFFFF else f"its version is {version}"
        raise IncompatibleError(f"GGUF file: {kind}, known are little-endian versions 2 and 3; convert it")
    tensor_count, pair_count = cursor.u64("tensor count"), cursor.u64("metadata count")
    alignment = _read_alignment(cursor, pair_count)
    # The data starts after the last description.
    tensors = [_read_tensor(cursor, ordinal) for ordinal in range(tensor_count)]
    start = -(-cursor.position // alignment) * alignment
    storage = data[start:]
    return [_make_entry(*tensor, storage) for tensor in tensors]


def _read_alignment(cursor: _Cursor, pair_count: int) -> int:
    """Skips the metadata; returns the alignment that it sets."""
    alignment = _DEFAULT_ALIGNMENT
    for _ in range(pair_count):
        key = cursor.string("metadata key")
        kind = cursor.u32(f"type of {shown(key)}")
        if key != _ALIGNMENT_KEY:
            _skip_value(cursor, kind, key)
            continue
        if kind != _UINT32:
            raise InvalidArgumentError(
                f"GGUF metadata: expected {_ALIGNMENT_KEY} to be a uint32, got value type {kind}"
            )
        alignment = cursor.u32(_ALIGNMENT_KEY)
        if not alignment or alignment & (alignment - 1):
            raise InvalidArgumentError(
                f"GGUF metadata: expected {_ALIGNMENT_KEY} to be a power of two, got {alignment}"
            )
    return alignment


def _skip_value(cursor: _Cursor, kind: int, key: str) -> None:
    pending = [(kind, 1)]  # arrays may contain arrays
    while pending:
        kind, count = pending.pop()
        if kind in _VALUE_SIZES:
            cursor.take(count * _VALUE_SIZES[kind], f"value of {shown(key)}")
        elif kind == _STRING:
            for _ in range(count):
                cursor.take(cursor.u64("string length"), "string")
        elif kind == _ARRAY:
            if count:
                pending.append((_ARRAY, count - 1))
                pending.append((cursor.u32("array type"), cursor.u64("array length")))
        else:
            raise InvalidArgumentError(
                f"GGUF metadata: {shown(key)} has value type {kind}, which the format does not have"
            )


def _read_tensor(cursor: _Cursor, ordinal: int) -> tuple[str, tuple[int, ...], int, int]:
    """Reads a tensor's name, dimensions as in the file, type code and offset."""
    name = cursor.string(f"name of tensor {ordinal}")
    rank = cursor.u32(f"rank of tensor {shown(name)}")
    dimensions = cursor.take(rank * 8, f"shape of tensor {shown(name)}")
    code = cursor.u32(f"type of tensor {shown(name)}")
    offset = cursor.u64(f"offset of tensor {shown(name)}")
    return name, struct.unpack(f"<{rank}Q", dimensions), code, offset


def _make_entry(name: str, dimensions: tuple[int, ...], code: int, offset: int, storage: memoryview) -> ParameterEntry:
    where = f"GGUF tensor {shown(name)}"
    if code not in GGML_TYPES:
        raise UnimplementedError(f"{where}: type {code} is not known; convert the file, or upgrade pumice")
    type_name, block_elements, block_bytes = GGML_TYPES[code]
    if dimensions and dimensions[0] % block_elements:
        raise InvalidArgumentError(
            f"{where}: rows of {type_name} are blocks of {block_elements} elements, its first dimension is "
            f"{dimensions[0]}"
        )
    count = element_count(dimensions, block_elements * max(len(storage), 1))
    if count % block_elements:
        raise InvalidArgumentError(f"{where}: {type_name} comes in blocks of {block_elements} elements")
    length = count // block_elements * block_bytes
    if offset + length > len(storage):
        raise DataLossError(
            f"{where}: expected its data at byte {offset} of the {len(storage)} bytes of data, and within them; "
            "the file is truncated or damaged, get it again"
        )
    return ParameterEntry.of_data(
        name,
        checked_slice(storage, offset, length, where),
        dtype=_DTYPES.get(type_name),
        shape=dimensions[::-1],
        type_name=type_name,
    )
