"""Reads a VkPhysicalDevice into a ``DeviceProfile``, and writes a plan's features back into structures."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from ..vulkan.functions import UINT64_MAX, CData, InstanceFunctions, chain, enum_value, ffi, new, text
from ..vulkan.results import listed
from .profile import DeviceLimits, DeviceProfile, DeviceType, MemoryHeap, MemoryType, QueueFamily, SubgroupProperties

# Structure → (Vulkan minor version that has it, extension that has it on older versions).
# A minor version of 99 is "never in core".
_FEATURE_STRUCTURES: Final[dict[str, tuple[int, str]]] = {
    "VkPhysicalDeviceVulkan11Features": (2, ""),
    "VkPhysicalDeviceVulkan12Features": (2, ""),
    "VkPhysicalDeviceVulkan13Features": (3, ""),
    "VkPhysicalDeviceSubgroupSizeControlFeaturesEXT": (99, "VK_EXT_subgroup_size_control"),
    "VkPhysicalDeviceSynchronization2FeaturesKHR": (99, "VK_KHR_synchronization2"),
    "VkPhysicalDeviceMaintenance4FeaturesKHR": (99, "VK_KHR_maintenance4"),
    "VkPhysicalDeviceShaderIntegerDotProductFeaturesKHR": (99, "VK_KHR_shader_integer_dot_product"),
    "VkPhysicalDeviceShaderTerminateInvocationFeaturesKHR": (99, "VK_KHR_shader_terminate_invocation"),
    "VkPhysicalDeviceShaderAtomicFloatFeaturesEXT": (99, "VK_EXT_shader_atomic_float"),
    "VkPhysicalDeviceShaderAtomicFloat2FeaturesEXT": (99, "VK_EXT_shader_atomic_float2"),
    "VkPhysicalDeviceCooperativeMatrixFeaturesKHR": (99, "VK_KHR_cooperative_matrix"),
    "VkPhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR": (99, "VK_KHR_workgroup_memory_explicit_layout"),
    "VkPhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR": (
        99,
        "VK_KHR_shader_subgroup_uniform_control_flow",
    ),
    "VkPhysicalDeviceShaderClockFeaturesKHR": (99, "VK_KHR_shader_clock"),
    "VkPhysicalDeviceFaultFeaturesEXT": (99, "VK_EXT_device_fault"),
    "VkPhysicalDeviceRobustness2FeaturesEXT": (99, "VK_EXT_robustness2"),
}
# In core as of 1.3: the extension's structure must not be chained beside VkPhysicalDeviceVulkan13Features.
_IN_VULKAN_13: Final = frozenset(
    {
        "VkPhysicalDeviceSubgroupSizeControlFeaturesEXT",
        "VkPhysicalDeviceSynchronization2FeaturesKHR",
        "VkPhysicalDeviceMaintenance4FeaturesKHR",
        "VkPhysicalDeviceShaderIntegerDotProductFeaturesKHR",
        "VkPhysicalDeviceShaderTerminateInvocationFeaturesKHR",
    }
)

_SUBGROUP_OPERATIONS: Final = (
    "basic",
    "vote",
    "arithmetic",
    "ballot",
    "shuffle",
    "shuffle_relative",
    "clustered",
    "quad",
)
_COMPUTE_STAGE_BIT: Final = 0x20

_TIME_DOMAINS: Final = {0: "device", 1: "clock_monotonic", 2: "clock_monotonic_raw", 3: "query_performance_counter"}


def _structures_for(minor: int, extensions: frozenset[str]) -> list[str]:
    chosen = []
    for name, (core_minor, extension) in _FEATURE_STRUCTURES.items():
        if minor >= core_minor or (extension in extensions and not (minor >= 3 and name in _IN_VULKAN_13)):
            chosen.append(name)
    return chosen


def _flags_of(struct_name: str) -> list[str]:
    return [
        name
        for name, field in ffi.typeof(struct_name).fields
        if field.type.cname in ("uint32_t", "VkBool32") and name not in ("sType",)
    ]


def feature_structures(features: frozenset[str], *, minor: int, extensions: frozenset[str]) -> CData:
    """A ``VkPhysicalDeviceFeatures2`` chain with exactly these features set, for ``VkDeviceCreateInfo.pNext``."""
    head = new("VkPhysicalDeviceFeatures2")
    for name in _flags_of("VkPhysicalDeviceFeatures"):
        if name in features:
            setattr(head.features, name, 1)
    rest = []
    for struct_name in _structures_for(minor, extensions):
        struct = new(struct_name)
        wanted = [name for name in _flags_of(struct_name) if name in features]
        for name in wanted:
            setattr(struct, name, 1)
        if wanted:
            rest.append(struct)
    return chain(head, *rest)


def read_profile(functions: InstanceFunctions, physical: CData) -> DeviceProfile:
    """Everything pumice reads from a physical device, as plain data."""
    extensions = _extensions(functions, physical)
    head = new("VkPhysicalDeviceProperties2")
    functions.vkGetPhysicalDeviceProperties2(physical, head)
    core = head.properties
    api_version = (core.apiVersion >> 22 & 0x7F, core.apiVersion >> 12 & 0x3FF, core.apiVersion & 0xFFF)
    minor = api_version[1]
    identity = new("VkPhysicalDeviceIDProperties")
    subgroup = new("VkPhysicalDeviceSubgroupProperties")
    maintenance3 = new("VkPhysicalDeviceMaintenance3Properties")
    driver = new("VkPhysicalDeviceDriverProperties") if minor >= 2 else None
    timeline = new("VkPhysicalDeviceTimelineSemaphoreProperties") if minor >= 2 else None
    maintenance4 = (
        new("VkPhysicalDeviceMaintenance4Properties") if _has(minor, 3, extensions, "VK_KHR_maintenance4") else None
    )
    sizes = (
        new("VkPhysicalDeviceSubgroupSizeControlProperties")
        if _has(minor, 3, extensions, "VK_EXT_subgroup_size_control")
        else None
    )
    push = new("VkPhysicalDevicePushDescriptorPropertiesKHR") if "VK_KHR_push_descriptor" in extensions else None
    host = (
        new("VkPhysicalDeviceExternalMemoryHostPropertiesEXT") if "VK_EXT_external_memory_host" in extensions else None
    )
    functions.vkGetPhysicalDeviceProperties2(
        physical,
        chain(head, identity, subgroup, maintenance3, driver, timeline, maintenance4, sizes, push, host),
    )
    limits = core.limits
    features = _features(functions, physical, minor, extensions)
    memory_types, memory_heaps = _memory(functions, physical)
    driver_id = driver.driverID if driver is not None else 0
    return DeviceProfile(
        name=text(core.deviceName),
        device_type=DeviceType(core.deviceType),
        vendor_id=core.vendorID,
        device_id=core.deviceID,
        device_uuid=_uuid(identity.deviceUUID),
        driver_uuid=_uuid(identity.driverUUID),
        driver_id=driver_id,
        driver_id_name=_driver_id_name(driver_id),
        driver_name=text(driver.driverName) if driver is not None else "",
        driver_info=text(driver.driverInfo) if driver is not None else "",
        driver_version=core.driverVersion,
        api_version=api_version,
        limits=DeviceLimits(
            **_core_limits(limits),
            max_memory_allocation_size=maintenance3.maxMemoryAllocationSize,
            max_buffer_size=(
                maintenance4.maxBufferSize if maintenance4 is not None else maintenance3.maxMemoryAllocationSize
            ),
            max_push_descriptors=push.maxPushDescriptors if push is not None else 0,
            min_imported_host_pointer_alignment=host.minImportedHostPointerAlignment if host is not None else 0,
            max_timeline_semaphore_value_difference=(
                timeline.maxTimelineSemaphoreValueDifference if timeline is not None else UINT64_MAX
            ),
        ),
        subgroup=SubgroupProperties(
            size=subgroup.subgroupSize,
            min_size=sizes.minSubgroupSize if sizes is not None else subgroup.subgroupSize,
            max_size=sizes.maxSubgroupSize if sizes is not None else subgroup.subgroupSize,
            max_compute_workgroup_subgroups=sizes.maxComputeWorkgroupSubgroups if sizes is not None else 0,
            required_size_for_compute=bool(sizes is not None and sizes.requiredSubgroupSizeStages & _COMPUTE_STAGE_BIT),
            supported_operations=frozenset(
                name for bit, name in enumerate(_SUBGROUP_OPERATIONS) if subgroup.supportedOperations >> bit & 1
            ),
            compute_stage=bool(subgroup.supportedStages & _COMPUTE_STAGE_BIT),
        ),
        memory_types=memory_types,
        memory_heaps=memory_heaps,
        queue_families=_queue_families(functions, physical),
        extensions=extensions,
        features=features,
        time_domains=_time_domains(functions, physical, extensions),
    )


def _has(minor: int, core_minor: int, extensions: frozenset[str], extension: str) -> bool:
    return minor >= core_minor or extension in extensions


def _core_limits(limits: CData) -> dict[str, Any]:
    """Those fields of ``DeviceLimits`` that ``VkPhysicalDeviceLimits`` has: its names in snake case."""
    found: dict[str, Any] = {}
    for field in fields(DeviceLimits):
        first, *rest = field.name.split("_")
        name = first + "".join(word.capitalize() for word in rest)
        if hasattr(limits, name):
            value = getattr(limits, name)
            if isinstance(field.default, tuple):
                value = tuple(value)
            found[field.name] = bool(value) if isinstance(field.default, bool) else value
    return found


def _uuid(raw: CData) -> str:
    digits = bytes(raw).hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _driver_id_name(driver_id: int) -> str:
    for name, value in ffi.typeof("VkDriverId").relements.items():
        if value == driver_id:
            return str(name.removeprefix("VK_DRIVER_ID_"))
    return f"UNKNOWN_{driver_id}"


def _extensions(functions: InstanceFunctions, physical: CData) -> frozenset[str]:
    query = functions.vkEnumerateDeviceExtensionProperties
    found = listed(query, "VkExtensionProperties", "device extensions", physical, ffi.NULL)
    return frozenset(text(one.extensionName) for one in found)


def _features(functions: InstanceFunctions, physical: CData, minor: int, extensions: frozenset[str]) -> frozenset[str]:
    head = new("VkPhysicalDeviceFeatures2")
    structs = {name: new(name) for name in _structures_for(minor, extensions)} if minor >= 2 else {}
    functions.vkGetPhysicalDeviceFeatures2(physical, chain(head, *structs.values()))
    supported = {name for name in _flags_of("VkPhysicalDeviceFeatures") if getattr(head.features, name)}
    for struct_name, struct in structs.items():
        supported.update(name for name in _flags_of(struct_name) if getattr(struct, name))
    return frozenset(supported)


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
    count = ffi.new("uint32_t *")
    functions.vkGetPhysicalDeviceQueueFamilyProperties2(physical, count, ffi.NULL)
    families = ffi.new("VkQueueFamilyProperties2[]", max(count[0], 1))
    kind = enum_value("VkStructureType", "VK_STRUCTURE_TYPE_QUEUE_FAMILY_PROPERTIES_2")
    for i in range(count[0]):
        families[i].sType = kind
    functions.vkGetPhysicalDeviceQueueFamilyProperties2(physical, count, families)
    return tuple(
        QueueFamily(f.queueFlags, f.queueCount, f.timestampValidBits)
        for f in (families[i].queueFamilyProperties for i in range(count[0]))
    )


def _time_domains(functions: InstanceFunctions, physical: CData, extensions: frozenset[str]) -> frozenset[str]:
    if "VK_KHR_calibrated_timestamps" in extensions:
        query = functions.vkGetPhysicalDeviceCalibrateableTimeDomainsKHR
    elif "VK_EXT_calibrated_timestamps" in extensions:
        query = functions.vkGetPhysicalDeviceCalibrateableTimeDomainsEXT
    else:
        return frozenset()
    domains = listed(query, "VkTimeDomainEXT", "time domains", physical)
    return frozenset(_TIME_DOMAINS.get(domain, f"domain_{domain}") for domain in domains)
