"""Cases about a device's own statements: its features, limits, memory and queues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Final

from ...hal_vulkan import live_objects
from ...hal_vulkan.instance.profile import DeviceLimits, HeapFlag, MemoryProperty, QueueFlag
from ...runtime.device import Device
from ...runtime.opening import open_device
from .case import Case, Figures

# Notable features, and the consequences if they are missing.
_FEATURES: Final[Mapping[str, str]] = {
    "bufferDeviceAddress": "kernels that take addresses are refused",
    "shaderBufferInt64Atomics": "kernels with atomics of 64-bit integers are refused",
    "shaderFloat16": "halves are computed as 32-bit floats",
    "shaderFloat64": "programs with f64 are refused",
    "shaderInt16": "16-bit integers are computed as words",
    "shaderInt64": "64-bit integers are pairs of words",
    "shaderInt8": "bytes are computed as words",
    "shaderIntegerDotProduct": "products of bytes are computed one by one",
    "storageBuffer16BitAccess": "16-bit elements are parts of words",
    "storageBuffer8BitAccess": "bytes are parts of words",
    "subgroupSizeControl": "kernels cannot choose a subgroup size",
}
# Limits for which less is better; for the others, more is.
_ALIGNMENTS: Final = ("alignment", "atom_size", "granularity")
# Not required of every implementation.
_OPTIONAL: Final = ("timestamp_period", "max_push_descriptors", "min_imported_host_pointer_alignment")


def _features(device: Device) -> Figures:
    plan = device.vulkan.plan
    lacking = {name: f"lacking: {text}" for name, text in _FEATURES.items() if name not in plan.features}
    choices = {f"choice {number}": text for number, text in enumerate(plan.why, 1)}
    return {"features enabled": len(plan.features), "extensions": len(plan.extensions), **lacking, **choices}


def _limits(device: Device) -> Figures:
    """Checks that every limit is at least what the specification requires of all implementations."""
    required, limits = DeviceLimits(), device.profile.limits
    low = []
    for field in fields(DeviceLimits):
        least, value = getattr(required, field.name), getattr(limits, field.name)
        if field.name in _OPTIONAL or isinstance(value, bool):
            continue
        if any(word in field.name for word in _ALIGNMENTS):
            is_low = value > least
        elif isinstance(value, tuple):
            is_low = any(size < required_size for size, required_size in zip(value, least, strict=True))
        else:
            is_low = value < least
        if is_low:
            low.append(f"{field.name} is {value}, and Vulkan requires {least}")
    assert not low, "; ".join(low)
    return {
        "invocations of a workgroup": limits.max_compute_work_group_invocations,
        "shared memory, bytes": limits.max_compute_shared_memory_size,
        "storage buffer, bytes": limits.max_storage_buffer_range,
        "buffer, bytes": limits.max_buffer_size,
        "allocations": limits.max_memory_allocation_count,
        "cooperative matrices": len(device.profile.cooperative_matrices),
    }


def _memory_types(device: Device) -> Figures:
    """Checks the memory types that Vulkan requires: one that is coherent for the host, and one of the device."""
    profile = device.profile
    visible = MemoryProperty.HOST_VISIBLE | MemoryProperty.HOST_COHERENT
    assert any(kind.property_flags & visible == visible for kind in profile.memory_types), "no coherent memory"
    assert any(kind.property_flags & MemoryProperty.DEVICE_LOCAL for kind in profile.memory_types), "no local memory"
    assert all(kind.heap_index < len(profile.memory_heaps) for kind in profile.memory_types), "a type of no heap"
    local = sum(heap.size for heap in profile.memory_heaps if heap.flags & HeapFlag.DEVICE_LOCAL)
    return {"types": len(profile.memory_types), "heaps": len(profile.memory_heaps), "device memory, GiB": local / 2**30}


def _queues(device: Device) -> Figures:
    families = device.profile.queue_families
    return {
        f"family {number}": f"{family.count} x {QueueFlag(family.flags & 0x7).name or 'other'}; "
        f"{family.timestamp_valid_bits} bits of timestamps"
        for number, family in enumerate(families)
    }


def _subgroups(device: Device) -> Figures:
    subgroup = device.profile.subgroup
    assert subgroup.min_size <= subgroup.size <= subgroup.max_size, subgroup
    assert subgroup.size & (subgroup.size - 1) == 0, subgroup
    return {
        "size": f"{subgroup.size} ({subgroup.min_size} to {subgroup.max_size})",
        "operations": ", ".join(sorted(subgroup.supported_operations)),
    }


def _opened_again(device: Device) -> None:
    """Checks that the device opens a second time, and that closing leaves no objects behind."""
    with open_device(device.uri):
        pass
    before = live_objects()
    for _ in range(3):
        with open_device(device.uri) as other:
            other.zeros(100).close()
    after = live_objects()
    assert after == before, f"objects left: {before} before, {after} after"


def fact_cases() -> Iterator[Case]:
    """Yields the cases of the area ``device``."""
    yield Case("device", "features", _features)
    yield Case("device", "limits", _limits)
    yield Case("device", "kinds of memory", _memory_types)
    yield Case("device", "queues", _queues)
    yield Case("device", "subgroups", _subgroups)
    yield Case("device", "opened and closed again", _opened_again)
