"""Buffers: ranges of device memory with a usage, a memory type and access bits.

Calling sequence: ``Device.create_buffer`` → ``map``/``write``/``read`` or use on a queue → ``close``. A
buffer closed while a queue uses it is kept by the device until that work has retired.

Thread rule: a buffer may be used from any thread; the caller orders accesses to its contents.
"""

from __future__ import annotations

import struct
from typing import Final, Self

from ...hal.buffer import Buffer as AnyBuffer
from ...hal.memory import BufferUsage, MemoryAccess, MemoryTypeFlags, check_size, contiguous
from ...status import FailedPreconditionError, InvalidArgumentError
from ..instance.logical_device import LogicalDevice, guarded
from ..vulkan.functions import WHOLE_SIZE, CData, ffi, new
from .allocator import Allocation, Allocator

# The data that update templates read for a buffer: a VkDescriptorBufferInfo, and the block's serial, which makes it the
# key of the range in caches.
_DESCRIPTOR = struct.Struct("=QQQQ")
_SIZE = struct.Struct("=Q")
# Bytes copied at a time. A copy holds the interpreter's lock, and so stops every other thread, including an event
# loop's.
_PIECE: Final = 2 << 20


class Buffer(AnyBuffer):
    """``size`` bytes at ``offset`` of a memory block's VkBuffer.

    Attributes:
        handle: the block's VkBuffer; ``offset`` counts from its start.
        block_serial: the number of the block, never used again: a key for caches.
    """

    device: LogicalDevice
    _closed = True  # until construction is complete: finalisers also run after an interrupt during it

    def __init__(
        self,
        device: LogicalDevice,
        allocation: Allocation,
        offset: int,
        size: int,
        memory_type: MemoryTypeFlags,
        usage: BufferUsage,
        access: MemoryAccess,
        parent: Buffer | None = None,
    ) -> None:
        block = allocation.block
        self.device = device
        self._allocation = allocation
        self.imported: bool = block.kind == "imported"
        # With staging, memory is only mapped if it was requested as host-visible, so that the path of discrete GPUs can
        # be tested on any device.
        hidden = device.plan.staging and not memory_type & MemoryTypeFlags.HOST_VISIBLE
        self._pointer: CData | None = None if hidden or block.mapped is None else block.mapped + offset
        self.handle: CData = block.buffer
        self.block_serial: int = block.serial
        self.offset = offset
        self.size = size
        self.descriptor: bytes = _DESCRIPTOR.pack(block.handle_value, offset, size, block.serial)
        limits = device.bind_limits
        self.bindable: bool = not offset & limits[0] and 0 < size <= limits[1]
        self.memory_type = memory_type
        self.usage = usage
        self.access = access
        self.parent: Buffer | None = parent
        self._closed = False

    @classmethod
    def create(
        cls,
        allocator: Allocator,
        size: int,
        *,
        memory_type: MemoryTypeFlags,
        usage: BufferUsage = BufferUsage.DEFAULT,
        access: MemoryAccess = MemoryAccess.ALL,
    ) -> Buffer:
        """Returns a buffer in new memory; see ``Device.create_buffer``."""
        check_size(size)
        allocator.device.allocation_count += 1
        allocation = allocator.allocate(size, memory_type)
        return cls(allocator.device, allocation, allocation.offset, size, memory_type, usage, access)

    @property
    def host_visible(self) -> bool:
        """Whether ``map``, ``read`` and ``write`` work without a copy on a queue."""
        return self._pointer is not None

    @property
    def device_address(self) -> int:
        """The GPU address of the first byte; 0 on devices without ``bufferDeviceAddress``."""
        address = self._allocation.block.device_address
        return address + self.offset if address else 0

    def word_descriptor(self) -> bytes:
        """Returns ``descriptor`` with the size rounded up to whole 32-bit words, still within the memory block."""
        most = self.device.profile.limits.max_storage_buffer_range
        return self.descriptor[:16] + _SIZE.pack(min((self.size + 3) & ~3, most)) + self.descriptor[24:]

    def texel_view(self, vk_format: int) -> tuple[CData, int]:
        """Returns the VkBufferView of its bytes as texels of a VkFormat, and its serial.

        It is destroyed with the memory.
        """
        allocation = self._allocation
        return allocation.allocator.texel_view(allocation, self.offset, self.size, vk_format)

    def subspan(self, offset: int, size: int | None = None) -> Buffer:
        """Returns a buffer over bytes ``[offset, offset + size)`` of this one; ``None`` means up to its end.

        It shares this buffer's memory and keeps it alive; closing it leaves this buffer open.

        Raises:
            OutOfRangeError: the range goes past this buffer's end.
        """
        size = self.check_range(offset, size, "subspan")
        return Buffer(
            self.device,
            self._allocation,
            self.offset + offset,
            size,
            self.memory_type,
            self.usage,
            self.access,
            parent=self,
        )

    def widened(self, before: int) -> Buffer:
        """Returns a buffer that also has the bytes before this one, which are in the same allocation."""
        return Buffer(
            self.device,
            self._allocation,
            self.offset - before,
            self.size + before,
            self.memory_type,
            self.usage,
            self.access,
            parent=self,
        )

    @guarded
    def map(self, offset: int = 0, size: int | None = None) -> memoryview:
        """Returns a writable view in place of the bytes, for host-visible memory.

        The view, and a NumPy array made of it, keeps the memory alive, even after ``close``. Non-coherent memory needs
        ``invalidate`` before reading and ``flush`` after writing. Reading memory that is not host-cached is slow;
        ``read`` copies it out once.

        Raises:
            OutOfRangeError: the range goes past the end.
            FailedPreconditionError: the memory is not host-visible.
            PermissionDeniedError: the buffer's access bits allow no writing.
        """
        size = self.check_range(offset, size, "map")
        self._pointer_for("map")
        self._check_writable()
        allocation = self._allocation
        return allocation.allocator.export(allocation, self.offset - allocation.offset + offset, size)

    def write(self, data: bytes | bytearray | memoryview, offset: int = 0) -> None:
        """Copies bytes of a C-contiguous buffer in from the host and makes them visible to the device.

        Raises:
            OutOfRangeError: the data goes past the end.
            FailedPreconditionError: the memory is not host-visible; copy on a queue instead.
            PermissionDeniedError: the buffer's access bits allow no writing.
        """
        if not isinstance(data, (bytes, bytearray)):
            data = contiguous(data)
        size = data.nbytes if isinstance(data, memoryview) else len(data)
        with self.device.guard.lock:  # keeps the memory; check_range checks the device
            self.check_range(offset, size, "write")
            self._check_writable()
            if not size:
                return
            if size <= _PIECE:
                ffi.memmove(self._pointer_for("write") + offset, data, size)
            else:
                # Released here: Python 3.11 and 3.12 crash when they collect a view that a from_buffer still uses.
                with ffi.from_buffer(data) as source:
                    for at in range(0, size, _PIECE):
                        ffi.memmove(self._pointer_for("write") + offset + at, source + at, min(_PIECE, size - at))
            if not self._allocation.block.coherent:
                self.flush(offset, size)

    def read(self, offset: int = 0, size: int | None = None) -> bytes:
        """Copies bytes out to the host.

        Raises:
            OutOfRangeError: the range goes past the end.
            FailedPreconditionError: the memory is not host-visible; copy on a queue instead.
        """
        with self.device.guard.lock:  # see write()
            size = self.check_range(offset, size, "read")
            if not self._allocation.block.coherent:
                self.invalidate(offset, size)
            return bytes(ffi.buffer(self._pointer_for("read") + offset, size))

    def read_into(self, target: memoryview, offset: int = 0) -> None:
        """Copies ``target.nbytes`` bytes out to the host, into writable C-contiguous memory."""
        target = contiguous(target)
        if target.readonly:
            raise InvalidArgumentError("read_into writes to its target; it was given read-only memory")
        with self.device.guard.lock:  # see write()
            size = self.check_range(offset, target.nbytes, "read_into")
            if not size:
                return
            if not self._allocation.block.coherent:
                self.invalidate(offset, size)
            if size <= _PIECE:
                ffi.memmove(target, self._pointer_for("read_into") + offset, size)
                return
            with ffi.from_buffer(target, require_writable=True) as out:  # see write()
                for at in range(0, size, _PIECE):
                    ffi.memmove(out + at, self._pointer_for("read_into") + offset + at, min(_PIECE, size - at))

    def shared(self) -> SharedBuffer:
        """Returns this buffer for programs; see ``SharedBuffer``."""
        return SharedBuffer(self)

    def moved(self, by: str) -> Self:
        self.check_range(0, self.size, "moved")
        new = type(self).__new__(type(self))
        new.__dict__.update(self.__dict__, is_claimed=False)
        self._give_up(by)
        return new

    def _give_up(self, by: str) -> None:
        """Closes it without freeing its memory."""
        self._closed = True
        self.moved_by = by
        self.device.note_closed()

    def flush(self, offset: int = 0, size: int | None = None) -> None:
        """Makes host writes visible to the device; does nothing on coherent memory."""
        self._sync_range(offset, size, "flush")

    def invalidate(self, offset: int = 0, size: int | None = None) -> None:
        """Makes device writes visible to the host; does nothing on coherent memory."""
        self._sync_range(offset, size, "invalidate")

    @guarded
    def _sync_range(self, offset: int, size: int | None, action: str) -> None:
        size = self.check_range(offset, size, action)
        self._pointer_for(action)
        block = self._allocation.block
        if block.coherent or not size:
            return
        atom = self.device.profile.limits.non_coherent_atom_size
        start = (self.offset + offset) // atom * atom
        end = -(-(self.offset + offset + size) // atom) * atom
        range_ = new(
            "VkMappedMemoryRange",
            memory=block.memory,
            offset=start,
            size=WHOLE_SIZE if end >= block.size else end - start,
        )
        fn = self.device.fn
        call = fn.vkFlushMappedMemoryRanges if action == "flush" else fn.vkInvalidateMappedMemoryRanges
        self.device.check(call(self.device.handle, 1, range_), f"{action} of {size} bytes")

    def _pointer_for(self, action: str) -> CData:
        if self._pointer is None:
            raise FailedPreconditionError(
                f"cannot {action}: this buffer's memory ({self.memory_type!r}) is not host-visible. Allocate it with "
                "MemoryTypeFlags.HOST_VISIBLE, or copy it on a queue"
            )
        return self._pointer

    def close(self) -> None:
        """Gives the memory back, once queues that use it have retired; idempotent."""
        if self._closed:
            return
        self._closed = True
        if self.parent is None:
            self._allocation.allocator.retire(self._allocation)
        else:
            self.device.note_closed()

    def __repr__(self) -> str:
        state = "closed " if self.is_closed else ""
        return f"<{state}Buffer {self.size} bytes at {self.offset} of block {self.block_serial}, {self.memory_type!r}>"


class SharedBuffer(Buffer):
    """An array's buffer for programs, which may outlive the array.

    The memory is freed with the last reference to this object, not with the array.
    """

    __slots__ = ("_origin",)

    def __init__(self, buffer: Buffer) -> None:
        self._origin = buffer
        super().__init__(
            buffer.device,
            buffer._allocation,
            buffer.offset,
            buffer.size,
            buffer.memory_type,
            buffer.usage,
            buffer.access,
        )

    def moved(self, by: str) -> Self:
        origin = self._origin.moved(by)
        new = super().moved(by)
        new._origin = origin
        return new

    def close(self) -> None:
        """Closes the array's buffer as well; idempotent."""
        self._closed = True
        self._origin.close()

    def __del__(self) -> None:
        # The garbage collector may run under any lock, so the buffer is closed later, in the device's next call.
        if not self._closed and not self._origin.is_closed:
            self.device.dropped.append(self)
