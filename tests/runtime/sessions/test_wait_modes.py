"""``wait=`` of devices, kernels and sessions: each call's waits are performed in the mode it was given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pumice
from pumice import shaders
from pumice.hal_vulkan.sync.semaphore import TimelineSemaphore
from pumice.status import InvalidArgumentError
from pumice.waits.wait_mode import WAIT_MODES, WaitMode, chosen

pytestmark = pytest.mark.vulkan

SQUARE = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.multiply %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
ONES = np.ones(4, np.float32)


@pytest.fixture
def modes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[WaitMode | None]]:
    """The modes that waits for semaphores were performed in; ``None`` is the device's."""
    seen: list[WaitMode | None] = []
    wait = TimelineSemaphore.wait

    def noted(self: TimelineSemaphore, value: int, timeout: float | None = None) -> None:
        seen.append(chosen.mode)
        wait(self, value, timeout)

    monkeypatch.setattr(TimelineSemaphore, "wait", noted)
    yield seen
    assert chosen.mode is None


@pytest.mark.parametrize("mode", [*WAIT_MODES, None])
def test_calls_wait_as_they_are_told(device: pumice.Device, modes: list[Any], mode: WaitMode | None) -> None:
    kernel = device.load_kernel(shaders.path("mul"))
    modes.clear()
    result = kernel(ONES, ONES, pumice.empty(4, np.float32), wait=mode)
    assert result.tolist() == ONES.tolist()  # type: ignore[union-attr]
    assert set(modes) == {mode}

    array = kernel(device.asarray(ONES), ONES, pumice.empty(4, np.float32), wait=mode)
    modes.clear()
    assert array.wait(wait=mode) is array  # type: ignore[union-attr, arg-type, call-arg]
    device.wait(wait=mode)
    assert set(modes) == {mode}


@pytest.mark.parametrize("mode", [*WAIT_MODES, None])
def test_sessions_wait_as_they_are_told(device: pumice.Device, modes: list[Any], mode: WaitMode | None) -> None:
    with pumice.Session(device) as session:
        session.load(pumice.compile(SQUARE))
        function = session.lookup("module.main")
        values = function.bind(ONES)
        for call in (
            lambda: function(ONES, wait=mode),
            lambda: function(ONES, wait=mode, out=device.empty(4)),
            lambda: session.call("module.main", ONES, wait=mode),
            lambda: session.wrap_view(function.call_bound(values, wait=mode)),
        ):
            modes.clear()
            assert call().numpy().tolist() == ONES.tolist()
            assert modes and modes[0] == mode


@pytest.mark.parametrize("wrong", ["", "Spin", "poll", 3, True])
def test_wrong_modes_are_errors(device: pumice.Device, wrong: Any) -> None:
    kernel = device.load_kernel(shaders.path("mul"))
    array = device.asarray(ONES)
    for call in (
        lambda: kernel(ONES, ONES, pumice.empty(4, np.float32), wait=wrong),
        lambda: array.wait(wait=wrong),
        lambda: device.wait(wait=wrong),
        lambda: pumice.open_device("vulkan", wait=wrong),
        lambda: pumice.open_device("reference", wait=wrong),
        lambda: pumice.Instance(wait=wrong),
        lambda: pumice.Session(wait=wrong),
    ):
        with pytest.raises(InvalidArgumentError, match="wait: expected one of adaptive, block, spin"):
            call()


def test_a_device_is_opened_with_a_mode() -> None:
    for mode in WAIT_MODES:
        with pumice.open_device("vulkan", wait=mode) as device:
            assert device.vulkan.plan.wait == mode
        with pumice.Instance(wait=mode) as instance:
            assert instance.device("vulkan").vulkan.plan.wait == mode
    with pumice.open_device("reference", wait="spin") as device:
        assert device.name


def test_a_session_opens_its_devices_with_a_mode() -> None:
    with pumice.Session("vulkan", wait="block") as session:
        assert session.device.vulkan.plan.wait == "block"
    with pumice.Session("reference", wait="block"):
        pass
    with pumice.open_device("vulkan", wait="spin") as device:
        with pumice.Session(device, wait="spin"):
            pass
        with pytest.raises(InvalidArgumentError, match="wait='block' is for devices that the session opens; .*'spin'"):
            pumice.Session(device, wait="block")
