"""Kernels of recorded devices: within the device's limits, with its features alone, by every strategy."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from support.compiler.regions import region_of
from support.compiler.strategy_regions import REGIONS
from support.profiles import PROFILE_NAMES, recorded_profile

from pumice.compiler.kernels.scalars.device_target import target_of
from pumice.compiler.kernels.scalars.target import NeedsSplitError
from pumice.compiler.strategies.choice import compile_region, ranked
from pumice.hal_vulkan.instance.plan import plan_device
from pumice.hal_vulkan.instance.profile import DeviceProfile, SubgroupProperties
from pumice.spirv.checks.capabilities import missing_requirements
from pumice.spirv.reflection.reflect import reflect

PROFILES = {name: recorded_profile(name) for name in PROFILE_NAMES if not recorded_profile(name).problems()}


def check(profile: DeviceProfile, code: bytes) -> None:
    """Checks that a device can run a kernel: its capabilities, its workgroup, and its shared memory."""
    module, limits, plan = reflect(code), profile.limits, plan_device(profile)
    (entry,) = module.entry_points
    assert math.prod(entry.local_size) <= limits.max_compute_work_group_invocations
    assert all(size <= most for size, most in zip(entry.local_size, limits.max_compute_work_group_size, strict=True))
    assert entry.workgroup_memory_bytes <= limits.max_compute_shared_memory_size
    assert not missing_requirements(
        module,
        api_version=profile.version,
        features=plan.features | profile.properties,
        extensions=frozenset(plan.extensions),
        subgroup_operations=profile.subgroup.supported_operations,
    )


@pytest.mark.sample(60)
@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("name", PROFILES)
def test_kernels_keep_to_the_device(name: str, region: str) -> None:
    profile = PROFILES[name]
    kernel_region = region_of(REGIONS[region], target_of(profile))
    chosen = compile_region(kernel_region)
    check(profile, chosen.code)
    assert all(
        count <= most
        for count, most in zip(chosen.workgroup_count, profile.limits.max_compute_work_group_count, strict=True)
    )
    for _, strategy in ranked(kernel_region):
        try:
            check(profile, strategy.emit(kernel_region).code)
        except NeedsSplitError:
            continue


@pytest.mark.parametrize("size", [4, 8, 16, 32, 64, 128])
@pytest.mark.parametrize("region", ["sum", "scan", "contraction"])
def test_kernels_for_subgroups_of_every_size(size: int, region: str) -> None:
    """On a device with the least limits otherwise."""
    operations = frozenset({"arithmetic", "ballot", "basic", "shuffle", "vote"})
    profile = replace(
        PROFILES["required_limits"], subgroup=SubgroupProperties(size, size, size, 0, False, operations, True)
    )
    kernel_region = region_of(REGIONS[region], target_of(profile))
    for strategy in [None, *(strategy for _, strategy in ranked(kernel_region))]:
        check(profile, compile_region(kernel_region, strategy).code)
