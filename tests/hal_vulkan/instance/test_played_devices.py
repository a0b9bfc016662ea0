"""Recorded devices, played by a layer above a driver that executes nothing: what is read, refused, planned and called.

``make test LAYERS=newest`` brings the driver. The validation layer stands between pumice and the played device, so that
a call which that device does not allow fails here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.devices import profile_layer
from support.profiles import PROFILE_NAMES, recorded_profile

from pumice.hal_vulkan.instance.features import feature_structures
from pumice.hal_vulkan.instance.plan import plan_device
from pumice.hal_vulkan.instance.profile import DeviceProfile, DeviceType

pytestmark = [
    pytest.mark.vulkan,
    pytest.mark.skipif(
        profile_layer.MOCK_ICD not in os.environ, reason=f"{profile_layer.MOCK_ICD} names no mock ICD: LAYERS=newest"
    ),
    pytest.mark.skipif(profile_layer.COMPILER is None, reason="needs a C compiler"),
]
PROGRAM = Path(profile_layer.__file__).with_name("played_device.py")


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return profile_layer.build(tmp_path_factory.mktemp("layer"))


def played(layer: Path, profile: DeviceProfile, cache: Path) -> dict[str, Any]:
    """Returns what a process sees and does whose only device has a profile."""
    patches = cache / "patches"
    patches.write_bytes(profile_layer.patches(profile))
    environment = profile_layer.environment(layer, patches, validation=True) | {"PUMICE_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert isinstance(report, dict)
    return report


def as_read(profile: DeviceProfile) -> DeviceProfile:
    """Returns the part of a recorded profile that a driver of its version and extensions tells."""
    version, extensions, limits = profile.version, profile.extensions, profile.limits
    structures = [structure for structure in feature_structures() if structure.offered(version, extensions)]
    readable = {name for structure in structures for name in structure.members}
    tells_size = version >= (1, 3) or "VK_KHR_maintenance4" in extensions
    has_matrices = "VK_KHR_cooperative_matrix" in extensions
    return replace(
        profile,
        driver_id_name="",
        device_uuid=profile.device_uuid or "00000000-0000-0000-0000-000000000000",
        driver_uuid=profile.driver_uuid or "00000000-0000-0000-0000-000000000000",
        limits=replace(
            limits,
            timestamp_period=round(limits.timestamp_period, 3),
            max_buffer_size=limits.max_buffer_size if tells_size else limits.max_memory_allocation_size,
            max_push_descriptors=limits.max_push_descriptors if "VK_KHR_push_descriptor" in extensions else 0,
        ),
        features=profile.features & readable,
        cooperative_matrices=profile.cooperative_matrices if has_matrices else (),
        compute_units=0 if profile.device_type is DeviceType.CPU else profile.compute_units,
    )


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("name", PROFILE_NAMES)
def test_a_recorded_device_is_read_planned_and_used(name: str, layer: Path, tmp_path: Path) -> None:
    profile = recorded_profile(name)
    report = played(layer, profile, tmp_path)
    (found,) = map(DeviceProfile.from_json, report["profiles"])
    assert report["validation"] == [] and report["alive"] == {}
    if profile.problems():
        assert all(problem in report["error"] for problem in found.problems())
        return
    expected = as_read(profile)
    found = replace(
        found,
        driver_id_name="",
        limits=replace(found.limits, timestamp_period=round(found.limits.timestamp_period, 3)),
        compute_units=0 if profile.device_type is DeviceType.CPU else found.compute_units,
    )
    assert found == expected
    assert "error" not in report, report["error"]
    assert report["shapes"] == [[1 << 20], [1000], [96, 80], [96], [4096], [64, 96]]
    assert report["plan"] == list(plan_device(expected).why)
