"""Statistics of pipelines by a made-up driver: what is asked of it, and what is kept of its answers."""

from __future__ import annotations

import pytest
from support.devices.made_drivers import Statistics, offer_properties, offer_statistics

from pumice import shaders
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.plan import PIPELINE_STATISTICS, PlanOptions
from pumice.hal_vulkan.pipelines.pipeline_statistics import occupancy
from pumice.status import UnavailableError

pytestmark = pytest.mark.vulkan

EVERY_FORMAT: Statistics = [
    ("Spills", "b32", True),
    ("Depth", "i64", -3),
    ("Hash", "u64", 2**64 - 1),
    ("P", "f64", 0.5),
]


def test_answers_are_kept_as_the_driver_gives_them(monkeypatch: pytest.MonkeyPatch, driver: Driver) -> None:
    enabled = offer_statistics(monkeypatch, driver, {"main": EVERY_FORMAT, "tail": []})
    with Device(driver, options=PlanOptions(pipeline_statistics=True)) as device:
        device.create_pipeline(shaders.spirv("mul")).close()
        found = device.pipeline_statistics
    assert enabled == [{PIPELINE_STATISTICS}]
    assert [(one.name, one.value) for one in found] == [(name, value) for name, _, value in EVERY_FORMAT]
    assert {type(one.value) for one in found} == {bool, int, float}
    assert {(one.pipeline, one.executable) for one in found} == {("main", "main")}
    assert found[0].description == "the Spills"


def test_nothing_is_enabled_unless_asked_for(monkeypatch: pytest.MonkeyPatch, driver: Driver) -> None:
    enabled = offer_statistics(monkeypatch, driver, {"main": EVERY_FORMAT})
    with Device(driver) as device:
        device.create_pipeline(shaders.spirv("mul")).close()
        assert enabled == [set()] and not device.pipeline_statistics


def test_a_driver_without_them_is_refused(driver: Driver) -> None:
    if PIPELINE_STATISTICS in driver.profiles[driver.select(None)].extensions:
        pytest.skip("this driver has statistics")
    with pytest.raises(UnavailableError, match=f"lacks {PIPELINE_STATISTICS}; plan without pipeline_statistics"):
        Device(driver, options=PlanOptions(pipeline_statistics=True))


@pytest.mark.parametrize(
    ("extension", "structure", "most", "statistics", "share"),
    [
        ("VK_AMD_shader_core_properties", "ShaderCorePropertiesAMD", 16, [("Subgroups per SIMD", "u64", 12)], 0.75),
        # NVIDIA's occupancy calculator: 40 registers a thread are 48 warps of 64, 255 are 8, 32 and less are all.
        ("VK_NV_shader_sm_builtins", "ShaderSMBuiltinsPropertiesNV", 64, [("Register Count", "u64", 40)], 0.75),
        ("VK_NV_shader_sm_builtins", "ShaderSMBuiltinsPropertiesNV", 64, [("Register Count", "u64", 255)], 0.125),
        ("VK_NV_shader_sm_builtins", "ShaderSMBuiltinsPropertiesNV", 48, [("Register Count", "u64", 32)], 1.0),
        ("VK_NV_shader_sm_builtins", "ShaderSMBuiltinsPropertiesNV", 48, [("Binary Size", "u64", 32)], None),
        ("", "ShaderSMBuiltinsPropertiesNV", 48, [("Register Count", "u64", 32)], None),
    ],
)
def test_occupancy_follows_where_the_device_tells_its_most(
    monkeypatch: pytest.MonkeyPatch,
    driver: Driver,
    extension: str,
    structure: str,
    most: int,
    statistics: Statistics,
    share: float | None,
) -> None:
    offer_statistics(monkeypatch, driver, {"main": statistics}, *filter(None, [extension]))
    field = {"ShaderCorePropertiesAMD": "wavefrontsPerSimd"}.get(structure, "shaderWarpsPerSM")
    offer_properties(monkeypatch, driver, f"VkPhysicalDevice{structure}", **{field: most})
    with Device(driver, options=PlanOptions(pipeline_statistics=True)) as device:
        device.create_pipeline(shaders.spirv("mul")).close()
        found = occupancy(device, device.pipeline_statistics)
    assert (found and found[0]) == share
