"""The HAL's own kernels: fills at any byte, mip levels on queues without blits, and an empty kernel."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator

from ...shaders import spirv
from ...status import FailedPreconditionError, UnimplementedError
from ..images.format_features import LINEAR_FILTER, STORAGE_WRITE_WITHOUT_FORMAT, format_features, formats_with
from ..images.image import Image
from ..images.image_view import CombinedImageSampler, Dim, ImageView
from ..images.sampler import Filter, Sampler
from ..memory.allocator import Allocator
from ..memory.buffer import Buffer
from ..memory.suballocator import GRANULARITY
from .executable import Executable
from .pipeline import ComputePipeline
from .pipeline_context import PipelineContext

_FILL_INVOCATIONS = 64  # invocations per workgroup of builtin/fill_unaligned
_MAX_FILL_GROUPS = 65535  # the bound for exact index arithmetic
# Invocations per workgroup of builtin/mip_*; a workgroup covers one layer.
_MIP_GROUPS: dict[Dim, tuple[int, int, int]] = {"1d": (64, 1, 1), "2d": (8, 8, 1), "3d": (4, 4, 4)}


class Builtins:
    """Pipelines of the built-in kernels, made on first use and kept as long as the device."""

    def __init__(self, context: PipelineContext, allocator: Allocator) -> None:
        self._context = context
        self._allocator = allocator
        self._lock = threading.Lock()
        self._executables: dict[str, Executable] = {}
        self._samplers: dict[Filter, Sampler] = {}

    def _pipeline(self, name: str) -> ComputePipeline:
        with self._lock:
            executable = self._executables.get(name)
            if executable is None:
                code = spirv(name)
                executable = Executable.from_spirv(self._context, code, validate=False, watch=False)
                self._executables[name] = executable
        return executable.pipeline()

    def empty(self) -> ComputePipeline:
        """Returns a kernel that does nothing, for timing."""
        return self._pipeline("builtin/empty")

    def fill(
        self, family: int, target: Buffer, offset: int, size: int, word: int
    ) -> Iterator[tuple[ComputePipeline, Buffer, tuple[int, int, int], bytes]]:
        """Yields the dispatches that fill bytes at any offset: pipeline, buffer, groups, push constants."""
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
            # An invocation fills several words if there are more words than invocations.
            groups = min(-(-words // _FILL_INVOCATIONS), limits.max_compute_work_group_count[0], _MAX_FILL_GROUPS)
            yield self._pipeline("builtin/fill_unaligned"), window, (groups, 1, 1), push
            start += count

    def mip(
        self, image: Image, level: int, filter: Filter
    ) -> tuple[ComputePipeline, tuple[CombinedImageSampler, ImageView], tuple[int, int, int]]:
        """Returns the dispatch that makes a mip level from the level above it: pipeline, resources, groups.

        Raises:
            UnimplementedError: shaders cannot write or cannot sample images of the format.
        """
        device, texels = self._context.device, image.format
        needed = STORAGE_WRITE_WITHOUT_FORMAT | (LINEAR_FILTER if filter == "linear" else 0)
        has_feature = "shaderStorageImageWriteWithoutFormat" in device.plan.features
        if texels.scalar != "float" or not has_feature or needed & ~format_features(device, texels).image:
            raise UnimplementedError(
                f"the compute queues of {device.profile.name} do not blit, and its shaders make no mip levels of "
                f"{texels} with filter {filter}; formats that they do: "
                f"{formats_with(device, texels, image=needed) if has_feature else 'none'}. Or open the device with "
                "prefer_dedicated_compute=False"
            )
        with self._lock:
            sampler = self._samplers.get(filter)
            if sampler is None:
                sampler = self._samplers[filter] = Sampler(self._allocator, filter=filter)
        dim: Dim = "2d" if image.dim == "cube" else image.dim
        above, below = (
            image.view(dim=dim, arrayed=dim != "3d", base_level=number, levels=1) for number in (level - 1, level)
        )
        x, y, z = image.level_extent(level)
        sizes = {"1d": (x, image.layers, 1), "2d": (x, y, image.layers), "3d": (x, y, z)}[dim]
        a, b, c = (-(-size // local) for size, local in zip(sizes, _MIP_GROUPS[dim], strict=True))
        return self._pipeline(f"builtin/mip_{dim}"), (above.with_sampler(sampler), below), (a, b, c)
