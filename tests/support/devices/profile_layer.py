"""Plays recorded devices: builds the layer in ``profile_layer.c``, and writes the patches that it reads.

The driver below is Khronos's mock ICD, which executes nothing; ``PUMICE_MOCK_ICD`` names its library.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from pumice.hal_vulkan.instance.features import feature_structures
from pumice.hal_vulkan.instance.physical_device import COMPONENTS, SCOPES, SUBGROUP_OPERATIONS, TIME_DOMAINS
from pumice.hal_vulkan.instance.profile import DeviceProfile
from pumice.hal_vulkan.vulkan.functions import CData, ffi, new

MOCK_ICD: Final = "PUMICE_MOCK_ICD"
PATCHES: Final = "PUMICE_TEST_PROFILE_PATCHES"
LAYER: Final = "VK_LAYER_PUMICE_profile"
VALIDATION: Final = "VK_LAYER_KHRONOS_validation"
COMPILER: Final = shutil.which("gcc") or shutil.which("cc")

_STRUCTURE, _MEMORY, _FAMILIES, _EXTENSIONS, _DOMAINS, _MATRICES = range(1, 7)
_COMPUTE: Final = 0x20
# The sType of VkPhysicalDeviceVulkan14Properties, which the binding does not declare, and the member's offset in it.
_MAX_PUSH_DESCRIPTORS: Final = (56, 28)
# Structures with the properties that a profile has; several have the same ones.
_PROPERTIES: Final = (
    *("IDProperties", "SubgroupProperties", "Maintenance3Properties", "DriverProperties", "FloatControlsProperties"),
    *("TimelineSemaphoreProperties", "Maintenance4Properties", "SubgroupSizeControlProperties"),
    *("PushDescriptorPropertiesKHR", "ExternalMemoryHostPropertiesEXT", "ShaderSMBuiltinsPropertiesNV"),
    *("ShaderCorePropertiesAMD", "ShaderCoreBuiltinsPropertiesARM"),
    *("Vulkan11Properties", "Vulkan12Properties", "Vulkan13Properties"),
)


def build(folder: Path) -> Path:
    """Compiles the layer into a folder, with its manifest."""
    assert COMPILER is not None
    library = folder / "libprofile_layer.so"
    source = Path(__file__).with_suffix(".c")
    subprocess.run(
        [COMPILER, "-std=gnu11", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, source, "-lpthread"],
        check=True,
    )
    layer = {
        "name": LAYER,
        "type": "GLOBAL",
        "library_path": str(library),
        "api_version": "1.4.0",
        "implementation_version": "1",
        "description": "plays a recorded device",
    }
    (folder / "profile_layer.json").write_text(json.dumps({"file_format_version": "1.2.0", "layer": layer}))
    icd = {"library_path": os.environ[MOCK_ICD], "api_version": "1.4.0"}
    (folder / "mock.json").write_text(json.dumps({"file_format_version": "1.0.1", "ICD": icd}))
    return folder


def environment(folder: Path, patches: Path, *, validation: bool) -> dict[str, str]:
    """Returns the variables of a process that sees a played device alone."""
    # The validation layer is above: newer loaders go by the order of names, older ones by that of folders.
    layers = [*([VALIDATION] if validation else []), LAYER]
    paths = [os.environ.get("VK_LAYER_PATH", "/usr/share/vulkan/explicit_layer.d"), str(folder)]
    return {
        **os.environ,
        "VK_INSTANCE_LAYERS": os.pathsep.join(layers),
        "VK_DRIVER_FILES": str(folder / "mock.json"),
        "VK_ICD_FILENAMES": str(folder / "mock.json"),
        "VK_LAYER_PATH": os.pathsep.join(paths),
        "PUMICE_VALIDATION": str(int(validation)),
        "PUMICE_DEVICE": "vulkan",
        PATCHES: str(patches),
    }


def patches(profile: DeviceProfile) -> bytes:
    """Returns the file that has the layer play a device."""
    return b"".join(_records(profile))


def _records(profile: DeviceProfile) -> Iterator[bytes]:
    head = new("VkPhysicalDeviceProperties2")
    start = ffi.typeof("VkPhysicalDeviceProperties2").fields
    base = dict(start)["properties"].offset
    core = {
        "deviceName": profile.name.encode()[:255],
        "deviceType": int(profile.device_type),
        "vendorID": profile.vendor_id,
        "deviceID": profile.device_id,
        "driverVersion": profile.driver_version,
        "apiVersion": profile.api_version[0] << 22 | profile.api_version[1] << 12 | profile.api_version[2],
    }
    yield from _members(head.sType, head.properties, core, base)
    limits = {_camel(name): getattr(profile.limits, name) for name in profile.limits.__dataclass_fields__}
    at = base + dict(ffi.typeof("VkPhysicalDeviceProperties").fields)["limits"].offset
    yield from _members(head.sType, head.properties.limits, limits, at)
    values = limits | _values(profile)
    for name in _PROPERTIES:
        each = new(f"VkPhysicalDevice{name}")
        yield from _members(each.sType, each, values, 0)
    yield _record(_STRUCTURE, struct.pack("I", profile.limits.max_push_descriptors), *_MAX_PUSH_DESCRIPTORS)
    versions = profile.api_version[:2], profile.version
    for structure in feature_structures():
        is_offered = any(structure.offered(version, profile.extensions) for version in versions)
        flags = [int(is_offered and name in profile.features) for name in structure.members]
        yield _record(_STRUCTURE, struct.pack(f"{len(flags)}I", *flags), structure.type, 16)

    memory = new("VkPhysicalDeviceMemoryProperties")
    memory.memoryTypeCount, memory.memoryHeapCount = len(profile.memory_types), len(profile.memory_heaps)
    for index, kind in enumerate(profile.memory_types):
        memory.memoryTypes[index].propertyFlags = kind.property_flags
        memory.memoryTypes[index].heapIndex = kind.heap_index
    for index, heap in enumerate(profile.memory_heaps):
        memory.memoryHeaps[index].size, memory.memoryHeaps[index].flags = heap.size, heap.flags
    yield _record(_MEMORY, bytes(ffi.buffer(memory)))

    families = ffi.new("VkQueueFamilyProperties[]", len(profile.queue_families))
    for target, family in zip(families, profile.queue_families, strict=True):
        target.queueFlags, target.queueCount = family.flags, family.count
        target.timestampValidBits = family.timestamp_valid_bits
        granularity = target.minImageTransferGranularity
        granularity.width = granularity.height = granularity.depth = 1
    yield _record(_FAMILIES, bytes(ffi.buffer(families)))

    extensions = ffi.new("VkExtensionProperties[]", len(profile.extensions))
    for extension, name in zip(extensions, sorted(profile.extensions), strict=True):
        extension.extensionName, extension.specVersion = name.encode(), 1
    yield _record(_EXTENSIONS, bytes(ffi.buffer(extensions)))

    domains = [number for number, name in TIME_DOMAINS.items() if name in profile.time_domains]
    yield _record(_DOMAINS, struct.pack(f"{len(domains)}I", *domains))
    yield _record(_MATRICES, b"".join(bytes(ffi.buffer(matrix)) for matrix in _matrices(profile)))


def _values(profile: DeviceProfile) -> dict[str, Any]:
    """Returns the members of all structures of properties, by name."""
    subgroup = profile.subgroup
    operations = sum(1 << bit for bit, name in enumerate(SUBGROUP_OPERATIONS) if name in subgroup.supported_operations)
    stages = _COMPUTE if subgroup.compute_stage else 0
    return {
        "deviceUUID": UUID(profile.device_uuid or "0" * 32).bytes,
        "driverUUID": UUID(profile.driver_uuid or "0" * 32).bytes,
        "driverID": profile.driver_id,
        "driverName": profile.driver_name.encode()[:255],
        "driverInfo": profile.driver_info.encode()[:255],
        "subgroupSize": subgroup.size,
        "supportedStages": stages,
        "subgroupSupportedStages": stages,
        "supportedOperations": operations,
        "subgroupSupportedOperations": operations,
        "minSubgroupSize": subgroup.min_size,
        "maxSubgroupSize": subgroup.max_size,
        "maxComputeWorkgroupSubgroups": subgroup.max_compute_workgroup_subgroups,
        "requiredSubgroupSizeStages": _COMPUTE if subgroup.required_size_for_compute else 0,
        "shaderSMCount": profile.compute_units,
        "shaderEngineCount": profile.compute_units,
        "shaderArraysPerEngineCount": 1,
        "computeUnitsPerShaderArray": 1,
        "shaderCoreCount": profile.compute_units,
        **{
            name: int(name in profile.properties)
            for name, _ in ffi.typeof("VkPhysicalDeviceFloatControlsProperties").fields
            if name.startswith("shader")
        },
    }


def _matrices(profile: DeviceProfile) -> Iterator[CData]:
    for matrix in profile.cooperative_matrices:
        types = {f"{name}Type": COMPONENTS.index(getattr(matrix, f"{name.lower()}_type")) for name in "ABC"}
        yield new(
            "VkCooperativeMatrixPropertiesKHR",
            MSize=matrix.m,
            NSize=matrix.n,
            KSize=matrix.k,
            **types,
            ResultType=COMPONENTS.index(matrix.result_type),
            saturatingAccumulation=matrix.saturating,
            scope={name: number for number, name in SCOPES.items()}[matrix.scope],
        )


def _members(kind: int, target: CData, values: Mapping[str, Any], start: int) -> Iterator[bytes]:
    """Yields a patch for each member of a structure that has a value."""
    type = ffi.typeof(target)
    layout = dict((type.item if type.kind == "pointer" else type).fields)
    for name, value in values.items():
        if name not in layout:
            continue
        setattr(target, name, value)
        offset = layout[name].offset
        data = bytes(
            ffi.buffer(ffi.addressof(target, name) if type.kind == "struct" else ffi.addressof(target[0], name))
        )
        yield _record(_STRUCTURE, data, kind, start + offset)


def _record(kind: int, data: bytes, type: int = 0, offset: int = 0) -> bytes:
    return struct.pack("4I", kind, type, offset, len(data)) + data + bytes(-len(data) % 8)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
