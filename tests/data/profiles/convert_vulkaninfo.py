"""Turn the text output of vulkaninfo (1.2 or later) into recorded profiles.

    python convert_vulkaninfo.py FILE GPU-NUMBER SOURCE [NOTE] > NAME.json

Only what the text says is written; a field that it lacks is left out and read back as its default. Time domains are
in no vulkaninfo output. ``vulkaninfo --json`` holds no memory heaps and no memory types, so it is not read.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

DRIVER_IDS = {  # VkDriverId
    "DRIVER_ID_AMD_PROPRIETARY": 1,
    "DRIVER_ID_AMD_OPEN_SOURCE": 2,
    "DRIVER_ID_MESA_RADV": 3,
    "DRIVER_ID_NVIDIA_PROPRIETARY": 4,
    "DRIVER_ID_INTEL_PROPRIETARY_WINDOWS": 5,
    "DRIVER_ID_INTEL_OPEN_SOURCE_MESA": 6,
    "DRIVER_ID_IMAGINATION_PROPRIETARY": 7,
    "DRIVER_ID_QUALCOMM_PROPRIETARY": 8,
    "DRIVER_ID_ARM_PROPRIETARY": 9,
    "DRIVER_ID_GOOGLE_SWIFTSHADER": 10,
    "DRIVER_ID_BROADCOM_PROPRIETARY": 12,
    "DRIVER_ID_MESA_LLVMPIPE": 13,
    "DRIVER_ID_MOLTENVK": 14,
    "DRIVER_ID_MESA_TURNIP": 18,
    "DRIVER_ID_MESA_V3DV": 19,
    "DRIVER_ID_MESA_PANVK": 20,
    "DRIVER_ID_SAMSUNG_PROPRIETARY": 21,
    "DRIVER_ID_MESA_NVK": 24,
}
QUEUE_FLAGS = {
    "GRAPHICS": 0x1,
    "COMPUTE": 0x2,
    "TRANSFER": 0x4,
    "SPARSE_BINDING": 0x8,
    "PROTECTED": 0x10,
    "VIDEO_DECODE": 0x20,
    "VIDEO_ENCODE": 0x40,
    "OPTICAL_FLOW": 0x100,
}
DEVICE_TYPES = {
    "OTHER": "OTHER",
    "INTEGRATED_GPU": "INTEGRATED",
    "DISCRETE_GPU": "DISCRETE",
    "VIRTUAL_GPU": "VIRTUAL",
    "CPU": "CPU",
}
LIMITS = {
    "max_storage_buffer_range": "maxStorageBufferRange",
    "max_push_constants_size": "maxPushConstantsSize",
    "max_memory_allocation_count": "maxMemoryAllocationCount",
    "max_bound_descriptor_sets": "maxBoundDescriptorSets",
    "max_per_stage_descriptor_storage_buffers": "maxPerStageDescriptorStorageBuffers",
    "max_descriptor_set_storage_buffers": "maxDescriptorSetStorageBuffers",
    "max_compute_shared_memory_size": "maxComputeSharedMemorySize",
    "max_compute_work_group_count": "maxComputeWorkGroupCount",
    "max_compute_work_group_invocations": "maxComputeWorkGroupInvocations",
    "max_compute_work_group_size": "maxComputeWorkGroupSize",
    "min_storage_buffer_offset_alignment": "minStorageBufferOffsetAlignment",
    "min_uniform_buffer_offset_alignment": "minUniformBufferOffsetAlignment",
    "min_memory_map_alignment": "minMemoryMapAlignment",
    "non_coherent_atom_size": "nonCoherentAtomSize",
    "timestamp_period": "timestampPeriod",
    "timestamp_compute_and_graphics": "timestampComputeAndGraphics",
    "max_memory_allocation_size": "maxMemoryAllocationSize",
    "max_buffer_size": "maxBufferSize",
    "max_push_descriptors": "maxPushDescriptors",
    "min_imported_host_pointer_alignment": "minImportedHostPointerAlignment",
    "max_timeline_semaphore_value_difference": "maxTimelineSemaphoreValueDifference",
    "buffer_image_granularity": "bufferImageGranularity",
}


def number(text: str) -> object:
    """A value as vulkaninfo prints it: true, 16, 0x00000010, 52.0833."""
    text = text.strip()
    if text in ("true", "false"):
        return text == "true"
    return int(text, 0) if re.fullmatch(r"0x[0-9a-fA-F]+|\d+", text) else float(text)


def version(text: str) -> int:
    """The packed number of ``1.3.237 (4206829)`` or ``4206829 (1.3.237)`` or ``83894278 (0x5002006)``."""
    first, _, second = text.partition("(")
    second = second.rstrip(") ")
    return int(first) if re.fullmatch(r"\d+", first.strip()) else int(second, 0)


def one_gpu(text: str, gpu: int) -> list[str]:
    """The lines of one device in the part "Device Properties and Extensions"."""
    body = text[text.index("Device Properties and Extensions") :].splitlines()
    heads = [i for i, line in enumerate(body) if re.fullmatch(r"GPU\d+:\s*", line)]
    start = next(i for i in heads if body[i].strip() == f"GPU{gpu}:")
    return body[start + 1 : next((i for i in heads if i > start), len(body))]


def sections(lines: list[str]) -> dict[str, list[str]]:
    """Lines by the heading above them: an unindented text that ends in a colon, or has ``: count = N``."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        head = re.fullmatch(r"(Vk\w+|Device Extensions|memoryHeaps|memoryTypes): *(count = *\d+)?\s*", line)
        if head:
            current = found.setdefault(head[1], [])
        elif not re.fullmatch(r"[=-]*\s*", line):
            current.append(line)
    return found


