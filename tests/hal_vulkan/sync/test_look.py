"""How long waits look before they block: on how many cores, after what they found, and at what cost."""

from __future__ import annotations

import os
import sys

import pytest

from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.sync import look
from pumice.hal_vulkan.sync.look import LONGEST_S, AdaptiveLook, LookBudget, core_count, longest_look
from pumice.waits.wait_mode import give_way


@pytest.fixture
def budget(monkeypatch: pytest.MonkeyPatch) -> LookBudget:
    """A budget on many cores, at the time 0."""
    monkeypatch.setattr(look, "core_count", lambda: 16)
    made = LookBudget()
    made.accrue(0.0)
    return made


def test_fewer_cores_are_looked_on_for_a_shorter_time() -> None:
    lengths = [longest_look(cores) for cores in range(1, 9)]
    assert lengths == sorted(lengths)
    assert lengths[0] == 0, "with one core the driver's thread has no other"
    assert 0 < lengths[1] < lengths[-1] == LONGEST_S <= 100e-6


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this platform pins no processes")
@pytest.mark.vulkan
def test_a_process_that_is_pinned_later_stops_to_look(device: Device) -> None:
    before = os.sched_getaffinity(0)
    if len(before) < 2:
        pytest.skip("this machine has one core")
    budget = device.semaphore_context.look_budget
    semaphore = device.create_semaphore()

    def wait_often() -> None:
        for _ in range(100):
            device.compute_queue.submit(signals=((semaphore, semaphore.scheduled + 1),))
            semaphore.wait(semaphore.scheduled)

    wait_often()
    assert budget.longest > 0
    os.sched_setaffinity(0, {min(before)})
    try:
        assert core_count() == 1
        wait_often()
        assert not budget.longest
        assert not AdaptiveLook(budget).length(1.0)
    finally:
        os.sched_setaffinity(0, before)
    wait_often()
    assert budget.longest > 0


def test_a_look_is_as_long_as_recent_waits_took(budget: LookBudget) -> None:
    kind, other = AdaptiveLook(budget), AdaptiveLook(budget)
    assert kind.length(0.0) == LONGEST_S
    for _ in range(100):
        kind.found(10e-6)
    assert kind.length(0.0) == pytest.approx(25e-6, rel=0.1)
    assert other.length(0.0) == LONGEST_S
    for _ in range(3):
        kind.missed(25e-6)
    assert kind.length(0.0) == LONGEST_S


@pytest.mark.parametrize("takes", [200e-6, 1e-3, 50e-3])
def test_looks_in_vain_take_two_percent_of_the_time(budget: LookBudget, takes: float) -> None:
    kind = AdaptiveLook(budget)
    now = spent = 0.0
    while now < 20.0:
        length = kind.length(now)
        if length:
            kind.missed(length)
        spent += length
        now += takes
    assert 0 < spent / now < 0.0205


def test_short_waits_pay_for_a_long_one_among_them(budget: LookBudget) -> None:
    kind = AdaptiveLook(budget)
    now = 0.0
    refused = 0
    for number in range(10_000):
        length = kind.length(now)
        takes = 1e-3 if number % 10 == 0 else 20e-6
        if not length:
            refused += 1
        elif takes <= length:
            kind.found(takes)
        else:
            kind.missed(length)
        now += takes
    assert not refused


def test_time_that_other_threads_took_is_not_counted(budget: LookBudget) -> None:
    kind = AdaptiveLook(budget)
    kind.missed(5.0)  # the interpreter was another thread's
    assert kind.length(0.0) > 0


def test_giving_way_returns() -> None:
    give_way()
    if sys.platform != "win32":
        assert give_way is os.sched_yield
