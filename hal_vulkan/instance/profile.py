"""The facts that pumice reads of a physical device, as plain data that can be saved, compared and made up in tests.

``physical_device.py`` reads a profile once. Every later decision is a function of it: which device to open
(``uri.py``), which features to enable (``plan.py``) and which memory to use (``memory/memory_type.py``). Nothing here
calls Vulkan.

Names are those of the Vulkan specification, in snake case. Limits missing from a record default to the value required
of every implementation (Vulkan 1.3 specification, section "Required Limits"), so a plan for a partial record is safe.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import field, fields, is_dataclass
from typing import Annotated, Final

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError
from .json_reader import Among, integers, read_object

# The version that instances request. A driver may refuse a later version than its own; devices offer the features of
# later versions that are used here as extensions.
VULKAN_VERSION: Final = (1, 3)
MIN_VERSION: Final = (1, 2)

# Keys of a record that state its origin.
_RECORD_KEYS: Final = frozenset({"source", "assumed", "note"})

_MAX_U32: Final = (1 << 32) - 1
_MAX_U64: Final = (1 << 64) - 1
_POWERS_OF_TWO: Final = frozenset(1 << bit for bit in range(64))

# Limits on the values of a JSON record.
_U32 = Annotated[int, integers(0, _MAX_U32)]
_U64 = Annotated[int, integers(0, _MAX_U64)]
_Count = Annotated[int, integers(1, _MAX_U32)]
_Size = Annotated[int, integers(1, _MAX_U64)]
_SubgroupSize = Annotated[int, integers(1, 1 << 16)]
_Alignment = Annotated[int, Among("a power of two", _POWERS_OF_TWO)]
_Uuid = Annotated[str, re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)]


class DeviceType(enum.IntEnum):
    """The type of a device: ``VkPhysicalDeviceType``."""

    OTHER = 0
    INTEGRATED = 1
    DISCRETE = 2
    VIRTUAL = 3
    CPU = 4


class MemoryProperty(enum.IntFlag):
    """The flags of a memory type: ``VkMemoryPropertyFlagBits``, with the vendors' bits."""

    DEVICE_LOCAL = 0x1
    HOST_VISIBLE = 0x2
    HOST_COHERENT = 0x4
    HOST_CACHED = 0x8
    LAZILY_ALLOCATED = 0x10
    PROTECTED = 0x20
    DEVICE_COHERENT_AMD = 0x40
    DEVICE_UNCACHED_AMD = 0x80
    RDMA_CAPABLE_NV = 0x100


class HeapFlag(enum.IntFlag):
    """The flags of a heap: ``VkMemoryHeapFlagBits``."""

    DEVICE_LOCAL = 0x1
    MULTI_INSTANCE = 0x2


class QueueFlag(enum.IntFlag):
    """The flags of a queue family: ``VkQueueFlagBits``."""

    GRAPHICS = 0x1
    COMPUTE = 0x2
    TRANSFER = 0x4
    SPARSE_BINDING = 0x8
    PROTECTED = 0x10
    VIDEO_DECODE = 0x20
    VIDEO_ENCODE = 0x40
    OPTICAL_FLOW_NV = 0x100


@dataclass(frozen=True, slots=True)
class MemoryType:
    """One entry of ``VkPhysicalDeviceMemoryProperties::memoryTypes``."""

    property_flags: _U32
    heap_index: _U32


@dataclass(frozen=True, slots=True)
class MemoryHeap:
    """One entry of ``VkPhysicalDeviceMemoryProperties::memoryHeaps``; ``size`` in bytes."""

    size: _U64
    flags: _U32


@dataclass(frozen=True, slots=True)
class QueueFamily:
    """The part of ``VkQueueFamilyProperties`` that compute needs."""

    flags: _U32
    count: _U32
    timestamp_valid_bits: Annotated[int, integers(0, 64)]

    @property
    def has_compute(self) -> bool:
        return bool(self.flags & QueueFlag.COMPUTE)

    @property
    def has_graphics(self) -> bool:
        return bool(self.flags & QueueFlag.GRAPHICS)

    @property
    def has_transfer(self) -> bool:
        """Compute and graphics families transfer too, whether or not they report the bit (``VkQueueFlagBits``)."""
        return bool(self.flags & (QueueFlag.TRANSFER | QueueFlag.COMPUTE | QueueFlag.GRAPHICS))


