"""Exports of the ``hal`` module about devices and their allocators, and about collectives, which are not implemented.

Facts on queries: ``runtime/src/iree/hal/drivers/vulkan/{logical_device.c,vulkan_device.cc}``, IREE 3.1 to 3.13.
"""

from __future__ import annotations

import fnmatch
from typing import Final

from ....hal_vulkan import BufferUsage, Device, MemoryAccess, MemoryTypeFlags
from ....status import InvalidArgumentError, PermissionDeniedError, UnimplementedError
from ....vm.native.module import export
from .buffer import HalAllocator, HalBuffer
from .device_context import DeviceTable
from .executable import supported_formats
from .reference import Ref, memory_of, require, text_of

_IMMUTABLE: Final = int(BufferUsage.SHARING_IMMUTABLE)
_MIN_IMPORT: Final = 64 << 10

_FEATURES: Final = {
    "buffer_device_address": "bufferDeviceAddress",
    "physical_storage_buffer64": "bufferDeviceAddress",
    "subgroup_size_control": "subgroupSizeControl",
    "cooperative_matrix_khr": "cooperativeMatrix",
    "storage_buffer_8bit_access": "storageBuffer8BitAccess",
    "storage_buffer_16bit_access": "storageBuffer16BitAccess",
    "shader_float16": "shaderFloat16",
    "shader_float64": "shaderFloat64",
    "shader_bfloat16_type": "shaderBFloat16Type",
    "shader_bfloat16_dot_product": "shaderBFloat16DotProduct",
    "shader_bfloat16_cooperative_matrix": "shaderBFloat16CooperativeMatrix",
    "shader_int8": "shaderInt8",
    "shader_int16": "shaderInt16",
    "shader_int64": "shaderInt64",
    "shader_integer_dot_product": "shaderIntegerDotProduct",
    "vulkan_memory_model": "vulkanMemoryModel",
    "vulkan_memory_model_device_scope": "vulkanMemoryModelDeviceScope",
}

# Of compilers up to 3.11: a bit for each feature.
_DISPATCH_BITS: Final = {
    "compute.bitwidths.fp": ("shaderFloat16", "shaderFloat64"),
    "compute.bitwidths.int": ("shaderInt8", "shaderInt16", "shaderInt64"),
    "storage.bitwidths": ("storageBuffer8BitAccess", "storageBuffer16BitAccess"),
    "dotprod.ops": ("shaderIntegerDotProduct",),
    "coopmatrix.ops": ("cooperativeMatrix",),
    "address.mode": ("bufferDeviceAddress",),
}


class Channel:
    """A collective channel; none can be made."""


class Event:
    """An event within a command buffer; no module makes one."""


