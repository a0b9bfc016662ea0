"""Executables of compiled modules: pipelines by function id, shared by all contexts of a device.

Thread rule: may be used from any thread.
"""

from __future__ import annotations

import hashlib
import math
import struct
import threading
import weakref
from collections.abc import Mapping
from typing import Final

from ....formats.vke1 import FILE_IDENTIFIER, FORMAT_VERSION, HEADER
from ....hal_vulkan import Buffer, ComputePipeline, Device, Executable, SpecializationValue
from ....hal_vulkan.commands.pipeline import check_groups
from ....spirv.grid import grid_parts
from ....status import ClosedError, InvalidArgumentError, NotFoundError, OutOfRangeError

DESCRIPTOR_FORMATS: Final = ("vulkan-spirv-fb",)
ADDRESS_FORMATS: Final = ("vulkan-spirv-fb-ptr", "vulkan-spirv-bda-v1")

# Each is a pipeline.
_MAX_PARTS: Final = 64

_lock: Final = threading.Lock()
_cache: Final[weakref.WeakKeyDictionary[Device, weakref.WeakValueDictionary[bytes, _Shared]]] = (
    weakref.WeakKeyDictionary()
)


class _Shared:
    """Shared by the executables of one blob; closed with the last of them. ``_lock`` guards ``users``."""

    __slots__ = ("__weakref__", "constants", "empty", "executable", "key", "locations", "pipelines", "users")

    def __init__(
        self, key: bytes, executable: Executable, pipelines: tuple[ComputePipeline, ...], constants: bytes
    ) -> None:
        self.key = key
        self.constants = constants
        self.executable = executable
        self.pipelines = pipelines
        self.users = 0
        self.empty: Buffer | None = None
        self.locations: Mapping[str, str] | None = None


