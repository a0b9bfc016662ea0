"""The HAL's own kernels, used where the Vulkan API wants multiples of four bytes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ...shaders import EMPTY, FILL_UNALIGNED, BuiltinKernel
from ...status import FailedPreconditionError
from ..memory.buffer import Buffer
from .executable import Executable
from .pipeline import ComputePipeline

if TYPE_CHECKING:
    from ..device import Device
    from .command_buffer import CommandBuffer

__all__ = ["Builtins"]

_QUEUE_COMPUTE = 0x2
_BASE_ALIGNMENT = 256  # of every allocation, and at least every device's minStorageBufferOffsetAlignment


class Builtins:
    """Pipelines of the built-in kernels, made when first used and kept as long as the device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._lock = threading.Lock()
        self._executables: dict[str, Executable] = {}

    def _pipeline(self, kernel: BuiltinKernel) -> ComputePipeline:
        with self._lock:
            executable = self._executables.get(kernel.name)
            if executable is None:
                executable = self._executables[kernel.name] = Executable.from_spirv(
                    self._device, kernel.spirv(), validate=False
                )
        return executable.pipeline()

    def empty(self) -> ComputePipeline:
        """A kernel that does nothing, for timing."""
        return self._pipeline(EMPTY)

    def fill(self, commands: CommandBuffer, target: Buffer, offset: int, size: int, word: int) -> None:
        """Fills a byte range at any offset and length; ``word`` is the pattern repeated to four bytes.

        Raises:
            FailedPreconditionError: the command buffer is for a queue family without compute.
        """
        device = self._device
        if not device.profile.queue_families[commands.family].flags & _QUEUE_COMPUTE:
            raise FailedPreconditionError(
                f"a fill of {size} bytes at byte {target.offset + offset} is not aligned to 4 bytes, which a transfer "
                "queue requires; use the compute queue"
            )
        limits = device.profile.limits
        step = (limits.max_storage_buffer_range - 2 * _BASE_ALIGNMENT) // _BASE_ALIGNMENT * _BASE_ALIGNMENT
        start, end = target.offset + offset, target.offset + offset + size
        while start < end:
            count = min(step, end - start)
            base = start // _BASE_ALIGNMENT * _BASE_ALIGNMENT
            span = -(-(start + count - base) // 4) * 4
            # Words at the edges reach past the range, never past the allocation, which is made of 256-byte units.
            window = Buffer(
                device, target._allocation, base, span, target.memory_type, target.usage, target.access, parent=target
            )
            push = FILL_UNALIGNED.pack_push(offset=start - base, size=count, pattern=word)
            groups = FILL_UNALIGNED.groups(start - base, count, limit=limits.max_compute_work_group_count[0])
            commands.dispatch(self._pipeline(FILL_UNALIGNED), [window], (groups, 1, 1), push)
            start += count

    def close(self) -> None:
        """Closes the pipelines; called by ``Device.close``."""
        for executable in self._executables.values():
            executable.close()
        self._executables.clear()
