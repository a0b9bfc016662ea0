"""Exports of the ``hal`` module about buffers."""

from __future__ import annotations

import struct

from ....hal_vulkan import Buffer, BufferUsage, MemoryTypeFlags
from ....status import InvalidArgumentError, PermissionDeniedError
from ....vm.native.module import export
from .buffer import HalBuffer, check_buffer, root_of, subspan
from .device_table import DeviceTable
from .file import read_bytes, write_bytes
from .reference import Ref, text_of

# IntFlag's operators are Python functions; this is int's.
_and = int.__and__


class BufferExports(DeviceTable):
    """``hal.buffer.*``."""

    @export("buffer.assert", "0rrrIii_v")
    def buffer_assert(
        self, buffer: Ref, message: Ref, allocator: Ref, length: int, memory_types: int, usage: int
    ) -> None:
        """Raises unless a buffer has the length, memory type and usage that a program was compiled for."""
        try:
            if (
                buffer.size >= length
                and _and(buffer.memory_type, memory_types) == memory_types
                and _and(buffer.usage, usage) == usage
                and not buffer._closed
                and buffer.parent is None
            ):
                return
        except (AttributeError, TypeError):
            pass
        name = text_of(message, "message")
        found = check_buffer(buffer, name)
        if found.size < length:
            raise InvalidArgumentError(f"{name} buffer byte length {found.size} less than expected minimum {length}")
        if int(found.memory_type) & memory_types != memory_types:
            raise PermissionDeniedError(
                f"{name} buffer memory type is not compatible; buffer has {found.memory_type!r}, operation requires "
                f"{MemoryTypeFlags(memory_types)!r}"
            )
        if int(found.usage) & usage != usage:
            raise PermissionDeniedError(
                f"{name} requested usage was not specified when the buffer was allocated; buffer allows "
                f"{found.usage!r}, operation requires {BufferUsage(usage)!r}"
            )

    @export("buffer.length", "0r_I")
    def buffer_length(self, buffer: Ref) -> int:
        """Bytes."""
        return check_buffer(buffer, "buffer.length").size

    @export("buffer.subspan", "0rII_r")
    def buffer_subspan(self, buffer: Ref, offset: int, size: int) -> Buffer:
        """A part of a buffer."""
        return subspan(check_buffer(buffer, "buffer.subspan"), offset, size)

    @export("buffer.load", "0rIi_i")
    def buffer_load(self, buffer: Ref, offset: int, size: int) -> int:
        """Up to four bytes as an integer, zero-extended."""
        found = check_buffer(buffer, "buffer.load")
        if not 0 <= size <= 4:
            raise InvalidArgumentError(f"buffer.load takes 0 to 4 bytes, got {size}")
        value = int.from_bytes(read_bytes(self.device_context(found.device), found, offset, size), "little")
        return value - (1 << 32) if value >= 1 << 31 else value

    @export("buffer.store", "0irIi_v")
    def buffer_store(self, value: int, buffer: Ref, offset: int, size: int) -> None:
        """Writes the low ``size`` bytes of a value."""
        found = check_buffer(buffer, "buffer.store")
        if not 0 <= size <= 4:
            raise InvalidArgumentError(f"buffer.store takes 0 to 4 bytes, got {size}")
        write_bytes(self.device_context(found.device), found, offset, struct.pack("<i", value)[:size])

    @export("buffer.allocation.preserve", "0r_v")
    def buffer_allocation_preserve(self, buffer: Ref) -> None:
        """Adds an owner."""
        root = root_of(check_buffer(buffer, "buffer.allocation.preserve"))
        if isinstance(root, HalBuffer):
            root.owners += 1

    @export("buffer.allocation.discard", "0r_i")
    def buffer_allocation_discard(self, buffer: Ref) -> int:
        """Removes an owner; 1 if it was the last. The caller keeps its own buffers."""
        root = root_of(check_buffer(buffer, "buffer.allocation.discard"))
        if not isinstance(root, HalBuffer):
            return 0
        root.owners -= 1
        return int(root.owners == 0)

    @export("buffer.allocation.is_terminal", "0r_i")
    def buffer_allocation_is_terminal(self, buffer: Ref) -> int:
        """Whether there is one owner."""
        root = root_of(check_buffer(buffer, "buffer.allocation.is_terminal"))
        return int(isinstance(root, HalBuffer) and root.owners == 1)
