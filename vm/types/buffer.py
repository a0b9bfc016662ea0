"""VmBuffer: the byte buffer that the VM's ``buffer.*`` operations work on (``!vm.buffer``).

Units, the same in bytecode 15 to 17 (IREE ``runtime/src/iree/vm/{buffer.h,ops.h}``, 3.1 … 3.13): loads, stores and
fills (elements.py) count **elements** of their type from the start of the buffer; copy, compare, clone and hash count
**bytes**.

Sequence: ``VmBuffer.allocate`` (zeroed, writable) or ``VmBuffer.wrap`` (shares memory); there is no close: the memory
is freed with its last view. Thread rule: as for any Python buffer, one thread at a time while it is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from ...status import InvalidArgumentError, ResourceExhaustedError
from .elements import MAX_PYTHON_BYTES, BufferElements
from .host_memory import OBJECT_BYTES, budgets, limited_to, share_of
from .numerics import wrap64
from .ref_types import register_ref_type

MAX_BUFFER_LENGTH: int = 1 << 32
"""The maximum size of a buffer in bytes, alignment included.

``buffer.alloc`` takes an i64 from the program. Larger lengths come only from errors or forged modules. The limit makes
them fail with a status, instead of the operating system killing the process.
"""

if TYPE_CHECKING:
    from ...base.memory_budget import Share

# Unpadded allocations of this many bytes or more are aligned to it by both allocators in use (CPython's and NumPy's).
_NATURAL_ALIGNMENT: Final = 16


class VmBuffer(BufferElements):
    """Bytes of a fixed length, writable or read-only, with typed access.

    Operations on a range of bytes raise OutOfRangeError if the range exceeds a buffer, and InvalidArgumentError if a
    length is negative or the other buffer is null.

    Attributes:
        length: the length in bytes.
        alignment: the requested alignment of the first byte, in bytes.
        writable: whether stores, fills and copies into it are allowed.
    """

    __slots__ = ("share",)

    share: Share | None
    """The part of the program's memory that it counts as, if that is limited."""

    # -------------------------------------------------------------------------------------------------- making

    @classmethod
    def allocate(cls, length: int, alignment: int = 0) -> VmBuffer:
        """Returns a writable buffer of zeros.

        Args:
            length: the length in bytes; zero is allowed.
            alignment: a power of two, or 0 for the natural alignment (16 bytes).

        Raises:
            InvalidArgumentError: the length is negative, or the alignment is not a power of two.
            ResourceExhaustedError: the length is above ``MAX_BUFFER_LENGTH``, there is no memory, or the program's
                limit is reached.
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
        if budgets:
            share = share_of(OBJECT_BYTES + length + padding)
            if share is not None:
                with limited_to(None):
                    buffer = cls.allocate(length, alignment)
                buffer.share = share
                return buffer
        try:
            if length + padding <= MAX_PYTHON_BYTES and not padding:
                # The allocator of free-threaded Python aligns the smallest allocations to 8 bytes.
                content = memoryview(bytearray(max(length, _NATURAL_ALIGNMENT)))
                return cls(content if length >= _NATURAL_ALIGNMENT else content[:length], alignment=_NATURAL_ALIGNMENT)
            array = np.zeros(length + padding, dtype=np.uint8)
        except MemoryError:
            raise ResourceExhaustedError(f"no memory for a buffer of {length} bytes; free others or split it") from None
        start = -int(array.ctypes.data) % alignment if padding else 0
        return cls(array.data[start : start + length], alignment=max(alignment, _NATURAL_ALIGNMENT))

    @classmethod
    def wrap(cls, data: bytes | bytearray | memoryview, *, writable: bool | None = None) -> VmBuffer:
        """Returns a buffer that shares the memory of ``data``.

        Args:
            data: C-contiguous memory in any format, such as module rodata in a mapped file.
            writable: whether the buffer may be written: ``False`` for a read-only view of writable memory; ``None`` if
                as writable as ``data``.

        Raises:
            InvalidArgumentError: the memory is not contiguous, or is read-only with ``writable=True``.
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
        """Returns a writable copy of ``length`` bytes from byte ``offset`` on; raises as ``allocate``."""
        source = self._range(offset, length, "clone")
        result = VmBuffer.allocate(length, alignment)
        result._u8[:] = source
        return result

    # ------------------------------------------------------------------------------------------------- whole bytes

    @property
    def address(self) -> int:
        """The address of the bytes, valid while the buffer exists; 0 if it is empty."""
        return int(np.frombuffer(self._u8, np.uint8).__array_interface__["data"][0]) if self.length else 0

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        return f"<VmBuffer of {self.length} bytes, {'writable' if self.writable else 'read-only'}>"

    def as_memoryview(self) -> memoryview:
        """Returns the bytes (format ``B``), shared; read-only if the buffer is. For NumPy: ``np.frombuffer``."""
        return self._u8

    def copy(self, source: VmBuffer, source_offset: int, target_offset: int, length: int) -> None:
        """Copies ``length`` bytes of ``source`` into this buffer; the ranges may overlap. Offsets are bytes.

        Raises PermissionDeniedError if this buffer is read-only.
        """
        data = require_buffer(source)._range(source_offset, length, "copy (source)")
        self._check_writable()
        self._range(target_offset, length, "copy (target)")[:] = data

    def compare(self, offset: int, other: VmBuffer, other_offset: int, length: int) -> int:
        """Returns 1 if ``length`` bytes at ``offset`` here and at ``other_offset`` in ``other`` are equal, else 0."""
        mine = self._range(offset, length, "compare (left)")
        return 1 if mine == require_buffer(other)._range(other_offset, length, "compare (right)") else 0

    def hash(self, offset: int, length: int) -> int:
        """Returns SipHash-2-4 of ``length`` bytes from byte ``offset`` on, as a signed i64; slow (some MB/s)."""
        return wrap64(siphash_2_4(self._range(offset, length, "hash")))


def require_buffer(value: object) -> VmBuffer:
    """Returns ``value`` if it is a buffer; raises InvalidArgumentError for null and other objects."""
    if isinstance(value, VmBuffer):
        return value
    got = "null" if value is None else f"an object of type {type(value).__qualname__}"
    raise InvalidArgumentError(f"expected a !vm.buffer, got {got}")


register_ref_type("vm.buffer", VmBuffer)


def siphash_2_4(data: memoryview) -> int:
    """Returns the hash of some bytes, unsigned.

    The key is the sixteen bytes 00 … 0f, of the algorithm's test vectors (J.-P. Aumasson and D. J. Bernstein, "SipHash:
    a fast short-input PRF", appendix A).
    """
    k0, k1 = 0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908
    v0 = k0 ^ int.from_bytes(b"somepseu", "big")
    v1 = k1 ^ int.from_bytes(b"dorandom", "big")
    v2 = k0 ^ int.from_bytes(b"lygenera", "big")
    v3 = k1 ^ int.from_bytes(b"tedbytes", "big")
    mask = 0xFFFF_FFFF_FFFF_FFFF
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

    # In pieces, so that a long buffer does not become one long Python list.
    for start in range(0, len(words), 8192):
        for word in words[start : start + 8192].tolist():
            v0, v1, v2, v3 = rounds(v0, v1, v2, v3 ^ word, 2)
            v0 ^= word
    v0, v1, v2, v3 = rounds(v0, v1, v2, v3 ^ last, 2)
    v0, v1, v2, v3 = rounds(v0 ^ last, v1, v2 ^ 0xFF, v3, 4)
    return v0 ^ v1 ^ v2 ^ v3
