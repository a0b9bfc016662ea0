"""Waits that look, block, or do both: the same outcomes in every mode, and which of them block."""

from __future__ import annotations

import _thread
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from support.waiting import Blocked

from pumice.hal.fence import wait_any
from pumice.hal_vulkan import PlanOptions
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.sync import semaphore as semaphore_module
from pumice.hal_vulkan.sync.look import AdaptiveLook, LookBudget
from pumice.status import CancelledError, DataLossError, DeadlineExceededError, InvalidArgumentError
from pumice.waits.wait_mode import WAIT_MODES, WaitMode, chosen, waits

pytestmark = pytest.mark.vulkan


@pytest.fixture(params=WAIT_MODES)
def mode(request: pytest.FixtureRequest) -> Iterator[WaitMode]:
    """Each mode, for this thread's waits."""
    with waits(request.param):
        yield request.param
    assert chosen.mode is None


@pytest.fixture
def blocked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The payloads that waits of semaphores have blocked for; on a machine of many cores."""
    values: list[int] = []
    block = semaphore_module.block

    def noted(device, wait, value, *rest):  # type: ignore[no-untyped-def]
        values.append(value)
        return block(device, wait, value, *rest)

    monkeypatch.setattr(semaphore_module, "block", noted)
    monkeypatch.setattr(AdaptiveLook, "length", lambda self, now: 10.0)
    monkeypatch.setattr(LookBudget, "count_cores", lambda self: True)
    return values


def test_work_of_a_queue_is_waited_for(device: Device, mode: WaitMode) -> None:
    with device.create_semaphore() as semaphore:
        for value in range(1, 20):
            device.compute_queue.submit((), signals=((semaphore, value),))
            semaphore.wait(value)
            assert semaphore.reached == value


def test_what_is_scheduled_is_looked_at_and_the_rest_blocks(device: Device, blocked: list[int]) -> None:
    with device.create_semaphore() as semaphore:
        device.compute_queue.submit((), signals=((semaphore, 1),))
        semaphore.wait(1)
        assert not blocked, "adaptive is the default"
        device.compute_queue.submit((), signals=((semaphore, 2),))
        with waits("block"):
            semaphore.wait(2)
        assert blocked == [2]
        with pytest.raises(DeadlineExceededError):
            semaphore.wait(3, 0.001)  # nobody has scheduled it
        assert blocked == [2, 3]
        with waits("spin"), pytest.raises(DeadlineExceededError):
            semaphore.wait(3, 0.001)
        assert blocked == [2, 3]


def test_a_wait_for_any_looks_before_it_asks_the_notifier(device: Device, blocked: list[int]) -> None:
    with device.create_semaphore() as never, device.create_semaphore() as semaphore:
        device.compute_queue.submit((), signals=((semaphore, 1),))
        assert wait_any([(never, 1), (semaphore, 1)], 30) == 1
        assert not device.notifier.thread.is_alive
        with waits("spin"):
            with pytest.raises(DeadlineExceededError):
                wait_any([(never, 1), (semaphore, 2)], 0.002)
            device.compute_queue.submit((), signals=((semaphore, 2),))
            assert wait_any([(never, 1), (semaphore, 2)]) == 1
        with waits("block"):
            device.compute_queue.submit((), signals=((semaphore, 3),))
            assert wait_any([(never, 1), (semaphore, 3)], 30) == 1


@pytest.mark.parametrize("timeout", [0, 0.002, -1])
def test_deadlines(device: Device, mode: WaitMode, timeout: float) -> None:
    with device.create_semaphore() as semaphore:
        with pytest.raises(DeadlineExceededError, match="waited for again"):
            semaphore.wait(1, timeout)
        with pytest.raises(InvalidArgumentError, match="nan"):
            semaphore.wait(1, float("nan"))
        semaphore.signal(1)
        semaphore.wait(1, timeout)
    assert not device.semaphore_context.waiting


@pytest.mark.skipif(sys.platform == "win32", reason="there the interrupt comes at the end of the call")
def test_an_interrupt_ends_a_spin(device: Device) -> None:
    with device.create_semaphore() as semaphore, waits("spin"):
        timer = threading.Timer(0.02, _thread.interrupt_main)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            semaphore.wait(1, 5)
        timer.join()
        assert not device.semaphore_context.waiting
        semaphore.signal(1)
        semaphore.wait(1)


@pytest.mark.parametrize("ending", ["fail", "close", "lose", "signal"])
def test_what_ends_a_spin(device: Device, ending: str) -> None:
    semaphore = device.create_semaphore()

    def wait() -> None:
        with waits("spin"):
            semaphore.wait(1, 30)

    spinning = Blocked(wait)
    while not device.semaphore_context.waiting:
        time.sleep(0.0005)
    if ending == "fail":
        semaphore.fail(DataLossError("gone"))
    elif ending == "close":
        semaphore.close()
    elif ending == "lose":
        device.lose(DataLossError("gone"))
    else:
        semaphore.signal(1)
    spinning.join()
    expected = {"fail": DataLossError, "close": CancelledError, "lose": DataLossError, "signal": type(None)}[ending]
    assert isinstance(spinning.error, expected) or (ending == "lose" and "lost" in str(spinning.error))


def test_a_mode_is_a_threads_own(device: Device) -> None:
    seen: list[WaitMode | None] = []
    with waits("spin"):
        Blocked(lambda: seen.append(chosen.mode)).join()
        with waits("block"):
            seen.append(chosen.mode)
        seen.append(chosen.mode)
    assert seen == [None, "block", "spin"]


def test_a_device_has_a_mode(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    assert mode_of(driver, None) == "adaptive"
    monkeypatch.setenv("PUMICE_WAIT", "spin")
    assert mode_of(driver, None) == "spin"
    assert mode_of(driver, "block") == "block"
    monkeypatch.setenv("PUMICE_WAIT", "")
    assert mode_of(driver, None) == "adaptive"
    monkeypatch.setenv("PUMICE_WAIT", "sleep")
    with pytest.raises(InvalidArgumentError, match=r"PUMICE_WAIT: expected one of adaptive, block, spin, got 'sleep'"):
        mode_of(driver, None)


def mode_of(driver: Driver, mode: WaitMode | None) -> str:
    """The mode of a device that is opened with an option."""
    with Device(driver, options=PlanOptions(wait=mode)) as device:
        assert device.plan.wait == device.semaphore_context.mode
        return device.plan.wait


@pytest.mark.parametrize("wrong", ["Spin", "poll", "", 1, True, ["spin"]])
def test_wrong_modes_are_errors(wrong: object) -> None:
    for make in (waits, lambda mode: PlanOptions(wait=mode)):
        with pytest.raises(InvalidArgumentError, match="expected one of adaptive, block, spin"):
            make(wrong)  # type: ignore[arg-type]
