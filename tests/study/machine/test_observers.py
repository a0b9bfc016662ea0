"""Observers: energy by planted meters, and performance counters with a simulated driver, whose calls have an order."""

from __future__ import annotations

import itertools
import json
import sys
import types
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner, Result
from support.devices.made_drivers import offer_counters

from pumice import shaders
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.plan import PERFORMANCE_QUERY
from pumice.hal_vulkan.instance.profile import DeviceProfile
from pumice.status import UnavailableError
from pumice.study.machine import observers
from pumice.study.machine.observers import EnergyObserver, Meter, energy_meters
from pumice.study.workloads.workload import Workload
from pumice.tools.cli import main

pytestmark = pytest.mark.vulkan


@pytest.fixture
def profile(driver: Driver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> DeviceProfile:
    """Returns a device on a machine with two packages, one of which has a part, and without NVML."""
    monkeypatch.setattr(observers, "_POWERCAP", tmp_path)
    for zone, name in (("intel-rapl:0", "package-0"), ("intel-rapl:0:0", "core"), ("intel-rapl:1", "package-1")):
        (tmp_path / zone).mkdir()
        for file, text in (("name", name), ("max_energy_range_uj", "5000000"), ("energy_uj", "4000000")):
            (tmp_path / zone / file).write_text(f"{text}\n")
    return replace(driver.profiles[0], vendor_id=0x10005)


def only(profile: DeviceProfile) -> tuple[Driver, int]:
    """Returns a driver with one device, and the device's index."""
    return cast(Driver, types.SimpleNamespace(profiles=[profile])), 0


def test_packages_are_read_and_their_parts_are_not(profile: DeviceProfile) -> None:
    meters, lacking = energy_meters(profile)
    assert [(meter.name, meter.read(), meter.wraps) for meter in meters] == [
        ("package-0 (RAPL)", 4.0, 5.0),
        ("package-1 (RAPL)", 4.0, 5.0),
    ]
    assert lacking == [f"{profile.name} is not an NVIDIA device"]


def test_a_counter_for_root_alone_is_told_with_what_to_do(
    profile: DeviceProfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.read_text

    def refuse(self: Path, *arguments: str, **named: str) -> str:
        if self.name == "energy_uj":
            raise PermissionError(13, "Permission denied")
        return real(self, *arguments, **named)

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(UnavailableError, match=r"for root alone: run as root, or `sudo chmod a\+r .*energy_uj`"):
        EnergyObserver().check(*only(profile))
    made = types.ModuleType("pynvml")
    vars(made).update(
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=lambda uuid: uuid,
        nvmlDeviceGetTotalEnergyConsumption=lambda handle: 2500 if handle.startswith("GPU-") else 0,
    )
    monkeypatch.setitem(sys.modules, "pynvml", made)
    nvidia = replace(profile, vendor_id=0x10DE)
    observer = EnergyObserver()
    observer.check(*only(nvidia))
    observer.check(*only(nvidia))
    assert len(observer.notes) == 1 and "root alone" in observer.notes[0]
    assert [(meter.name, meter.read()) for meter in energy_meters(nvidia)[0]] == [("device (NVML)", 2.5)]


def test_a_machine_without_counters_is_told(driver: Driver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(observers, "_POWERCAP", tmp_path)
    with pytest.raises(UnavailableError, match=r"cannot be read: RAPL: .* has no such zones.*Leave --energy out"):
        EnergyObserver().check(*only(replace(driver.profiles[0], vendor_id=0x10005)))


def test_joules_of_samples_are_those_of_the_counter(profile: DeviceProfile, monkeypatch: pytest.MonkeyPatch) -> None:
    # 100 W in steps of 10 ms, from 1 J before the counter wraps; a sample takes 1 ms and has two dispatches.
    clock = types.SimpleNamespace(now=0)
    monkeypatch.setattr(observers, "time", types.SimpleNamespace(monotonic_ns=lambda: clock.now))

    def sample() -> types.SimpleNamespace:
        clock.now += 1_000_000
        return types.SimpleNamespace(dispatches=2)

    workload = types.SimpleNamespace(device=types.SimpleNamespace(profile=profile), first=lambda: None, sample=sample)
    meters = [
        Meter("one", lambda: (4.0 + 100 * (clock.now // 10_000_000 / 100)) % 5.0, 5.0),
        Meter("none", lambda: 3.0),
    ]
    monkeypatch.setattr(observers, "energy_meters", lambda profile: (meters, []))
    observer = EnergyObserver()
    observer.check(*only(profile))
    observations = observer.observe(cast(Workload, workload))
    assert [(observation.subject, observation.name, observation.unit) for observation in observations] == [
        ("one", "energy of a sample", "J"),
        ("one", "energy of a dispatch", "J"),
        ("one", "mean power", "W"),
    ]
    assert [observation.value for observation in observations] == pytest.approx([0.1, 0.05, 100])
    assert observations[0].details["samples"] == 1000 and observations[0].details["step_joules"] == pytest.approx(1.0)
    assert "± 0.001 J" in str(observations[0].details["description"])
    # A counter that stands still measures nothing.
    monkeypatch.setattr(
        observers, "energy_meters", lambda profile: ([Meter("none", itertools.repeat(3.0).__next__)], [])
    )
    observer.check(*only(profile))
    with pytest.raises(UnavailableError, match=r"no counter of energy moved in 1\.0 s"):
        observer.observe(cast(Workload, workload))


SAMPLING = "time_limit=0.05 warmup_time=0 warmup_count=1 min_samples=3 max_samples=4 block=2 noise_limit=1e9"
FAST = [word for setting in [*SAMPLING.split(), "reference=false"] for word in ("--set", setting)]
COUNTERS = [
    ("Reads", 2, "uint64", 2**40),
    ("Share", 2, "float32", 0.5),
    ("Delta", 2, "int32", -7),
    ("Frame", 0, "uint64", 1),
]


def bench(*arguments: object) -> Result:
    fixed = ("--size", "64", "--no-baseline", "--timestamps", "none", "--quiet", *FAST)
    return CliRunner().invoke(main, ["bench", str(shaders.path("mul")), *map(str, arguments), *fixed])


def test_counters_are_read_in_passes_under_the_lock(monkeypatch: pytest.MonkeyPatch, driver: Driver) -> None:
    done = offer_counters(monkeypatch, driver, COUNTERS, passes=3)
    result = bench("--counters", "Delta,Reads, Share", "--json")
    assert result.exit_code == 0, result.stderr
    assert done == ["lock", "begin", "end", "pass 0", "pass 1", "pass 2", "read", "release"]
    data = json.loads(result.stdout)["observations"]
    assert [(observation["name"], observation["value"], observation["unit"]) for observation in data] == [
        ("Delta", -7, "B"),
        ("Reads", 2**40, "B"),
        ("Share", 0.5, "B"),
    ]
    assert {observation["subject"] for observation in data} == {"memory"} and data[0]["details"] == {
        "description": "the Delta"
    }


def test_what_cannot_be_counted_is_said_and_samples_stay(monkeypatch: pytest.MonkeyPatch, driver: Driver) -> None:
    done = offer_counters(monkeypatch, driver, COUNTERS, locked=2)
    result = bench("--counters", "Reads", "--json")
    assert result.exit_code == 0 and "the profiling lock could not be taken" in result.stderr
    assert not done and json.loads(result.stdout)["points"][0]["used"] > 0


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("Reads,Writes", "has no counter 'Writes'; it has Reads, Share, Delta, Frame"),
        ("Frame", "the counter 'Frame' is of command buffers"),
    ],
)
def test_counters_that_the_device_has_not_are_refused_before_measuring(
    monkeypatch: pytest.MonkeyPatch, driver: Driver, tmp_path: Path, names: str, message: str
) -> None:
    offer_counters(monkeypatch, driver, COUNTERS)
    result = bench("--counters", names, "--out", tmp_path / "r")
    assert result.exit_code == 1 and message in result.stderr
    assert not (tmp_path / "r").exists()


def test_wrong_names_and_devices_are_refused_before_measuring(driver: Driver, tmp_path: Path) -> None:
    result = bench("--counters", "a,,b", "--out", tmp_path / "r")
    assert result.exit_code == 2 and "expected names between commas" in result.stderr
    if PERFORMANCE_QUERY not in driver.profiles[driver.select(None)].extensions:
        result = bench("--counters", "Reads", "--out", tmp_path / "r")
        assert result.exit_code == 1 and "has no performance counters" in result.stderr
    assert not (tmp_path / "r").exists()
