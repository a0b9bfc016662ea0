"""Observations: stored, shown everywhere, and refused where the device has none."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.devices.made_drivers import offer_statistics

from pumice import shaders
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.plan import PIPELINE_STATISTICS
from pumice.study.machine import observers
from pumice.study.machine.observers import Meter
from pumice.study.report.page import render_report
from pumice.study.results.results import Results
from pumice.tools.cli import main

pytestmark = pytest.mark.vulkan

MUL = str(shaders.path("mul"))
SAMPLING = "time_limit=0.05 warmup_time=0 warmup_count=1 min_samples=3 max_samples=4 block=2 noise_limit=1e9"
FAST = [word for setting in [*SAMPLING.split(), "reference=false"] for word in ("--set", setting)]
MADE = {"CS": [("VGPRs", "u64", 24), ("Spilled VGPRs", "u64", 0), ("Hash", "u64", 2**64 - 1)]}


def bench(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["bench", MUL, *map(str, arguments), "--size", "64", *FAST, "--quiet"])


def test_statistics_are_stored_and_shown(monkeypatch: pytest.MonkeyPatch, driver: Driver, tmp_path: Path) -> None:
    offer_statistics(monkeypatch, driver, MADE)
    result = bench("--statistics", "--out", tmp_path / "r")
    assert result.exit_code == 0, result.stderr
    assert "VGPRs 24, Spilled VGPRs 0" in " ".join(result.stdout.split())
    with Results.open(tmp_path / "r") as results:
        taken = results.observations
        # The kernel with timestamps and without, but not the empty one; in a run without samples.
        assert {sample.point for sample in taken} == {
            result.point.index for result in results.points if not result.point.is_baseline
        }
        assert {sample.run for sample in taken} == {2}
        assert all(2 not in result.runs for result in results.points)
        first = [sample for sample in taken if sample.point == taken[0].point]
        assert [(observation.kind, observation.name, observation.value) for observation in first] == [
            ("pipeline", "VGPRs", 24),
            ("pipeline", "Spilled VGPRs", 0),
            ("pipeline", "Hash", 2.0**64),
        ]
        page = render_report(results)
    assert "the Spilled VGPRs" in page and "Taken apart from the samples" in page


def test_json_has_them_of_both_sides(monkeypatch: pytest.MonkeyPatch, driver: Driver) -> None:
    offer_statistics(monkeypatch, driver, MADE)
    result = bench("--statistics", "--against", MUL, "--json", "--fail-on", "never")
    assert result.exit_code == 0, result.stderr
    data = json.loads(result.stdout)["observations"]
    assert {observation["point"] for observation in data} == {0, 1}
    assert data[0]["details"] == {"description": "the VGPRs"}


def test_a_later_run_replaces_them(monkeypatch: pytest.MonkeyPatch, driver: Driver, tmp_path: Path) -> None:
    for registers in (24, 32):
        with monkeypatch.context() as patch:
            offer_statistics(patch, driver, {"CS": [("VGPRs", "u64", registers)]})
            assert bench("--statistics", "--out", tmp_path / "r").exit_code == 0
    with Results.open(tmp_path / "r") as results:
        assert {observation.value for observation in results.observations} == {32}


def test_a_driver_without_them_is_told_before_measuring(driver: Driver, tmp_path: Path) -> None:
    if PIPELINE_STATISTICS in driver.profiles[driver.select(None)].extensions:
        pytest.skip("this driver has statistics")
    result = bench("--statistics", "--out", tmp_path / "r")
    assert result.exit_code == 1
    assert "has no statistics of pipelines" in result.stderr and "leave --statistics out" in result.stderr
    assert not (tmp_path / "r").exists()


def test_energy_is_stored_and_shown(monkeypatch: pytest.MonkeyPatch, driver: Driver, tmp_path: Path) -> None:
    counter = itertools.count()
    monkeypatch.setattr(observers, "_SPAN_NS", 10_000_000)
    monkeypatch.setattr(observers, "energy_meters", lambda profile: ([Meter("made", lambda: next(counter))], []))
    result = bench("--energy", "--no-baseline", "--out", tmp_path / "r")
    assert result.exit_code == 0, result.stderr
    assert "energy of a sample" in result.stdout and "mean power" in result.stdout
    with Results.open(tmp_path / "r") as results:
        assert {(observation.kind, observation.subject, observation.unit) for observation in results.observations} == {
            ("energy", "made", "J"),
            ("energy", "made", "W"),
        }
