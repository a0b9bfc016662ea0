"""Executables of compiled modules: pipelines by function id, shared by all contexts of a device.

Thread rule: may be used from any thread.
"""

from __future__ import annotations

import math
import struct
import threading
import weakref
from collections.abc import Mapping
from functools import cached_property
from typing import Final

from ...base.cache import digest
from ...formats.vke1 import FILE_IDENTIFIER, FORMAT_VERSION, HEADER, ExecutableDef
from ...hal.memory import MemoryTypeFlags
from ...hal.program import Executable as AnyExecutable
from ...status import InvalidArgumentError, NotFoundError, OutOfRangeError
from ..instance.logical_device import LogicalDevice
from ..instance.profile import DeviceType
from ..memory.allocator import Allocator
from ..memory.buffer import Buffer
from ..pipelines.executable import Executable
from ..pipelines.pipeline import ComputePipeline, check_groups, log_unwatched
from ..pipelines.pipeline_context import PipelineContext
from ..pipelines.specialization import SpecializationValue

DESCRIPTOR_FORMATS: Final = ("vulkan-spirv-fb",)
PUSHED_FORMAT: Final = "vulkan-spirv-fb-pushed-addresses"
"""``vulkan-spirv-fb`` whose push constants end with the addresses of all bindings and the words 0 to 15."""
ADDRESS_FORMATS: Final = ("vulkan-spirv-fb-ptr", "vulkan-spirv-bda-v1", PUSHED_FORMAT)

# Each part is a pipeline.
_MAX_PARTS: Final = 64

_lock: Final = threading.Lock()
_cache: Final[weakref.WeakKeyDictionary[LogicalDevice, weakref.WeakValueDictionary[bytes, ProgramExecutable]]] = (
    weakref.WeakKeyDictionary()
)


