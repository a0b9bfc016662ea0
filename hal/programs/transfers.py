"""Operations that programs put on a queue: recorded commands, and single fills, updates and copies.

Each takes a wait fence and a signal fence (created if missing), and returns the signal fence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...status import InvalidArgumentError, PermissionDeniedError
from ..program import ProgramCommandBuffer, check_buffer, subspan
from .checks import Ref, check_range, require
from .device_context import DeviceContext, Table
from .fence import AnyFence, HalFence, OptionalFence
from .file import HalFile, read_back, read_bytes, upload, write_bytes


def queue_execute(
    context: DeviceContext,
    commands: Ref,
    bindings: Table = None,
    *,
    wait: OptionalFence = None,
    signal: OptionalFence = None,
) -> AnyFence:
    """Runs a command buffer with a binding table: (buffer, offset, length) for each slot, -1 for up to the end."""
    if signal is None:
        signal = HalFence(context.device)
    if not isinstance(commands, ProgramCommandBuffer):
        require(commands, ProgramCommandBuffer, "command_buffer")
    context.submit((commands,), wait, signal, bindings if commands.binding_capacity else None)
    return signal


def queue_execute_all(
    context: DeviceContext, commands: Sequence[Ref], *, wait: OptionalFence = None, signal: OptionalFence = None
) -> AnyFence:
    """Runs command buffers in order."""
    if signal is None:
        signal = HalFence(context.device)
    command_buffers = [require(reference, ProgramCommandBuffer, "command_buffer") for reference in commands]
    context.submit(command_buffers, wait, signal)
    return signal


def queue_fill(
    context: DeviceContext,
    buffer: Ref,
    offset: int,
    size: int,
    pattern: bytes,
    *,
    wait: OptionalFence = None,
    signal: OptionalFence = None,
) -> AnyFence:
    target = subspan(check_buffer(buffer, "queue.fill"), offset, size)
    return _once(context.beside(target), "fill", lambda commands: commands.fill(target, pattern), wait, signal)


def queue_update(
    context: DeviceContext,
    source: memoryview,
    start: int,
    buffer: Ref,
    offset: int,
    size: int,
    *,
    wait: OptionalFence = None,
    signal: OptionalFence = None,
) -> AnyFence:
    """Writes host bytes, captured immediately."""
    data = HalFile(source).range(start, size, "queue.update").tobytes()
    target = check_buffer(buffer, "queue.update")
    return _once(context.beside(target), "update", lambda commands: commands.update(target, data, offset), wait, signal)


def queue_copy(
    context: DeviceContext,
    source: Ref,
    start: int,
    buffer: Ref,
    offset: int,
    size: int,
    *,
    wait: OptionalFence = None,
    signal: OptionalFence = None,
) -> AnyFence:
    """Copies a range."""
    here = check_buffer(source, "queue.copy source")
    there = check_buffer(buffer, "queue.copy target")

    def record(commands: ProgramCommandBuffer) -> None:
        commands.copy(
            commands.reference(0, here, start, size, written=False),
            commands.reference(0, there, offset, size),
            None if size == -1 else size,
        )

    return _once(context, "copy", record, wait, signal)


def queue_read(
    context: DeviceContext,
    file: Ref,
    start: int,
    buffer: Ref,
    offset: int,
    size: int,
    *,
    wait: OptionalFence = None,
    signal: OptionalFence = None,
) -> AnyFence:
    if signal is None:
        signal = HalFence(context.device)
    target = check_buffer(buffer, "queue.read")
    data = require(file, HalFile, "file").range(start, size, "queue.read")
    upload(context.beside(target), wait, signal, data, target, offset)
    return signal


def queue_write(
    context: DeviceContext,
    buffer: Ref,
    offset: int,
    file: Ref,
    start: int,
    size: int,
    *,
    wait: OptionalFence = None,
    signal: OptionalFence = None,
) -> AnyFence:
    if signal is None:
        signal = HalFence(context.device)
    source = check_buffer(buffer, "queue.write")
    data = require(file, HalFile, "file").range(start, size, "queue.write")
    if data.readonly:
        raise PermissionDeniedError("queue.write: the file is read-only: it is a view of read-only memory")
    check_range(offset, size, source.size, "queue.write")
    read_back(context.beside(source), wait, signal, source, ((offset, data),))
    return signal


def _once(
    context: DeviceContext,
    name: str,
    record: Callable[[ProgramCommandBuffer], None],
    wait: OptionalFence,
    signal: OptionalFence,
) -> AnyFence:
    if signal is None:
        signal = HalFence(context.device)
    context.once(name, record, wait, signal)
    return signal


def load_word(context: DeviceContext, buffer: Ref, offset: int, size: int) -> int:
    """Returns up to four bytes of a buffer as a signed integer of 32 bits, zero-extended; may block for a copy."""
    source = check_buffer(buffer, "buffer.load")
    _check_word(size, "load")
    value = int.from_bytes(read_bytes(context.beside(source), source, offset, size), "little")
    return value - (1 << 32) if value >= 1 << 31 else value


def store_word(context: DeviceContext, value: int, buffer: Ref, offset: int, size: int) -> None:
    """Writes the low ``size`` bytes of a value; may block for a copy."""
    target = check_buffer(buffer, "buffer.store")
    _check_word(size, "store")
    write_bytes(context.beside(target), target, offset, (value & 0xFFFFFFFF).to_bytes(4, "little")[:size])


def _check_word(size: int, name: str) -> None:
    if not 0 <= size <= 4:
        raise InvalidArgumentError(f"buffer.{name} takes 0 to 4 bytes, got {size}")
