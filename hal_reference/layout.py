"""The layout of tensors in memory."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..status import InvalidArgumentError, OutOfRangeError
from .program import Array, TensorSpec

Memory: TypeAlias = npt.NDArray[np.uint8]


def _packed_per_byte(dtype: np.dtype[Any]) -> int:
    """Returns the elements per byte of memory: integers of 2 and 4 bits are packed, other types take whole bytes."""
    return {"int2": 4, "uint2": 4, "int4": 2, "uint4": 2}.get(dtype.name, 1)


def storage_bytes(spec: TensorSpec) -> int:
    """Returns the bytes of a tensor in memory."""
    count, per_byte = math.prod(spec.shape), _packed_per_byte(spec.dtype)
    return -(-count // per_byte) if per_byte > 1 else count * spec.dtype.itemsize


def load(memory: Memory, spec: TensorSpec, description: str) -> Array:
    """Returns the tensor at the start of memory, in place unless packed; OutOfRangeError if memory is too short."""
    size = storage_bytes(spec)
    if size > memory.nbytes:
        raise OutOfRangeError(f"{description} is {spec}, {size} bytes; its binding has {memory.nbytes}")
    count, per_byte = math.prod(spec.shape), _packed_per_byte(spec.dtype)
    part = memory[:size]
    if per_byte == 1:
        return np.frombuffer(part, spec.dtype, count).reshape(spec.shape)
    bits = 8 // per_byte
    parts = (part[:, None] >> (bits * np.arange(per_byte, dtype=np.uint8))) & ((1 << bits) - 1)
    values = parts.reshape(-1)[:count].astype(np.int8)
    if spec.dtype.name.startswith("int"):
        values = values - ((values >> (bits - 1)) << bits)
    return values.astype(spec.dtype).reshape(spec.shape)


def store(memory: Memory, value: Array, spec: TensorSpec, description: str) -> None:
    if value.dtype != spec.dtype or value.shape != spec.shape:
        raise InvalidArgumentError(f"{description} is {spec}, and came out as {value.dtype} of shape {value.shape}")
    size = storage_bytes(spec)
    if size > memory.nbytes:
        raise OutOfRangeError(f"{description} is {spec}, {size} bytes; its binding has {memory.nbytes}")
    per_byte = _packed_per_byte(spec.dtype)
    data: Memory = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8)
    if per_byte > 1:
        bits = 8 // per_byte
        parts = (np.append(data, np.zeros(-data.size % per_byte, np.uint8)) & ((1 << bits) - 1)).reshape(-1, per_byte)
        data = np.bitwise_or.reduce(parts << (bits * np.arange(per_byte, dtype=np.uint8)), axis=1).astype(np.uint8)
    memory[:size] = data
