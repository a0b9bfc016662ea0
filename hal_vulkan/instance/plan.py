"""The plan for a device: queues, extensions, features and workarounds, decided before anything is created.

``plan_device`` is a function from one ``DeviceProfile`` and one ``PlanOptions`` to a ``DevicePlan``; all three are
plain data. ``LogicalDevice`` follows the plan and decides nothing, so every decision can be tested against recorded
profiles of devices that are not at hand. ``DevicePlan.why`` has the reasons.

The plan only enables extensions and features that the profile lists. It enables every extension that an enabled feature
needs (unless it is core in the device's version).
"""

from __future__ import annotations

from typing import Final

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError, UnavailableError
from ...waits.wait_mode import WaitMode, checked_wait_mode
from .features import feature_structures, needed_extensions, offered_extensions
from .profile import DeviceProfile, DeviceType, HeapFlag, QueueFamily, QueueFlag

_MIN_PUSH_DESCRIPTORS: Final = 8
_NVIDIA_PROPRIETARY: Final = 4  # VK_DRIVER_ID_NVIDIA_PROPRIETARY
_NVIDIA_PUSH_DESCRIPTOR_FIX: Final = 527
_MESA_LLVMPIPE: Final = 13  # VK_DRIVER_ID_MESA_LLVMPIPE
_SWIFTSHADER: Final = 10  # VK_DRIVER_ID_GOOGLE_SWIFTSHADER
_MAX_BLOCK: Final = 128 << 20
_MIN_BLOCK: Final = 1 << 20
_MIN_ASKED_BLOCK: Final = 64 << 10
_MAX_QUEUES: Final = 64
# The clocks of time.monotonic_ns and time.perf_counter_ns come first, so that no third clock is needed.
_HOST_DOMAINS: Final = ("clock_monotonic", "query_performance_counter", "clock_monotonic_raw")
_CALIBRATED: Final = ("VK_KHR_calibrated_timestamps", "VK_EXT_calibrated_timestamps")
_SPECIAL_QUEUES: Final = QueueFlag.VIDEO_DECODE | QueueFlag.VIDEO_ENCODE | QueueFlag.OPTICAL_FLOW_NV

PIPELINE_STATISTICS: Final = "VK_KHR_pipeline_executable_properties"
"""The extension of ``PlanOptions.pipeline_statistics``; its single feature is enabled with it."""

SWAPCHAIN: Final = "VK_KHR_swapchain"
"""The extension of ``PlanOptions.presentation``."""

PERFORMANCE_QUERY: Final = "VK_KHR_performance_query"
"""The extension of ``PlanOptions.performance_counters``; its feature is enabled with it."""

# Features that a driver offers but implements wrongly, by VkDriverId, with the reason. SwiftShader also reads the
# descriptor at the index of an invocation that has left a loop. Its dispatches read compressed images as zeros, without
# an error.
_MISTRUSTED: Final = {
    _SWIFTSHADER: (
        (
            frozenset({"descriptorBindingPartiallyBound"}),
            "every descriptor has to be bound: the driver reads some that no invocation uses",
        ),
        (
            frozenset({"textureCompressionBC", "textureCompressionETC2", "textureCompressionASTC_LDR"}),
            "no compressed formats: the driver does not decompress images for dispatches",
        ),
    )
}

