"""Fences of the hal module: unbound, bound, materialised, joined, failed; and the order of what waits for them."""

from __future__ import annotations

import gc
import random
import threading
import time

import numpy as np
import pytest
from support.runtime.hal_module import DEVICE_LOCAL, USAGE, array_of, buffer_of, multiply_commands, table, wait_for

from pumice.hal.programs import fence as hal_fence
from pumice.hal.programs.fence import HalFence, join, points_of, signal_after
from pumice.hal_vulkan import Buffer, Device, Fence
from pumice.hal_vulkan.vulkan.live_objects import live_objects
from pumice.runtime.modules.hal.module import HalState
from pumice.status import (
    AbortedError,
    DataLossError,
    DeadlineExceededError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    PumiceError,
    StatusCode,
)
from pumice.waits.source import WaitSource
from pumice.waits.wait_frame import Wait

pytestmark = pytest.mark.vulkan


@pytest.fixture
def target(state: HalState, device: Device) -> Buffer:
    return buffer_of(state, device, np.zeros(64, np.uint8))


def fill(
    state: HalState, target: Buffer, value: int, wait: object, signal: object, offset: int = 0, size: int = 64
) -> None:
    state.queue_fill(target.device, -1, wait, signal, target, offset, size, value, 1, 0)


def semaphores() -> int:
    return live_objects().get("semaphore", 0)


# -- states ------------------------------------------------------------------------------------------


def test_fences_cost_no_semaphores(state: HalState, device: Device, target: Buffer) -> None:
    before = semaphores()
    fences = [state.fence_create(device, 0) for _ in range(50)]
    assert all(isinstance(fence, WaitSource) for fence in fences)
    previous = None
    for fence in fences:
        fill(state, target, 1, previous, fence)
        previous = fence
    assert wait_for(state, *fences) == 0
    assert semaphores() == before and all(fence.query() for fence in fences)


def test_signal_from_the_host(state: HalState, device: Device) -> None:
    fence = state.fence_create(device, 0)
    assert repr(fence) == "<unbound HalFence>"
    assert state.fence_query(fence) == StatusCode.DEFERRED
    state.fence_signal(fence)
    assert state.fence_query(fence) == 0 and fence.query() and points_of(fence) == ()
    state.fence_signal(fence)  # is there already
    assert "reached" in repr(fence)


def test_failure_from_the_host(state: HalState, device: Device, target: Buffer) -> None:
    fence = state.fence_create(device, 0)
    state.fence_fail(fence, StatusCode.DATA_LOSS)
    assert state.fence_query(fence) == StatusCode.DATA_LOSS
    with pytest.raises(DataLossError):
        wait_for(state, fence)
    with pytest.raises(DataLossError):
        fence.query()
    with pytest.raises(DataLossError):
        state.fence_signal(fence)
    state.fence_fail(fence, StatusCode.ABORTED)  # the first is the cause
    assert state.fence_query(fence) == StatusCode.DATA_LOSS
    after, buffer = state.fence_create(device, 0), state.fence_create(device, 0)
    fill(state, target, 9, fence, after)
    state.queue_alloca(device, -1, fence, buffer, 0, DEVICE_LOCAL, USAGE, 16)
    for one in (after, buffer):
        assert state.fence_query(one) == StatusCode.DATA_LOSS
    assert array_of(state, target, np.uint8)[0] == 0
    for code in (0, 255):
        odd = state.fence_create(device, 0)
        state.fence_fail(odd, code)
        assert state.fence_query(odd) != 0


def test_a_failure_does_not_spoil_the_context(state: HalState, device: Device, target: Buffer) -> None:
    held, after = state.fence_create(device, 0), state.fence_create(device, 0)
    fill(state, target, 9, held, after)
    held.fail(AbortedError("no"))
    with pytest.raises(AbortedError):
        wait_for(state, after)
    fine = state.fence_create(device, 0)
    fill(state, target, 3, None, fine)
    assert wait_for(state, fine) == 0
    assert set(array_of(state, target, np.uint8)) == {3}


def test_signalled_twice(state: HalState, device: Device, target: Buffer) -> None:
    fence = state.fence_create(device, 0)
    state.fence_signal(fence)
    with pytest.raises(FailedPreconditionError, match="signalled before"):
        fill(state, target, 1, None, fence)
    gate, pending = state.fence_create(device, 0), state.fence_create(device, 0)
    fill(state, target, 1, gate, pending)
    fill(state, target, 1, gate, pending)
    gate.signal()
    with pytest.raises(FailedPreconditionError, match="only increases"):
        wait_for(state, pending)
    bound = state.fence_create(device, 0)
    fill(state, target, 1, None, bound)
    with pytest.raises(FailedPreconditionError):
        fill(state, target, 1, None, bound)


