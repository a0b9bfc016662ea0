"""Answers to programs' device queries.

Facts: ``runtime/src/iree/hal/drivers/vulkan/{logical_device.c,vulkan_device.cc}``, IREE 3.1 to 3.13.
"""

from __future__ import annotations

import fnmatch
from typing import Final

from ..instance.logical_device import LogicalDevice
from .executable import supported_formats

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

# Queries of compilers up to 3.11: a bit for each feature.
_DISPATCH_BITS: Final = {
    "compute.bitwidths.fp": ("shaderFloat16", "shaderFloat64"),
    "compute.bitwidths.int": ("shaderInt8", "shaderInt16", "shaderInt64"),
    "storage.bitwidths": ("storageBuffer8BitAccess", "storageBuffer16BitAccess"),
    "dotprod.ops": ("shaderIntegerDotProduct",),
    "coopmatrix.ops": ("cooperativeMatrix",),
    "address.mode": ("bufferDeviceAddress",),
}


def query_device(device: LogicalDevice, category: str, key: str) -> int | None:
    """Returns the value of a device query; ``None`` for an unknown one."""
    profile, features = device.profile, device.plan.features
    if "VK_KHR_cooperative_matrix" not in device.plan.extensions:
        features -= {"cooperativeMatrix"}  # an NVIDIA extension has a feature of the same name
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
            return sum(1 << bit for bit, name in enumerate(_DISPATCH_BITS[key]) if name in features)
        case "vulkan.device", "api_version":
            major, minor = profile.version
            return major << 22 | minor << 12
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
