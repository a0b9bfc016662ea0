"""Buffers in host memory."""

from __future__ import annotations

import itertools
import struct
from typing import Any, Final

import numpy as np

from ..hal.buffer import Buffer as AnyBuffer
from ..hal.memory import BufferUsage, MemoryAccess, MemoryTypeFlags, check_size, contiguous
from ..status import InvalidArgumentError, ResourceExhaustedError
from .layout import Memory
from .logical_device import LogicalDevice

_RANGE: Final = struct.Struct("=QQQQ")  # as long as on Vulkan, as caches do not distinguish devices
HOST: Final = MemoryTypeFlags.DEVICE_LOCAL | MemoryTypeFlags.HOST_LOCAL | MemoryTypeFlags.HOST_CACHED
"""The flags of all memory."""
USAGE: Final = BufferUsage.DEFAULT | BufferUsage.DISPATCH_UNIFORM_READ | BufferUsage.DISPATCH_INDIRECT_PARAMETERS
"""The permitted uses of users' buffers."""

_serials = itertools.count(1)
_ALIGNMENT: Final = 64  # with which JAX imports memory by DLPack without a copy


class Buffer(AnyBuffer):
    """Bytes of a NumPy array, which its views keep alive.

    Attributes:
        memory: the bytes.
    """

    bindable = True
    host_visible = True
    device: LogicalDevice

    def __init__(
        self,
        device: LogicalDevice,
        memory: Memory,
        memory_type: MemoryTypeFlags,
        usage: BufferUsage,
        access: MemoryAccess,
        parent: Buffer | None = None,
        offset: int = 0,
        origin: Buffer | None = None,
        imported: bool = False,
    ) -> None:
        self.device = device
        self.memory = memory
        self.size: int = memory.nbytes
        self.offset = offset
        self.memory_type = memory_type
        self.usage = usage
        self.access = access
        self.parent: Buffer | None = parent
        self._origin = origin
        self._closed = False
        self.imported: bool = imported or (parent is not None and parent.imported)
        source = parent or origin
        self.serial: int = next(_serials) if source is None else source.serial
        self.descriptor: bytes = _RANGE.pack(self.serial, offset, self.size, self.serial)

    @classmethod
    def create(
        cls,
        device: LogicalDevice,
        size: int,
        memory_type: MemoryTypeFlags = HOST,
        usage: BufferUsage = USAGE,
        access: MemoryAccess = MemoryAccess.ALL,
    ) -> Buffer:
        """Returns a buffer in new memory; ResourceExhaustedError if there is none."""
        device.check_usable()
        check_size(size)
        device.allocation_count += 1
        try:
            whole = np.empty(size + _ALIGNMENT - 1, np.uint8)
        except (MemoryError, ValueError, OverflowError):
            raise ResourceExhaustedError(f"no memory for {size:,} bytes on the reference device") from None
        start = -whole.__array_interface__["data"][0] % _ALIGNMENT
        return cls(device, whole[start : start + size], memory_type, usage, access)

    def _derived(self, memory: Memory, offset: int, **options: Any) -> Buffer:
        return Buffer(self.device, memory, self.memory_type, self.usage, self.access, offset=offset, **options)

    def subspan(self, offset: int, size: int | None = None) -> Buffer:
        size = self.check_range(offset, size, "subspan")
        return self._derived(self.memory[offset : offset + size], self.offset + offset, parent=self)

    def shared(self) -> Buffer:
        return self._derived(self.memory, self.offset, origin=self, imported=self.imported)

    def moved(self, by: str) -> Buffer:
        self.check_range(0, self.size, "moved")
        buffer: Buffer | None = self
        while buffer is not None:
            buffer._closed = True
            buffer.moved_by = by
            buffer = buffer._origin
        new = self._derived(self.memory, self.offset, origin=self, imported=self.imported)
        new.owners = self.owners
        return new

    def map(self, offset: int = 0, size: int | None = None) -> memoryview:
        size = self.check_range(offset, size, "map")
        self._check_writable()
        return self.memory[offset : offset + size].data

    def write(self, data: bytes | bytearray | memoryview, offset: int = 0) -> None:
        source = contiguous(data)
        self.check_range(offset, source.nbytes, "write")
        self._check_writable()
        self.memory[offset : offset + source.nbytes] = np.frombuffer(source, np.uint8)

    def read(self, offset: int = 0, size: int | None = None) -> bytes:
        size = self.check_range(offset, size, "read")
        return self.memory[offset : offset + size].tobytes()

    def read_into(self, target: memoryview, offset: int = 0) -> None:
        target = contiguous(target)
        if target.readonly:
            raise InvalidArgumentError("read_into writes to its target; it was given read-only memory")
        size = self.check_range(offset, target.nbytes, "read_into")
        target[:] = self.memory[offset : offset + size].data

    def flush(self, offset: int = 0, size: int | None = None) -> None:
        self.check_range(offset, size, "flush")

    def invalidate(self, offset: int = 0, size: int | None = None) -> None:
        self.check_range(offset, size, "invalidate")

    def close(self) -> None:
        """Refuses further use; idempotent. The memory is freed with its last view."""
        self._closed = True
        if self._origin is not None:
            self._origin.close()

    def __repr__(self) -> str:
        return f"<{'closed ' if self.is_closed else ''}Buffer {self.size} bytes at {self.offset} of {self.serial}>"
