"""How long waits look before they block: on how many cores, after what they found, and at what cost."""

from __future__ import annotations

import os
import sys

import pytest

from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.sync import look
from pumice.hal_vulkan.sync.look import LONGEST_S, Look, Looks, core_count, longest_look


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    """On many cores, at the time 0."""
    monkeypatch.setattr(look, "core_count", lambda: 16)
    made = Looks()
    made.length(Look(), 0.0)
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
    looks = device.semaphore_context.looks
    semaphore = device.create_semaphore()

    def wait_often() -> None:
        for _ in range(100):
            device.compute_queue.submit(signals=((semaphore, semaphore.scheduled + 1),))
            semaphore.wait(semaphore.scheduled)

    wait_often()
    assert looks.longest > 0
    os.sched_setaffinity(0, {min(before)})
    try:
        assert core_count() == 1
        wait_often()
        assert not looks.longest
        assert not looks.length(Look(), 1.0)
    finally:
        os.sched_setaffinity(0, before)
    wait_often()
    assert looks.longest > 0


def test_a_look_is_as_long_as_recent_waits_took(looks: Looks) -> None:
    kind, other = Look(), Look()
    assert looks.length(kind, 0.0) == LONGEST_S
    for _ in range(100):
        looks.found(kind, 10e-6)
    assert looks.length(kind, 0.0) == pytest.approx(25e-6, rel=0.1)
    assert looks.length(other, 0.0) == LONGEST_S
    for _ in range(3):
        looks.missed(kind, 25e-6)
    assert looks.length(kind, 0.0) == LONGEST_S


@pytest.mark.parametrize("takes", [200e-6, 1e-3, 50e-3])
def test_looks_in_vain_take_two_percent_of_the_time(looks: Looks, takes: float) -> None:
    kind = Look()
    now = spent = 0.0
    while now < 20.0:
        length = looks.length(kind, now)
        if length:
            looks.missed(kind, length)
        spent += length
        now += takes
    assert 0 < spent / now < 0.0205


def test_short_waits_pay_for_a_long_one_among_them(looks: Looks) -> None:
    kind = Look()
    now = 0.0
    refused = 0
    for number in range(10_000):
        length = looks.length(kind, now)
        takes = 1e-3 if number % 10 == 0 else 20e-6
        if not length:
            refused += 1
        elif takes <= length:
            looks.found(kind, takes)
        else:
            looks.missed(kind, length)
        now += takes
    assert not refused


def test_time_that_other_threads_took_is_not_counted(looks: Looks) -> None:
    kind = Look()
    looks.missed(kind, 5.0)  # the interpreter was another thread's
    assert looks.length(kind, 0.0) > 0


def test_giving_way_returns_at_once_where_there_is_no_such_call(monkeypatch: pytest.MonkeyPatch) -> None:
    look.give_way()
    if sys.platform != "win32":
        assert look.give_way is os.sched_yield