# Features that other features need; each precedes them in its structure.
_NEEDS: Final = {
    "variablePointers": "variablePointersStorageBuffer",
    "vulkanMemoryModelDeviceScope": "vulkanMemoryModel",
    "vulkanMemoryModelAvailabilityVisibilityChains": "vulkanMemoryModel",
    "computeFullSubgroups": "subgroupSizeControl",
    "workgroupMemoryExplicitLayoutScalarBlockLayout": "workgroupMemoryExplicitLayout",
    "workgroupMemoryExplicitLayout8BitAccess": "workgroupMemoryExplicitLayout",
    "workgroupMemoryExplicitLayout16BitAccess": "workgroupMemoryExplicitLayout",
}


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """A user's requests to the plan; ``None`` leaves the choice to the plan.

    Attributes:
        robust_buffer_access: whether accesses to buffers are bounds-checked, and to images where a device of Vulkan 1.3
            supports it. Off by default, as it costs speed.
        staging: whether to upload and read back by copies through host-visible buffers. Off forces mappable memory.
        push_descriptors: whether to write descriptors into the command buffer instead of allocating sets.
        prefer_dedicated_compute: whether to prefer a family with COMPUTE and without GRAPHICS.
        transfer_queue: whether to use a second family for copies, if there is one.
        max_compute_queues, max_transfer_queues: the numbers of queues to create of each family, 1 to 64.
        block_size: the number of bytes of device memory to allocate at a time; a power of two from 64 KiB.
        loop_guard: whether to report loops that the driver ends before their time.
        sanitize: whether to report wrong accesses of shaders.
        prints: whether to report what shaders print (``debugPrintfEXT``, ``printf``), which drivers ignore.
        repairs: whether to apply every repair for faults of drivers, or none. By default the self-test decides.
        wait: the host's wait mode; see ``waiting``.
        pipeline_statistics: whether the driver keeps its statistics of each pipeline: registers, spills, code size. Off
            by default, as it may change how drivers compile.
        performance_counters: whether to allow queries of the device's performance counters.
        presentation: whether to allow swapchains, on a family with graphics, which scales and converts pictures.
    """

    robust_buffer_access: bool = False
    staging: bool | None = None
    push_descriptors: bool | None = None
    prefer_dedicated_compute: bool = True
    transfer_queue: bool = True
    max_compute_queues: int = 1
    max_transfer_queues: int = 1
    block_size: int | None = None
    loop_guard: bool | None = None
    sanitize: bool | None = None
    prints: bool = True
    repairs: bool | None = None
    wait: WaitMode | None = None
    pipeline_statistics: bool = False
    performance_counters: bool = False
    presentation: bool = False

    def __post_init__(self) -> None:
        for name in ("robust_buffer_access", "staging", "push_descriptors", "loop_guard", "sanitize", "repairs"):
            if (value := getattr(self, name)) is not None and not isinstance(value, bool):
                raise InvalidArgumentError(f"{name}: expected True, False or None, got {value!r}")
        if self.wait is not None:
            checked_wait_mode(self.wait)
        for name in ("max_compute_queues", "max_transfer_queues"):
            if not 1 <= getattr(self, name) <= _MAX_QUEUES:
                raise InvalidArgumentError(f"{name}: expected 1 to {_MAX_QUEUES}, got {getattr(self, name)}")
        size = self.block_size
        if size is not None and (size < _MIN_ASKED_BLOCK or size & (size - 1)):
            raise InvalidArgumentError(f"block_size: expected a power of two from {_MIN_ASKED_BLOCK} bytes, got {size}")


@dataclass(frozen=True, slots=True)
class DevicePlan:
    """Every decision about one device.

    Attributes:
        compute_family, compute_queue_count: the queues for dispatches.
        transfer_family, transfer_queue_count: the family for copies and the number of its queues, or ``None`` and 0.
        extensions: the device extensions to enable, sorted.
        features: the names of the feature booleans to enable.
        unified_memory: whether host and device share one memory.
        staging: whether uploads and read-backs go through a host-visible buffer and a copy.
        push_descriptors: whether to bind by ``vkCmdPushDescriptorSetKHR``.
        host_import_alignment: the alignment of imported host memory in bytes; ``None`` if memory cannot be imported.
        calibrated_timestamps: the extension that relates device and host clocks; ``None`` if there is none.
        host_time_domain: the related host clock, named as in ``DeviceProfile.time_domains``.
        memory_budget: whether ``VK_EXT_memory_budget`` reports the amount of free memory.
        timestamp_bits: the number of meaningful bits of a timestamp on the compute family; 0 without timestamps.
        required_subgroup_size: whether a compute pipeline may fix its subgroup size.
        descriptor_pool_size: the number of descriptor sets per pool.
        block_size: the number of bytes of device memory to allocate at a time and hand out in parts.
        dedicated_threshold: the size in bytes above which a buffer gets memory of its own.
        loop_guard: whether shaders report loops that the driver ends before their time.
        sanitize: whether shaders report wrong accesses.
        prints: whether what shaders print is reported.
        repairs: whether shaders get every repair for faults of drivers, or none; ``None`` leaves it to the self-test.
        wait: the host's wait mode.
        pipeline_statistics: whether pipelines keep the driver's statistics.
        performance_counters: whether the device's counters can be queried.
        why: the reasons, one sentence per choice.
    """

    compute_family: int
    compute_queue_count: int
    transfer_family: int | None
    transfer_queue_count: int
    extensions: tuple[str, ...]
    features: frozenset[str]
    unified_memory: bool
    staging: bool
    push_descriptors: bool
    host_import_alignment: int | None
    calibrated_timestamps: str | None
    host_time_domain: str | None
    memory_budget: bool
    timestamp_bits: int
    required_subgroup_size: bool
    descriptor_pool_size: int
    block_size: int
    dedicated_threshold: int
    loop_guard: bool
    sanitize: bool
    prints: bool
    repairs: bool | None
    wait: WaitMode
    pipeline_statistics: bool
    performance_counters: bool
    why: tuple[str, ...]