class HalExecutable:
    """An executable of the VM; what ``!hal.executable`` refers to. Closes with its last reference.

    Attributes:
        device: the device it runs on.
        executable: the HAL executable, shared with others of the same blob.
        pipelines: by function id, in the order of the exports.
    """

    __slots__ = ("__weakref__", "_shared", "device", "executable", "pipelines")

    def __init__(self, device: Device, shared: _Shared) -> None:
        self.device = device
        self.executable = shared.executable
        self.pipelines = shared.pipelines
        self._shared: _Shared | None = shared

    def pipeline(self, function: int) -> ComputePipeline:
        """The pipeline of a function id.

        Raises:
            OutOfRangeError: no such function.
        """
        if not 0 <= function < len(self.pipelines):
            raise OutOfRangeError(f"this executable has {len(self.pipelines)} function(s); {function} was asked for")
        return self.pipelines[function]

    @property
    def locations(self) -> Mapping[str, str]:
        """Source locations of functions, as ``file:line`` by name, where the program has them."""
        shared, source = self._shared, self.executable.source
        if shared is None or source is None:
            return {}
        if shared.locations is None:
            shared.locations = {
                pipeline.name: f"{debug.location.filename}:{debug.location.line}"
                for pipeline, definition in zip(self.pipelines, source.pipelines, strict=True)
                if (debug := definition.debug_info) is not None and debug.location is not None
            }
        return shared.locations

    def parts(self, function: int, groups: tuple[int, int, int]) -> list[tuple[ComputePipeline, tuple[int, int, int]]]:
        """Pipelines and workgroup counts that together run a grid too large for one dispatch.

        Raises:
            ResourceExhaustedError: too many workgroups for that.
            UnimplementedError: the kernel does not take a part of a grid.
        """
        whole, executable, most = self.pipeline(function), self.executable, self.device.groups_max
        count = math.prod(-(-count // limit) for count, limit in zip(groups, most, strict=True))
        shared, source = self._shared, executable.source
        if count > _MAX_PARTS or shared is None or source is None:
            check_groups(whole, groups)
            raise ClosedError("this executable was closed")
        values = _specialization(executable, source.pipelines[function].shader_module, shared.constants)
        return [
            (executable.part_at(function, base, groups, specialization=values), part)
            for base, part in grid_parts(groups, (most[0], most[1], most[2]))
        ]

    def lookup(self, name: str) -> int:
        """The function id of a name.

        Raises:
            NotFoundError: no such function; the message lists those that exist.
        """
        source = self.executable.source
        for index, definition in enumerate(source.pipelines if source is not None else ()):
            debug = definition.debug_info
            if definition.entry_point == name or (debug is not None and debug.name == name):
                return index
        known = ", ".join(pipeline.name for pipeline in self.pipelines)
        raise NotFoundError(f"this executable has no function {name!r}; it has: {known or 'none'}")

    def empty_buffer(self) -> Buffer:
        """A small buffer to bind in place of an empty range."""
        shared = self._shared
        if shared is None:
            raise ClosedError("this executable was closed")
        if shared.empty is None or shared.empty.is_closed:
            shared.empty = self.device.create_buffer(16)
        return shared.empty

    def close(self) -> None:
        """Closes pipelines and modules when no other executable or queue uses them; idempotent."""
        with _lock:
            shared, self._shared = self._shared, None
            if shared is None:
                return
            shared.users -= 1
            if shared.users:
                return
            known = _cache.get(self.device)
            if known is not None and known.get(shared.key) is shared:
                del known[shared.key]
        shared.executable.close()
        if shared.empty is not None:
            shared.empty.close()

    def __del__(self) -> None:
        # May run at any point, under any lock: only takes a note (docs/design/hal.md).
        if getattr(self, "_shared", None) is not None:
            self.device.dropped.append(self)

    def __repr__(self) -> str:
        return f"<HalExecutable {', '.join(pipeline.name for pipeline in self.pipelines)}>"


def supported_formats(device: Device) -> tuple[str, ...]:
    """The executable formats that the device runs."""
    return DESCRIPTOR_FORMATS + (ADDRESS_FORMATS if device.device_addresses else ())


def create_executable(device: Device, name: str, data: memoryview, constants: bytes) -> HalExecutable:
    """The executable for a blob, shared with other contexts that have the same blob.

    Args:
        device: that runs it.
        name: its format, such as ``vulkan-spirv-fb``.
        data: the blob.
        constants: u32 values of the specialization constants 0, 1, …

    Raises:
        NotFoundError: a format that the device does not run; the message lists those that it does.
        InvalidArgumentError: a damaged blob, or constants that are not whole words.
        UnimplementedError: a capability that the device lacks, by name.
    """
    formats = supported_formats(device)
    if name not in formats:
        raise NotFoundError(
            f"{device.profile.name} does not run executables of format {name!r}; it runs {', '.join(formats)}. Compile "
            "for one of those (--iree-hal-target-device=vulkan)"
        )
    if len(constants) % 4:
        raise InvalidArgumentError(f"executable constants are u32 values, got {len(constants)} bytes")
    digest = hashlib.sha256(data)
    digest.update(b"\0" + constants)
    key = digest.digest()
    found = _join(device, key)
    if found is None:
        made = _create(device, data, constants, key)
        found = _join(device, key, made)
        assert found is not None
        if found.executable is not made.executable:  # another thread was first
            made.executable.close()
    return found


def _join(device: Device, key: bytes, made: _Shared | None = None) -> HalExecutable | None:
    """An executable of the cached entry for a blob, or else of ``made``."""
    with _lock:
        known = _cache.setdefault(device, weakref.WeakValueDictionary())
        shared = known.get(key)
        if shared is None or shared.executable.is_closed:
            if made is None:
                return None
            shared = known[key] = made
        shared.users += 1
        return HalExecutable(device, shared)


def _create(device: Device, data: memoryview, constants: bytes, key: bytes) -> _Shared:
    if len(data) >= 8 and bytes(data[:4]) != FILE_IDENTIFIER and bytes(data[4:8]) == FILE_IDENTIFIER:
        # Older compilers write the FlatBuffer without the 64-byte header.
        data = memoryview(HEADER.pack(FILE_IDENTIFIER, FORMAT_VERSION, len(data)) + bytes(data))
    elif bytes(data[:4]) != FILE_IDENTIFIER:
        raise InvalidArgumentError(f"an executable starts with {FILE_IDENTIFIER!r}, got {bytes(data[:4])!r}")
    executable = device.create_executable(data)
    try:
        source = executable.source
        assert source is not None
        pipelines = tuple(
            executable.pipeline_at(
                ordinal, specialization=_specialization(executable, definition.shader_module, constants)
            )
            for ordinal, definition in enumerate(source.pipelines)
        )
    except BaseException:
        executable.close()
        raise
    executable.close_modules()
    return _Shared(key, executable, pipelines, constants)


def _specialization(executable: Executable, module: int, constants: bytes) -> dict[int, SpecializationValue] | None:
    """The values of the constants that a module declares; value i is for constant id i."""
    values: dict[int, SpecializationValue] = {}
    for declared in executable.reflections[module].specialization_constants:
        start = 4 * declared.constant_id
        word = constants[start : start + 4]
        if len(word) == 4:
            code = {"float": "<f", "int": "<i"}.get(declared.scalar.kind, "<I")
            values[declared.constant_id] = struct.unpack(code, word)[0]
    return values or None
