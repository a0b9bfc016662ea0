"""Native functions: resolved when first used, and errors that name what is missing."""

from __future__ import annotations

import pytest

from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.vulkan.functions import NULL
from pumice.status import UnavailableError, UnimplementedError

pytestmark = pytest.mark.vulkan


def test_a_function_is_resolved_once(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    fn = device.fn
    first = fn.vkDeviceWaitIdle
    monkeypatch.setattr(fn, "_resolve", lambda name: NULL)
    assert fn.vkDeviceWaitIdle is first


def test_what_is_missing_is_named(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    fn = device.fn
    monkeypatch.setattr(fn, "_resolve", lambda name: NULL)
    with pytest.raises(UnavailableError, match="does not offer vkCmdCopyImage, which every Vulkan 1.2 driver has to"):
        fn.vkCmdCopyImage  # noqa: B018  # looked up, not called
    with pytest.raises(UnimplementedError, match="vkCmdTraceRaysKHR is not offered by this device"):
        fn.vkCmdTraceRaysKHR  # noqa: B018
    with pytest.raises(AttributeError, match="vkMakeCoffee is no function of Vulkan"):
        fn.vkMakeCoffee  # noqa: B018
