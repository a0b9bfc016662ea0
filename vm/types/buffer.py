"""VmBuffer: the byte buffer that the VM's ``buffer.*`` operations work on (``!vm.buffer``).

Units, the same in bytecode 15 to 17 (IREE ``runtime/src/iree/vm/{buffer.h,ops.h}``, 3.1 … 3.13): loads, stores and
fills count **elements** of their type from the start of the buffer; copy, compare, clone and hash count **bytes**.
Elements are little-endian and need no alignment in memory; bytes past the last whole element cannot be reached by that
element's type.

Sequence: :meth:`VmBuffer.allocate` (zeroed, writable) or :meth:`VmBuffer.wrap` (shares memory); no close, the memory goes
with the last view of it. Thread rule: as for any Python buffer, one thread at a time while it is written.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from ...status import InvalidArgumentError, OutOfRangeError, PermissionDeniedError, ResourceExhaustedError
from ..translation.numerics import bitcast_f32_i32, bitcast_i32_f32, wrap64
from .ref_types import register_ref_type

__all__ = ["MAX_BUFFER_LENGTH", "VmBuffer", "require_buffer"]

MAX_BUFFER_LENGTH: int = 1 << 32
"""Bytes that one buffer may take, alignment included.

``buffer.alloc`` takes an i64 from the program. This refuses lengths that only an error or a forged module asks for, with
a status instead of the operating system's killing the process; what is left may still be refused for lack of memory.
"""

# Native, unpadded allocations are aligned to this much by both allocators in use (CPython's and NumPy's).
_NATURAL_ALIGNMENT: Final = 16
# Past this, NumPy's calloc is used, whose pages cost nothing before they are touched.
_SMALL: Final = 1 << 16

_VIEWS: Final[dict[str, tuple[Literal["b", "h", "H", "i", "q", "f", "d"], int]]] = {
    "_i8": ("b", 1),
    "_u16": ("H", 2),
    "_i16": ("h", 2),
    "_i32": ("i", 4),
    "_i64": ("q", 8),
    "_f32": ("f", 4),
    "_f64": ("d", 8),
}

_MASK64: Final = 0xFFFF_FFFF_FFFF_FFFF


class VmBuffer:
    """Bytes of a fixed length, writable or read-only, with typed access.

    Attributes:
        length: bytes.
        alignment: bytes to which the first byte is aligned, as far as was asked for.
        writable: whether stores, fills and copies into it are allowed.
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
        """Shares ``data``: one-dimensional, contiguous, of format ``B``. Use :meth:`wrap` for anything else."""
        self._u8 = data
        self.length = data.nbytes
        self.alignment = alignment
        self.writable = not data.readonly

    def __getattr__(self, name: str) -> memoryview[int] | memoryview[float]:
        # Reached for a slot that is still empty: the typed views are made when first used, since most buffers need one
        # of them and each costs as much as a small buffer.
        view = _VIEWS.get(name)
        if view is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        code, size = view
        whole = self.length - self.length % size
        # memoryview refuses to cast an empty view.
        typed: memoryview[int] | memoryview[float]
        typed = self._u8[:whole].cast(code) if whole else memoryview(bytes(size)).cast(code)[:0]
        setattr(self, name, typed)
        return typed

    # -------------------------------------------------------------------------------------------------- making

    @classmethod
    def allocate(cls, length: int, alignment: int = 0) -> VmBuffer:
        """A writable buffer of zeros.

        Args:
            length: bytes; zero is allowed.
            alignment: a power of two, or 0 for the natural one (16 bytes).

        Raises:
            InvalidArgumentError: a negative length, or an alignment that is no power of two.
            ResourceExhaustedError: more than :data:`MAX_BUFFER_LENGTH`, or no memory.
        """
        if length < 0:
            raise InvalidArgumentError(f"expected a buffer length of 0 bytes or more, got {length}")
        if alignment < 0 or alignment & (alignment - 1):
            raise InvalidArgumentError(f"expected a buffer alignment that is a power of two or 0, got {alignment}")
        padding = alignment if alignment > _NATURAL_ALIGNMENT else 0
        if length + padding > MAX_BUFFER_LENGTH:
            raise ResourceExhaustedError(
                f"a buffer of {length} bytes aligned to {alignment} is past the limit of {MAX_BUFFER_LENGTH} bytes; "
                "split it, or raise pumice.vm.types.buffer.MAX_BUFFER_LENGTH"
            )
        try:
            if length + padding <= _SMALL and not padding:
                return cls(memoryview(bytearray(length)), alignment=_NATURAL_ALIGNMENT)
            array = np.zeros(length + padding, dtype=np.uint8)
        except MemoryError:
            raise ResourceExhaustedError(f"no memory for a buffer of {length} bytes; free others or split it") from None
        start = -int(array.ctypes.data) % alignment if padding else 0
        view = array.data[start : start + length] if length else memoryview(bytearray())
        return cls(view, alignment=max(alignment, _NATURAL_ALIGNMENT))

    @classmethod
    def wrap(cls, data: bytes | bytearray | memoryview, *, writable: bool | None = None) -> VmBuffer:
        """A buffer that shares the memory of ``data``.

        Args:
            data: C-contiguous, any format; module rodata as it lies in the file, for instance.
            writable: ``False`` for a read-only view of writable memory; ``None`` for as writable as ``data`` is.

        Raises:
            InvalidArgumentError: not contiguous, or ``writable=True`` of read-only memory.
        """
        view = memoryview(data)
        if not view.c_contiguous:
            raise InvalidArgumentError("expected C-contiguous memory for a buffer, got a strided view; copy it first")
        if writable and view.readonly:
            raise InvalidArgumentError("expected writable memory for a writable buffer, got read-only; copy it first")
        if view.nbytes == 0:
            view = memoryview(b"" if view.readonly else bytearray())
        elif view.ndim != 1 or view.format != "B":
            view = view.cast("B")
        return cls(view.toreadonly() if writable is False else view)

    def clone(self, offset: int, length: int, alignment: int = 0) -> VmBuffer:
        """A new writable buffer with a copy of ``length`` bytes from byte ``offset`` on.

        Raises:
            InvalidArgumentError: a negative length or a bad alignment.
            OutOfRangeError: the range goes past the end.
            ResourceExhaustedError: no memory.
        """
        source = self._range(offset, length, "clone")
        result = VmBuffer.allocate(length, alignment)
        result._u8[:] = source
        return result

    # ------------------------------------------------------------------------------------------------- whole bytes

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        return f"<VmBuffer of {self.length} bytes, {'writable' if self.writable else 'read-only'}>"

    def as_memoryview(self) -> memoryview:
        """The bytes (format ``B``), shared, not copied; read-only where the buffer is. For NumPy: ``np.frombuffer``."""
        return self._u8

    def copy(self, source: VmBuffer, source_offset: int, target_offset: int, length: int) -> None:
        """Copies ``length`` bytes of ``source`` into this buffer; the ranges may overlap. Offsets are bytes.

        Raises:
            OutOfRangeError: a range goes past its buffer's end.
            PermissionDeniedError: this buffer is read-only.
            InvalidArgumentError: a negative length, or ``source`` is null.
        """
        data = require_buffer(source)._range(source_offset, length, "copy (source)")
        self._check_writable()
        self._range(target_offset, length, "copy (target)")[:] = data

    def compare(self, offset: int, other: VmBuffer, other_offset: int, length: int) -> int:
        """1 where ``length`` bytes from ``offset`` here and from ``other_offset`` in ``other`` are equal, else 0.

        Raises:
            OutOfRangeError: a range goes past its buffer's end.
            InvalidArgumentError: a negative length, or ``other`` is null.
        """
        mine = self._range(offset, length, "compare (left)")
        return 1 if mine == require_buffer(other)._range(other_offset, length, "compare (right)") else 0

    def hash(self, offset: int, length: int) -> int:
        """SipHash-2-4 of ``length`` bytes from byte ``offset`` on, as a signed i64; some MB/s.

        The key is the sixteen bytes 00 … 0f, of the algorithm's test vectors (J.-P. Aumasson and D. J. Bernstein,
        "SipHash: a fast short-input PRF", appendix A).

        Raises:
            OutOfRangeError: the range goes past the end.
            InvalidArgumentError: a negative length.
        """
        return wrap64(_siphash_2_4(self._range(offset, length, "hash")))

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
            raise _read_only()

    # ------------------------------------------------------------------------------------------------------- loads

    def _outside(self, index: int, size: int) -> OutOfRangeError:
        return OutOfRangeError(
            f"expected an element index below {self.length // size} "
            f"({self.length} bytes in elements of {size}), got {index}"
        )

    def load_i8_s(self, index: int) -> int:
        """Element ``index`` of the i8s, sign-extended. Raises OutOfRangeError past the end."""
        if index >= 0:
            try:
                return self._i8[index]
            except IndexError:
                pass
        raise self._outside(index, 1)

    def load_i8_u(self, index: int) -> int:
        """Element ``index`` of the i8s, zero-extended. Raises OutOfRangeError past the end."""
        if index >= 0:
            try:
                return self._u8[index]
            except IndexError:
                pass
        raise self._outside(index, 1)

    def load_i16_s(self, index: int) -> int:
        """Element ``index`` of the i16s, sign-extended. Raises OutOfRangeError past the end."""
        if index >= 0:
            try:
                return self._i16[index]
            except IndexError:
                pass
        raise self._outside(index, 2)

    def load_i16_u(self, index: int) -> int:
        """Element ``index`` of the i16s, zero-extended. Raises OutOfRangeError past the end."""
        if index >= 0:
            try:
                return self._u16[index]
            except IndexError:
                pass
        raise self._outside(index, 2)

    def load_i32(self, index: int) -> int:
        """Element ``index`` of the i32s. Raises OutOfRangeError past the end."""
        if index >= 0:
            try:
                return self._i32[index]
            except IndexError:
                pass
        raise self._outside(index, 4)

    def load_i64(self, index: int) -> int:
        """Element ``index`` of the i64s. Raises OutOfRangeError past the end."""
        if index >= 0:
            try:
                return self._i64[index]
            except IndexError:
                pass
        raise self._outside(index, 8)

    def load_f32(self, index: int) -> float:
        """Element ``index`` of the f32s, NaNs bit for bit. Raises OutOfRangeError past the end."""
        if index >= 0:
            try:
                value = self._f32[index]
                return value if value == value else bitcast_i32_f32(self._i32[index])
            except IndexError:
                pass
        raise self._outside(index, 4)

    def load_f64(self, index: int) -> float:
        """Element ``index`` of the f64s. Raises OutOfRangeError past the end."""
        if index >= 0:
            try:
                return self._f64[index]
            except IndexError:
                pass
        raise self._outside(index, 8)

    # ------------------------------------------------------------------------------------------------------ stores

    def _store_failure(self, index: int, size: int) -> Exception:
        if not self.writable:
            return _read_only()
        if index < 0 or index >= self.length // size:
            return self._outside(index, size)
        return InvalidArgumentError(f"expected a value in canonical form for an element of {size} bytes")

    def store_i8(self, index: int, value: int) -> None:
        """Stores the low 8 bits. Raises OutOfRangeError past the end, PermissionDeniedError where read-only."""
        if index >= 0:
            try:
                self._u8[index] = value & 0xFF
                return
            except (IndexError, TypeError):
                pass
        raise self._store_failure(index, 1)

    def store_i16(self, index: int, value: int) -> None:
        """Stores the low 16 bits. Raises OutOfRangeError past the end, PermissionDeniedError where read-only."""
        if index >= 0:
            try:
                self._u16[index] = value & 0xFFFF
                return
            except (IndexError, TypeError):
                pass
        raise self._store_failure(index, 2)

    def store_i32(self, index: int, value: int) -> None:
        """Stores an i32. Raises OutOfRangeError past the end, PermissionDeniedError where read-only."""
        if index >= 0:
            try:
                self._i32[index] = value
                return
            except (IndexError, TypeError, ValueError):
                pass
        raise self._store_failure(index, 4)

    def store_i64(self, index: int, value: int) -> None:
        """Stores an i64. Raises OutOfRangeError past the end, PermissionDeniedError where read-only."""
        if index >= 0:
            try:
                self._i64[index] = value
                return
            except (IndexError, TypeError, ValueError):
                pass
        raise self._store_failure(index, 8)

    def store_f32(self, index: int, value: float) -> None:
        """Stores an f32, NaNs bit for bit. Raises OutOfRangeError past the end, PermissionDeniedError where read-only."""
        if value != value:
            self.store_i32(index, bitcast_f32_i32(value))
            return
        if index >= 0:
            try:
                self._f32[index] = value
                return
            except (IndexError, TypeError):
                pass
        raise self._store_failure(index, 4)

    def store_f64(self, index: int, value: float) -> None:
        """Stores an f64. Raises OutOfRangeError past the end, PermissionDeniedError where read-only."""
        if index >= 0:
            try:
                self._f64[index] = value
                return
            except (IndexError, TypeError):
                pass
        raise self._store_failure(index, 8)

    # ------------------------------------------------------------------------------------------------------- fills

    def fill_i8(self, offset: int, length: int, value: int) -> None:
        """Sets ``length`` i8 elements from element ``offset`` on to the low 8 bits; errors as :meth:`fill_i32`'s."""
        self._fill(offset, length, (value & 0xFF).to_bytes(1, "little"))

    def fill_i16(self, offset: int, length: int, value: int) -> None:
        """Sets ``length`` i16 elements from element ``offset`` on to the low 16 bits; errors as :meth:`fill_i32`'s."""
        self._fill(offset, length, (value & 0xFFFF).to_bytes(2, "little"))

    def fill_i32(self, offset: int, length: int, value: int) -> None:
        """Sets ``length`` i32 elements from element ``offset`` on.

        Raises:
            PermissionDeniedError: the buffer is read-only.
            InvalidArgumentError: a negative length.
            OutOfRangeError: the range goes past the end.
        """
        self._fill(offset, length, (value & 0xFFFF_FFFF).to_bytes(4, "little"))

    def fill_i64(self, offset: int, length: int, value: int) -> None:
        """Sets ``length`` i64 elements from element ``offset`` on; errors as :meth:`fill_i32`'s."""
        self._fill(offset, length, (value & _MASK64).to_bytes(8, "little"))

    def fill_f32(self, offset: int, length: int, value: float) -> None:
        """Sets ``length`` f32 elements from element ``offset`` on; errors as :meth:`fill_i32`'s."""
        self.fill_i32(offset, length, bitcast_f32_i32(value))

    def fill_f64(self, offset: int, length: int, value: float) -> None:
        """Sets ``length`` f64 elements from element ``offset`` on; errors as :meth:`fill_i32`'s."""
        self._fill(offset, length, np.float64(value).tobytes())

    def _fill(self, offset: int, length: int, pattern: bytes) -> None:
        self._check_writable()
        size = len(pattern)
        target = self._range(offset * size, length * size, f"fill of {size}-byte elements")
        if len(target) <= _SMALL:
            target[:] = pattern * length
        else:
            np.frombuffer(target, dtype=f"V{size}")[:] = np.void(pattern)


