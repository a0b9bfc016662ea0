"""Requirements of a buffer on its memory, and the host's bytes.

The bits are those of IREE's HAL, because compiled modules contain them as integers
(``runtime/src/iree/hal/buffer.h``, IREE 3.13).
"""

from __future__ import annotations

import enum

from ..status import InvalidArgumentError


class MemoryTypeFlags(enum.IntFlag):
    """Locality and visibility of memory."""

    NONE = 0
    OPTIMAL = 0x1
    HOST_VISIBLE = 0x2
    HOST_COHERENT = 0x4
    HOST_CACHED = 0x8
    HOST_LOCAL = 0x46
    OPTIMAL_FOR_HOST = 0x47
    DEVICE_VISIBLE = 0x10
    DEVICE_LOCAL = 0x30
    OPTIMAL_FOR_DEVICE = 0x31


class BufferUsage(enum.IntFlag):
    """The permitted uses of a buffer."""

    NONE = 0
    TRANSFER_SOURCE = 1 << 0
    TRANSFER_TARGET = 1 << 1
    TRANSFER = 0x3
    DISPATCH_INDIRECT_PARAMETERS = 1 << 8
    DISPATCH_UNIFORM_READ = 1 << 9
    DISPATCH_STORAGE_READ = 1 << 10
    DISPATCH_STORAGE_WRITE = 1 << 11
    DISPATCH_STORAGE = 0xC00
    DISPATCH_IMAGE_READ = 1 << 12
    DISPATCH_IMAGE_WRITE = 1 << 13
    DISPATCH_IMAGE = 0x3000
    DISPATCH = 0x3F00
    SHARING_EXPORT = 1 << 16
    SHARING_REPLICATE = 1 << 17
    SHARING_CONCURRENT = 1 << 18
    SHARING_IMMUTABLE = 1 << 19
    MAPPING_SCOPED = 1 << 24
    MAPPING_PERSISTENT = 1 << 25
    MAPPING_OPTIONAL = 1 << 26
    MAPPING_ACCESS_RANDOM = 1 << 27
    MAPPING_ACCESS_SEQUENTIAL_WRITE = 1 << 28
    MAPPING = 0x9000000
    DEFAULT = 0xC03


class MemoryAccess(enum.IntFlag):
    """The host's accesses to a mapped range."""

    NONE = 0
    READ = 1 << 0
    WRITE = 1 << 1
    DISCARD = 1 << 2
    DISCARD_WRITE = 0x6
    MAY_ALIAS = 1 << 3
    UNALIGNED = 1 << 4
    ANY = 1 << 5
    ALL = 0x7


def check_size(size: object) -> None:
    """Raises InvalidArgumentError unless the value is a number of bytes."""
    if isinstance(size, bool) or not isinstance(size, int):
        raise InvalidArgumentError(f"a buffer's size is an int of bytes, got {type(size).__name__}")
    if size < 0:
        raise InvalidArgumentError(f"a buffer's size must not be negative, got {size}")


def contiguous(data: bytes | bytearray | memoryview) -> memoryview:
    """Returns the bytes of an object with the buffer protocol, in place; InvalidArgumentError if they are not
    contiguous.
    """
    view = memoryview(data)
    if not view.c_contiguous:
        raise InvalidArgumentError("expected C-contiguous memory; make a contiguous copy of it first")
    # A shape with a zero has no bytes, and cast() takes none.
    return view.cast("B") if view.nbytes else memoryview(b"" if view.readonly else bytearray())


def as_bytes(data: bytes | bytearray | memoryview) -> bytes:
    """Returns the bytes of an object: a copy, or the object itself if it is ``bytes``."""
    return data if isinstance(data, bytes) else bytes(contiguous(data))
