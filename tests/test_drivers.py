"""The suite on other drivers: how a run names one, and how tests say what they need of it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.devices.features import require_features, type_features
from support.drivers import DRIVERS, environment

from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.driver import Driver
from pumice.status import NotFoundError

PROGRAM = Path(__file__).parent / "support" / "drivers.py"


def test_a_driver_is_the_only_one_for_every_loader() -> None:
    names = environment(Path("a.json"))
    assert names["VK_DRIVER_FILES"] == names["VK_ICD_FILENAMES"] == "a.json"
    assert names["PUMICE_DEVICE"] == "vulkan"


def test_an_unknown_driver_is_refused_with_those_known() -> None:
    done = subprocess.run([sys.executable, PROGRAM, "none", "true"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and all(name in done.stderr for name in DRIVERS)


def test_types_have_features() -> None:
    assert type_features("float32") == ()
    assert type_features("int64") == ("shaderInt64",)
    assert set(type_features("uint8")) == {"shaderInt8", "storageBuffer8BitAccess"}


@pytest.mark.vulkan
def test_what_the_plan_lacks_skips_and_what_vulkan_lacks_is_an_error(driver: Driver) -> None:
    require_features(driver, "timelineSemaphore")
    with pytest.raises(pytest.skip.Exception, match="lacks VK_KHR_of_nobody"):
        require_features(driver, "timelineSemaphore", "VK_KHR_of_nobody")
    with pytest.raises(NotFoundError, match="did you mean timelineSemaphore"):
        require_features(driver, "timelineSemafore")
    with Device(driver) as device:
        device.plan = replace(device.plan, features=device.plan.features - {"timelineSemaphore"})
        with pytest.raises(pytest.skip.Exception, match="lacks timelineSemaphore"):
            require_features(device, "timelineSemaphore")


@pytest.mark.vulkan
@pytest.mark.features("VK_KHR_of_nobody")
def test_a_mark_skips() -> None:
    raise AssertionError("no driver has that")
