"""Kernels of recorded devices: within the device's limits, with its features alone, by every strategy."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from support.compiler.regions import contraction, function, region_of
from support.profiles import PROFILE_NAMES, recorded_profile

from pumice.compiler.kernels.scalars.device_target import target_of
from pumice.compiler.kernels.scalars.target import NeedsSplitError
from pumice.compiler.strategies.choice import compile_region, ranked
from pumice.hal_vulkan.instance.plan import plan_device
from pumice.hal_vulkan.instance.profile import DeviceProfile, SubgroupProperties
from pumice.spirv.checks.capabilities import missing_requirements
from pumice.spirv.reflection.reflect import reflect

PROFILES = {name: recorded_profile(name) for name in PROFILE_NAMES if not recorded_profile(name).problems()}

_SUM = """
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %r = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<64x1000xf32>, tensor<f32>) -> tensor<64xf32>"""
_SCAN = """
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %r = "stablehlo.reduce_window"(%a, %zero) <{
      window_dimensions = array<i64: 1, 8192>, padding = dense<[[0, 0], [8191, 0]]> : tensor<2x2xi64>}> ({
      ^bb0(%x: tensor<i32>, %y: tensor<i32>):
        %sum = stablehlo.add %x, %y : tensor<i32>
        stablehlo.return %sum : tensor<i32>
      }) : (tensor<4x8192xi32>, tensor<i32>) -> tensor<4x8192xi32>"""
_TRANSPOSE = "%r = stablehlo.transpose %a, dims = [1, 0] : (tensor<512x384xf32>) -> tensor<384x512xf32>"
_WIDE = "%r = stablehlo.multiply %a, %a : tensor<1000xi64>"
_HALF = "%r = stablehlo.add %a, %a : tensor<1000xf16>"

REGIONS = {
    "contraction": contraction("256x128xf32", "128x192xf32", "256x192xf32", "contracting_dims = [1] x [0]"),
    "contraction of halves": contraction("64x64xf16", "64x64xf16", "64x64xf16", "contracting_dims = [1] x [0]"),
    "sum": function("%a: tensor<64x1000xf32>", "64xf32", _SUM),
    "scan": function("%a: tensor<4x8192xi32>", "4x8192xi32", _SCAN),
    "transpose": function("%a: tensor<512x384xf32>", "384x512xf32", _TRANSPOSE),
    "64-bit integers": function("%a: tensor<1000xi64>", "1000xi64", _WIDE),
    "halves": function("%a: tensor<1000xf16>", "1000xf16", _HALF),
}


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
