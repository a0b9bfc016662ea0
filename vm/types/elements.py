"""Typed access to a buffer's bytes, for ``buffer.load``, ``buffer.store`` and ``buffer.fill``.

Thread rule: as for any Python buffer, one thread at a time while it is written.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from ...status import InvalidArgumentError, OutOfRangeError, PermissionDeniedError
from .numerics import bitcast_f32_i32, bitcast_i32_f32

MAX_PYTHON_BYTES: Final = 1 << 16
"""Larger buffers are allocated and filled by NumPy, whose ``calloc`` uses no memory for untouched pages."""

_VIEWS: Final[dict[str, tuple[Literal["b", "h", "H", "i", "q", "f", "d"], int]]] = {
    "_i8": ("b", 1),
    "_u16": ("H", 2),
    "_i16": ("h", 2),
    "_i32": ("i", 4),
    "_i64": ("q", 8),
    "_f32": ("f", 4),
    "_f64": ("d", 8),
}


class BufferElements:
    """Bytes of a fixed length, with loads, stores and fills of typed elements.

    Indices and counts are elements of the access's type from the start of the bytes. Elements are little-endian and
    need no alignment in memory; bytes past the last whole element cannot be reached by that element's type.
    """

    __slots__ = ("_f32", "_f64", "_i8", "_i16", "_i32", "_i64", "_u8", "_u16", "alignment", "length", "writable")

    alignment: int
    length: int
    writable: bool
    _u8: memoryview[int]
    _i8: memoryview[int]
    _u16: memoryview[int]
    _i16: memoryview[int]
    _i32: memoryview[int]
    _i64: memoryview[int]
    _f32: memoryview[float]
    _f64: memoryview[float]

    def __init__(self, data: memoryview, *, alignment: int = 1) -> None:
        """Shares ``data``: one-dimensional, contiguous, of format ``B``. Use ``wrap`` for other memory."""
        self._u8 = data
        self.length = data.nbytes
        self.alignment = alignment
        self.writable = not data.readonly

    def __getattr__(self, name: str) -> memoryview[int] | memoryview[float]:
        # Called for an empty slot: typed views are created when first used, since most buffers need only one view and a
        # view costs as much as a small buffer.
        view = _VIEWS.get(name)
        if view is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        code, size = view
        typed: memoryview[int] | memoryview[float] = self._u8[: self.length - self.length % size].cast(code)
        setattr(self, name, typed)
        return typed

    def _range(self, offset: int, length: int, operation: str) -> memoryview:
        if length < 0:
            raise InvalidArgumentError(f"buffer {operation}: expected a length of 0 bytes or more, got {length}")
        if offset < 0 or offset + length > self.length:
            raise OutOfRangeError(
                f"buffer {operation}: expected a range within {self.length} bytes, got {length} bytes at {offset}"
            )
        return self._u8[offset : offset + length]

    def _check_writable(self) -> None:
        if not self.writable:
            raise PermissionDeniedError("expected a writable buffer, got a read-only one (a constant); clone it first")

    # ------------------------------------------------------------------------------------------------------- loads An
    # index below 0 is set past the end, since memory views would count it from the end.

    def _outside(self, index: int, size: int) -> OutOfRangeError:
        return OutOfRangeError(
            f"expected an element index below {self.length // size} "
            f"({self.length} bytes in elements of {size}), got {index}"
        )

    def load_i8_s(self, index: int) -> int:
        """Returns element ``index`` of the i8s, sign-extended. Raises OutOfRangeError past the end."""
        try:
            return self._i8[index if index >= 0 else self.length]
        except IndexError:
            raise self._outside(index, 1) from None

    def load_i8_u(self, index: int) -> int:
        """Returns element ``index`` of the i8s, zero-extended. Raises OutOfRangeError past the end."""
        try:
            return self._u8[index if index >= 0 else self.length]
        except IndexError:
            raise self._outside(index, 1) from None

    def load_i16_s(self, index: int) -> int:
        """Returns element ``index`` of the i16s, sign-extended. Raises OutOfRangeError past the end."""
        try:
            return self._i16[index if index >= 0 else self.length]
        except IndexError:
            raise self._outside(index, 2) from None

    def load_i16_u(self, index: int) -> int:
        """Returns element ``index`` of the i16s, zero-extended. Raises OutOfRangeError past the end."""
        try:
            return self._u16[index if index >= 0 else self.length]
        except IndexError:
            raise self._outside(index, 2) from None

    def load_i32(self, index: int) -> int:
        """Returns element ``index`` of the i32s. Raises OutOfRangeError past the end."""
        try:
            return self._i32[index if index >= 0 else self.length]
        except IndexError:
            raise self._outside(index, 4) from None

    def load_i64(self, index: int) -> int:
        """Returns element ``index`` of the i64s. Raises OutOfRangeError past the end."""
        try:
            return self._i64[index if index >= 0 else self.length]
        except IndexError:
            raise self._outside(index, 8) from None

    def load_f32(self, index: int) -> float:
        """Returns element ``index`` of the f32s, NaNs bit for bit. Raises OutOfRangeError past the end."""
        try:
            value = self._f32[index if index >= 0 else self.length]
        except IndexError:
            raise self._outside(index, 4) from None
        return value if value == value else bitcast_i32_f32(self._i32[index])

    def load_f64(self, index: int) -> float:
        """Returns element ``index`` of the f64s. Raises OutOfRangeError past the end."""
        try:
            return self._f64[index if index >= 0 else self.length]
        except IndexError:
            raise self._outside(index, 8) from None

    # ------------------------------------------------------------------------------------------------------ stores

    def _store_failure(self, index: int, size: int) -> Exception:
        self._check_writable()
        if index < 0 or index >= self.length // size:
            return self._outside(index, size)
        return InvalidArgumentError(f"expected a value in canonical form for an element of {size} bytes")

    def store_i8(self, index: int, value: int) -> None:
        """Stores the low 8 bits. Raises OutOfRangeError past the end, PermissionDeniedError if read-only."""
        try:
            self._u8[index if index >= 0 else self.length] = value & 0xFF
        except (IndexError, TypeError):
            raise self._store_failure(index, 1) from None

    def store_i16(self, index: int, value: int) -> None:
        """Stores the low 16 bits. Raises OutOfRangeError past the end, PermissionDeniedError if read-only."""
        try:
            self._u16[index if index >= 0 else self.length] = value & 0xFFFF
        except (IndexError, TypeError):
            raise self._store_failure(index, 2) from None

    def store_i32(self, index: int, value: int) -> None:
        """Stores an i32. Raises OutOfRangeError past the end, PermissionDeniedError if read-only."""
        try:
            self._i32[index if index >= 0 else self.length] = value
        except (IndexError, TypeError, ValueError):
            raise self._store_failure(index, 4) from None

    def store_i64(self, index: int, value: int) -> None:
        """Stores an i64. Raises OutOfRangeError past the end, PermissionDeniedError if read-only."""
        try:
            self._i64[index if index >= 0 else self.length] = value
        except (IndexError, TypeError, ValueError):
            raise self._store_failure(index, 8) from None

    def store_f32(self, index: int, value: float) -> None:
        """Stores an f32, NaNs bit for bit. Errors as ``store_i8``'s."""
        if value != value:
            self.store_i32(index, bitcast_f32_i32(value))
            return
        try:
            self._f32[index if index >= 0 else self.length] = value
        except (IndexError, TypeError):
            raise self._store_failure(index, 4) from None

    def store_f64(self, index: int, value: float) -> None:
        """Stores an f64. Raises OutOfRangeError past the end, PermissionDeniedError where read-only."""
        try:
            self._f64[index if index >= 0 else self.length] = value
        except (IndexError, TypeError):
            raise self._store_failure(index, 8) from None

    # ------------------------------------------------------------------------------------------------------- fills

    def fill_i8(self, offset: int, length: int, value: int) -> None:
        """Sets ``length`` i8 elements from element ``offset`` on to the low 8 bits; errors as ``fill_i32``'s."""
        self._fill(offset, length, (value & 0xFF).to_bytes(1, "little"))

    def fill_i16(self, offset: int, length: int, value: int) -> None:
        """Sets ``length`` i16 elements from element ``offset`` on to the low 16 bits; errors as ``fill_i32``'s."""
        self._fill(offset, length, (value & 0xFFFF).to_bytes(2, "little"))

    def fill_i32(self, offset: int, length: int, value: int) -> None:
        """Sets ``length`` i32 elements from element ``offset`` on.

        Raises:
            PermissionDeniedError: the buffer is read-only.
            InvalidArgumentError: a length is negative.
            OutOfRangeError: the range goes past the end.
        """
        self._fill(offset, length, (value & 0xFFFF_FFFF).to_bytes(4, "little"))

    def fill_i64(self, offset: int, length: int, value: int) -> None:
        """Sets ``length`` i64 elements from element ``offset`` on; errors as ``fill_i32``'s."""
        self._fill(offset, length, (value & 0xFFFF_FFFF_FFFF_FFFF).to_bytes(8, "little"))

    def fill_f32(self, offset: int, length: int, value: float) -> None:
        """Sets ``length`` f32 elements from element ``offset`` on; errors as ``fill_i32``'s."""
        self.fill_i32(offset, length, bitcast_f32_i32(value))

    def fill_f64(self, offset: int, length: int, value: float) -> None:
        """Sets ``length`` f64 elements from element ``offset`` on; errors as ``fill_i32``'s."""
        self._fill(offset, length, np.float64(value).tobytes())

    def _fill(self, offset: int, length: int, pattern: bytes) -> None:
        self._check_writable()
        size = len(pattern)
        target = self._range(offset * size, length * size, f"fill of {size}-byte elements")
        if len(target) <= MAX_PYTHON_BYTES:
            target[:] = pattern * length
        else:
            np.frombuffer(target, dtype=f"V{size}")[:] = np.void(pattern)