@dataclass(frozen=True, slots=True)
class DeviceLimits:
    """The compute-relevant limits; sizes, ranges and alignments in bytes.

    The defaults are the values that the specification requires of every implementation.
    """

    max_storage_buffer_range: _U64 = 1 << 27
    max_uniform_buffer_range: _U64 = 16384
    max_push_constants_size: _U32 = 128
    max_memory_allocation_count: _U32 = 4096
    max_bound_descriptor_sets: _U32 = 4
    max_per_stage_descriptor_storage_buffers: _U32 = 4
    max_descriptor_set_storage_buffers: _U32 = 24
    max_per_stage_descriptor_uniform_buffers: _U32 = 12
    max_descriptor_set_uniform_buffers: _U32 = 72
    max_per_stage_descriptor_samplers: _U32 = 16
    max_descriptor_set_samplers: _U32 = 96
    max_per_stage_descriptor_sampled_images: _U32 = 16
    max_descriptor_set_sampled_images: _U32 = 96
    max_per_stage_descriptor_storage_images: _U32 = 4
    max_descriptor_set_storage_images: _U32 = 24
    max_per_stage_resources: _U32 = 128
    max_texel_buffer_elements: _U32 = 65536
    max_sampler_allocation_count: _U32 = 4000
    max_sampler_anisotropy: float = 1.0
    max_sampler_lod_bias: float = 2.0
    max_compute_shared_memory_size: _U32 = 16384
    max_compute_work_group_count: tuple[_Count, _Count, _Count] = (65535, 65535, 65535)
    max_compute_work_group_invocations: _Count = 128
    max_compute_work_group_size: tuple[_Count, _Count, _Count] = (128, 128, 64)
    min_storage_buffer_offset_alignment: _Alignment = 256
    min_uniform_buffer_offset_alignment: _Alignment = 256
    min_texel_buffer_offset_alignment: _Alignment = 256
    min_memory_map_alignment: _Alignment = 64
    non_coherent_atom_size: _Alignment = 256
    timestamp_period: float = 1.0
    """Nanoseconds per timestamp tick; the specification requires no value, so 1.0 stands for "not recorded"."""
    timestamp_compute_and_graphics: bool = False
    max_memory_allocation_size: _Size = 1 << 30
    max_buffer_size: _Size = 1 << 30
    """The required value without ``maintenance4``, when no driver reports it."""
    max_push_descriptors: _U32 = 0
    """0 without ``VK_KHR_push_descriptor``."""
    min_imported_host_pointer_alignment: Annotated[int, Among("a power of two or 0", _POWERS_OF_TWO | {0})] = 0
    """0 without ``VK_EXT_external_memory_host``."""
    max_timeline_semaphore_value_difference: _Size = (1 << 31) - 1
    buffer_image_granularity: _Alignment = 131072


@dataclass(frozen=True, slots=True)
class SubgroupProperties:
    """``VkPhysicalDeviceSubgroupProperties`` and ``VkPhysicalDeviceSubgroupSizeControlProperties``.

    ``size``, ``min_size`` and ``max_size`` are invocations per subgroup. Without size control ``min_size`` and
    ``max_size`` equal ``size`` and ``max_compute_workgroup_subgroups`` is 0. ``supported_operations`` holds the
    lower-case stems of ``VkSubgroupFeatureFlagBits``: ``"basic"``, ``"vote"``, ``"shuffle_relative"``, …
    """

    size: _SubgroupSize = 1
    min_size: _SubgroupSize = 1
    max_size: _SubgroupSize = 1
    max_compute_workgroup_subgroups: _U32 = 0
    required_size_for_compute: bool = False
    supported_operations: frozenset[str] = frozenset({"basic"})
    compute_stage: bool = True


