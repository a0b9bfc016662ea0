"""The self-test of a driver: what it finds, what is kept of it, and what happens where it fails."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pumice import shaders
from pumice.base.cache import CachedFile
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.plan import PlanOptions
from pumice.hal_vulkan.pipelines import self_test
from pumice.hal_vulkan.pipelines.prepared_shader import prepare_shader
from pumice.hal_vulkan.pipelines.self_test import DriverVerdict, driver_faults, known_verdict
from pumice.hal_vulkan.vulkan.functions import DeviceFunctions
from pumice.hal_vulkan.vulkan.live_objects import live_objects
from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.repair.driver_faults import ALL_FAULTS, NO_FAULTS, DriverFault
from pumice.spirv.repair.driver_repairs import with_repairs
from pumice.spirv.repair.self_test import Probe, probes
from pumice.status import ResourceExhaustedError

pytestmark = pytest.mark.vulkan
FOUND = DriverVerdict(frozenset({DriverFault.SIGNED_MODULO}), frozenset({DriverFault.SIGNED_MODULO}))


@pytest.fixture
def untested(device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """A device whose driver nobody has tested."""
    monkeypatch.setenv("PUMICE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(self_test, "_verdicts", {})
    if device.plan.repairs is not None:
        pytest.skip("PUMICE_REPAIRS decides")
    yield device


def returning(monkeypatch: pytest.MonkeyPatch, outcome: DriverVerdict | BaseException) -> list[int]:
    """Replaces the test; returns a list with an entry for each run."""
    runs: list[int] = []

    def tested(driver: Driver, index: int) -> DriverVerdict:
        runs.append(index)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    monkeypatch.setattr(self_test, "_tested", tested)
    return runs


def test_the_repairs_mend_every_fault_found(untested: Device) -> None:
    """As independent of the verdict, every kernel is right with all repairs."""
    before = live_objects()
    driver_faults(untested)
    verdict = known_verdict(untested.profile)
    assert verdict is not None and verdict.reason == "" and verdict.unmended == NO_FAULTS
    assert live_objects() == before
    tests = list(probes(untested.plan.features))
    codes = [with_repairs(test.code, reflect(test.code), ALL_FAULTS) for test in tests]
    with self_test._opened(untested.driver, untested.index, PlanOptions(repairs=False)) as opened:
        assert self_test._wrong_counts(opened, tests, codes) == [0] * len(tests)
        wrong = self_test._wrong_counts(opened, tests, [test.code for test in tests])
    assert verdict.faults == {test.fault for test, count in zip(tests, wrong, strict=True) if count}


def test_a_verdict_is_kept(untested: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = returning(monkeypatch, FOUND)
    assert known_verdict(untested.profile) is None
    for _ in range(2):
        assert driver_faults(untested) == FOUND.faults
        self_test._verdicts.clear()
    assert len(runs) == 1
    assert known_verdict(untested.profile) == FOUND
    other = replace(untested.profile, driver_version=untested.profile.driver_version + 1)
    assert known_verdict(other) is None


def test_the_verdict_chooses_the_repairs(untested: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    code = next(probes(untested.plan.features)).code
    for verdict in (FOUND, DriverVerdict(NO_FAULTS)):
        returning(monkeypatch, verdict)
        self_test._verdicts.clear()
        monkeypatch.setenv("PUMICE_CACHE", "0")
        native = prepare_shader(untested, code).native
        assert native == with_repairs(code, reflect(code), verdict.faults)
        assert (native == code) == (verdict.faults == NO_FAULTS)


@pytest.mark.parametrize("repairs", [True, False])
def test_repairs_as_asked_need_no_test(
    driver: Driver, untested: Device, monkeypatch: pytest.MonkeyPatch, repairs: bool
) -> None:
    runs = returning(monkeypatch, FOUND)
    monkeypatch.setenv("PUMICE_REPAIRS", str(int(repairs)))
    with Device(driver) as device:
        assert driver_faults(device) == (ALL_FAULTS if repairs else NO_FAULTS)
    assert not runs


@pytest.mark.parametrize("name", ["vkCreateDevice", "vkCreateComputePipelines", "vkQueueSubmit", "vkAllocateMemory"])
def test_a_test_that_fails_leaves_the_device_usable(
    untested: Device, monkeypatch: pytest.MonkeyPatch, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = live_objects()
    with monkeypatch.context() as failing:
        if name == "vkCreateDevice":
            failing.setattr(untested.driver.functions, name, lambda *_: -3)
        else:
            failing.setattr(DeviceFunctions, name, lambda *_: -4 if name == "vkQueueSubmit" else -2, raising=False)
        assert driver_faults(untested) == ALL_FAULTS
    assert live_objects() == before
    assert "all repairs" in caplog.text
    untested.check_usable()
    with untested.create_executable(shaders.spirv("mul")) as executable:
        executable.pipeline()
    self_test._verdicts.clear()
    driver_faults(untested)  # and the next process tests again
    verdict = known_verdict(untested.profile)
    assert verdict is not None and not verdict.reason


def test_an_interrupted_test_is_run_again(untested: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        returning(monkeypatch, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            driver_faults(untested)
    returning(monkeypatch, FOUND)
    assert driver_faults(untested) == FOUND.faults


def test_a_driver_that_ends_the_process_is_given_up(untested: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """After two tests that left no verdict."""
    runs = returning(monkeypatch, FOUND)
    file = CachedFile("self-tests", self_test._key(untested.profile))
    file.store(b"unfinished 2")
    assert driver_faults(untested) == ALL_FAULTS
    assert not runs
    file.store(b"unfinished 1")
    self_test._verdicts.clear()
    assert driver_faults(untested) == FOUND.faults


def test_an_error_is_no_death(untested: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = returning(monkeypatch, ResourceExhaustedError("no memory"))
    for _ in range(4):
        assert driver_faults(untested) == ALL_FAULTS
        self_test._verdicts.clear()
    assert len(runs) == 4


def test_repairs_that_do_not_help_are_off(untested: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(self: Probe, results: bytes | memoryview) -> Sequence[object]:
        return self.cases[:1]

    monkeypatch.setattr(Probe, "wrong_cases", wrong)
    assert driver_faults(untested) == NO_FAULTS
    verdict = known_verdict(untested.profile)
    assert verdict is not None
    assert verdict.unmended == {test.fault for test in probes(untested.plan.features)}


@pytest.mark.timing
def test_the_test_is_quick(untested: Device) -> None:
    """Well under a second on an idle machine, where this driver is a CPU's and compiles each kernel twice."""
    start = time.process_time()
    driver_faults(untested)
    assert time.process_time() - start < 3