def test_waiting_before_it_is_bound(state: HalState, device: Device, target: Buffer) -> None:
    fence = state.fence_create(device, 0)
    seen: list[PumiceError | None] = []
    called = threading.Event()

    def wait() -> None:
        fence.wait_until(time.monotonic() + 30)
        called.set()

    thread = threading.Thread(target=wait)
    fence.notify(seen.append)
    thread.start()
    time.sleep(0.02)
    assert not called.is_set() and not seen and fence.bound
    fill(state, target, 7, None, fence)
    thread.join(30)
    assert called.is_set()
    assert wait_for(state, fence) == 0
    deadline = time.monotonic() + 10
    while not seen and time.monotonic() < deadline:
        time.sleep(0.001)
    assert seen == [None]


@pytest.mark.parametrize("kind", ["signal", "fail", "alias", "barrier", "dealloca"])
def test_a_materialised_fence_gets_to_know(state: HalState, device: Device, target: Buffer, kind: str) -> None:
    fence, gate = state.fence_create(device, 0), state.fence_create(device, 0)
    assert len(points_of(fence)) == 1
    if kind == "signal":
        fence.signal()
    elif kind == "fail":
        fence.fail(AbortedError("no"))
    elif kind == "alias":
        state.queue_alloca(device, -1, None, fence, 0, DEVICE_LOCAL, USAGE, 16)
    elif kind == "barrier":
        state.queue_barrier(device, -1, gate, fence, 0)
        assert not fence.query()
        gate.signal()
    else:
        buffer = state.queue_alloca(device, -1, None, None, 0, DEVICE_LOCAL, USAGE, 16)
        state.queue_dealloca(device, -1, gate, fence, buffer, 0)
        assert not fence.query() and not buffer.is_closed
        gate.signal()
    if kind == "fail":
        with pytest.raises(AbortedError):
            fence.wait_until(time.monotonic() + 30)
    else:
        fence.wait_until(time.monotonic() + 30)
        assert fence.query()


def test_a_wait_times_out(state: HalState, device: Device) -> None:
    fence = state.fence_create(device, 0)
    assert state.fence_await(0, 0, (fence,)) == StatusCode.DEADLINE_EXCEEDED
    start = time.monotonic()
    assert wait_for(state, fence, timeout=30) == StatusCode.DEADLINE_EXCEEDED
    assert time.monotonic() - start >= 0.03
    with pytest.raises(DeadlineExceededError):
        fence.wait_until(time.monotonic())
    fence.signal()
    assert state.fence_await(0, 0, (fence,)) == 0 == state.fence_await_v5(0, (fence, None))


def test_null_fences_are_ready(state: HalState, device: Device, target: Buffer) -> None:
    assert state.fence_await(-1, 0, ()) == 0 == state.fence_await(-1, 0, (None, None))
    assert state.fence_join(0, (None,)) is None and state.fence_join(()) is None
    fill(state, target, 5, None, None)
    device.wait_idle()
    assert set(array_of(state, target, np.uint8)) == {5}
    for wrong in (target, 7):
        with pytest.raises(InvalidArgumentError, match="hal.fence"):
            state.fence_await(-1, 0, (wrong,))
    with pytest.raises(InvalidArgumentError, match="null"):
        state.fence_query(None)


def test_await_waits_for_all(state: HalState, device: Device) -> None:
    first, second = state.fence_create(device, 0), state.fence_create(device, 0)
    answer = state.fence_await(-1, 0, (first, None, second))
    assert isinstance(answer, Wait) and answer.sources == (first, second) and answer.deadline is None
    assert answer.resume(None) == 0
    assert answer.resume(DeadlineExceededError("late")) == StatusCode.DEADLINE_EXCEEDED
    with pytest.raises(AbortedError):
        answer.resume(AbortedError("no"))


# -- joins -------------------------------------------------------------------------------------------


def test_joins(state: HalState, device: Device, target: Buffer) -> None:
    fences = [state.fence_create(device, 0) for _ in range(3)]
    early = state.fence_join(0, (fences[0], None, fences[1]))
    assert early is not None and not early.query()
    fill(state, target, 1, None, fences[0])
    fill(state, target, 2, fences[0], fences[1])
    late = join(fences[:2])
    assert late.bound is not None and len(late.bound) <= 1
    assert wait_for(state, early, late) == 0
    assert early.query() and late.query() and state.fence_query(early) == 0
    assert join([fences[2]]) is fences[2] and join([]).query()
    more = join([fences[2], early])
    seen: list[PumiceError | None] = []
    more.notify(seen.append)
    assert not more.query()
    fences[2].fail(AbortedError("no"))
    with pytest.raises(AbortedError):
        more.wait_until()
    with pytest.raises(AbortedError):
        more.query()
    deadline = time.monotonic() + 10
    while not seen and time.monotonic() < deadline:
        time.sleep(0.001)
    assert isinstance(seen[0], AbortedError) and len(seen) == 1