class ProgramExecutable(AnyExecutable):
    """An executable of a program; closes with its last reference.

    Attributes:
        pipelines: the pipelines by function id, in the order of the exports.
    """

    def __init__(self, executable: Executable, memory: Allocator, constants: bytes) -> None:
        assert executable.source is not None
        self.device: LogicalDevice = memory.device
        self._memory = memory
        self.executable = executable
        self._source: ExecutableDef = executable.source
        self._constants = constants
        self.pipelines: tuple[ComputePipeline, ...] = tuple(
            executable.pipeline_at(ordinal, specialization=self._specialization(ordinal))
            for ordinal in range(len(self._source.pipelines))
        )
        for pipeline in self.pipelines:
            log_unwatched(pipeline)
        executable.close_modules()
        self._close_at_end(executable)

    def _close_at_end(self, used: Executable | Buffer) -> None:
        # Finalizers may run at any point, under any lock: they only append to a list (docs/design/hal.md).
        weakref.finalize(self, self.device.dropped.append, used).atexit = False

    def pipeline(self, function: int) -> ComputePipeline:
        """Returns the pipeline of a function id; OutOfRangeError if there is no such function."""
        if not 0 <= function < len(self.pipelines):
            raise OutOfRangeError(f"this executable has {len(self.pipelines)} function(s); {function} was asked for")
        return self.pipelines[function]

    @cached_property
    def locations(self) -> Mapping[str, str]:
        """Source locations of functions, as ``file:line`` by name, if the program has them."""
        return {
            pipeline.name: f"{debug.location.filename}:{debug.location.line}"
            for pipeline, definition in zip(self.pipelines, self._source.pipelines, strict=True)
            if (debug := definition.debug_info) is not None and debug.location is not None
        }

    def parts(self, function: int, groups: tuple[int, int, int]) -> list[tuple[ComputePipeline, tuple[int, int, int]]]:
        """Returns pipelines and workgroup counts that together run a grid too large for one dispatch."""
        whole, most = self.pipeline(function), self.device.groups_max
        if math.prod(-(-count // limit) for count, limit in zip(groups, most, strict=True)) > _MAX_PARTS:
            check_groups(whole, groups)
        from ...spirv.reflection.grid import grid_parts  # imported here: few grids are too large

        values = self._specialization(function)
        return [
            (self.executable.part_at(function, base, groups, specialization=values), part)
            for base, part in grid_parts(groups, (most[0], most[1], most[2]))
        ]

    def _specialization(self, function: int) -> dict[int, SpecializationValue] | None:
        """Returns the values of the constants that the function's module declares; value i is for constant id i."""
        values: dict[int, SpecializationValue] = {}
        module = self._source.pipelines[function].shader_module
        for declared in self.executable.reflections[module].specialization_constants:
            start = 4 * declared.constant_id
            word = self._constants[start : start + 4]
            if len(word) == 4:
                code = {"float": "<f", "int": "<i"}.get(declared.scalar.kind, "<I")
                values[declared.constant_id] = struct.unpack(code, word)[0]
        return values or None

    def lookup(self, name: str) -> int:
        for index, definition in enumerate(self._source.pipelines):
            debug = definition.debug_info
            if definition.entry_point == name or (debug is not None and debug.name == name):
                return index
        known = ", ".join(pipeline.name for pipeline in self.pipelines)
        raise NotFoundError(f"this executable has no function {name!r}; it has: {known or 'none'}")

    @cached_property
    def empty_buffer(self) -> Buffer:
        """A small buffer to bind in place of an empty range."""
        buffer = Buffer.create(self._memory, 16, memory_type=MemoryTypeFlags.DEVICE_LOCAL)
        self._close_at_end(buffer)
        return buffer


def supported_formats(device: LogicalDevice) -> tuple[str, ...]:
    """Returns the executable formats that the device runs.

    Kernels of `PUSHED_FORMAT` rely on subgroups that equal a vector of a CPU (`compiler.kernels.subgroup_access`).
    """
    formats = DESCRIPTOR_FORMATS + (ADDRESS_FORMATS if device.device_addresses else ())
    is_cpu = device.profile.device_type is DeviceType.CPU
    return formats if is_cpu else tuple(name for name in formats if name != PUSHED_FORMAT)


def create_executable(
    context: PipelineContext, memory: Allocator, name: str, data: memoryview, constants: bytes
) -> ProgramExecutable:
    """Returns the executable for a blob in the format ``name``, shared by contexts with the same blob.

    ``constants`` are u32 values of the specialization constants 0, 1, …
    """
    device = context.device
    formats = supported_formats(device)
    if name not in formats:
        raise NotFoundError(
            f"{device.name} does not run executables of format {name!r}; it runs {', '.join(formats)}. Compile "
            "for one of those (--iree-hal-target-device=vulkan)"
        )
    if len(constants) % 4:
        raise InvalidArgumentError(f"executable constants are u32 values, got {len(constants)} bytes")
    is_pushed = name == PUSHED_FORMAT
    key = digest(data) + constants + bytes(is_pushed)
    known = _cache.setdefault(device, weakref.WeakValueDictionary())
    executable = known.get(key)
    if executable is None or executable.executable.is_closed:
        made = _create(context, memory, data, constants, is_pushed)
        with _lock:
            executable = known.get(key)
            if executable is None or executable.executable.is_closed:  # or it belongs to another thread
                executable = known[key] = made
    return executable


def _create(
    context: PipelineContext, memory: Allocator, data: memoryview, constants: bytes, pushes_addresses: bool
) -> ProgramExecutable:
    if len(data) >= 8 and bytes(data[:4]) != FILE_IDENTIFIER and bytes(data[4:8]) == FILE_IDENTIFIER:
        # Older compilers omit the FlatBuffer's 64-byte header.
        data = memoryview(HEADER.pack(FILE_IDENTIFIER, FORMAT_VERSION, len(data)) + bytes(data))
    elif bytes(data[:4]) != FILE_IDENTIFIER:
        raise InvalidArgumentError(f"an executable starts with {FILE_IDENTIFIER!r}, got {bytes(data[:4])!r}")
    sanitize = context.device.plan.sanitize
    executable = Executable.from_vke1(context, data, sanitize=sanitize, pushes_addresses=pushes_addresses)
    try:
        return ProgramExecutable(executable, memory, constants)
    except BaseException:
        executable.close()
        raise
