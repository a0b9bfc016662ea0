"""Notifications: order, cancelling, exactly once whatever races, and one thread for ten thousand of them."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import Counter
from functools import partial

import pytest
from support.waiting import armed, in_threads, until

from pumice.hal_vulkan.device import Device
from pumice.status import CancelledError, DataLossError, PumiceError

pytestmark = pytest.mark.vulkan


def notifier_threads() -> int:
    return sum(thread.name == "pumice-device-poll" for thread in threading.enumerate())


def test_no_thread_before_the_first_notification(device: Device) -> None:
    assert not device.notifier.thread.is_alive and notifier_threads() == 0
    with device.create_semaphore() as semaphore:
        semaphore.signal(1)
        semaphore.wait(1)
        assert not device.notifier.thread.is_alive


def test_what_is_reached_is_told_at_once_in_the_same_thread(device: Device) -> None:
    with device.create_semaphore(5) as semaphore:
        told: list[tuple[PumiceError | None, threading.Thread]] = []
        notification = semaphore.notify(5, lambda error: told.append((error, threading.current_thread())))
        assert told == [(None, threading.main_thread())]
        assert not notification.cancel()


def test_what_is_failed_is_told_at_once(device: Device) -> None:
    with device.create_semaphore(5) as semaphore:
        error = DataLossError("x")
        semaphore.fail(error)
        told: list[PumiceError | None] = []
        for value in (1, 5, 9):
            semaphore.notify(value, told.append)
        assert told == [error] * 3


def test_a_failing_query_is_told_as_a_failure(device: Device) -> None:
    semaphore = device.create_semaphore()
    real = device.fn.vkGetSemaphoreCounterValue
    device.fn.vkGetSemaphoreCounterValue = lambda *_: -4
    told: list[PumiceError | None] = []
    semaphore.notify(1, told.append)
    device.fn.vkGetSemaphoreCounterValue = real
    until(lambda: bool(told))
    assert len(told) == 1 and told[0] is device.lost and told[0] is not None


def test_order_is_that_of_payloads_then_of_arming(device: Device) -> None:
    with device.create_semaphore() as semaphore:
        source = random.Random(1)
        wanted = [(value, index) for index, value in enumerate(source.choices(range(1, 40), k=300))]
        told: list[tuple[int, int]] = []
        for value, index in wanted:
            semaphore.notify(value, lambda _, v=value, i=index: told.append((v, i)))
        semaphore.signal(20)
        until(lambda: len(told) == sum(value <= 20 for value, _ in wanted))
        semaphore.signal(40)
        until(lambda: len(told) == 300)
        assert told == sorted(wanted)


def test_callbacks_run_on_the_notifier_thread_and_may_use_the_hal(device: Device) -> None:
    first, second = device.create_semaphore(), device.create_semaphore()
    where: list[str] = []
    inner: list[PumiceError | None] = []

    def callback(_: PumiceError | None) -> None:
        where.append(threading.current_thread().name)
        second.notify(1, inner.append)
        device.compute_queue.barrier(signals=((second, 1),))

    first.notify(1, callback)
    first.signal(1)
    until(lambda: bool(inner))
    assert where == ["pumice-device-poll"] and inner == [None]


def test_a_host_signal_during_a_native_wait_is_told_by_the_shared_thread(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, go_on = threading.Event(), threading.Event()
    real = device.fn.vkWaitSemaphores

    def wait(*arguments: object) -> int:
        if threading.current_thread().name == "pumice-device-poll":
            waits.set()
            assert go_on.wait(10)
        return int(real(*arguments))

    monkeypatch.setattr(device.fn, "vkWaitSemaphores", wait)
    by_queue, by_host = device.create_semaphore(), device.create_semaphore()
    where: list[str] = []
    for semaphore in (by_queue, by_host):
        semaphore.notify(1, lambda _: where.append(threading.current_thread().name))
    with monkeypatch.context() as held:
        held.setattr(device.compute_queue, "retire", lambda: 0)  # the submission stays in flight
        device.compute_queue.barrier(signals=((by_queue, 1),))
        assert waits.wait(10)
        by_host.signal(1)
        until(lambda: where == ["pumice-poll"])
    go_on.set()
    until(lambda: where == ["pumice-poll", "pumice-device-poll"])


def test_closing_calls_back_for_a_payload_that_is_known_to_have_come(device: Device) -> None:
    semaphore, told = device.create_semaphore(), list[PumiceError | None]()
    semaphore.notify(1, told.append)
    semaphore.notify(2, told.append)
    with device.compute_queue._retire_lock:  # the device's thread does not see that it is done
        device.compute_queue.barrier(signals=((semaphore, 1),))
        semaphore.wait(1, 10)
        semaphore.close()
        until(lambda: len(told) == 2)
    assert told[0] is None and isinstance(told[1], CancelledError)


def test_the_thread_does_not_spin_while_another_one_retires(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = device.fn.vkWaitSemaphores, list[object]()

    def wait(*arguments: object) -> int:
        calls.append(arguments)
        return int(real(*arguments))

    monkeypatch.setattr(device.fn, "vkWaitSemaphores", wait)
    semaphore, told = device.create_semaphore(), threading.Event()
    semaphore.notify(1, lambda _: told.set())
    with device.compute_queue._retire_lock:
        device.compute_queue.barrier(signals=((semaphore, 1),))
        assert not told.wait(0.05)
    assert told.wait(10)
    assert len(calls) < 5


def test_an_exception_in_a_callback_is_logged_and_stops_nothing(
    device: Device, caplog: pytest.LogCaptureFixture
) -> None:
    with device.create_semaphore() as semaphore, caplog.at_level(logging.ERROR, "pumice.notifier"):
        told: list[object] = []

        def broken(_: PumiceError | None) -> None:
            raise RuntimeError("mine")

        semaphore.notify(1, broken)
        semaphore.notify(1, told.append)
        semaphore.notify(2, told.append)
        semaphore.signal(1)
        until(lambda: len(told) == 1)
        semaphore.notify(1, broken)
        semaphore.signal(2)
        until(lambda: len(told) == 2)
        assert sum("mine" in str(record.exc_info) for record in caplog.records) == 2


def test_cancelled_is_not_called(device: Device) -> None:
    with device.create_semaphore() as semaphore:
        told: list[int] = []
        armed = [semaphore.notify(1, lambda _, i=i: told.append(i)) for i in range(100)]
        assert all(armed[i].cancel() for i in range(0, 100, 3))
        assert not armed[0].cancel()
        semaphore.signal(1)
        until(lambda: len(told) == 66)
        time.sleep(0.01)
        assert told == [i for i in range(100) if i % 3]


def test_queue_signals_are_told_without_anybody_waiting(device: Device) -> None:
    buffer = device.create_buffer(1 << 20)
    semaphore = device.create_semaphore()
    told: list[int] = []
    for value in range(1, 200):
        semaphore.notify(value, lambda error, v=value: told.append(v if error is None else -v))
        if value % 3 == 0:
            device.compute_queue.fill(buffer, b"\1", signals=((semaphore, value),))
        if value % 50 == 0:
            time.sleep(0.01)
    until(lambda: len(told) == 198)
    assert told == list(range(1, 199))


def test_arming_after_the_submission(device: Device) -> None:
    """The thread sleeps without the queue in its wait set; arming must bring it in."""
    buffer = device.create_buffer(4 << 20)
    semaphore, other = device.create_semaphore(), device.create_semaphore()
    other.notify(1, print)
    for value in range(1, 60):
        device.compute_queue.fill(buffer, b"\1", signals=((semaphore, value),))
        told = threading.Event()
        semaphore.notify(value, lambda _, told=told: told.set())
        assert told.wait(5)
    buffer.close()
    assert armed(device.notifier) == 1


def test_ten_thousand_semaphores_one_thread(device: Device) -> None:
    before = notifier_threads()
    source = random.Random(7)
    semaphores = [device.create_semaphore() for _ in range(10_000)]
    told: Counter[int] = Counter()
    for index, semaphore in enumerate(semaphores):
        semaphore.notify(1, lambda error, i=index: told.update((i if error is None else -1,)))
    assert armed(device.notifier) == 10_000
    assert notifier_threads() == before + 1 and device.notifier.thread.is_alive
    source.shuffle(semaphores)
    for semaphore in semaphores:
        semaphore.signal(1)
    until(lambda: sum(list(told.values())) == 10_000)  # a copy: keys are added meanwhile
    assert set(told) == set(range(10_000)) and set(told.values()) == {1}
    assert notifier_threads() == before + 1 and armed(device.notifier) == 0
    for semaphore in semaphores:
        semaphore.close()


def test_exactly_once_whatever_races(device: Device) -> None:
    """Signal, fail, notify and cancel from many threads: called once or cancelled once, never both or neither."""
    rounds, armed_each = 25, 40
    for round_ in range(rounds):
        semaphore = device.create_semaphore()
        calls: Counter[int] = Counter()
        outcome: dict[int, bool] = {}
        start = threading.Barrier(5)

        def arm(base: int) -> None:
            start.wait()
            for index in range(base, base + armed_each):
                key = index
                notification = semaphore.notify(1 + index % 7, lambda _, k=key: calls.update((k,)))
                if index % 3 == 0:
                    outcome[key] = notification.cancel()

        def move(fail: bool) -> None:
            start.wait()
            for value in range(1, 8):
                try:
                    semaphore.signal(value)
                except PumiceError:
                    pass
                if fail and value == 4:
                    semaphore.fail(DataLossError("half way"))

        work = [partial(arm, base * armed_each) for base in range(3)]
        in_threads(lambda one: one(), [*work, partial(move, round_ % 2 == 0), partial(move, False)])
        expected = {key for key in range(3 * armed_each) if not outcome.get(key, False)}
        until(lambda: len(calls) >= len(expected))
        semaphore.close()
        assert set(calls) == expected and set(calls.values()) <= {1}


def test_device_close_cancels_what_is_armed(driver: object) -> None:
    device = Device(driver)  # type: ignore[arg-type]
    semaphores = [device.create_semaphore() for _ in range(20)]
    told: list[PumiceError | None] = []
    for semaphore in semaphores:
        semaphore.notify(3, told.append)
        semaphore.notify(4, told.append)
    device.close()
    assert len(told) == 40 and all(isinstance(error, CancelledError) for error in told)
    assert notifier_threads() == 0
    semaphores[0].notify(9, told.append)
    assert isinstance(told[-1], CancelledError) and len(told) == 41


def test_semaphores_closed_while_armed(device: Device) -> None:
    told: list[PumiceError | None] = []
    for _ in range(200):
        semaphore = device.create_semaphore()
        semaphore.notify(1, told.append)
        semaphore.close()
    until(lambda: len(told) == 200)
    assert all(isinstance(error, CancelledError) for error in told)
    assert armed(device.notifier) == 0


def test_a_semaphore_that_nobody_waits_for_any_more_is_let_go(device: Device) -> None:
    """Otherwise each call that was cancelled in its wait would leave one behind, as what it waited for never comes."""
    notifier = device.notifier
    with device.create_semaphore() as never, device.create_semaphore() as other:
        first, second = never.notify(1, lambda _: None), never.notify(2, lambda _: None)
        kept = other.notify(1, lambda _: None)
        assert armed(notifier) == 3
        assert second.cancel() and not second.cancel()
        assert first.cancel()
        until(lambda: armed(notifier) == 1)  # the notifier's thread drops what was cancelled while it had the lock
        assert notifier._armed == {other}
        # A finalizer may cancel while its thread is in the notifier, which it then must not wait for.
        with notifier._lock:
            assert kept.cancel()
            assert notifier._armed == {other}
        again = never.notify(1, lambda _: None)
        assert notifier._armed == {never}
        again.cancel()
        assert armed(notifier) == 0