def test_a_failed_join_leaves_nothing_armed(state: HalState, device: Device, caplog: pytest.LogCaptureFixture) -> None:
    bad, waiting = state.fence_create(device, 0), state.fence_create(device, 0)
    told: list[PumiceError | None] = []

    def callback(error: PumiceError | None) -> None:
        told.append(error)
        raise RuntimeError("mine")

    join((bad, waiting)).notify(callback)
    ((semaphore, _),) = waiting.points()
    assert semaphore.notifications
    bad.fail(DataLossError("x"))
    until = time.monotonic() + 5
    while "mine" not in caplog.text:
        assert time.monotonic() < until
        time.sleep(0.001)
    assert len(told) == 1 and not semaphore.notifications


def test_a_join_of_unbound_fences_holds_work_back(state: HalState, device: Device, target: Buffer) -> None:
    gates = [state.fence_create(device, 0) for _ in range(2)]
    done = state.fence_create(device, 0)
    fill(state, target, 4, join(gates), done)
    gates[0].signal()
    time.sleep(0.01)
    assert not done.query() and array_of(state, target, np.uint8)[0] == 0
    gates[1].signal()
    assert wait_for(state, done) == 0 and array_of(state, target, np.uint8)[0] == 4


# -- fences of the HAL -------------------------------------------------------------------------------


def test_fences_of_users(state: HalState, device: Device, target: Buffer) -> None:
    with device.create_semaphore() as semaphore:
        wait, signal = Fence([(semaphore, 1)]), Fence([(semaphore, 2)])
        fill(state, target, 6, wait, signal)
        assert not signal.query() and state.fence_query(wait) == StatusCode.DEFERRED
        semaphore.signal(1)
        signal.wait(30)
        assert set(array_of(state, target, np.uint8)) == {6}
        between = state.fence_create(device, 0)
        fill(state, target, 7, signal, between)
        last = Fence([(semaphore, 3)])
        state.queue_barrier(device, -1, between, last, 0)
        last.wait(30)
        assert set(array_of(state, target, np.uint8)) == {7}
        assert join([last, between]).query() and join([last]).query()
        state.queue_alloca(device, -1, None, Fence([(semaphore, 4)]), 0, DEVICE_LOCAL, USAGE, 16)
        assert semaphore.query() == 4
        semaphore.fail(AbortedError("no"))
        after = state.fence_create(device, 0)
        fill(state, target, 8, Fence([(semaphore, 9)]), after)
        assert state.fence_query(after) == StatusCode.ABORTED


def test_order_of_held_work(state: HalState, device: Device, target: Buffer) -> None:
    """Work behind a gate must not be overtaken in the memory it shares, nor hold up what has no gate."""
    gate = state.fence_create(device, 0)
    first, second, free = (state.fence_create(device, 0) for _ in range(3))
    fill(state, target, 1, gate, first, 0, 32)
    fill(state, target, 2, first, second, 0, 16)
    fill(state, target, 3, None, free, 48, 16)
    assert wait_for(state, free) == 0
    assert array_of(state, target, np.uint8).tolist() == [0] * 48 + [3] * 16
    assert not first.query() and not second.query()
    gate.signal()
    assert wait_for(state, first, second) == 0
    assert array_of(state, target, np.uint8).tolist() == [2] * 16 + [1] * 16 + [0] * 16 + [3] * 16


def test_memory_of_held_work_is_kept(state: HalState, device: Device) -> None:
    """What held work uses is dropped by everybody else, and memory is handed out meanwhile."""
    commands = multiply_commands(state, device, 64)
    operand = buffer_of(state, device, np.arange(64, dtype=np.float32))
    gate, done = state.fence_create(device, 0), state.fence_create(device, 0)
    result = state.queue_alloca(device, -1, None, None, 0, DEVICE_LOCAL, USAGE, 256)
    other = buffer_of(state, device, np.full(64, 2, np.float32), DEVICE_LOCAL)
    state.queue_execute_indirect(device, -1, gate, done, commands, 0, table(operand, other, result))
    del other
    for _ in range(4):
        noise = buffer_of(state, device, np.full(64, -1, np.float32), DEVICE_LOCAL)
        del noise
        gc.collect()
    gate.signal()
    assert wait_for(state, done) == 0
    np.testing.assert_array_equal(array_of(state, result), 2 * np.arange(64, dtype=np.float32))


