"""The HAL's own kernels: fills that are not aligned to four bytes, as the API requires, and one that does nothing."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator

from ...shaders import spirv
from ...status import FailedPreconditionError
from ..memory.buffer import Buffer
from ..memory.suballocator import GRANULARITY
from .executable import Executable
from .pipeline import ComputePipeline
from .pipeline_context import PipelineContext

_FILL_INVOCATIONS = 64  # of a workgroup of builtin/fill_unaligned
_MAX_FILL_GROUPS = 65535  # up to which its index arithmetic is exact


class Builtins:
    """Pipelines of the built-in kernels, made on first use and kept as long as the device."""

    def __init__(self, context: PipelineContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._executables: dict[str, Executable] = {}

    def _pipeline(self, name: str) -> ComputePipeline:
        with self._lock:
            executable = self._executables.get(name)
            if executable is None:
                code = spirv(name)
                executable = Executable.from_spirv(self._context, code, validate=False, watch=False)
                self._executables[name] = executable
        return executable.pipeline()

    def empty(self) -> ComputePipeline:
        """A kernel that does nothing, for timing."""
        return self._pipeline("builtin/empty")

    def fill(
        self, family: int, target: Buffer, offset: int, size: int, word: int
    ) -> Iterator[tuple[ComputePipeline, Buffer, tuple[int, int, int], bytes]]:
        """The dispatches that fill bytes at any offset with a word: pipeline, buffer, groups, push constants."""
        device = self._context.device
        if not device.profile.queue_families[family].has_compute:
            raise FailedPreconditionError(
                f"a fill of {size} bytes at byte {target.offset + offset} is not aligned to 4 bytes, which a transfer "
                "queue requires; use the compute queue"
            )
        limits = device.profile.limits
        step = (limits.max_storage_buffer_range - 2 * GRANULARITY) // GRANULARITY * GRANULARITY
        start, end = target.offset + offset, target.offset + offset + size
        while start < end:
            count = min(step, end - start)
            base = start // GRANULARITY * GRANULARITY
            span = -(-(start + count - base) // 4) * 4
            # Words at the edges extend past the range, but not past the allocation, which has 256-byte units.
            window = Buffer(
                device, target._allocation, base, span, target.memory_type, target.usage, target.access, parent=target
            )
            push = struct.pack("<3I", start - base, count, word)
            words = (start - base + count + 3) // 4 - (start - base) // 4
            # An invocation takes several words where there are more than groups may have.
            groups = min(-(-words // _FILL_INVOCATIONS), limits.max_compute_work_group_count[0], _MAX_FILL_GROUPS)
            yield self._pipeline("builtin/fill_unaligned"), window, (groups, 1, 1), push
            start += count