@dataclass(frozen=True, slots=True)
class CooperativeMatrix:
    """One entry of ``vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR``: ``a @ b + c``.

    Types are those of ``VkComponentTypeKHR`` in short: ``"f16"``, ``"s8"``, ``"u32"``, …; ``scope`` is ``"subgroup"``,
    ``"workgroup"``, ….
    """

    m: _Count
    n: _Count
    k: _Count
    a_type: str
    b_type: str
    c_type: str
    result_type: str
    saturating: bool = False
    scope: str = "subgroup"


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    """Everything pumice reads from a ``VkPhysicalDevice``.

    ``device_uuid`` and ``driver_uuid`` are lower-case hexadecimal with dashes, or empty where not recorded.
    ``driver_version`` is the vendor's packed 32-bit number. ``features`` holds the flat names of the feature booleans
    that are *supported*, whatever structure they come from; ``properties`` holds the boolean properties that
    capabilities of SPIR-V need (of ``VkPhysicalDeviceFloatControlsProperties``). ``time_domains`` holds ``"device"``,
    ``"clock_monotonic"``, ``"clock_monotonic_raw"`` and ``"query_performance_counter"``. ``compute_units`` is the
    number of multiprocessors, compute units or cores that run workgroups, for a device of type CPU that of the
    processors that this process may use; 0 if the driver does not report it. ``api_version`` is the device's version,
    and ``instance_version`` the version that the instance was created for.
    """

    name: str
    device_type: DeviceType
    api_version: tuple[_U32, _U32, _U32]
    memory_types: Annotated[tuple[MemoryType, ...], 32]  # VK_MAX_MEMORY_TYPES
    memory_heaps: Annotated[tuple[MemoryHeap, ...], 16]  # VK_MAX_MEMORY_HEAPS
    queue_families: Annotated[tuple[QueueFamily, ...], 64]
    vendor_id: _U32 = 0
    device_id: _U32 = 0
    device_uuid: _Uuid = ""
    driver_uuid: _Uuid = ""
    driver_id: _U32 = 0
    driver_id_name: str = ""
    driver_name: str = ""
    driver_info: str = ""
    driver_version: _U32 = 0
    limits: DeviceLimits = field(default_factory=DeviceLimits)
    subgroup: SubgroupProperties = field(default_factory=SubgroupProperties)
    extensions: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    properties: frozenset[str] = frozenset()
    time_domains: frozenset[str] = frozenset()
    compute_units: _U32 = 0
    cooperative_matrices: Annotated[tuple[CooperativeMatrix, ...], 256] = ()
    instance_version: tuple[_U32, _U32] = VULKAN_VERSION

    @property
    def version(self) -> tuple[int, int]:
        """The version of Vulkan in use: the lower of the instance's and the device's."""
        return min(self.api_version[:2], self.instance_version)

    def problems(self) -> list[str]:
        """Returns the reasons why pumice cannot run on this device, one sentence each; empty when it can.

        Needed: Vulkan 1.2, timeline semaphores, a compute queue family and memory that the host can map without
        flushes. Everything else has a slower alternative.
        """
        problems = []
        if self.version < MIN_VERSION:
            version = ".".join(map(str, self.api_version))
            problems.append(f"pumice needs Vulkan 1.2, the driver offers {version}; a newer driver may offer more")
        if "timelineSemaphore" not in self.features:
            problems.append("the timelineSemaphore feature is missing; queues cannot be ordered without it")
        if not any(family.has_compute and family.count for family in self.queue_families):
            problems.append("no queue family has COMPUTE")
        mappable = MemoryProperty.HOST_VISIBLE | MemoryProperty.HOST_COHERENT
        refused = MemoryProperty.PROTECTED | MemoryProperty.LAZILY_ALLOCATED
        if not any(t.property_flags & (mappable | refused) == mappable for t in self.memory_types):
            problems.append("no memory type is HOST_VISIBLE and HOST_COHERENT")
        return problems

    def to_json(self) -> dict[str, object]:
        """Returns the profile as JSON values, with a key for each field; ``from_json`` returns an equal profile."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> DeviceProfile:
        """Returns a profile from JSON values, checked. The keys ``source``, ``assumed`` and ``note`` are ignored.

        Only the name, type, API version, memory and queue families are required; the rest has defaults.

        Raises:
            InvalidArgumentError: a key is unknown or missing, or a value is of the wrong type or out of range.
        """
        if isinstance(data, Mapping):
            data = {key: value for key, value in data.items() if key not in _RECORD_KEYS}
        profile = read_object(cls, data, "profile")
        for index, memory_type in enumerate(profile.memory_types):
            if memory_type.heap_index >= len(profile.memory_heaps):
                raise InvalidArgumentError(
                    f"profile.memory_types[{index}].heap_index: expected an index below the number of memory heaps "
                    f"({len(profile.memory_heaps)}), got {memory_type.heap_index}"
                )
        return profile


def _plain(value: object) -> object:
    """Returns JSON values for a field's value; sets are sorted so that records compare as text."""
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, enum.IntEnum):
        return value.name
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    return value