_DEFAULT_OPTIONS: Final = PlanOptions()


def plan_device(profile: DeviceProfile, options: PlanOptions = _DEFAULT_OPTIONS) -> DevicePlan:
    """Returns the plan for one device.

    Raises:
        UnavailableError: pumice cannot run on the device, or an option asks for a feature that it lacks; the message
            names it.
        InvalidArgumentError: ``options.block_size`` exceeds the device's largest allocation.
    """
    if problems := profile.problems():
        raise UnavailableError(f"pumice cannot run on {profile.name!r}: {'; '.join(problems)}")
    why: list[str] = []
    extensions: set[str] = set()

    def enable(extension: str) -> bool:
        if extension in profile.extensions:
            extensions.add(extension)
            return True
        return False

    compute = _compute_family(profile, options, why)
    transfer = _transfer_family(profile, options, compute, why)
    features = _features(profile, options, extensions, why)
    unified = _unified_memory(profile, why)
    staging = _staging(profile, options, unified, why)
    push_descriptors = _push_descriptors(profile, options, why)
    if push_descriptors:
        enable("VK_KHR_push_descriptor")

    host_import = None
    if profile.limits.min_imported_host_pointer_alignment and enable("VK_EXT_external_memory_host"):
        host_import = profile.limits.min_imported_host_pointer_alignment
        why.append(f"host memory aligned to {host_import} bytes is imported rather than copied")
    calibrated, domain = _clocks(profile, why)
    if calibrated:
        enable(calibrated)
    for option, extension, reason in (
        ("pipeline_statistics", PIPELINE_STATISTICS, "pipelines keep the driver's statistics, as asked"),
        ("performance_counters", PERFORMANCE_QUERY, "performance counters can be queried, as asked"),
        ("presentation", SWAPCHAIN, "swapchains can be made, as asked"),
    ):
        if getattr(options, option):
            if not enable(extension):
                raise UnavailableError(f"{profile.name!r} lacks {extension}; plan without {option}")
            why.append(reason)
    if enable("VK_KHR_portability_subset"):
        why.append("VK_KHR_portability_subset is enabled because it has to be wherever it is offered")
    block_size = _block_size(profile, options, why)
    loop_guard = _loop_guard(profile, options, why)
    if options.repairs is not None:
        why.append(f"repairs for faults of drivers are {'all on' if options.repairs else 'off'}, as asked")
    families = profile.queue_families

    return DevicePlan(
        compute_family=compute,
        compute_queue_count=min(options.max_compute_queues, families[compute].count),
        transfer_family=transfer,
        transfer_queue_count=0 if transfer is None else min(options.max_transfer_queues, families[transfer].count),
        features=features,
        unified_memory=unified,
        staging=staging,
        push_descriptors=push_descriptors,
        host_import_alignment=host_import,
        calibrated_timestamps=calibrated,
        host_time_domain=domain,
        memory_budget=enable("VK_EXT_memory_budget"),
        timestamp_bits=families[compute].timestamp_valid_bits,
        required_subgroup_size="subgroupSizeControl" in features and profile.subgroup.required_size_for_compute,
        # Pushed descriptors need no pool; with them it serves only the other sets.
        descriptor_pool_size=64 if push_descriptors else 512,
        block_size=block_size,
        dedicated_threshold=block_size // 2,
        loop_guard=loop_guard,
        sanitize=bool(options.sanitize),
        prints=options.prints,
        repairs=options.repairs,
        wait=options.wait or "adaptive",
        pipeline_statistics=options.pipeline_statistics,
        performance_counters=options.performance_counters,
        extensions=tuple(sorted(extensions)),
        why=tuple(why),
    )


