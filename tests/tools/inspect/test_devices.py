"""``pumice devices``, on the recorded profiles of real devices and on this machine's."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

import pytest
from click.testing import CliRunner, Result
from support.profiles import PROFILE_NAMES, recorded_profile

import pumice.runtime
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.profile import DeviceProfile
from pumice.hal_vulkan.pipelines.self_test import driver_faults, known_verdict
from pumice.tools.cli import main


def listed(monkeypatch: pytest.MonkeyPatch, profiles: Sequence[DeviceProfile], *arguments: str) -> Result:
    monkeypatch.setattr(pumice.runtime, "list_devices", lambda: tuple(profiles))
    return CliRunner().invoke(main, ["devices", *arguments])


@pytest.mark.parametrize("name", PROFILE_NAMES)
def test_every_recorded_device_is_shown_and_round_trips(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    profile = recorded_profile(name)
    shown = listed(monkeypatch, [profile])
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert shown.stdout.startswith(f"0: {profile.name}\n")
    for part in (
        profile.device_type.name.lower(),
        ".".join(map(str, profile.api_version)),
        f"heap {len(profile.memory_heaps) - 1}: {profile.memory_heaps[-1].size / 2**30:.2f} GiB",
        f"family {len(profile.queue_families) - 1}: {profile.queue_families[-1].count} x",
        f"{profile.subgroup.size} invocations",
    ):
        assert part in shown.stdout
    assert ("usable      yes" in shown.stdout) == (not profile.problems())
    for problem in profile.problems():
        assert problem in shown.stdout
    (item,) = json.loads(listed(monkeypatch, [profile], "--json").stdout)
    assert DeviceProfile.from_json(item["profile"]) == profile
    assert (item["index"], item["usable"], item["problems"]) == (0, not profile.problems(), profile.problems())
    verdict = known_verdict(profile)  # some recorded device may be the one at hand
    assert item["repairs"] == (None if verdict is None else sorted(fault.value for fault in verdict.faults))
    assert ("repairs     not tested yet" in shown.stdout) == (verdict is None)


@pytest.mark.vulkan
def test_repairs_of_the_device_at_hand(monkeypatch: pytest.MonkeyPatch, device: Device) -> None:
    faults = sorted(fault.value for fault in driver_faults(device))
    shown = listed(monkeypatch, [device.profile])
    assert f"repairs     {', '.join(faults) or 'none needed'}\n" in shown.stdout
    (item,) = json.loads(listed(monkeypatch, [device.profile], "--json").stdout)
    assert item["repairs"] == faults
    monkeypatch.setenv("PUMICE_REPAIRS", "1")
    assert "repairs     all, by PUMICE_REPAIRS\n" in listed(monkeypatch, [device.profile]).stdout


def test_uris_are_uuids_unless_they_fail_to_tell_devices_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    first = dataclasses.replace(recorded_profile("nvidia_rtx_4060"), device_uuid="00112233-4455-6677-8899-aabbccddeeff")
    unknown = dataclasses.replace(first, device_uuid="")
    items = json.loads(listed(monkeypatch, [first, first, unknown], "--json").stdout)
    assert [item["uri"] for item in items] == [f"vulkan://GPU-{first.device_uuid}", "vulkan://1", "vulkan://2"]


def test_timestamps(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = recorded_profile("lavapipe_mesa_22_3_6")
    domains = frozenset({"device", "clock_monotonic"})
    profile = dataclasses.replace(
        profile, extensions=profile.extensions | {"VK_EXT_calibrated_timestamps"}, time_domains=domains
    )
    shown = listed(monkeypatch, [profile]).stdout
    assert "1 ns a tick, 64 valid bits, calibrated (VK_EXT_calibrated_timestamps)" in shown
    plain = dataclasses.replace(profile, extensions=profile.extensions - {"VK_EXT_calibrated_timestamps"})
    assert "not calibrated" in listed(monkeypatch, [plain]).stdout
    silent = dataclasses.replace(
        profile, queue_families=tuple(dataclasses.replace(f, timestamp_valid_bits=0) for f in profile.queue_families)
    )
    assert "timestamps  none" in listed(monkeypatch, [silent]).stdout


def test_names_are_shown_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = dataclasses.replace(recorded_profile("nvidia_rtx_4060"), name="[red]GPU[/red] :smile: \x1b[1m")
    assert listed(monkeypatch, [odd]).stdout.startswith("0: [red]GPU[/red] :smile: \\x1b[1m\n")


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_no_device(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    result = listed(monkeypatch, [], *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no device" in result.stderr and "Install" in result.stderr


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
def test_this_machine() -> None:
    profiles = pumice.list_devices()
    result = CliRunner().invoke(main, ["devices", "--json"])
    items = json.loads(result.stdout)
    assert [DeviceProfile.from_json(item["profile"]) for item in items] == list(profiles)
    usable = [item for item in items if item["usable"]]
    for item in usable:
        with pumice.open_device(item["uri"]) as device:
            assert device.profile == DeviceProfile.from_json(item["profile"])
    shown = CliRunner().invoke(main, ["devices"])
    assert shown.exit_code == 0
    for index, profile in enumerate(profiles):
        assert f"{index}: {profile.name}" in shown.stdout