def scalars(lines: list[str]) -> dict[str, str]:
    return {m[1]: m[2].strip() for line in lines if (m := re.fullmatch(r"\s+(\w+)\s*=\s*(.*)", line))}


def listed(lines: list[str], key: str) -> list[str] | None:
    """The items below ``key: count = N``, or ``None`` without that key."""
    for index, line in enumerate(lines):
        if m := re.fullmatch(rf"\s+{key}: count = (\d+)\s*", line):
            return [item.strip() for item in lines[index + 1 : index + 1 + int(m[1])]]
    return None


def numbered(lines: list[str], key: str) -> list[list[str]]:
    """The lines below each ``key[i]:``."""
    blocks: list[list[str]] = []
    for line in lines:
        if re.fullmatch(rf"\s*{key}\[\d+\]:\s*", line):
            blocks.append([])
        elif blocks:
            blocks[-1].append(line)
    return blocks


def convert(text: str, gpu: int) -> dict[str, object]:
    parts = sections(one_gpu(text, gpu))
    basic = scalars(parts["VkPhysicalDeviceProperties"])
    properties = [line for name, lines in parts.items() if "Properties" in name or "Limits" in name for line in lines]
    flat = scalars(properties)
    packed = version(basic["apiVersion"])

    limits: dict[str, object] = {}
    for ours, theirs in LIMITS.items():
        if theirs in flat:
            limits[ours] = number(flat[theirs])
        elif items := listed(properties, theirs):
            limits[ours] = [number(item) for item in items]
    limits["timestamp_period"] = float(str(limits["timestamp_period"]))

    subgroup: dict[str, object] = {}
    for ours, theirs in (
        ("size", "subgroupSize"),
        ("min_size", "minSubgroupSize"),
        ("max_size", "maxSubgroupSize"),
        ("max_compute_workgroup_subgroups", "maxComputeWorkgroupSubgroups"),
    ):
        if theirs in flat:
            subgroup[ours] = number(flat[theirs])
    if "min_size" not in subgroup:
        subgroup["min_size"] = subgroup["max_size"] = subgroup["size"]
    operations = listed(properties, "subgroupSupportedOperations") or listed(properties, "supportedOperations")
    stages = listed(properties, "subgroupSupportedStages") or listed(properties, "supportedStages")
    required = listed(properties, "requiredSubgroupSizeStages")
    if operations:
        stems = [re.sub(r"^SUBGROUP_FEATURE_|_BIT(_[A-Z]+)?$", "", name).lower() for name in operations]
        subgroup["supported_operations"] = sorted(stems)
    if stages:
        subgroup["compute_stage"] = any("COMPUTE" in name or name.endswith("_ALL") for name in stages)
    if required:
        subgroup["required_size_for_compute"] = any("COMPUTE" in name for name in required)

    families = []
    for block in numbered(parts["VkQueueFamilyProperties"], "queueProperties"):
        values = scalars(block)
        names = {re.sub(r"^QUEUE_|_BIT(_[A-Z]+)?$|_NV$|_KHR$", "", f.strip()) for f in values["queueFlags"].split("|")}
        names = {re.sub(r"_BIT$", "", name) for name in names if name}
        families.append(
            {
                "flags": sum(bit for name, bit in QUEUE_FLAGS.items() if name in names),
                "count": int(values["queueCount"]),
                "timestamp_valid_bits": int(values["timestampValidBits"]),
            }
        )
        if unknown := names - set(QUEUE_FLAGS):
            raise SystemExit(f"queue flags that this script does not know: {unknown}")
    heaps = []
    for block in numbered(parts["memoryHeaps"], "memoryHeaps"):
        local = any("MEMORY_HEAP_DEVICE_LOCAL" in line for line in block)
        multi = any("MEMORY_HEAP_MULTI_INSTANCE" in line for line in block)
        heaps.append({"size": int(scalars(block)["size"].split()[0]), "flags": local | multi << 1})
    types = []
    for block in numbered(parts["memoryTypes"], "memoryTypes"):
        values = scalars(block)
        flags = int(values["propertyFlags"].split(":")[0], 0)
        types.append({"property_flags": flags, "heap_index": int(values["heapIndex"])})

    features = {
        key
        for name, lines in parts.items()
        if re.search(r"Features[A-Z0-9]*$|Features$", name)
        for key, value in scalars(lines).items()
        if value == "true"
    }
    driver = flat.get("driverID", "")
    return {
        "name": basic["deviceName"],
        "device_type": DEVICE_TYPES[basic["deviceType"].removeprefix("PHYSICAL_DEVICE_TYPE_")],
        "vendor_id": int(basic["vendorID"], 0),
        "device_id": int(basic["deviceID"], 0),
        "device_uuid": flat["deviceUUID"],
        "driver_uuid": flat["driverUUID"],
        "driver_id": DRIVER_IDS[driver],
        "driver_id_name": driver,
        "driver_name": flat["driverName"],
        "driver_info": flat["driverInfo"],
        "driver_version": version(basic["driverVersion"]),
        "api_version": [packed >> 22 & 0x7F, packed >> 12 & 0x3FF, packed & 0xFFF],
        "limits": limits,
        "subgroup": subgroup,
        "memory_types": types,
        "memory_heaps": heaps,
        "queue_families": families,
        "extensions": sorted(m[1] for line in parts["Device Extensions"] if (m := re.match(r"\s+(VK_\w+)\s*:", line))),
        "features": sorted(features),
    }


def main() -> None:
    path, gpu, source, *note = sys.argv[1:]
    text = Path(path).read_text(encoding="utf-8", errors="replace").replace("\r", "")
    record = {"source": source, **({"note": note[0]} if note else {}), **convert(text, int(gpu))}
    json.dump(record, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