def _compute_family(profile: DeviceProfile, options: PlanOptions, why: list[str]) -> int:
    """Prefers a family with timestamps, then one without graphics.

    A dispatch that runs for seconds on the graphics family holds up the desktop's compositor, and drivers reset a
    graphics queue sooner than a compute queue. Both use the same shader cores.
    """

    def cost(index: int) -> tuple[bool, bool, bool, bool, int]:
        family = profile.queue_families[index]
        draws = bool(family.flags & QueueFlag.GRAPHICS)
        return (
            not family.timestamp_valid_bits,
            bool(family.flags & _SPECIAL_QUEUES),
            options.presentation and not draws,
            draws and options.prefer_dedicated_compute,
            index,
        )

    chosen = min((i for i, f in enumerate(profile.queue_families) if f.has_compute and f.count), key=cost)
    family = profile.queue_families[chosen]
    kind = "has no graphics"
    if family.flags & QueueFlag.GRAPHICS:
        kind = "has graphics too: " + ("as asked" if options.presentation else "no compute-only family is better")
    stamps = f"{family.timestamp_valid_bits}-bit timestamps" if family.timestamp_valid_bits else "no timestamps"
    why.append(f"dispatches go to queue family {chosen}, which {kind} and writes {stamps}")
    return chosen


def _transfer_family(profile: DeviceProfile, options: PlanOptions, compute: int, why: list[str]) -> int | None:
    """Prefers a DMA family (TRANSFER only), which copies while the shader cores work, to a second general family.

    Video and optical-flow families report TRANSFER for their own surfaces and are not used.
    """
    if not options.transfer_queue:
        why.append("copies share the compute family, as asked")
        return None

    def general(family: QueueFamily) -> bool:
        return bool(family.flags & (QueueFlag.COMPUTE | QueueFlag.GRAPHICS))

    candidates = [
        (general(family), not family.timestamp_valid_bits, index)
        for index, family in enumerate(profile.queue_families)
        if index != compute and family.count and family.has_transfer and not family.flags & _SPECIAL_QUEUES
    ]
    if not candidates:
        why.append("copies share the compute family: no other one transfers")
        return None
    shared, _, chosen = min(candidates)
    why.append(f"copies go to queue family {chosen}, " + ("a second general family" if shared else "a DMA engine"))
    return chosen


def _features(profile: DeviceProfile, options: PlanOptions, extensions: set[str], why: list[str]) -> frozenset[str]:
    """Returns every supported feature that compute may need, and the extensions that kernels may use.

    Extensions whose features are all missing stay off.
    """
    version = profile.version
    offered = offered_extensions(version, profile.extensions)
    enabled: set[str] = set()
    useless: set[str] = set()  # extensions whose features are all missing
    structures = feature_structures()
    for structure in structures:
        if not structure.offered(version, offered):
            continue
        for name in structure.used:
            if name in profile.features and _NEEDS.get(name, name) in (enabled | {name}):
                enabled.add(name)
        if structure.used and not enabled.intersection(structure.used):
            useless.update(structure.extensions)
    for mistrusted, reason in _MISTRUSTED.get(profile.driver_id, ()):
        if enabled & mistrusted:
            enabled -= mistrusted
            why.append(reason)
    needed = needed_extensions(version, offered_extensions(version, offered - useless))
    extensions |= needed
    enabled = {
        name
        for name in enabled
        if any(name in feature_set.used and feature_set.offered(version, needed) for feature_set in structures)
    }
    if options.robust_buffer_access:
        if "robustBufferAccess" not in profile.features:
            raise UnavailableError(f"{profile.name!r} lacks robustBufferAccess; plan without robust_buffer_access")
        enabled.add("robustBufferAccess")
        if version >= (1, 3) and "robustImageAccess" in profile.features:
            enabled.add("robustImageAccess")
        # Both together need a property that hardly any device has (VUID-VkDeviceCreateInfo-10247).
        enabled = {name for name in enabled if not name.endswith("UpdateAfterBind")}
    why.append(
        f"{len(enabled)} features are enabled, "
        + ("robustBufferAccess as asked" if options.robust_buffer_access else "robustBufferAccess not, for its cost")
    )
    return frozenset(enabled)


def _unified_memory(profile: DeviceProfile, why: list[str]) -> bool:
    if profile.device_type in (DeviceType.INTEGRATED, DeviceType.CPU):
        why.append(f"memory is unified: the device is of type {profile.device_type.name}")
        return True
    unified = bool(profile.memory_heaps) and all(h.flags & HeapFlag.DEVICE_LOCAL for h in profile.memory_heaps)
    why.append("memory is unified: every heap is device-local" if unified else "host and device memory are separate")
    return unified


