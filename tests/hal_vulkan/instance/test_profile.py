"""Profiles: the JSON round trip, its checks, the recorded ones, and what makes a device unusable."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.profiles import PROFILE_NAMES, profile_record, recorded_profiles

from pumice.hal_vulkan.instance.profile import DeviceLimits, DeviceProfile, DeviceType, MemoryType, QueueFamily
from pumice.status import InvalidArgumentError, PumiceError

RECORDS = {name: profile_record(name) for name in PROFILE_NAMES}
PROFILES = recorded_profiles()
# The one record of a device that is too old on purpose.
TOO_OLD = "intel_hd_530_windows_vulkan_1_1"


def test_devices_of_every_kind_are_recorded() -> None:
    assert {p.device_type for p in PROFILES.values()} >= {DeviceType.DISCRETE, DeviceType.INTEGRATED, DeviceType.CPU}
    # AMD, NVIDIA, Intel, Apple, Arm by PCI vendor, Mesa's software devices by Khronos' number.
    assert {p.vendor_id for p in PROFILES.values()} >= {0x1002, 0x10DE, 0x8086, 0x106B, 0x13B5, 0x10005}


@pytest.mark.parametrize("name", RECORDS)
def test_record_says_where_it_comes_from(name: str) -> None:
    assert len(str(RECORDS[name]["source"])) > 20


@pytest.mark.parametrize("name", RECORDS)
def test_json_round_trip(name: str) -> None:
    profile = PROFILES[name]
    assert DeviceProfile.from_json(json.loads(json.dumps(profile.to_json()))) == profile


@pytest.mark.parametrize("name", RECORDS)
def test_record_loses_nothing(name: str) -> None:
    """Every key of the record is in the profile's JSON with the same value: nothing is dropped on the way."""
    written = PROFILES[name].to_json()
    for key, value in RECORDS[name].items():
        if key in ("source", "assumed", "note"):
            continue
        if key in ("limits", "subgroup"):
            assert {k: written[key][k] for k in value} == value  # type: ignore[index]
        else:
            assert written[key] == value


@pytest.mark.parametrize("name", RECORDS)
def test_recorded_limits_reach_what_vulkan_requires(name: str) -> None:
    """The defaults claim to be the required limits: no real device may fall below (or, for alignments, above) them."""
    limits, required = PROFILES[name].limits, DeviceLimits()
    for key in RECORDS[name]["limits"]:
        ours, least = getattr(limits, key), getattr(required, key)
        if key.startswith("max_compute_work_group") and isinstance(ours, tuple):
            assert all(a >= b for a, b in zip(ours, least, strict=True))
        elif key == "min_memory_map_alignment" or key.startswith("max_"):
            assert ours >= least
        elif not key.startswith(("min_imported", "timestamp")):
            assert ours <= least


@pytest.mark.parametrize("name", RECORDS)
def test_only_the_old_device_has_problems(name: str) -> None:
    assert bool(PROFILES[name].problems()) == (name == TOO_OLD)


def test_each_lack_is_named() -> None:
    profile = PROFILES["lavapipe_mesa_22_3_6"]
    assert "1.1.9" in replace(profile, api_version=(1, 1, 9)).problems()[0]
    assert "timelineSemaphore" in replace(profile, features=frozenset()).problems()[0]
    assert "COMPUTE" in replace(profile, queue_families=(QueueFamily(1, 1, 64),)).problems()[0]
    assert "COMPUTE" in replace(profile, queue_families=(QueueFamily(7, 0, 64),)).problems()[0]
    for flags in (0x1, 0x3, 0x27, 0x17):
        assert "HOST_COHERENT" in replace(profile, memory_types=(MemoryType(flags, 0),)).problems()[0]
    assert len(replace(profile, api_version=(1, 0, 0), features=frozenset(), queue_families=()).problems()) == 3


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("surprise",), 1, "unknown key"),
        (("name",), 5, "profile.name: expected text"),
        (("name",), "x" * 5000, "at most"),
        (("device_type",), 2, "DISCRETE"),
        (("device_type",), "QUANTUM", "DISCRETE"),
        (("device_uuid",), "1234", "UUID"),
        (("driver_version",), True, "integer"),
        (("driver_version",), 1 << 32, "integer"),
        (("driver_version",), -1, "integer"),
        (("api_version",), [1, 3], "three integers"),
        (("limits", "max_push_descriptors"), "many", "integer"),
        (("limits", "min_storage_buffer_offset_alignment"), 48, "power of two"),
        (("limits", "min_storage_buffer_offset_alignment"), 0, "power of two"),
        (("limits", "min_imported_host_pointer_alignment"), 3, "power of two"),
        (("limits", "timestamp_period"), math.nan, "positive"),
        (("limits", "timestamp_period"), 0, "positive"),
        (("limits", "timestamp_compute_and_graphics"), 1, "true or false"),
        (("limits", "max_compute_work_group_size"), [1, 0, 1], "integer"),
        (("limits", "max_compute_work_groop_size"), [1, 1, 1], "unknown key"),
        (("subgroup", "size"), 0, "integer"),
        (("subgroup", "supported_operations"), ["basic", 3], r"supported_operations\[1\]"),
        (("memory_types",), [{"property_flags": 7}], "heap_index"),
        (("memory_types",), [{"property_flags": 7, "heap_index": 9}], "number of memory heaps"),
        (("memory_types",), [{"property_flags": 7, "heap_index": 0}] * 33, "at most 32"),
        (("memory_heaps",), [], "number of memory heaps"),
        (("queue_families",), "all", "list"),
        (("extensions",), "VK_KHR_push_descriptor", "list"),
        (("limits",), None, "object"),
    ],
)
def test_bad_json_is_refused(path: tuple[str, ...], value: object, message: str) -> None:
    data = json.loads(json.dumps(RECORDS["lavapipe_mesa_22_3_6"]))
    target = data
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    with pytest.raises(InvalidArgumentError, match=message):
        DeviceProfile.from_json(data)


def test_missing_keys_are_named() -> None:
    with pytest.raises(InvalidArgumentError, match="memory_types, queue_families"):
        DeviceProfile.from_json({"name": "x", "device_type": "CPU", "api_version": [1, 2, 0], "memory_heaps": []})


def test_what_is_left_out_takes_the_required_limit() -> None:
    data = {k: v for k, v in RECORDS["lavapipe_mesa_22_3_6"].items() if k not in ("limits", "subgroup", "features")}
    profile = DeviceProfile.from_json(data)
    assert profile.limits == DeviceLimits()
    assert profile.features == frozenset()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@pytest.mark.slow
@given(key=st.sampled_from(sorted(PROFILES["lavapipe_mesa_22_3_6"].to_json())), value=_JSON)
def test_any_json_gives_a_profile_or_a_pumice_error(key: str, value: object) -> None:
    data = {**RECORDS["lavapipe_mesa_22_3_6"], key: value}
    try:
        profile = DeviceProfile.from_json(data)
    except PumiceError:
        return
    assert DeviceProfile.from_json(profile.to_json()) == profile
