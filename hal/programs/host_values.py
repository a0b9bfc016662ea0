"""Host bytes and lists that programs compute with: buffers are memory views, lists are Python lists.

Offsets of loads, stores and fills count elements of their format (``struct``'s letters); other ranges count bytes.
"""

from __future__ import annotations

import struct
from typing import Any

from ...status import InvalidArgumentError, OutOfRangeError, PermissionDeniedError, ResourceExhaustedError

MAX_HOST_BYTES = 1 << 32
"""The most bytes of a buffer that a program creates on the host."""

MAX_LIST_SIZE = 1 << 24
"""The most elements of a list."""


def new_bytes(length: int) -> memoryview:
    """Returns a buffer of zeros."""
    if length < 0:
        raise InvalidArgumentError(f"expected a buffer length of 0 bytes or more, got {length}")
    if length > MAX_HOST_BYTES:
        raise ResourceExhaustedError(f"a buffer of {length} bytes is past the limit of {MAX_HOST_BYTES} bytes")
    return memoryview(bytearray(length))


def bytes_range(data: memoryview | None, offset: int, length: int) -> memoryview:
    """Returns bytes ``[offset, offset + length)``."""
    view = _bytes_of(data)
    if length < 0:
        raise InvalidArgumentError(f"expected a length of 0 bytes or more, got {length}")
    if offset < 0 or offset + length > view.nbytes:
        raise OutOfRangeError(f"bytes [{offset}, {offset + length}) do not lie within the buffer of {view.nbytes}")
    return view[offset : offset + length]


def clone_bytes(data: memoryview | None, offset: int, length: int) -> memoryview:
    """Returns a writable copy of a range."""
    return memoryview(bytearray(bytes_range(data, offset, length)))


def copy_bytes(
    source: memoryview | None, source_offset: int, target: memoryview | None, target_offset: int, length: int
) -> None:
    """Copies a range; the ranges may overlap."""
    data = bytes(bytes_range(source, source_offset, length))
    _writable(target)[target_offset : target_offset + length] = (
        data if bytes_range(target, target_offset, length) else b""
    )


def compare_bytes(
    left: memoryview | None, left_offset: int, right: memoryview | None, right_offset: int, length: int
) -> int:
    """Returns 1 if two ranges are equal, else 0."""
    return int(bytes_range(left, left_offset, length) == bytes_range(right, right_offset, length))


def load(letter: str, data: memoryview | None, index: int) -> Any:
    """Returns an element."""
    view = _bytes_of(data)
    return struct.unpack_from(f"<{letter}", view, _place(letter, view, index, 1))[0]


def store(letter: str, data: memoryview | None, index: int, value: float) -> None:
    """Writes an element; of an integer the low bits."""
    fill(letter, data, index, 1, value)


def fill(letter: str, data: memoryview | None, index: int, count: int, value: float) -> None:
    """Writes the same element ``count`` times."""
    view = _writable(data)
    start = _place(letter, view, index, count)
    size = struct.calcsize(letter)
    element = (
        struct.pack(f"<{letter}", value)
        if letter in "fd"
        else (int(value) & (1 << 8 * size) - 1).to_bytes(size, "little")
    )
    view[start : start + size * count] = element * count


def cast(value: Any, kind: type) -> Any:
    """Returns a reference of an expected type, or null."""
    if value is not None and not isinstance(value, kind):
        raise InvalidArgumentError(f"expected a {kind.__name__}, got {type(value).__name__}")
    return value


def get(items: list[Any] | None, index: int) -> Any:
    return _list_of(items, index)[index]


def put(items: list[Any] | None, index: int, value: Any) -> None:
    _list_of(items, index)[index] = value


def resize(items: list[Any] | None, size: int, zero: Any) -> None:
    """Shortens a list, or extends it with ``zero``."""
    if items is None:
        raise InvalidArgumentError("expected a !vm.list, got null")
    if not 0 <= size <= MAX_LIST_SIZE:
        raise ResourceExhaustedError(f"a list of {size} elements is past the limit of {MAX_LIST_SIZE}")
    del items[size:]
    items.extend([zero] * (size - len(items)))


def _list_of(items: list[Any] | None, index: int) -> list[Any]:
    if items is None:
        raise InvalidArgumentError("expected a !vm.list, got null")
    if not 0 <= index < len(items):
        raise OutOfRangeError(f"index {index} is outside a list of {len(items)}")
    return items


def _bytes_of(data: memoryview | None) -> memoryview:
    if data is None:
        raise InvalidArgumentError("expected a !vm.buffer, got null")
    return data


def _writable(data: memoryview | None) -> memoryview:
    view = _bytes_of(data)
    if view.readonly:
        raise PermissionDeniedError("the buffer may only be read")
    return view


def _place(letter: str, view: memoryview, index: int, count: int) -> int:
    size = struct.calcsize(letter)
    if index < 0 or count < 0 or (index + count) * size > view.nbytes:
        raise OutOfRangeError(
            f"elements [{index}, {index + count}) of {size} bytes do not lie within the buffer of {view.nbytes} bytes"
        )
    return index * size
