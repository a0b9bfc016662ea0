"""Fills, updates and copies of a command buffer, at any alignment."""

from __future__ import annotations

from typing import Final

from ...status import InvalidArgumentError, PermissionDeniedError
from ..memory.buffer import Buffer, as_bytes
from ..memory.memory_type import BufferUsage, MemoryAccess
from ..vulkan.functions import ffi
from .dispatch_recorder import DispatchRecorder, check_usage
from .recorder import BindingSlot

_MAX_UPDATE_BYTES: Final = 65536


class TransferRecorder(DispatchRecorder):
    """A recorder of transfers. A kernel fills ranges that are not whole words."""

    def fill(self, target: Buffer | BindingSlot, pattern: bytes, offset: int = 0, size: int | None = None) -> None:
        """Fills bytes ``[offset, offset + size)`` with a pattern of 1, 2 or 4 bytes that starts at ``offset``.

        Offset and size need no alignment; ``size`` must be a multiple of the pattern's length.
        """
        pattern = as_bytes(pattern)
        self._check_recording()
        if self._noting:
            self._check_slot(target)
            self._note(TransferRecorder.fill, target, pattern, offset, size)
            return
        target = self._own(target, "fill")
        size = target.check_range(offset, size, "fill")
        _writable(target, "fill")
        if len(pattern) not in (1, 2, 4):
            raise InvalidArgumentError(f"a fill pattern has 1, 2 or 4 bytes, got {len(pattern)}")
        if size % len(pattern):
            raise InvalidArgumentError(f"{size} bytes are not a multiple of the {len(pattern)}-byte pattern")
        if not size:
            return
        assert self._recording is not None
        self._recording.resources.append(target)
        start = target.offset + offset
        word = int.from_bytes(pattern * (4 // len(pattern)), "little")
        if start % 4 == 0 and size % 4 == 0:
            self.device.fn.vkCmdFillBuffer(self._handle, target.handle, start, size, word)
            return
        for pipeline, window, groups, push in self.context.builtins.fill(self.family, target, offset, size, word):
            self.dispatch(pipeline, [window], groups, push)

    def update(self, target: Buffer | BindingSlot, data: bytes, offset: int = 0) -> None:
        """Writes bytes, captured now, at any ``offset``. For small data (about 64 KiB)."""
        data = as_bytes(data)
        self._check_recording()
        if self._noting:
            self._check_slot(target)
            self._note(TransferRecorder.update, target, data, offset)
            return
        target = self._own(target, "update")
        target.check_range(offset, len(data), "update")
        _writable(target, "update")
        if not data:
            return
        assert self._recording is not None
        self._recording.resources.append(target)
        start = target.offset + offset
        if start % 4 == 0 and len(data) % 4 == 0:
            for at in range(0, len(data), _MAX_UPDATE_BYTES):
                piece = data[at : at + _MAX_UPDATE_BYTES]
                self.device.fn.vkCmdUpdateBuffer(
                    self._handle, target.handle, start + at, len(piece), ffi.from_buffer(piece)
                )
            return
        # The API updates whole words only; copies have no such rule.
        self._copy(self._stage(data), 0, target, offset, len(data))

    def copy(
        self,
        source: Buffer | BindingSlot,
        target: Buffer | BindingSlot,
        size: int | None = None,
        *,
        source_offset: int = 0,
        target_offset: int = 0,
    ) -> None:
        """Copies bytes at any alignment, by default to the end of the source; the ranges must not overlap."""
        self._check_recording()
        if self._noting:
            self._check_slot(source)
            self._check_slot(target)
            self._note(_copy_positional, source, target, size, source_offset, target_offset)
            return
        source, target = self._own(source, "copy source"), self._own(target, "copy target")
        size = source.check_range(source_offset, size, "copy source")
        target.check_range(target_offset, size, "copy target")
        check_usage(source, BufferUsage.TRANSFER_SOURCE, "copy source")
        _writable(target, "copy target")
        if source.block_serial == target.block_serial and size:
            first, second = source.offset + source_offset, target.offset + target_offset
            if abs(first - second) < size:
                raise InvalidArgumentError(
                    f"copy of {size} bytes: source and target overlap by {size - abs(first - second)} bytes"
                )
        if size:
            assert self._recording is not None
            self._recording.resources += (source, target)
            self._copy(source, source_offset, target, target_offset, size)

    def _copy(self, source: Buffer, source_offset: int, target: Buffer, target_offset: int, size: int) -> None:
        region = ffi.new("VkBufferCopy *")
        region.srcOffset = source.offset + source_offset
        region.dstOffset = target.offset + target_offset
        region.size = size
        self.device.fn.vkCmdCopyBuffer(self._handle, source.handle, target.handle, 1, region)


def _copy_positional(
    commands: TransferRecorder, source: Buffer, target: Buffer, size: int | None, source_offset: int, target_offset: int
) -> None:
    commands.copy(source, target, size, source_offset=source_offset, target_offset=target_offset)


def _writable(buffer: Buffer, what: str) -> None:
    check_usage(buffer, BufferUsage.TRANSFER_TARGET, what)
    if not buffer.access & MemoryAccess.WRITE:
        raise PermissionDeniedError(f"{what}: the buffer may only be read: its access bits have no WRITE")
