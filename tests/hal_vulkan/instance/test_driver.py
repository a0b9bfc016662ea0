"""Instances ask for a version of Vulkan that every driver accepts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance import driver as driver_module
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.plan import plan_device
from pumice.hal_vulkan.vulkan.functions import NULL, CData, InstanceFunctions
from pumice.hal_vulkan.vulkan.results import VK_ERROR_INCOMPATIBLE_DRIVER
from pumice.status import UnavailableError

pytestmark = pytest.mark.vulkan


def refuse_above(monkeypatch: pytest.MonkeyPatch, newest: int) -> list[int]:
    """Has every driver refuse instances above Vulkan 1.``newest``; returns the minor versions asked for."""
    asked: list[int] = []

    class Strict(InstanceFunctions):
        def __init__(self, instance: CData = NULL) -> None:
            super().__init__(instance)
            if instance == NULL:
                self._accept, self.vkCreateInstance = self.vkCreateInstance, self._create

        def _create(self, info: Any, allocator: Any, instance: Any) -> int:
            asked.append(info.pApplicationInfo.apiVersion >> 12 & 0x3FF)
            return VK_ERROR_INCOMPATIBLE_DRIVER if asked[-1] > newest else self._accept(info, allocator, instance)

    monkeypatch.setattr(driver_module, "InstanceFunctions", Strict)
    return asked


@pytest.mark.parametrize(("newest", "expected"), [(4, [3]), (3, [3]), (2, [3, 2])])
def test_a_driver_may_refuse_later_versions_than_its_own(
    monkeypatch: pytest.MonkeyPatch, newest: int, expected: list[int]
) -> None:
    asked = refuse_above(monkeypatch, newest)
    with Driver() as own, Device(own) as device:
        assert device.profile.name
    assert asked == expected


def test_the_message_says_which_versions_were_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_above(monkeypatch, 1)
    with pytest.raises(UnavailableError, match=r"no Vulkan driver that takes Vulkan 1\.2 or later"):
        Driver()


def test_what_later_versions_have_in_their_core_is_enabled_by_extension(driver: Driver) -> None:
    core = frozenset({"shaderExpectAssume", "shaderFloatControls2"})
    names = frozenset({"VK_KHR_shader_expect_assume", "VK_KHR_shader_float_controls2"})
    profile = driver.profiles[driver.select()]
    without = profile.extensions - names
    newer = replace(profile, api_version=(1, 4, 300), features=profile.features | core, extensions=without)
    assert newer.version == (1, 3)
    assert not core & plan_device(newer).features
    plan = plan_device(replace(newer, extensions=without | names))
    assert core <= plan.features and names <= set(plan.extensions)
