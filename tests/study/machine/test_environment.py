"""Facts of the host and of devices: JSON values on every platform."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.profiles import PROFILE_PATHS

from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.plan import plan_device
from pumice.hal_vulkan.instance.profile import DeviceProfile
from pumice.study.machine import environment
from pumice.study.machine.environment import device_facts, environment_facts


def test_the_host_is_told_in_json_values() -> None:
    facts = environment_facts()
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert isinstance(facts["pumice"], str) and str(facts["python"]).startswith("CPython 3.")
    assert isinstance(facts["packages"], dict) and facts["packages"]["numpy"]
    cpu = facts["cpu"]
    assert isinstance(cpu, dict) and cpu["usable"] >= 1
    assert isinstance(facts["load_average"], list) and len(facts["load_average"]) == 3
    assert isinstance(facts["memory_bytes"], int) and facts["memory_bytes"] > 1 << 20


def test_what_cannot_be_read_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import psutil

    def cannot() -> None:
        raise NotImplementedError

    monkeypatch.setattr(environment, "_CPUS", tmp_path)
    monkeypatch.setattr(environment, "_CLOCK_SOURCE", tmp_path / "none")
    monkeypatch.setattr(psutil, "cpu_freq", cannot)
    facts = environment_facts()
    cpu, clock = facts["cpu"], facts["clock"]
    assert isinstance(cpu, dict) and isinstance(clock, dict)
    assert [cpu[name] for name in ("mhz", "max_mhz", "governor", "boost")] == [None] * 4
    assert clock["source"] is None


def test_governor_and_boost_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cpu0" / "cpufreq").mkdir(parents=True)
    (tmp_path / "cpu0" / "cpufreq" / "scaling_governor").write_text("powersave\n")
    (tmp_path / "intel_pstate").mkdir()
    (tmp_path / "intel_pstate" / "no_turbo").write_text("1\n")
    monkeypatch.setattr(environment, "_CPUS", tmp_path)
    cpu = environment_facts()["cpu"]
    assert isinstance(cpu, dict) and (cpu["governor"], cpu["boost"]) == ("powersave", False)


def test_variables_that_choose_drivers_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VK_LOADER_DEBUG", "none")
    monkeypatch.setenv("SECRET_TOKEN", "x")
    variables = environment_facts()["variables"]
    assert isinstance(variables, dict)
    assert variables["VK_LOADER_DEBUG"] == "none" and "SECRET_TOKEN" not in variables


@pytest.mark.parametrize("path", PROFILE_PATHS, ids=lambda path: path.stem)
def test_every_recorded_device_is_told_in_json_values(path: Path) -> None:
    profile = DeviceProfile.from_json(json.loads(path.read_text(encoding="utf-8")))
    if profile.problems():
        pytest.skip("pumice cannot run on this device")
    facts = device_facts(profile, plan_device(profile))
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    timestamps, limits = facts["timestamps"], facts["limits"]
    assert isinstance(timestamps, dict) and timestamps["period_ns"] == profile.limits.timestamp_period
    assert isinstance(limits, dict) and len(limits["max_compute_work_group_count"]) == 3
    assert facts["name"] == profile.name


@pytest.mark.vulkan
def test_a_device_of_this_host_is_told(device: Device) -> None:
    facts = device_facts(device.profile, device.plan)
    timestamps = facts["timestamps"]
    assert isinstance(timestamps, dict) and timestamps["valid_bits"] == device.plan.timestamp_bits
    assert json.loads(json.dumps(facts)) == facts
