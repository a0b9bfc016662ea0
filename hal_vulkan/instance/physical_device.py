"""Reads a VkPhysicalDevice into a ``DeviceProfile``."""

from __future__ import annotations

import os
from dataclasses import fields
from typing import Any, Final
from uuid import UUID

from ..vulkan.functions import UINT64_MAX, CData, InstanceFunctions, chain, ffi, new, text
from ..vulkan.results import listed, listed_names
from .features import FeatureChain
from .profile import (
    CooperativeMatrix,
    DeviceLimits,
    DeviceProfile,
    DeviceType,
    MemoryHeap,
    MemoryType,
    QueueFamily,
    SubgroupProperties,
)

_NEVER: Final = 99  # a minor version: never in core
_DRIVER_NAMES: Final = {
    value: name.removeprefix("VK_DRIVER_ID_") for value, name in ffi.typeof("VkDriverId").elements.items()
}
# By bit of VkSubgroupFeatureFlagBits.
SUBGROUP_OPERATIONS: Final = (
    *("basic", "vote", "arithmetic", "ballot", "shuffle", "shuffle_relative", "clustered", "quad", "partitioned"),
    *("rotate", "rotate_clustered"),
)
_COMPUTE_STAGE_BIT: Final = 0x20

COMPONENTS: Final = ("f16", "f32", "f64", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64")
SCOPES: Final = {1: "device", 2: "workgroup", 3: "subgroup", 5: "queue_family"}

TIME_DOMAINS: Final = {0: "device", 1: "clock_monotonic", 2: "clock_monotonic_raw", 3: "query_performance_counter"}


def read_profile(functions: InstanceFunctions, physical: CData, instance_version: tuple[int, int]) -> DeviceProfile:
    """Returns everything that pumice reads from a physical device, as plain data."""
    query = functions.vkEnumerateDeviceExtensionProperties
    extensions = listed_names(query, "VkExtensionProperties", "extensionName", "device extensions", physical, ffi.NULL)
    head = new("VkPhysicalDeviceProperties2")
    functions.vkGetPhysicalDeviceProperties2(physical, head)
    core = head.properties
    api_version = (core.apiVersion >> 22 & 0x7F, core.apiVersion >> 12 & 0x3FF, core.apiVersion & 0xFFF)
    minor = min(api_version[:2], instance_version)[1]
    # Structures that the driver does not know are not chained and stay zero.
    driver, timeline = new("VkPhysicalDeviceDriverProperties"), new("VkPhysicalDeviceTimelineSemaphoreProperties")
    maintenance4 = new("VkPhysicalDeviceMaintenance4Properties")
    sizes = new("VkPhysicalDeviceSubgroupSizeControlProperties")
    push = new("VkPhysicalDevicePushDescriptorPropertiesKHR")
    host = new("VkPhysicalDeviceExternalMemoryHostPropertiesEXT")
    identity = new("VkPhysicalDeviceIDProperties")
    subgroup = new("VkPhysicalDeviceSubgroupProperties")
    maintenance3 = new("VkPhysicalDeviceMaintenance3Properties")
    float_controls = new("VkPhysicalDeviceFloatControlsProperties")
    nvidia = new("VkPhysicalDeviceShaderSMBuiltinsPropertiesNV")
    amd = new("VkPhysicalDeviceShaderCorePropertiesAMD")
    arm = new("VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM")
    known = [identity, subgroup, maintenance3]
    known += [driver, timeline, float_controls] if minor >= 2 else []
    for structure, core_minor, extension in (
        (maintenance4, 3, "VK_KHR_maintenance4"),
        (sizes, 3, "VK_EXT_subgroup_size_control"),
        (push, _NEVER, "VK_KHR_push_descriptor"),
        (host, _NEVER, "VK_EXT_external_memory_host"),
        (nvidia, _NEVER, "VK_NV_shader_sm_builtins"),
        (amd, _NEVER, "VK_AMD_shader_core_properties"),
        (arm, _NEVER, "VK_ARM_shader_core_builtins"),
    ):
        if minor >= core_minor or extension in extensions:
            known.append(structure)
    functions.vkGetPhysicalDeviceProperties2(physical, chain(head, *known))
    memory_types, memory_heaps = _memory(functions, physical)
    largest_allocation = maintenance3.maxMemoryAllocationSize
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return DeviceProfile(
        name=text(core.deviceName),
        device_type=DeviceType(core.deviceType),
        vendor_id=core.vendorID,
        device_id=core.deviceID,
        device_uuid=str(UUID(bytes=bytes(identity.deviceUUID))),
        driver_uuid=str(UUID(bytes=bytes(identity.driverUUID))),
        driver_id=driver.driverID,
        driver_id_name=_DRIVER_NAMES.get(driver.driverID, f"UNKNOWN_{driver.driverID}"),
        driver_name=text(driver.driverName),
        driver_info=text(driver.driverInfo),
        driver_version=core.driverVersion,
        api_version=api_version,
        limits=DeviceLimits(
            **_core_limits(core.limits),
            max_memory_allocation_size=largest_allocation,
            max_buffer_size=maintenance4.maxBufferSize or largest_allocation,
            max_push_descriptors=push.maxPushDescriptors,
            min_imported_host_pointer_alignment=host.minImportedHostPointerAlignment,
            max_timeline_semaphore_value_difference=timeline.maxTimelineSemaphoreValueDifference or UINT64_MAX,
        ),
        subgroup=SubgroupProperties(
            size=subgroup.subgroupSize,
            min_size=sizes.minSubgroupSize or subgroup.subgroupSize,
            max_size=sizes.maxSubgroupSize or subgroup.subgroupSize,
            max_compute_workgroup_subgroups=sizes.maxComputeWorkgroupSubgroups,
            required_size_for_compute=bool(sizes.requiredSubgroupSizeStages & _COMPUTE_STAGE_BIT),
            supported_operations=frozenset(
                name for bit, name in enumerate(SUBGROUP_OPERATIONS) if subgroup.supportedOperations >> bit & 1
            ),
            compute_stage=bool(subgroup.supportedStages & _COMPUTE_STAGE_BIT),
        ),
        memory_types=memory_types,
        memory_heaps=memory_heaps,
        queue_families=_queue_families(functions, physical),
        extensions=extensions,
        features=_features(functions, physical, minor, extensions),
        properties=frozenset(
            name
            for name, field in ffi.typeof("VkPhysicalDeviceFloatControlsProperties").fields
            if name.startswith("shader") and getattr(float_controls, name)
        ),
        time_domains=_time_domains(functions, physical, extensions),
        compute_units=(
            processors
            if core.deviceType == DeviceType.CPU
            else nvidia.shaderSMCount
            or amd.shaderEngineCount * amd.shaderArraysPerEngineCount * amd.computeUnitsPerShaderArray
            or arm.shaderCoreCount
        ),
        cooperative_matrices=_cooperative_matrices(functions, physical, extensions),
        instance_version=instance_version,
    )


def _cooperative_matrices(
    functions: InstanceFunctions, physical: CData, extensions: frozenset[str]
) -> tuple[CooperativeMatrix, ...]:
    """Returns the device's cooperative matrices whose types and scopes the binding knows."""
    if "VK_KHR_cooperative_matrix" not in extensions:
        return ()
    query = functions.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR
    matrices = listed(query, "VkCooperativeMatrixPropertiesKHR", "cooperative matrices", physical)
    return tuple(
        CooperativeMatrix(
            m=matrix.MSize,
            n=matrix.NSize,
            k=matrix.KSize,
            a_type=COMPONENTS[matrix.AType],
            b_type=COMPONENTS[matrix.BType],
            c_type=COMPONENTS[matrix.CType],
            result_type=COMPONENTS[matrix.ResultType],
            saturating=bool(matrix.saturatingAccumulation),
            scope=SCOPES[matrix.scope],
        )
        for matrix in matrices
        if max(matrix.AType, matrix.BType, matrix.CType, matrix.ResultType) < len(COMPONENTS) and matrix.scope in SCOPES
    )


def _core_limits(limits: CData) -> dict[str, Any]:
    """Returns the fields of ``DeviceLimits`` that ``VkPhysicalDeviceLimits`` has: its names in snake case."""
    values: dict[str, Any] = {}
    for field in fields(DeviceLimits):
        first, *rest = field.name.split("_")
        name = first + "".join(word.capitalize() for word in rest)
        if hasattr(limits, name):
            value = getattr(limits, name)
            if isinstance(field.default, tuple):
                value = tuple(value)
            values[field.name] = bool(value) if isinstance(field.default, bool) else value
    return values


def _features(functions: InstanceFunctions, physical: CData, minor: int, extensions: frozenset[str]) -> frozenset[str]:
    chain = FeatureChain((1, minor) if minor >= 2 else (1, 0), extensions if minor >= 2 else frozenset())
    functions.vkGetPhysicalDeviceFeatures2(physical, ffi.cast("VkPhysicalDeviceFeatures2 *", chain.head))
    return chain.names


def _memory(functions: InstanceFunctions, physical: CData) -> tuple[tuple[MemoryType, ...], tuple[MemoryHeap, ...]]:
    properties = new("VkPhysicalDeviceMemoryProperties2")
    functions.vkGetPhysicalDeviceMemoryProperties2(physical, properties)
    memory = properties.memoryProperties
    types = tuple(
        MemoryType(memory.memoryTypes[i].propertyFlags, memory.memoryTypes[i].heapIndex)
        for i in range(memory.memoryTypeCount)
    )
    heaps = tuple(
        MemoryHeap(memory.memoryHeaps[i].size, memory.memoryHeaps[i].flags) for i in range(memory.memoryHeapCount)
    )
    return types, heaps


def _queue_families(functions: InstanceFunctions, physical: CData) -> tuple[QueueFamily, ...]:
    query = functions.vkGetPhysicalDeviceQueueFamilyProperties2
    families = listed(query, "VkQueueFamilyProperties2", "queue families", physical)
    return tuple(
        QueueFamily(family.queueFlags, family.queueCount, family.timestampValidBits)
        for family in (entry.queueFamilyProperties for entry in families)
    )


def _time_domains(functions: InstanceFunctions, physical: CData, extensions: frozenset[str]) -> frozenset[str]:
    if "VK_KHR_calibrated_timestamps" in extensions:
        query = functions.vkGetPhysicalDeviceCalibrateableTimeDomainsKHR
    elif "VK_EXT_calibrated_timestamps" in extensions:
        query = functions.vkGetPhysicalDeviceCalibrateableTimeDomainsEXT
    else:
        return frozenset()
    domains = listed(query, "VkTimeDomainEXT", "time domains", physical)
    return frozenset(TIME_DOMAINS.get(domain, f"domain_{domain}") for domain in domains)