def _staging(profile: DeviceProfile, options: PlanOptions, unified: bool, why: list[str]) -> bool:
    if options.staging is not None:
        why.append(f"staging is {'on' if options.staging else 'off'}, as asked")
        return options.staging
    why.append("buffers are mapped" if unified else "data is staged: dispatches run best from device-local memory")
    return not unified


def _push_descriptors(profile: DeviceProfile, options: PlanOptions, why: list[str]) -> bool:
    """Decides for or against push descriptors, which skip the pool, the allocation and the update of a set for each
    dispatch.

    Drivers write them straight into the command buffer, which is faster wherever it works. A kernel with more bindings
    than ``maxPushDescriptors`` uses sets; below eight that would be most kernels. NVIDIA's drivers before 527 have
    defects with push descriptors on Volta and older (emulators turn them off there). The profile does not distinguish
    architectures, so these drivers always use sets.
    """
    most = profile.limits.max_push_descriptors
    lack = ""
    if "VK_KHR_push_descriptor" not in profile.extensions:
        lack = "VK_KHR_push_descriptor is missing"
    elif most < _MIN_PUSH_DESCRIPTORS:
        lack = f"maxPushDescriptors is {most}, below {_MIN_PUSH_DESCRIPTORS}"
    if options.push_descriptors and lack:
        raise UnavailableError(f"{profile.name!r} cannot push descriptors: {lack}; plan without push_descriptors")
    if options.push_descriptors is not None:
        why.append(f"push descriptors are {'on' if options.push_descriptors else 'off'}, as asked")
        return options.push_descriptors
    nvidia_major = profile.driver_version >> 22
    if not lack and profile.driver_id == _NVIDIA_PROPRIETARY and nvidia_major < _NVIDIA_PUSH_DESCRIPTOR_FIX:
        lack = f"NVIDIA drivers before {_NVIDIA_PUSH_DESCRIPTOR_FIX} are not trusted with them, this is {nvidia_major}"
    why.append(
        f"descriptor sets are allocated: {lack}" if lack else f"up to {most} descriptors are pushed, not allocated"
    )
    return not lack


def _clocks(profile: DeviceProfile, why: list[str]) -> tuple[str | None, str | None]:
    extension = next((name for name in _CALIBRATED if name in profile.extensions), None)
    domain = next((name for name in _HOST_DOMAINS if name in profile.time_domains), None)
    if extension is None or domain is None or "device" not in profile.time_domains:
        lack = "no extension does it" if extension is None else "the device offers no pair of clocks"
        why.append(f"device and host clocks are not related: {lack}")
        return None, None
    why.append(f"device time is related to {domain} by {extension}")
    return extension, domain


def _block_size(profile: DeviceProfile, options: PlanOptions, why: list[str]) -> int:
    """Returns a 64th of the main heap, within 1 MiB to 128 MiB and the device's largest allocation.

    Allocations are slow and limited in number (``maxMemoryAllocationCount`` may be 4096), so blocks are large, but an
    unused block should be a small part of the heap. A buffer above half a block would waste the rest of it.
    """
    most = profile.limits.max_memory_allocation_size
    if options.block_size is not None:
        if options.block_size > most:
            raise InvalidArgumentError(
                f"block_size: {profile.name!r} allocates at most {most} bytes at once, got {options.block_size}"
            )
        why.append(f"memory is allocated {options.block_size} bytes at a time, as asked")
        return options.block_size
    local = [heap.size for heap in profile.memory_heaps if heap.flags & HeapFlag.DEVICE_LOCAL]
    heap = max(local or [heap.size for heap in profile.memory_heaps], default=0)
    target = min(max(heap // 64, _MIN_BLOCK), _MAX_BLOCK, most)
    size = 1 << (target.bit_length() - 1)
    why.append(f"memory is allocated {size} bytes at a time, for a heap of {heap}")
    return size


def _loop_guard(profile: DeviceProfile, options: PlanOptions, why: list[str]) -> bool:
    """Decides whether to guard loops: only for Mesa's llvmpipe, since no other driver cuts them.

    A later version without the limit has nothing to report.
    """
    cuts = profile.driver_id == _MESA_LLVMPIPE
    chosen = cuts if options.loop_guard is None else options.loop_guard
    if chosen or cuts:
        reason = "as asked" if options.loop_guard is not None else "the driver ends them after 65,535 passes"
        why.append(f"loops that end before their time are {'reported' if chosen else 'not reported'}: {reason}")
    return chosen
