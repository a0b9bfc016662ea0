"""Fences: sets of payloads, ready when all are reached."""

from __future__ import annotations

import random
import threading
import time
from functools import partial

import pytest
from support.waiting import Blocked, until

from pumice.hal.fence import Fence
from pumice.hal_vulkan.device import Device
from pumice.status import (
    DataLossError,
    DeadlineExceededError,
    InvalidArgumentError,
    PumiceError,
)
from pumice.vm import Cancellable, WaitSource

pytestmark = pytest.mark.vulkan


def test_the_largest_payload_a_semaphore_counts(device: Device) -> None:
    a, b = device.create_semaphore(name="a"), device.create_semaphore(name="b")
    fence = Fence([(a, 2), (b, 1), (a, 1), (a, 3)])
    assert len(fence) == 2 and dict(fence.points) == {a: 3, b: 1}
    fence.insert(a, 2)
    fence.insert(b, 7)
    assert dict(fence.points) == {a: 3, b: 7} and repr(fence) == "<Fence a >= 3, b >= 7>"
    joined = Fence.join([fence, None, Fence(), Fence([(a, 9)])])
    assert dict(joined.points) == {a: 9, b: 7}
    assert dict(fence.points) == {a: 3, b: 7}


def test_an_empty_fence_is_ready(device: Device) -> None:
    for fence in (Fence(), Fence.join([]), Fence.join([None, None])):
        told: list[PumiceError | None] = []
        assert isinstance(fence, WaitSource) and fence.query() and len(fence) == 0
        fence.wait(0)
        fence.wait_until(time.monotonic() - 1)
        fence.signal()
        fence.fail(DataLossError("nothing to fail"))
        assert not fence.notify(told.append).cancel()
        assert told == [None] and repr(fence) == "<Fence empty>"


def test_a_fence_is_a_wait_source(device: Device) -> None:
    a, b = device.create_semaphore(), device.create_semaphore(1)
    fence = Fence([(a, 1), (b, 2)])
    assert isinstance(fence, WaitSource) and not fence.query()
    with pytest.raises(DeadlineExceededError):
        fence.wait_until(time.monotonic() + 0.005)
    with pytest.raises(DeadlineExceededError):
        fence.wait(0)
    told: list[PumiceError | None] = []
    armed = fence.notify(told.append)
    assert isinstance(armed, Cancellable)
    a.signal(1)
    time.sleep(0.01)
    assert not told and not fence.query()
    b.signal(2)
    fence.wait_until()
    until(lambda: told == [None])
    assert fence.query() and not armed.cancel()
    fence.notify(told.append)
    assert told == [None, None]


def test_signal_raises_what_is_not_reached(device: Device) -> None:
    a, b = device.create_semaphore(4), device.create_semaphore()
    Fence([(a, 3), (b, 2)]).signal()
    assert (a.query(), b.query()) == (4, 2)
    Fence([(a, 3), (b, 2)]).signal()


def test_failure_of_one_fails_the_fence(device: Device) -> None:
    a, b = device.create_semaphore(), device.create_semaphore()
    fence = Fence([(a, 1), (b, 1)])
    told: list[PumiceError | None] = []
    fence.notify(told.append)
    error = DataLossError("b broke")
    b.fail(error)
    until(lambda: told == [error])
    a.signal(1)
    time.sleep(0.01)
    assert told == [error]
    for call in (fence.query, fence.wait, fence.signal, lambda: fence.wait_until(time.monotonic() + 1)):
        with pytest.raises(DataLossError, match="b broke"):
            call()
    fence.notify(told.append)
    assert told == [error, error]


def test_fail_fails_every_semaphore(device: Device) -> None:
    semaphores = [device.create_semaphore() for _ in range(3)]
    fence = Fence([(s, 1) for s in semaphores])
    fence.fail(InvalidArgumentError("why"))
    for semaphore in semaphores:
        with pytest.raises(InvalidArgumentError, match="why"):
            semaphore.wait(1)


def test_cancel(device: Device) -> None:
    a, b = device.create_semaphore(), device.create_semaphore()
    told: list[PumiceError | None] = []
    armed = Fence([(a, 1), (b, 1)]).notify(told.append)
    a.signal(1)
    assert armed.cancel() and not armed.cancel()
    b.signal(1)
    time.sleep(0.01)
    assert told == []


def test_a_callback_that_raises_leaves_nothing_armed(device: Device, caplog: pytest.LogCaptureFixture) -> None:
    bad, waiting = device.create_semaphore(), device.create_semaphore()
    called = threading.Event()

    def callback(_: PumiceError | None) -> None:
        called.set()
        raise RuntimeError("mine")

    Fence([(bad, 1), (waiting, 1)]).notify(callback)
    bad.fail(DataLossError("x"))
    assert called.wait(5)
    until(lambda: "mine" in caplog.text)
    assert not waiting.notifications


def test_a_failure_known_at_arming_leaves_nothing_armed(device: Device) -> None:
    bad, waiting = device.create_semaphore(), device.create_semaphore()
    bad.fail(DataLossError("x"))
    told: list[PumiceError | None] = []
    for _ in range(300):
        Fence([(bad, 1), (waiting, 1)]).notify(told.append)
    assert len(told) == 300
    assert sum(not n.is_done for n in waiting.notifications) == 0 and len(waiting.notifications) < 200


def test_a_fence_over_many_semaphores_signalled_at_random(device: Device) -> None:
    semaphores = [device.create_semaphore() for _ in range(500)]
    fence = Fence([(s, 2) for s in semaphores])
    told: list[PumiceError | None] = []
    fence.notify(told.append)
    random.Random(2).shuffle(semaphores)
    for semaphore in semaphores[:-1]:
        semaphore.signal(2)
    with pytest.raises(DeadlineExceededError):
        fence.wait(0.01)
    assert told == []
    semaphores[-1].signal(5)
    fence.wait(5)
    until(lambda: told == [None])


def test_fences_as_waits_and_signals_of_submissions(device: Device) -> None:
    a, b, c = (device.create_semaphore() for _ in range(3))
    device.compute_queue.barrier(waits=Fence([(a, 1), (b, 1)]).points, signals=Fence([(c, 4)]).points)
    a.signal(1)
    assert not c.has_reached(4)
    b.signal(1)
    Fence([(c, 4)]).wait(5)


def test_notify_exactly_once_under_races(device: Device) -> None:
    for round_ in range(60):
        semaphores = [device.create_semaphore() for _ in range(4)]
        fence = Fence([(s, 1) for s in semaphores])
        told: list[PumiceError | None] = []
        start = threading.Barrier(len(semaphores) + 1)

        def move(index: int) -> None:
            start.wait()
            if index == 0 and round_ % 3 == 0:
                semaphores[index].fail(DataLossError("raced"))
            else:
                semaphores[index].signal(1)

        threads = [Blocked(partial(move, i)) for i in range(len(semaphores))]
        start.wait()
        armed = fence.notify(told.append)
        cancelled = armed.cancel() if round_ % 5 == 0 else False
        for thread in threads:
            thread.join()
        if cancelled:
            time.sleep(0.002)
            assert told == []
        else:
            until(lambda: len(told) >= 1)
            assert len(told) == 1
            assert (told[0] is None) == (round_ % 3 != 0)
        for semaphore in semaphores:
            semaphore.close()
