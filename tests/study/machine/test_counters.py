"""Performance counters with a simulated driver: the order of its calls, and which of its values are stored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.devices.made_drivers import offer_counters

from pumice import shaders
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.plan import PERFORMANCE_QUERY
from pumice.tools.cli import main

pytestmark = pytest.mark.vulkan

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
    assert result.exit_code == 0 and "the profiling lock was not to be had" in result.stderr
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