def _read_only() -> PermissionDeniedError:
    return PermissionDeniedError("expected a writable buffer, got a read-only one (a constant); clone it first")


def require_buffer(value: object) -> VmBuffer:
    """``value``, if it is a buffer.

    Raises:
        InvalidArgumentError: it is null or an object of another type.
    """
    if isinstance(value, VmBuffer):
        return value
    got = "null" if value is None else f"an object of type {type(value).__qualname__}"
    raise InvalidArgumentError(f"expected a !vm.buffer, got {got}")


def _siphash_2_4(data: memoryview) -> int:
    k0, k1 = 0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908
    v0 = k0 ^ int.from_bytes(b"somepseu", "big")
    v1 = k1 ^ int.from_bytes(b"dorandom", "big")
    v2 = k0 ^ int.from_bytes(b"lygenera", "big")
    v3 = k1 ^ int.from_bytes(b"tedbytes", "big")
    mask = _MASK64
    length = len(data)
    whole = length - length % 8
    words = np.frombuffer(data[:whole], dtype="<u8") if whole else np.empty(0, dtype="<u8")
    last = int.from_bytes(data[whole:], "little") | (length & 0xFF) << 56

    def rounds(v0: int, v1: int, v2: int, v3: int, count: int) -> tuple[int, int, int, int]:
        for _ in range(count):
            v0 = (v0 + v1) & mask
            v1 = ((v1 << 13 | v1 >> 51) & mask) ^ v0
            v0 = (v0 << 32 | v0 >> 32) & mask
            v2 = (v2 + v3) & mask
            v3 = ((v3 << 16 | v3 >> 48) & mask) ^ v2
            v0 = (v0 + v3) & mask
            v3 = ((v3 << 21 | v3 >> 43) & mask) ^ v0
            v2 = (v2 + v1) & mask
            v1 = ((v1 << 17 | v1 >> 47) & mask) ^ v2
            v2 = (v2 << 32 | v2 >> 32) & mask
        return v0, v1, v2, v3

    # In pieces, so that a long buffer does not become one Python list of ints as long as itself.
    for start in range(0, len(words), 8192):
        for word in words[start : start + 8192].tolist():
            v0, v1, v2, v3 = rounds(v0, v1, v2, v3 ^ word, 2)
            v0 ^= word
    v0, v1, v2, v3 = rounds(v0, v1, v2, v3 ^ last, 2)
    v0, v1, v2, v3 = rounds(v0 ^ last, v1, v2 ^ 0xFF, v3, 4)
    return v0 ^ v1 ^ v2 ^ v3


register_ref_type("vm.buffer", VmBuffer)
