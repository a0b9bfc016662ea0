"""Safetensors files: a reader that maps and checks them.

The format (https://huggingface.co/docs/safetensors, "Format"): a u64 with the length of a JSON header, the header, and
the tensors' bytes without holes. Tests compare this reader with the ``safetensors`` package, which returns copies and
does not report a tensor's position in the file.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Mapping
from typing import Final, NoReturn

import ml_dtypes
import numpy as np

from ...status import DataLossError, InvalidArgumentError, UnimplementedError, shorten, shown
from .entry import ParameterEntry, checked_slice, element_count

_LENGTH: Final = struct.Struct("<Q")
_MAX_HEADER: Final = 100_000_000  # the format's limit
_METADATA: Final = "__metadata__"


# Bits of an element; types that pack elements into bytes have no dtype.
_PACKED: Final = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}
_DTYPES: Final[Mapping[str, type]] = {
    "BOOL": np.bool_,
    "U8": np.uint8,
    "I8": np.int8,
    "F8_E5M2": ml_dtypes.float8_e5m2,
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E8M0": ml_dtypes.float8_e8m0fnu,
    "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "I16": np.int16,
    "U16": np.uint16,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "I32": np.int32,
    "U32": np.uint32,
    "F32": np.float32,
    "C64": np.complex64,
    "F64": np.float64,
    "I64": np.int64,
    "U64": np.uint64,
}


def is_safetensors(data: memoryview) -> bool:
    """Whether the first bytes look like this format, which has no magic: a plausible length, then a JSON object."""
    return len(data) > _LENGTH.size and data[_LENGTH.size] == ord("{") and _LENGTH.unpack_from(data)[0] <= _MAX_HEADER


def read_safetensors(data: memoryview) -> list[ParameterEntry]:
    """Returns the tensors of a file's bytes, in place and in order; writable if the bytes are."""
    length = _LENGTH.unpack(checked_slice(data, 0, _LENGTH.size, "safetensors header length"))[0]
    if length > _MAX_HEADER:
        raise InvalidArgumentError(
            f"safetensors header: expected at most {_MAX_HEADER} bytes, its length says {length}"
        )
    header = _parse(bytes(checked_slice(data, _LENGTH.size, length, "safetensors header")))
    storage = data[_LENGTH.size + length :]
    metadata = header.pop(_METADATA, None)
    if metadata is not None and not (
        isinstance(metadata, dict) and all(isinstance(value, str) for value in metadata.values())
    ):
        raise InvalidArgumentError(f"safetensors header: expected {_METADATA} to be an object of strings")
    tensors = sorted(
        ((*_read_range(name, tensor), name, tensor) for name, tensor in header.items()), key=lambda item: item[:3]
    )
    entries, position = [], 0
    for begin, end, name, tensor in tensors:
        where = f"safetensors tensor {shown(name)}"
        if begin != position or end < begin:
            raise InvalidArgumentError(
                f"{where}: its data_offsets [{begin}, {end}] do not begin where those before end, at {position}: holes "
                "and overlaps are not allowed"
            )
        if end > len(storage):
            raise DataLossError(
                f"{where}: expected bytes [{begin}, {end}) of data, the file has {len(storage)}; it is truncated, "
                "get it again"
            )
        entries.append(_read_tensor(name, tensor, storage[begin:end], where))
        position = end
    if position != len(storage):
        raise InvalidArgumentError(
            f"safetensors file: expected its tensors to take all {len(storage)} bytes of data, they take {position}"
        )
    return entries


def _parse(text: bytes) -> dict[str, object]:
    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=_distinct, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError, JSONDecodeError, InvalidArgumentError
        if isinstance(error, InvalidArgumentError):
            raise
        raise InvalidArgumentError(
            f"safetensors header: expected a JSON object, got other text: {shorten(str(error))}"
        ) from None
    if not isinstance(header, dict):
        raise InvalidArgumentError(f"safetensors header: expected a JSON object, got a {type(header).__name__}")
    return header


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        name = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise InvalidArgumentError(f"safetensors header: the key {shown(name)} is given twice")
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidArgumentError(f"safetensors header: {name} is not JSON")


def _read_range(name: str, tensor: object) -> tuple[int, int]:
    where = f"safetensors tensor {shown(name)}"
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidArgumentError(f"{where}: its name has no UTF-8 form") from None
    if not isinstance(tensor, dict) or tensor.keys() != {"dtype", "shape", "data_offsets"}:
        raise InvalidArgumentError(f"{where}: expected an object with dtype, shape and data_offsets")
    offsets = tensor["data_offsets"]
    if not _are_sizes(offsets) or len(offsets) != 2:
        raise InvalidArgumentError(f"{where}: expected data_offsets to be two integers of 0 or more")
    return offsets[0], offsets[1]


def _are_sizes(value: object) -> bool:
    return isinstance(value, list) and all(type(item) is int and 0 <= item < 1 << 64 for item in value)


def _read_tensor(name: str, tensor: object, stored: memoryview, where: str) -> ParameterEntry:
    assert isinstance(tensor, dict)
    type_name, shape = tensor["dtype"], tensor["shape"]
    if not isinstance(type_name, str) or not (type_name in _PACKED or type_name in _DTYPES):
        raise UnimplementedError(
            f"{where}: dtype {shown(str(type_name))} is not known, only {', '.join([*_PACKED, *_DTYPES])}; convert the "
            "file"
        )
    if not _are_sizes(shape):
        raise InvalidArgumentError(f"{where}: expected a shape of integers of 0 or more")
    dtype = np.dtype(_DTYPES[type_name]) if type_name in _DTYPES else None
    bits = _PACKED[type_name] if dtype is None else 8 * dtype.itemsize
    count = element_count(shape, 8 * len(stored))
    if count * bits != 8 * len(stored):
        raise InvalidArgumentError(
            f"{where}: its shape and dtype {type_name} do not make the {len(stored)} bytes that its data_offsets span"
        )
    return ParameterEntry.of_data(name, stored, dtype=dtype, shape=tuple(shape), type_name=type_name)
