"""Plans over recorded devices, and the rules that hold whatever the profile says."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.devices.build_features import feature_tables as build
from support.profiles import recorded_profiles

from pumice.hal_vulkan.instance import feature_tables
from pumice.hal_vulkan.instance.features import FeatureChain, feature_structures, known_extensions, offered_extensions
from pumice.hal_vulkan.instance.plan import _NEEDS, DevicePlan, PlanOptions, plan_device
from pumice.hal_vulkan.instance.profile import (
    DeviceProfile,
    DeviceType,
    MemoryHeap,
    MemoryType,
    QueueFamily,
    QueueFlag,
)
from pumice.hal_vulkan.vulkan.functions import ffi
from pumice.status import InvalidArgumentError, UnavailableError

PROFILES = {name: profile for name, profile in recorded_profiles().items() if not profile.problems()}
LAVAPIPE = PROFILES["lavapipe_mesa_22_3_6"]
RTX = PROFILES["nvidia_rtx_4060"]
# Features that drivers offer and get wrong.
MISTRUSTED = {
    "swiftshader_chromium_156": frozenset(
        {
            "descriptorBindingPartiallyBound",
            "textureCompressionBC",
            "textureCompressionETC2",
            "textureCompressionASTC_LDR",
        }
    )
}


def check(profile: DeviceProfile, plan: DevicePlan, options: PlanOptions) -> None:
    """Checks the invariants of every plan."""
    assert set(plan.extensions) <= profile.extensions
    assert list(plan.extensions) == sorted(set(plan.extensions))
    assert plan.features <= profile.features
    assert "timelineSemaphore" in plan.features
    assert ("robustBufferAccess" in plan.features) == options.robust_buffer_access
    version, enabled = profile.version, frozenset(plan.extensions)
    image = "robustImageAccess"
    offers_image = image in profile.features and profile.version >= (1, 3)
    assert (image in plan.features) == (options.robust_buffer_access and offers_image)
    for name in plan.features - {"robustBufferAccess", image}:
        assert any(name in s.used and s.offered(version, enabled) for s in feature_structures()), name
        assert _NEEDS.get(name, name) in plan.features
    known = known_extensions()
    for extension in enabled & known.keys():
        assert version < known[extension].core
        assert any(
            all(version >= (1, int(token[2:])) if token[0].isdigit() else token in enabled for token in one)
            for one in known[extension].needs
        )

    compute = profile.queue_families[plan.compute_family]
    assert compute.has_compute
    assert 1 <= plan.compute_queue_count <= min(compute.count, options.max_compute_queues)
    assert plan.timestamp_bits == compute.timestamp_valid_bits
    if plan.timestamp_bits == 0:
        assert not any(f.timestamp_valid_bits for f in profile.queue_families if f.has_compute and f.count)
    if plan.transfer_family is None:
        assert plan.transfer_queue_count == 0
    else:
        transfer = profile.queue_families[plan.transfer_family]
        assert plan.transfer_family != plan.compute_family
        assert transfer.has_transfer
        assert 1 <= plan.transfer_queue_count <= min(transfer.count, options.max_transfer_queues)
        assert options.transfer_queue

    assert ("VK_KHR_portability_subset" in plan.extensions) == ("VK_KHR_portability_subset" in profile.extensions)
    assert plan.push_descriptors == ("VK_KHR_push_descriptor" in plan.extensions)
    assert not plan.push_descriptors or profile.limits.max_push_descriptors >= 8
    assert (plan.host_import_alignment is not None) == ("VK_EXT_external_memory_host" in plan.extensions)
    assert plan.host_import_alignment != 0
    assert plan.memory_budget == ("VK_EXT_memory_budget" in plan.extensions)
    assert (plan.calibrated_timestamps is None) == (plan.host_time_domain is None)
    assert plan.calibrated_timestamps is None or plan.calibrated_timestamps in plan.extensions
    assert plan.host_time_domain is None or plan.host_time_domain in profile.time_domains
    assert not plan.required_subgroup_size or "subgroupSizeControl" in plan.features
    assert plan.descriptor_pool_size > 0
    assert 0 < plan.block_size <= profile.limits.max_memory_allocation_size
    assert plan.block_size & (plan.block_size - 1) == 0
    assert plan.dedicated_threshold <= plan.block_size
    assert len(set(plan.why)) == len(plan.why) >= 7


def test_instances_of_vulkan_1_4_need_the_feature_of_pushed_descriptors() -> None:
    plan = plan_device(replace(PROFILES["lavapipe_mesa_26_0_1"], instance_version=(1, 4)))
    assert plan.push_descriptors and "pushDescriptor" in plan.features


@pytest.mark.parametrize("name", PROFILES)
def test_recorded_devices(name: str) -> None:
    check(PROFILES[name], plan_device(PROFILES[name]), PlanOptions())


@pytest.mark.parametrize("name", PROFILES)
def test_memory_and_staging_follow_the_device_type(name: str) -> None:
    plan = plan_device(PROFILES[name])
    assert plan.unified_memory == (PROFILES[name].device_type is not DeviceType.DISCRETE)
    assert plan.staging != plan.unified_memory


@pytest.mark.parametrize("name", MISTRUSTED)
def test_what_a_driver_gets_wrong_stays_off(name: str) -> None:
    plan = plan_device(PROFILES[name])
    assert MISTRUSTED[name] <= PROFILES[name].features - plan.features
    assert any("every descriptor has to be bound" in reason for reason in plan.why)
    assert any("no compressed formats" in reason for reason in plan.why)


@pytest.mark.parametrize("repairs", [None, True, False])
def test_repairs_are_left_to_the_self_test_unless_asked_for(repairs: bool | None) -> None:
    plan = plan_device(PROFILES["nvidia_rtx_4060"], PlanOptions(repairs=repairs))
    assert plan.repairs is repairs
    assert any("repairs" in reason for reason in plan.why) == (repairs is not None)


@pytest.mark.parametrize(
    ("name", "compute", "transfer"),
    [
        ("nvidia_rtx_4060", QueueFlag.COMPUTE, QueueFlag.TRANSFER),
        ("amd_rx_6600_windows", QueueFlag.COMPUTE, QueueFlag.TRANSFER),
        ("amd_rx_5500_xt_radv", QueueFlag.COMPUTE, QueueFlag.GRAPHICS),
        ("nvidia_gtx_950", QueueFlag.GRAPHICS, QueueFlag.TRANSFER),
        ("apple_m2_moltenvk", QueueFlag.GRAPHICS, QueueFlag.GRAPHICS),
        ("intel_xe_tgl", QueueFlag.GRAPHICS, None),
        ("lavapipe_mesa_22_3_6", QueueFlag.GRAPHICS, None),
    ],
)
def test_families(name: str, compute: QueueFlag, transfer: QueueFlag | None) -> None:
    """Each family by its most general capability: graphics over compute over plain transfer."""
    profile = PROFILES[name]
    plan = plan_device(profile)

    def kind(index: int | None) -> QueueFlag | None:
        if index is None:
            return None
        flags = profile.queue_families[index].flags
        return next(f for f in (QueueFlag.GRAPHICS, QueueFlag.COMPUTE, QueueFlag.TRANSFER) if flags & f)

    assert (kind(plan.compute_family), kind(plan.transfer_family)) == (compute, transfer)


def test_family_options() -> None:
    options = PlanOptions(
        prefer_dedicated_compute=False, transfer_queue=False, max_compute_queues=64, max_transfer_queues=3
    )
    plan = plan_device(RTX, options)
    check(RTX, plan, options)
    assert RTX.queue_families[plan.compute_family].flags & QueueFlag.GRAPHICS
    assert plan.compute_queue_count == RTX.queue_families[plan.compute_family].count > 1
    assert plan_device(RTX, PlanOptions(max_transfer_queues=3)).transfer_queue_count == 2


def test_timestamps_come_before_a_dedicated_family() -> None:
    families = (QueueFamily(7, 1, 36), QueueFamily(6, 1, 0))
    plan = plan_device(replace(RTX, queue_families=families))
    assert (plan.compute_family, plan.transfer_family, plan.timestamp_bits) == (0, 1, 36)


def test_video_families_are_left_alone() -> None:
    families = (QueueFamily(7, 1, 64), QueueFamily(0x2C, 1, 32), QueueFamily(0x10C, 1, 64))
    assert plan_device(replace(RTX, queue_families=families)).transfer_family is None


def test_moltenvk_is_a_portability_device() -> None:
    plan = plan_device(PROFILES["apple_m2_moltenvk"])
    assert "VK_KHR_portability_subset" in plan.extensions
    # Vulkan 1.2: what is core in 1.3 comes by extension.
    assert {"VK_KHR_synchronization2", "VK_EXT_subgroup_size_control"} <= set(plan.extensions)
    assert {"synchronization2", "subgroupSizeControl"} <= plan.features


def test_core_features_need_no_extension() -> None:
    plan = plan_device(RTX)
    assert {"synchronization2", "subgroupSizeControl", "maintenance4", "cooperativeMatrix"} <= plan.features
    assert "VK_KHR_synchronization2" not in plan.extensions
    assert "VK_KHR_cooperative_matrix" in plan.extensions


def test_a_feature_without_its_extension_stays_off() -> None:
    both = {"VK_KHR_cooperative_matrix", "VK_NV_cooperative_matrix"}
    plan = plan_device(replace(RTX, extensions=RTX.extensions - both))
    assert "cooperativeMatrix" not in plan.features
    float2 = PROFILES["amd_rx_6600_windows"]
    assert "VK_EXT_shader_atomic_float2" in plan_device(float2).extensions
    without = replace(float2, extensions=float2.extensions - {"VK_EXT_shader_atomic_float"})
    assert "VK_EXT_shader_atomic_float2" not in plan_device(without).extensions


def test_robust_access_only_on_request() -> None:
    options = PlanOptions(robust_buffer_access=True)
    check(RTX, plan_device(RTX, options), options)
    with pytest.raises(UnavailableError, match="robustBufferAccess"):
        plan_device(replace(RTX, features=RTX.features - {"robustBufferAccess"}), options)


def test_push_descriptors() -> None:
    assert plan_device(RTX).push_descriptors
    assert not plan_device(RTX, PlanOptions(push_descriptors=False)).push_descriptors
    few = replace(RTX, limits=replace(RTX.limits, max_push_descriptors=7))
    assert not plan_device(few).push_descriptors
    missing = replace(RTX, extensions=RTX.extensions - {"VK_KHR_push_descriptor"})
    assert not plan_device(missing).push_descriptors
    for profile in (few, missing):
        with pytest.raises(UnavailableError, match="push descriptors"):
            plan_device(profile, PlanOptions(push_descriptors=True))
    old = PROFILES["nvidia_gtx_950"]
    assert old.limits.max_push_descriptors >= 8
    assert not plan_device(old).push_descriptors
    assert plan_device(old, PlanOptions(push_descriptors=True)).push_descriptors


def test_staging_can_be_forced() -> None:
    assert plan_device(LAVAPIPE, PlanOptions(staging=True)).staging
    assert not plan_device(RTX, PlanOptions(staging=False)).staging


def test_all_device_local_heaps_are_unified_memory() -> None:
    heaps = tuple(replace(heap, flags=1) for heap in RTX.memory_heaps)
    assert plan_device(replace(RTX, memory_heaps=heaps)).unified_memory


@pytest.mark.parametrize(
    ("extensions", "domains", "extension", "domain"),
    [
        ("KHR EXT", "device clock_monotonic clock_monotonic_raw", "VK_KHR_calibrated_timestamps", "clock_monotonic"),
        ("EXT", "device clock_monotonic_raw", "VK_EXT_calibrated_timestamps", "clock_monotonic_raw"),
        ("KHR", "device query_performance_counter", "VK_KHR_calibrated_timestamps", "query_performance_counter"),
        ("KHR", "clock_monotonic", None, None),
        ("KHR", "device", None, None),
        ("", "device clock_monotonic", None, None),
    ],
)
def test_clocks(extensions: str, domains: str, extension: str | None, domain: str | None) -> None:
    names = {f"VK_{vendor}_calibrated_timestamps" for vendor in extensions.split()}
    base = RTX.extensions - {"VK_KHR_calibrated_timestamps", "VK_EXT_calibrated_timestamps"}
    plan = plan_device(replace(RTX, extensions=base | names, time_domains=frozenset(domains.split())))
    assert (plan.calibrated_timestamps, plan.host_time_domain) == (extension, domain)


def test_block_size() -> None:
    asked = PlanOptions(block_size=1 << 20)
    assert plan_device(RTX, asked).block_size == 1 << 20
    with pytest.raises(InvalidArgumentError, match="at most"):
        plan_device(RTX, PlanOptions(block_size=1 << 62))
    small = replace(LAVAPIPE, memory_heaps=(MemoryHeap(1 << 22, 1),))
    assert plan_device(small).block_size == 1 << 20
    sizes = [
        plan_device(replace(LAVAPIPE, memory_heaps=(MemoryHeap(size << 30, 1),))).block_size for size in range(1, 65)
    ]
    assert sizes == sorted(sizes)
    assert len(set(sizes)) > 3


def test_unusable_device_is_refused_with_what_it_lacks() -> None:
    with pytest.raises(UnavailableError, match=r"lavapipe|llvmpipe.*timelineSemaphore"):
        plan_device(replace(LAVAPIPE, features=frozenset()))


@pytest.mark.parametrize(
    "options",
    [
        {"max_compute_queues": 0},
        {"max_transfer_queues": 65},
        {"block_size": 3 << 20},
        {"block_size": 0},
        {"block_size": 1},
    ],
)
def test_bad_options(options: dict[str, int]) -> None:
    with pytest.raises(InvalidArgumentError):
        PlanOptions(**options)  # type: ignore[arg-type]


def test_whatever_is_supported_and_used_is_enabled() -> None:
    """No structure of a recorded device is forgotten: its booleans are all enabled, or named as left out."""
    known = known_extensions()
    for name, profile in PROFILES.items():
        version = profile.version
        offered = offered_extensions(version, profile.extensions)
        plan = plan_device(profile)
        for structure in feature_structures():
            if structure.offered(version, offered) and not any(known[one].serves for one in structure.extensions):
                assert set(structure.used) & profile.features <= plan.features | MISTRUSTED.get(name, frozenset())
    # What only serves others is off where these are missing.
    apu = PROFILES["amd_renoir_apu_radv"]
    assert "VK_KHR_deferred_host_operations" in apu.extensions - set(plan_device(apu).extensions)
    ada = plan_device(RTX).features
    assert {"shaderImageGatherExtended", "imageCubeArray", "runtimeDescriptorArray", "descriptorIndexing"} <= ada
    assert {"shaderImageInt64Atomics", "cooperativeMatrix", "rayQuery", "shaderStorageImageReadWithoutFormat"} <= ada


def test_tables_are_what_the_generator_gives() -> None:
    """Numbers and members never change, so an older or newer registry agrees on what both know."""
    registry = Path("/usr/share/vulkan/registry/vk.xml")
    if not registry.exists():
        pytest.skip(f"needs the Vulkan registry at {registry} (package libvulkan-dev)")
    namespace: dict[str, str] = {}
    exec(build(registry.read_bytes()), namespace)
    if namespace["VERSION"] == feature_tables.VERSION:
        assert build(registry.read_bytes()) == Path(str(feature_tables.__file__)).read_text(encoding="utf-8")
    theirs, ours = (
        {int(row.split("|")[0]): row.split("|")[3].split() for row in table.replace("\n ", " ").strip().split("\n")}
        for table in (namespace["STRUCTURES"], feature_tables.STRUCTURES)
    )
    common = theirs.keys() & ours.keys()
    assert len(common) > 25
    assert {key: theirs[key] for key in common} == {key: ours[key] for key in common}


def test_structures_are_laid_out_as_the_binding_declares_them() -> None:
    """The chain's layout against cffi's, for the structures that the binding declares."""
    chain = FeatureChain((1, 3), frozenset(known_extensions()))
    at, seen = ffi.cast("VkBaseOutStructure *", chain.head), 0
    names = {value: name for name, value in ffi.typeof("VkStructureType").relements.items()}
    declared = {
        "VK_STRUCTURE_TYPE_" + re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.removeprefix("Vk")).upper(): name
        for name in ffi.list_types()[0]
        if "Features" in name
    }
    by_type = {structure.type: structure.members for structure in feature_structures()}
    while at != ffi.NULL:
        number = int(ffi.cast("uint32_t *", at)[0])
        struct = declared.get(names.get(number, ""))
        if struct is not None and number != 1000059000:
            fields = [(name, field.offset) for name, field in ffi.typeof(struct).fields][2:]
            header = ffi.sizeof("VkBaseOutStructure")
            assert fields == [(name, header + 4 * index) for index, name in enumerate(by_type[number])], struct
            seen += 1
        at = at.pNext
    assert seen > 10


_ALL_FEATURES = sorted(
    set().union(*(p.features for p in PROFILES.values())) | {name for s in feature_structures() for name in s.used}
)
_ALL_EXTENSIONS = sorted(
    set().union(*(p.extensions for p in PROFILES.values()))
    | {"VK_KHR_calibrated_timestamps"}
    | known_extensions().keys()
)
_OPTIONS = st.builds(
    PlanOptions,
    staging=st.none() | st.booleans(),
    push_descriptors=st.none() | st.just(False),
    prefer_dedicated_compute=st.booleans(),
    transfer_queue=st.booleans(),
    max_compute_queues=st.integers(1, 64),
    max_transfer_queues=st.integers(1, 64),
)


@pytest.mark.slow
@given(data=st.data(), options=_OPTIONS)
def test_no_plan_enables_what_the_profile_lacks(data: st.DataObject, options: PlanOptions) -> None:
    base = data.draw(st.sampled_from(list(PROFILES.values())))
    families = data.draw(
        st.lists(
            st.builds(QueueFamily, st.integers(0, 0x1FF), st.integers(0, 16), st.sampled_from([0, 32, 36, 64])),
            min_size=1,
            max_size=6,
        )
    )
    features = data.draw(st.frozensets(st.sampled_from(_ALL_FEATURES))) | {"timelineSemaphore"}
    profile = replace(
        base,
        api_version=(1, data.draw(st.integers(1, 4)), 0),
        device_type=data.draw(st.sampled_from(DeviceType)),
        queue_families=tuple(families),
        features=features,
        extensions=data.draw(st.frozensets(st.sampled_from(_ALL_EXTENSIONS))),
        time_domains=data.draw(st.frozensets(st.sampled_from(["device", "clock_monotonic", "clock_monotonic_raw"]))),
        memory_types=(MemoryType(data.draw(st.sampled_from([1, 6, 7, 15])), 0),),
        limits=replace(
            base.limits,
            max_push_descriptors=data.draw(st.integers(0, 64)),
            min_imported_host_pointer_alignment=data.draw(st.sampled_from([0, 4096])),
            max_memory_allocation_size=data.draw(st.integers(1, 1 << 34)),
        ),
    )
    if profile.problems():
        with pytest.raises(UnavailableError):
            plan_device(profile, options)
        return
    check(profile, plan_device(profile, options), options)


@pytest.mark.parametrize("name", ["sanitize", "loop_guard", "staging"])
def test_switches_are_booleans(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{name}: expected True, False or None, got 'no'"):
        PlanOptions(**{name: "no"})


@pytest.mark.parametrize(
    "name",
    [name for name in sorted(PROFILES) if any(f.has_compute and f.has_graphics for f in PROFILES[name].queue_families)],
)
def test_presentation_takes_graphics_and_swapchains(name: str) -> None:
    profile = replace(PROFILES[name], extensions=PROFILES[name].extensions | {"VK_KHR_swapchain"})
    assert "VK_KHR_swapchain" not in plan_device(profile).extensions
    plan = plan_device(profile, PlanOptions(presentation=True))
    assert "VK_KHR_swapchain" in plan.extensions
    assert profile.queue_families[plan.compute_family].flags & QueueFlag.GRAPHICS
    assert any("has graphics too: as asked" in reason for reason in plan.why)
    without = replace(profile, extensions=profile.extensions - {"VK_KHR_swapchain"})
    with pytest.raises(UnavailableError, match="lacks VK_KHR_swapchain; plan without presentation"):
        plan_device(without, PlanOptions(presentation=True))
