"""Files of compiled modules: host bytes that queues read and write.

Thread rule: any thread; immutable except for the bytes of a writable file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...status import InvalidArgumentError, PermissionDeniedError
from ..buffer import Buffer
from ..device import Device
from ..memory import BufferUsage, MemoryAccess, MemoryTypeFlags
from ..program import ProgramAllocator, ProgramCommandBuffer
from .checks import check_range
from .device_context import DeviceContext
from .fence import OptionalFence, failure_of, signal_after

_STAGING: Final = MemoryTypeFlags.HOST_LOCAL | MemoryTypeFlags.DEVICE_VISIBLE
_IMMUTABLE: Final = int(BufferUsage.SHARING_IMMUTABLE)
_MIN_IMPORT: Final = 64 << 10


class HalFile:
    """Bytes in host memory, to which ``!hal.file`` refers.

    Attributes:
        view: the bytes, in place; it keeps their owner alive.
    """

    def __init__(self, view: memoryview) -> None:
        self.view = view

    def range(self, offset: int, size: int, where: str) -> memoryview:
        """Returns the bytes ``[offset, offset + size)``; OutOfRangeError if they do not lie within the file."""
        check_range(offset, size, self.view.nbytes, where, "file")
        return self.view[offset : offset + size]


def upload(
    context: DeviceContext, wait: OptionalFence, done: OptionalFence, data: memoryview, target: Buffer, offset: int
) -> None:
    """Writes bytes into a buffer once ``wait`` is reached, then signals ``done``.

    Host-visible memory is written in place if there is nothing to wait for; else the bytes are staged immediately.
    """
    check_range(offset, data.nbytes, target.size, "queue.read")
    if failure_of(wait) is not None or not data.nbytes:
        signal_after(wait, done)
    elif target.host_visible and target.device is context.device and (wait is None or wait.query()):
        target.write(data, offset)
        signal_after(None, done)
    else:
        # Freed with its commands, which may have to wait for another device.
        staged = context.allocator.adopt(context.device.create_buffer(data.nbytes, memory_type=_STAGING))
        staged.write(data)
        context.once("read", lambda commands: commands.copy(staged, target, target_offset=offset), wait, done)


def read_back(
    context: DeviceContext,
    wait: OptionalFence,
    target: OptionalFence,
    source: Buffer,
    moves: Sequence[tuple[int, memoryview]],
) -> None:
    """Reads ranges of a buffer into host memory once ``wait`` is reached, then signals ``target``.

    ``moves`` lists for each range its offset in ``source`` and the receiving memory.
    """
    size = sum(data.nbytes for _, data in moves)
    if failure_of(wait) is not None or not size:
        signal_after(wait, target)
        return
    if source.host_visible:
        signal_after(wait, target, lambda: _read_all(source, moves))
        return
    # Freed with its last user: the commands or, after these, the read.
    staged = context.allocator.adopt(
        context.device.create_buffer(size, memory_type=_STAGING | MemoryTypeFlags.HOST_CACHED)
    )
    placed = []
    position = 0
    for _, data in moves:
        placed.append((position, data))
        position += data.nbytes

    def record(commands: ProgramCommandBuffer) -> None:
        for (offset, data), (start, _) in zip(moves, placed, strict=True):
            commands.copy(source, staged, data.nbytes, source_offset=offset, target_offset=start)

    signal_after(context.run("read back", record, wait), target, lambda: _read_all(staged, placed))


def _read_all(buffer: Buffer, moves: Sequence[tuple[int, memoryview]]) -> None:
    for offset, target in moves:
        buffer.read_into(target, offset)


def read_bytes(context: DeviceContext, buffer: Buffer, offset: int, size: int) -> bytes:
    """Reads bytes of a buffer; may block for a copy. The program has waited for their writer."""
    if buffer.host_visible:
        return buffer.read(offset, size)
    check_range(offset, size, buffer.size, "load")
    if not size:
        return b""
    with context.device.create_buffer(size, memory_type=_STAGING | MemoryTypeFlags.HOST_CACHED) as staged:
        context.run("load", lambda commands: commands.copy(buffer, staged, size, source_offset=offset)).wait_until()
        return staged.read()


def write_bytes(context: DeviceContext, buffer: Buffer, offset: int, data: bytes) -> None:
    """Writes bytes of a buffer; may block for a copy. The program has waited for their users."""
    if buffer.host_visible:
        buffer.write(data, offset)
    else:
        context.run("store", lambda commands: commands.update(buffer, data, offset)).wait_until()


def import_memory(
    device: Device,
    allocator: ProgramAllocator,
    data: memoryview,
    offset: int,
    size: int,
    memory_types: int,
    usage: int,
    *,
    attempt: bool,
) -> Buffer | None:
    """Returns a buffer over host memory in place; else a copy, or ``None`` if ``attempt`` is set.

    ``memory_types`` and ``usage`` are bits as in modules; a ``size`` of -1 means all of ``data``.
    """
    if size == -1:
        size = data.nbytes
    if offset < 0 or size < 0 or offset + size > data.nbytes:
        raise InvalidArgumentError(
            f"allocator.import: bytes [{offset}, {offset + size}) do not lie within the {data.nbytes} bytes given"
        )
    if data.readonly and not usage & _IMMUTABLE:
        raise PermissionDeniedError("allocator.import: constant data can only be imported for constant use")
    # On a device with its own memory, kernels would read imported memory over the bus.
    if attempt and (device.staging or size < _MIN_IMPORT):
        return None
    buffer = device.import_buffer(data[offset : offset + size], copy=not attempt)
    if buffer is None:
        return None
    adopted = allocator.adopt(buffer)
    adopted.memory_type |= MemoryTypeFlags(memory_types)
    adopted.usage = BufferUsage(usage)
    if usage & _IMMUTABLE:
        adopted.access = MemoryAccess.READ
    return adopted
