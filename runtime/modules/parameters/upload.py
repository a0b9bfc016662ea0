"""Copies parameters into buffers: directly into host-visible memory, else on the queue.

Calling sequence: ``with ParameterUpload(…) as upload:`` → ``write`` and ``fill`` → ``finish`` once. One thread.

Bytes of mapped files are copied once, into the buffer. If the buffer's memory is not host-visible, the device copies
from the mapping if it can import that; else pieces go through staging memory, a few at a time.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Self

from ....hal.buffer import Buffer
from ....hal.memory import MemoryTypeFlags
from ....hal.program import ProgramCommandBuffer
from ....hal.programs.device_context import DeviceContext
from ....hal.programs.fence import OptionalFence, alias, points_of
from ....hal.semaphore import Semaphore

_STAGING: Final = MemoryTypeFlags.HOST_VISIBLE | MemoryTypeFlags.DEVICE_VISIBLE
_PIECE_BYTES: Final = 16 << 20
_MAX_PIECES: Final = 4
# Smaller copies cost less than pinning pages and making the native objects of an import.
_IMPORT_BYTES: Final = 1 << 20
_MAX_TILE_BYTES: Final = 1 << 20


class ParameterUpload:
    """The copies and fills of one call of the module."""

    def __init__(self, context: DeviceContext, wait: OptionalFence) -> None:
        self._context = context
        pending = wait is not None and not wait.query()
        self._wait = wait if pending else None
        # An unscheduled payload may never come, so then nothing blocks, and all pieces are in flight at once.
        self._may_block = not pending or (
            wait is not None and all(value <= semaphore.scheduled for semaphore, value in points_of(wait))
        )
        self._commands: ProgramCommandBuffer | None = None
        self._recorded = 0
        self._in_flight: deque[tuple[Semaphore, int]] = deque()
        self._submitted = False

    def write(self, target: Buffer, offset: int, data: memoryview) -> None:
        """Copies ``data`` to byte ``offset`` of ``target``."""
        if self._wait is None and target.host_visible:
            target.write(data, offset)
            return
        if len(data) >= _IMPORT_BYTES:
            imported = self._context.device.import_buffer(data, copy=False)
            if imported is not None:
                self._record().copy(self._context.allocator.adopt(imported), target, target_offset=offset)
                return
        for start in range(0, len(data), _PIECE_BYTES):
            piece = data[start : start + _PIECE_BYTES]
            self._record().copy(self._stage(piece), target, target_offset=offset + start)
            if self._recorded >= _PIECE_BYTES and self._may_block:
                self._flush()

    def fill(self, target: Buffer, offset: int, length: int, pattern: bytes) -> None:
        """Repeats ``pattern``, of 1, 2, 4, 8 or 16 bytes, over bytes ``[offset, offset + length)`` of ``target``."""
        while len(pattern) > 1 and pattern == pattern[: len(pattern) // 2] * 2:
            pattern = pattern[: len(pattern) // 2]
        if len(pattern) in (1, 2, 4) and not length % len(pattern):
            self._record().fill(target, pattern, offset, length)
            return
        # Queues fill with up to 4 bytes; longer patterns are copied from a tile.
        tile = self._stage(memoryview(repeat_pattern(pattern, 0, min(length, _MAX_TILE_BYTES))))
        for start in range(0, length, tile.size):
            self._record().copy(tile, target, min(tile.size, length - start), target_offset=offset + start)

    def finish(self, wait: OptionalFence, target: OptionalFence) -> None:
        """Submits the rest; ``target`` is signalled when all is done and ``wait`` is reached."""
        if self._commands is None and not self._submitted:
            alias(wait, target)
        else:
            self._submit(wait, target)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._commands is not None:  # an error came before they were submitted
            self._commands.close()
            self._commands = None

    def _record(self) -> ProgramCommandBuffer:
        if self._commands is None:
            self._commands = self._context.device.program_commands(one_shot=True, name="parameters")
            self._commands.begin()
        return self._commands

    def _stage(self, piece: memoryview) -> Buffer:
        """Returns the bytes in staging memory, which is freed with the commands that use it."""
        staged = self._context.device.create_buffer(len(piece), memory_type=_STAGING)
        kept = self._context.allocator.adopt(staged)
        kept.write(piece)
        self._recorded += len(piece)
        return kept

    def _flush(self) -> None:
        self._submit(self._wait, None)
        timeline = self._context.timeline
        self._in_flight.append((timeline, timeline.scheduled))
        if len(self._in_flight) >= _MAX_PIECES:
            semaphore, value = self._in_flight.popleft()
            semaphore.wait(value)
            self._context.device.retire()

    def _submit(self, wait: OptionalFence, target: OptionalFence) -> None:
        commands, self._commands = self._commands, None
        if commands is not None:
            commands.end()
        self._context.submit(() if commands is None else (commands,), wait, target)
        self._submitted = True
        self._recorded = 0


def repeat_pattern(pattern: bytes, start: int, length: int) -> bytes:
    """Returns ``length`` bytes of an endless repetition of ``pattern``, from its byte ``start``."""
    start %= len(pattern)
    return (pattern * (-(-(start + length) // len(pattern))))[start : start + length]
