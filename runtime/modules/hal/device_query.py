"""Device queries of compiled programs, by category and key.

Facts: ``runtime/src/iree/hal/drivers/vulkan/{logical_device.c,vulkan_device.cc}``, IREE 3.1 to 3.13.
"""

from __future__ import annotations

import fnmatch
from typing import Final

from ....hal_vulkan import Device
from .executable import supported_formats


def query_device(device: Device, category: str, key: str) -> int | None:
    """The value of a device query; ``None`` for an unknown one."""
    if category == "hal.device.id":
        return int(fnmatch.fnmatchcase("vulkan", key.replace("[", "[[]")))
    if category == "hal.executable.format":
        return int(key in supported_formats(device))
    profile, features = device.profile, device.plan.features
    limits = profile.limits
    if category == "hal.device":
        return len(device.queues) if key == "concurrency" else None
    if category == "hal.dispatch":
        return _dispatch_query(device, key)
    if category == "vulkan.device":
        if key == "api_version":
            major, minor = profile.api_version[:2]
            patch = profile.api_version[2] if len(profile.api_version) > 2 else 0
            return major << 22 | minor << 12 | patch
        if key == "subgroup_size":
            return profile.subgroup.size
        if key == "max_compute_workgroup_invocations":
            return limits.max_compute_work_group_invocations
        for axis, letter in enumerate("xyz"):
            if key == f"max_compute_workgroup_size_{letter}":
                return limits.max_compute_work_group_size[axis]
            if key == f"max_compute_workgroup_count_{letter}":
                return limits.max_compute_work_group_count[axis]
        return None
    if category == "vulkan.feature":
        names = _FEATURES.get(key)
        return None if names is None else int(all(name in features for name in names))
    if category == "vulkan.cooperative_matrix":
        return int("cooperativeMatrix" in features) if key == "supported" else None
    return None


_FEATURES: Final = {
    "buffer_device_address": ("bufferDeviceAddress",),
    "physical_storage_buffer64": ("bufferDeviceAddress",),
    "subgroup_size_control": ("subgroupSizeControl",),
    "cooperative_matrix_khr": ("cooperativeMatrix",),
    "storage_buffer_8bit_access": ("storageBuffer8BitAccess",),
    "storage_buffer_16bit_access": ("storageBuffer16BitAccess",),
    "shader_float16": ("shaderFloat16",),
    "shader_float64": ("shaderFloat64",),
    "shader_bfloat16_type": ("shaderBFloat16Type",),
    "shader_bfloat16_dot_product": ("shaderBFloat16DotProduct",),
    "shader_bfloat16_cooperative_matrix": ("shaderBFloat16CooperativeMatrix",),
    "shader_int8": ("shaderInt8",),
    "shader_int16": ("shaderInt16",),
    "shader_int64": ("shaderInt64",),
    "shader_integer_dot_product": ("shaderIntegerDotProduct",),
    "vulkan_memory_model": ("vulkanMemoryModel",),
    "vulkan_memory_model_device_scope": ("vulkanMemoryModelDeviceScope",),
}


def _dispatch_query(device: Device, key: str) -> int | None:
    """Dispatch queries of compilers up to 3.11: bits for what kernels may compute with and store."""
    features = device.plan.features

    def bits(*names: str) -> int:
        return sum(1 << place for place, name in enumerate(names) if name in features)

    if key == "concurrency":
        return 1
    if key == "compute.bitwidths.fp":
        return bits("shaderFloat16", "shaderFloat64")
    if key == "compute.bitwidths.int":
        return bits("shaderInt8", "shaderInt16", "shaderInt64")
    if key == "storage.bitwidths":
        return bits("storageBuffer8BitAccess", "storageBuffer16BitAccess")
    if key == "dotprod.ops":
        return bits("shaderIntegerDotProduct")
    if key == "coopmatrix.ops":
        return bits("cooperativeMatrix")
    if key == "address.mode":
        return bits("bufferDeviceAddress")
    if key == "subgroup.ops":
        operations = device.profile.subgroup.supported_operations
        return ("shuffle" in operations) | ("arithmetic" in operations) << 1
    return None
