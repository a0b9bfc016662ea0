"""The memory of an array that was passed to a program, which may keep it longer than the array lives."""

from __future__ import annotations

from ...hal_vulkan import Buffer


class SharedBuffer(Buffer):
    """An array's buffer as programs get it. The memory is freed with the last reference to this, not with the array."""

    __slots__ = ("_origin",)

    def __init__(self, buffer: Buffer) -> None:
        super().__init__(
            buffer.device,
            buffer._allocation,
            buffer.offset,
            buffer.size,
            buffer.memory_type,
            buffer.usage,
            buffer.access,
        )
        self._origin = buffer

    def close(self) -> None:
        """Closes the array's buffer with it; idempotent."""
        self._closed = True
        self._origin.close()

    def __del__(self) -> None:
        # The garbage collector may run under any lock, so the buffer is closed later, in the device's next call.
        if not self._closed and not self._origin.is_closed:
            self.device.dropped.append(self)
