"""Files of compiled modules: host bytes that queues read and write.

Thread rule: any thread; immutable except for the bytes of a writable file.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....hal_vulkan import Buffer, MemoryTypeFlags
from ....status import OutOfRangeError, PermissionDeniedError
from .buffer import check_buffer
from .command_buffer import HalCommandBuffer
from .device_context import DeviceContext
from .fence import AnyFence, HalFence, failure_of, is_reached, signal_after

_STAGING = MemoryTypeFlags.HOST_LOCAL | MemoryTypeFlags.DEVICE_VISIBLE


class HalFile:
    """Bytes in host memory; what ``!hal.file`` refers to.

    Attributes:
        view: the bytes, in place; it keeps their owner alive.
    """

    __slots__ = ("__weakref__", "view")

    def __init__(self, view: memoryview) -> None:
        self.view = view

    def range(self, offset: int, size: int, what: str) -> memoryview:
        """The bytes ``[offset, offset + size)``.

        Raises:
            OutOfRangeError: they do not lie within the file.
        """
        if offset < 0 or size < 0 or offset + size > self.view.nbytes:
            raise OutOfRangeError(
                f"{what}: bytes [{offset}, {offset + size}) do not lie within the file of {self.view.nbytes} bytes"
            )
        return self.view[offset : offset + size]

    def read(
        self,
        context: DeviceContext,
        wait: AnyFence | None,
        target_fence: AnyFence | None,
        offset: int,
        target: Buffer,
        target_offset: int,
        size: int,
    ) -> None:
        """Reads bytes into a buffer once ``wait`` is reached, then signals.

        Host-visible memory is written in place if there is nothing to wait for; else the bytes are staged now.

        Raises:
            OutOfRangeError: a range outside the file or the buffer.
        """
        data = self.range(offset, size, "queue.read")
        _check_range(target, target_offset, size, "queue.read")
        if failure_of(wait) is not None or not size:
            signal_after(wait, target_fence, None)
        elif target.host_visible and target.device is context.device and is_reached(wait):
            target.write(data, target_offset)
            signal_after(None, target_fence, None)
        else:
            # Freed with the commands that use it, which may have to wait for another device.
            staged = context.allocator.adopt(context.device.create_buffer(size, memory_type=_STAGING))
            staged.write(data)
            context.once(
                "read",
                lambda commands: commands.copy(staged, target, size, target_offset=target_offset),
                wait,
                target_fence,
            )

    def write(
        self,
        context: DeviceContext,
        wait: AnyFence | None,
        target_fence: AnyFence | None,
        source: Buffer,
        source_offset: int,
        offset: int,
        size: int,
    ) -> None:
        """Writes bytes of a buffer to the file once ``wait`` is reached, then signals.

        Raises:
            PermissionDeniedError: the file is read-only.
            OutOfRangeError: a range outside the file or the buffer.
        """
        data = self.range(offset, size, "queue.write")
        if data.readonly:
            raise PermissionDeniedError("queue.write: the file is read-only: it is a view of read-only memory")
        _check_range(source, source_offset, size, "queue.write")
        read_back(context, wait, target_fence, source, ((source_offset, data),))

    def __repr__(self) -> str:
        return f"<HalFile of {self.view.nbytes} bytes{', read-only' if self.view.readonly else ''}>"


def read_back(
    context: DeviceContext,
    wait: AnyFence | None,
    target: AnyFence | None,
    source: Buffer,
    moves: Sequence[tuple[int, memoryview]],
) -> None:
    """Reads ranges of a buffer into host memory once ``wait`` is reached, then signals ``target``.

    Args:
        moves: for each range its offset in ``source`` and where its bytes go.
    """
    size = sum(data.nbytes for _, data in moves)
    if failure_of(wait) is not None or not size:
        signal_after(wait, target, None)
        return
    if source.host_visible:
        signal_after(wait, target, lambda: _read_all(source, moves))
        return
    # Freed with its last user: the commands or, once they have run, the reading.
    staged = context.allocator.adopt(
        context.device.create_buffer(size, memory_type=_STAGING | MemoryTypeFlags.HOST_CACHED)
    )
    placed = []
    position = 0
    for _, data in moves:
        placed.append((position, data))
        position += data.nbytes

    def record(commands: HalCommandBuffer) -> None:
        for (offset, data), (start, _) in zip(moves, placed, strict=True):
            commands.copy(source, staged, data.nbytes, source_offset=offset, target_offset=start)

    copied = HalFence(context.device)
    context.once("read back", record, wait, copied)
    signal_after(copied, target, lambda: _read_all(staged, placed))


def _check_range(buffer: Buffer, offset: int, size: int, what: str) -> None:
    if offset < 0 or size < 0 or offset + size > check_buffer(buffer, what).size:
        raise OutOfRangeError(
            f"{what}: bytes [{offset}, {offset + size}) do not lie within the buffer of {buffer.size} bytes"
        )


def _read_all(buffer: Buffer, moves: Sequence[tuple[int, memoryview]]) -> None:
    for offset, target in moves:
        buffer.read_into(target, offset)


def read_bytes(context: DeviceContext, buffer: Buffer, offset: int, size: int) -> bytes:
    """Reads bytes of a buffer now; may block for a copy. The program has waited for their writer."""
    if buffer.host_visible:
        return buffer.read(offset, size)
    _check_range(buffer, offset, size, "load")
    if not size:
        return b""
    with context.device.create_buffer(size, memory_type=_STAGING | MemoryTypeFlags.HOST_CACHED) as staged:
        done = HalFence(context.device)
        context.once("load", lambda commands: commands.copy(buffer, staged, size, source_offset=offset), None, done)
        done.wait_until()
        return staged.read()


def write_bytes(context: DeviceContext, buffer: Buffer, offset: int, data: bytes) -> None:
    """Writes bytes of a buffer now; may block for a copy. The program has waited for their users."""
    if buffer.host_visible:
        buffer.write(data, offset)
        return
    done = HalFence(context.device)
    context.once("store", lambda commands: commands.update(buffer, data, offset), None, done)
    done.wait_until()