class DeviceExports(DeviceTable):
    """``hal.devices.*``, ``hal.device.query``, ``hal.allocator.*`` and ``hal.channel.*``."""

    @export("devices.count", "0v_i")
    def devices_count(self) -> int:
        """How many devices there are."""
        return len(self._devices)

    @export("devices.get", "0i_r")
    def devices_get(self, index: int) -> Device | None:
        """A device by number; null past the last."""
        return self._devices[index] if 0 <= index < len(self._devices) else None

    @export("device.allocator", "0r_r")
    def device_allocator(self, device: Ref) -> HalAllocator:
        """The device's allocator."""
        try:
            return self.contexts[device].allocator
        except (KeyError, TypeError):
            return self.device_context(device).allocator

    @export("device.query.i64", "0rrr_iI")
    def device_query_i64(self, device: Ref, category: Ref, key: Ref) -> tuple[int, int]:
        """(1, value), or (0, 0) for an unknown query."""
        value = _query_device(self.device_context(device).device, text_of(category, "category"), text_of(key, "key"))
        return (0, 0) if value is None else (1, value)

    @export("allocator.select", "0iiICrID_rI")
    def allocator_select(
        self, memory_types: int, usage: int, flags: int, pairs: tuple[tuple[Ref, int], ...]
    ) -> tuple[Device, int]:
        """The first of the devices: there is no policy that prefers another."""
        if not pairs:
            raise InvalidArgumentError("allocator.select needs at least one device")
        device, affinity = pairs[0]
        return self.device_context(device).device, affinity

    @export("allocator.allocate", "0rIiiI_r")
    def allocator_allocate(self, allocator: Ref, affinity: int, memory_types: int, usage: int, size: int) -> HalBuffer:
        """A buffer with undefined contents."""
        return require(allocator, HalAllocator, "allocator").allocate(memory_types, usage, size)

    @export("allocator.import", "0riIiirII_r")
    def allocator_import(
        self,
        allocator: Ref,
        attempt: int,
        affinity: int,
        memory_types: int,
        usage: int,
        source: Ref,
        offset: int,
        size: int,
    ) -> HalBuffer | None:
        """A buffer over host memory in place; null if that is not possible and ``attempt`` is set."""
        found = require(allocator, HalAllocator, "allocator")
        view = memory_of(source, "source")
        if size == -1:
            size = view.nbytes
        if offset < 0 or size < 0 or offset + size > view.nbytes:
            raise InvalidArgumentError(
                f"allocator.import: bytes [{offset}, {offset + size}) do not lie within the {view.nbytes} bytes given"
            )
        if view.readonly and not usage & _IMMUTABLE:
            raise PermissionDeniedError("allocator.import: constant data can only be imported for constant use")
        device = found.device
        # On a device with its own memory kernels would read imported memory over the bus.
        if attempt and (device.plan.staging or size < _MIN_IMPORT):
            return None
        buffer = device.import_buffer(view[offset : offset + size], copy=not attempt)
        if buffer is None:
            return None
        adopted = found.adopt(buffer)
        adopted.memory_type |= MemoryTypeFlags(memory_types)
        adopted.usage = BufferUsage(usage)
        if usage & _IMMUTABLE:
            adopted.access = MemoryAccess.READ
        return adopted

    @export("channel.create", "0rIIrrii_r", "0rIirrii_r")
    @export("channel.split", "0riiI_r", "0riii_r")
    @export("channel.rank_and_count", "0r_ii")
    @export("command_buffer.collective", "0rriiiirrIIIII_v")
    def collective(self, *arguments: Ref) -> Ref:
        """Not implemented."""
        raise UnimplementedError(
            "collectives between devices (hal.channel, hal.command_buffer.collective) are not implemented; compile the "
            "program for one device a context"
        )


def _query_device(device: Device, category: str, key: str) -> int | None:
    """The value of a device query; ``None`` for an unknown one."""
    profile, features = device.profile, device.plan.features
    limits = profile.limits
    match category, key:
        case "hal.device.id", _:
            return int(fnmatch.fnmatchcase("vulkan", key.replace("[", "[[]")))
        case "hal.executable.format", _:
            return int(key in supported_formats(device))
        case "hal.device", "concurrency":
            return len(device.queues)
        case "hal.dispatch", "concurrency":
            return 1
        case "hal.dispatch", "subgroup.ops":
            operations = profile.subgroup.supported_operations
            return ("shuffle" in operations) | ("arithmetic" in operations) << 1
        case "hal.dispatch", _ if key in _DISPATCH_BITS:
            return sum(1 << place for place, name in enumerate(_DISPATCH_BITS[key]) if name in features)
        case "vulkan.device", "api_version":
            major, minor, patch = (*profile.api_version, 0)[:3]
            return major << 22 | minor << 12 | patch
        case "vulkan.device", "subgroup_size":
            return profile.subgroup.size
        case "vulkan.device", "max_compute_workgroup_invocations":
            return limits.max_compute_work_group_invocations
        case "vulkan.device", _ if key[:-1] == "max_compute_workgroup_size_" and key[-1] in "xyz":
            return limits.max_compute_work_group_size["xyz".index(key[-1])]
        case "vulkan.device", _ if key[:-1] == "max_compute_workgroup_count_" and key[-1] in "xyz":
            return limits.max_compute_work_group_count["xyz".index(key[-1])]
        case "vulkan.feature", _ if key in _FEATURES:
            return int(_FEATURES[key] in features)
        case "vulkan.cooperative_matrix", "supported":
            return int("cooperativeMatrix" in features)
    return None