def test_dealloca_waits(state: HalState, device: Device) -> None:
    buffer = state.queue_alloca(device, -1, None, None, 0, DEVICE_LOCAL, USAGE, 64)
    gate, done = state.fence_create(device, 0), state.fence_create(device, 0)
    state.queue_dealloca(device, -1, gate, done, buffer, 0)
    assert not done.query() and not buffer.is_closed
    gate.signal()
    assert wait_for(state, done) == 0 and not buffer.is_closed


def test_fences_nobody_signals_are_given_up(state: HalState, device: Device, target: Buffer) -> None:
    before = semaphores()
    gate, after = state.fence_create(device, 0), state.fence_create(device, 0)
    fill(state, target, 1, gate, after)
    assert semaphores() > before and device.held == 1
    del gate, after
    gc.collect()
    device.retire()
    assert device.held == 0
    device.trim()
    assert semaphores() <= before


# -- actions on the host -----------------------------------------------------------------------------


def test_signal_after(state: HalState, device: Device) -> None:
    ran: list[int] = []
    done = state.fence_create(device, 0)
    signal_after(None, done, lambda: ran.append(1))
    assert ran == [1] and done.query()
    gate, later = state.fence_create(device, 0), state.fence_create(device, 0)
    signal_after(gate, later, lambda: ran.append(2))
    assert ran == [1] and not later.query()
    gate.signal()
    later.wait_until(time.monotonic() + 30)
    assert ran == [1, 2]

    def broken() -> None:
        raise KeyError("bug")

    def refused() -> None:
        raise AbortedError("no")

    for action, error in ((broken, InternalError), (refused, AbortedError)):
        failed = state.fence_create(device, 0)
        signal_after(None, failed, action)
        with pytest.raises(error):
            failed.query()
    bad, never = state.fence_create(device, 0), state.fence_create(device, 0)
    signal_after(bad, never, lambda: ran.append(3))
    bad.fail(AbortedError("no"))
    with pytest.raises(AbortedError):
        never.wait_until(time.monotonic() + 30)
    assert ran == [1, 2]
    signal_after(None, None, None)
    hal_fence.fail(None, AbortedError("no"))
    hal_fence.signal(None)


# -- all at once -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_random_graphs(state: HalState, device: Device, seed: int) -> None:
    """Fills in an order that fences alone decide, some behind gates that threads open late."""
    choose = random.Random(seed)
    count, cells = 60, 8
    target = buffer_of(state, device, np.zeros(cells, np.uint8))
    expected = [0] * cells
    last: list[HalFence | None] = [None] * cells
    gates: list[HalFence] = []
    for step in range(count):
        cell = choose.randrange(cells)
        wait: HalFence | None = last[cell]
        extra = choose.random()
        if extra < 0.15:
            gates.append(state.fence_create(device, 0))
            wait = join([wait, gates[-1]])
        elif extra < 0.4:
            wait = join([wait, last[choose.randrange(cells)]])
        done = state.fence_create(device, 0)
        if choose.random() < 0.2:
            done.notify(lambda error: None)
        middle = state.fence_create(device, 0)
        if choose.random() < 0.3:
            transient = state.queue_alloca(device, -1, wait, middle, 0, DEVICE_LOCAL, USAGE, 16)
            wait = middle
            fill(state, transient, 1, wait, None, 0, 16)
            state.queue_dealloca(device, -1, wait, None, transient, 0)
        fill(state, target, step + 1, wait, done, cell, 1)
        expected[cell] = step + 1
        last[cell] = done

    def open_gates(mine: list[HalFence]) -> None:
        for gate in mine:
            time.sleep(choose.random() * 0.002)
            gate.signal()

    choose.shuffle(gates)
    threads = [threading.Thread(target=open_gates, args=(gates[i::2],)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wait_for(state, *last, timeout=60_000) == 0
    assert array_of(state, target, np.uint8).tolist() == expected


def test_threads_share_a_context(state: HalState, device: Device) -> None:
    commands = multiply_commands(state, device, 64)
    failures: list[BaseException] = []

    def work(value: int) -> None:
        try:
            operand = buffer_of(state, device, np.full(64, value, np.float32))
            for _ in range(30):
                result = state.queue_alloca(device, -1, None, None, 0, DEVICE_LOCAL, USAGE, 256)
                done = state.fence_create(device, 0)
                state.queue_execute_indirect(device, -1, None, done, commands, 0, table(operand, operand, result))
                assert wait_for(state, done, timeout=60_000) == 0
                assert set(array_of(state, result).tolist()) == {float(value * value)}
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(value,)) for value in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failures
