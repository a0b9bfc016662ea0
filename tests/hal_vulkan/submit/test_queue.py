"""Queues: submissions with waits and signals, held-back ones, chains of thousands, and queue-ordered operations."""

from __future__ import annotations

import io
import random
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.waiting import Blocked, in_threads, until

from pumice import shaders
from pumice.hal.fence import wait_all
from pumice.hal.memory import MemoryTypeFlags
from pumice.hal_vulkan.commands.command_buffer import CommandBuffer
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.memory.buffer import Buffer
from pumice.hal_vulkan.submit.prepared_submission import PreparedSubmission
from pumice.hal_vulkan.sync.semaphore import TimelineSemaphore
from pumice.hal_vulkan.vulkan.live_objects import live_objects
from pumice.status import (
    ClosedError,
    DataLossError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    PumiceError,
    ResourceExhaustedError,
)

pytestmark = pytest.mark.vulkan
HOST = MemoryTypeFlags.HOST_VISIBLE | MemoryTypeFlags.DEVICE_LOCAL
CHAIN = 5000


def host_buffer(device: Device, data: bytes) -> Buffer:
    buffer = device.create_buffer(len(data), memory_type=HOST)
    buffer.write(data)
    return buffer


def test_an_empty_submission_signals(device: Device) -> None:
    with device.create_semaphore() as semaphore:
        device.compute_queue.submit((), signals=((semaphore, 4),))
        semaphore.wait(4, 5)
        assert semaphore.query() == 4
        device.compute_queue.submit(())
        device.compute_queue.submit([], waits=[], signals=[])
        device.wait_idle(5)
        assert device.compute_queue.is_idle and "0 in flight" in repr(device.compute_queue)


def test_payloads_only_go_up(device: Device) -> None:
    with device.create_semaphore(3, "up") as semaphore, device.create_semaphore() as gate:
        queue = device.compute_queue
        for value in (0, 2, 3):
            with pytest.raises(FailedPreconditionError, match="up: a payload only increases: 3 is"):
                queue.barrier(signals=((semaphore, value),))
            with pytest.raises(FailedPreconditionError, match="up: a payload only increases"):
                queue.barrier(waits=((gate, 1),), signals=((semaphore, value),))
        queue.barrier(signals=((semaphore, 5),))
        with pytest.raises(FailedPreconditionError, match="5 is signalled or scheduled"):
            queue.barrier(signals=((semaphore, 5),))
        for waits in ((), ((gate, 1),)):
            with pytest.raises(InvalidArgumentError, match="at most once"):
                queue.barrier(waits=waits, signals=((semaphore, 6), (semaphore, 7)))
        semaphore.wait(5, 5)
        assert device.held == 0


def test_many_waits_signals_and_command_buffers_at_once(device: Device) -> None:
    count = 40  # more than the arrays are made for at first
    waits = [(device.create_semaphore(1), 1) for _ in range(count)]
    signals = [(device.create_semaphore(), index + 1) for index in range(count)]
    buffer = device.create_buffer(4 * count, memory_type=HOST)
    recorded = []
    for index in range(count):
        commands = device.create_command_buffer(name=f"c{index}")
        commands.begin().fill(buffer, index.to_bytes(4, "little"), 4 * index, 4)
        recorded.append(commands.end())
    device.compute_queue.submit(recorded, waits=waits, signals=signals)
    wait_all(signals, 5)
    np.testing.assert_array_equal(np.frombuffer(buffer.read(), np.uint32), np.arange(count))
    device.compute_queue.submit(recorded[:3])
    device.wait_idle(5)


def test_command_buffers_of_one_submission_run_in_order(device: Device) -> None:
    buffer = device.create_buffer(1 << 16, memory_type=HOST)
    recorded = []
    for value in range(20):
        commands = device.create_command_buffer()
        commands.begin().fill(buffer, bytes([value]))
        recorded.append(commands.end())
    device.compute_queue.submit(recorded)
    device.wait_idle(5)
    assert set(buffer.read()) == {19}


# ---- held back ------------------------------------------------------------------------------------------------------


def test_wait_before_signal_on_the_same_queue(device: Device) -> None:
    """The second submission signals what the first waits for; on one VkQueue that alone would hang."""
    buffer = device.create_buffer(16, memory_type=HOST)
    buffer.write(bytes(16))
    ready, done = device.create_semaphore(), device.create_semaphore()
    other = device.create_buffer(16, memory_type=HOST)
    queue = device.compute_queue
    queue.copy(buffer, other, waits=((ready, 1),), signals=((done, 1),))
    assert device.held == 1 and not done.has_reached(1)
    with pytest.raises(DeadlineExceededError):
        done.wait(1, 0.01)
    queue.fill(buffer, b"\7", signals=((ready, 1),))
    done.wait(1, 5)
    assert device.held == 0 and other.read() == b"\7" * 16


def test_a_held_submission_blocks_nobody(device: Device) -> None:
    never, after = device.create_semaphore(), device.create_semaphore()
    device.compute_queue.barrier(waits=((never, 1),), signals=((after, 1),))
    with device.create_semaphore() as done:
        for value in range(1, 50):
            device.compute_queue.barrier(signals=((done, value),))
        done.wait(49, 5)
    assert not after.has_reached(1)
    device.wait_idle(5)
    never.signal(1)
    after.wait(1, 5)


def test_all_waits_have_to_be_scheduled(device: Device) -> None:
    gates = [device.create_semaphore() for _ in range(5)]
    done = device.create_semaphore()
    device.compute_queue.barrier(waits=[(gate, 2) for gate in gates], signals=((done, 1),))
    source = random.Random(4)
    steps = [(gate, value) for gate in gates for value in (1,)] + [(gate, 2) for gate in source.sample(gates, 5)]
    for gate, value in steps:
        assert device.held == 1 and not done.has_reached(1)
        gate.signal(value)
    done.wait(1, 5)
    assert device.held == 0


@pytest.mark.parametrize("end", ["release", "fail"])
def test_a_chain_of_thousands(device: Device, end: str) -> None:
    """Each waits for the one before; the last is submitted first, so everything is held until the head moves."""
    semaphores = [device.create_semaphore() for _ in range(CHAIN + 1)]
    queue = device.compute_queue
    for index in reversed(range(CHAIN)):
        queue.barrier(waits=((semaphores[index], 1),), signals=((semaphores[index + 1], 1),))
    assert device.held == CHAIN
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(200)
    try:
        if end == "release":
            semaphores[0].signal(1)
        else:
            semaphores[0].fail(DataLossError("the head broke"))
    finally:
        sys.setrecursionlimit(limit)
    assert device.held == 0
    if end == "release":
        semaphores[-1].wait(1, 10)
        # Not all: validation layers look at every submission in flight for each.
        assert all(semaphore.has_reached(1) for semaphore in semaphores[::97])
    else:
        for semaphore in semaphores:
            with pytest.raises(DataLossError, match="the head broke"):
                semaphore.wait(1)
    for semaphore in semaphores:
        semaphore.close()


def test_a_chain_of_thousands_on_one_timeline(device: Device) -> None:
    semaphore = device.create_semaphore()
    order = list(range(CHAIN))
    random.Random(5).shuffle(order)
    start = time.monotonic()
    # A payload only goes up in the order of release, which the waits fix, not in the order of submission.
    for index in reversed(range(1, CHAIN)):
        device.compute_queue.barrier(waits=((semaphore, 2 * index),), signals=((semaphore, 2 * index + 1),))
    for index in range(1, CHAIN):
        semaphore.signal(2 * index)
        semaphore.wait(2 * index + 1, 5)
    assert semaphore.query() == 2 * CHAIN - 1 and device.held == 0
    # Some two seconds; a step that looked at all the others would make minutes of it.
    assert time.monotonic() - start < 30


def test_a_wide_fan_out(device: Device) -> None:
    gate = device.create_semaphore()
    outs = [device.create_semaphore() for _ in range(2000)]
    for out in outs:
        device.compute_queue.barrier(waits=((gate, 1),), signals=((out, 1),))
    gate.signal(1)
    wait_all([(out, 1) for out in outs], 10)
    assert gate.held == {} and gate.held_by_value == []
    for out in outs:
        out.close()


def test_failure_of_one_wait_drops_the_submission(device: Device) -> None:
    buffer = host_buffer(device, b"untouched")
    first, second, out = (device.create_semaphore() for _ in range(3))
    device.compute_queue.fill(buffer, b"!", waits=((first, 1), (second, 1)), signals=((out, 1),))
    first.signal(1)
    # Failed after it was reached, before the submission was released.
    first.fail(DataLossError("late"))
    with pytest.raises(DataLossError, match="late"):
        out.wait(1, 5)
    second.signal(1)
    device.wait_idle(5)
    assert buffer.read() == b"untouched" and device.held == 0


def test_waiting_for_a_failed_semaphore_fails_the_signals(device: Device) -> None:
    bad, out = device.create_semaphore(), device.create_semaphore()
    bad.fail(DataLossError("bad"))
    device.compute_queue.barrier(waits=((bad, 0),), signals=((out, 1),))
    with pytest.raises(DataLossError, match="bad"):
        out.wait(1, 5)


def test_signalling_a_failed_semaphore_is_refused(device: Device) -> None:
    bad, gate = device.create_semaphore(), device.create_semaphore()
    bad.fail(DataLossError("bad"))
    for waits in ((), ((gate, 1),)):
        with pytest.raises(DataLossError, match="bad"):
            device.compute_queue.barrier(waits=waits, signals=((bad, 1),))
    assert device.held == 0
    device.wait_idle(5)


def test_a_semaphore_that_fails_while_a_submission_that_signals_it_is_held(device: Device) -> None:
    gate, out, other = (device.create_semaphore() for _ in range(3))
    device.compute_queue.barrier(waits=((gate, 1),), signals=((out, 1), (other, 1)))
    out.fail(DataLossError("cancelled by its owner"))
    gate.signal(1)
    with pytest.raises(DataLossError):
        other.wait(1, 5)
    device.wait_idle(5)


def test_what_is_closed_while_held_is_kept(device: Device) -> None:
    """Closeable a buffer that a held-back submission uses is as good as closing it while it is in flight."""
    source, target = host_buffer(device, b"abcdefgh"), device.create_buffer(8, memory_type=HOST)
    gate, done = device.create_semaphore(), device.create_semaphore()
    queue = device.compute_queue
    with device.create_command_buffer() as commands:
        commands.begin().copy(source, target)
        queue.submit((commands.end(),), waits=((gate, 1),), signals=((done, 1),))
    source.close()
    assert commands.state.value == "closed"
    junk = [host_buffer(device, b"\xee" * 8) for _ in range(10)]
    gate.signal(1)
    done.wait(1, 5)
    assert target.read() == b"abcdefgh"
    with pytest.raises(FailedPreconditionError):
        queue.submit((commands,))
    for buffer in (*junk, target):
        buffer.close()


def test_dealloca_behind_a_held_use(device: Device) -> None:
    queue = device.compute_queue
    gate, filled, freed = (device.create_semaphore() for _ in range(3))
    keep = device.create_buffer(64, memory_type=HOST)
    temporary = queue.alloca(64)
    queue.fill(temporary, b"\5", waits=((gate, 1),), signals=((filled, 1),))
    queue.copy(temporary, keep, waits=((filled, 1),), signals=((filled, 2),))
    queue.dealloca(temporary, waits=((filled, 2),), signals=((freed, 1),))
    with pytest.raises(ClosedError):
        temporary.subspan(0)
    assert device.allocator.statistics().allocations == 2
    gate.signal(1)
    freed.wait(1, 5)
    assert set(keep.read()) == {5}
    device.wait_idle()
    device.retire()
    assert device.allocator.statistics().allocations == 1


def test_memory_is_given_back_though_something_is_always_held(device: Device) -> None:
    """Held submissions keep what was closed after them, not what is closed for ever after."""
    gates = [device.create_semaphore() for _ in range(200)]
    for index, gate in enumerate(gates):
        device.compute_queue.barrier(waits=((gate, 1),))
        device.create_buffer(1000).close()
        if index:
            gates[index - 1].signal(1)  # always at least one is held
            assert device.held == 1
    device.wait_idle(5)
    device.retire()
    assert device.allocator.statistics().allocations == 1 and device.held == 1
    gates[-1].signal(1)
    device.wait_idle(5)


def test_held_operations_that_fail_leave_nothing(device: Device) -> None:
    target = host_buffer(device, bytes(64))
    device.compute_queue.fill(target, b"\1", 1, 3)
    device.wait_idle(5)
    device.retire()

    def hold_and_fail() -> None:
        gate, out = device.create_semaphore(), device.create_semaphore()
        queue = device.compute_queue
        queue.fill(target, b"x", 3, 5, waits=((gate, 1),), signals=((out, 1),))
        queue.update(target, b"xyz", 1, waits=((gate, 1),))
        queue.read(b"0123456789", target, 10, waits=((gate, 1),))
        gate.fail(DataLossError("x"))
        gate.close()
        out.close()

    hold_and_fail()
    before = live_objects()
    for _ in range(100):
        hold_and_fail()
    assert live_objects() == before and target.read() == b"\0\1\1\1" + bytes(60)


# ---- queue-ordered operations ---------------------------------------------------------------------------------------


def test_operations_in_queue_order(any_device: Device) -> None:
    device = any_device
    queue = device.compute_queue
    model = np.zeros(1000, np.uint8)
    target = queue.alloca(1000, memory_type=HOST)
    done, value = device.create_semaphore(), 0

    def step(call: Callable[..., None]) -> None:
        nonlocal value
        call(waits=((done, value),), signals=((done, value + 1),))
        value += 1

    step(lambda **s: queue.fill(target, b"\0", **s))
    step(lambda **s: queue.fill(target, b"ab", 101, 400, **s))
    model[101:501] = np.frombuffer(b"ab" * 200, np.uint8)
    step(lambda **s: queue.update(target, b"hello", 7, **s))
    model[7:12] = np.frombuffer(b"hello", np.uint8)
    step(lambda **s: queue.copy(target, target, 5, source_offset=7, target_offset=993, **s))
    model[993:998] = model[7:12]
    step(lambda **s: queue.read(bytes(range(200)), target, 50, source_offset=3, target_offset=601, **s))
    model[601:651] = np.arange(3, 53)
    step(lambda **s: queue.read(b"", target, 0, **s))
    step(queue.barrier)
    done.wait(value, 10)
    np.testing.assert_array_equal(np.frombuffer(target.read(), np.uint8), model)
    queue.dealloca(target, waits=((done, value),))
    device.wait_idle()


def test_execute_runs_a_kernel(any_device: Device) -> None:
    device = any_device
    a, b = np.arange(100, dtype=np.float32), np.linspace(0, 1, 100, dtype=np.float32)
    pipeline = device.create_pipeline(shaders.spirv("mul"))
    buffers = [host_buffer(device, a.tobytes()), host_buffer(device, b.tobytes()), host_buffer(device, bytes(400))]
    with device.create_command_buffer() as commands, device.create_semaphore() as done:
        commands.begin().dispatch(pipeline, buffers, (2, 1, 1))
        device.compute_queue.execute(commands.end(), signals=((done, 1),))
        done.wait(1, 10)
    np.testing.assert_array_equal(np.frombuffer(buffers[2].read(), np.float32), a * b)


def test_the_data_of_an_update_is_captured_at_once(device: Device) -> None:
    target = host_buffer(device, bytes(16))
    gate, done = device.create_semaphore(), device.create_semaphore()
    data = bytearray(b"captured now")
    device.compute_queue.update(target, data, 1, waits=((gate, 1),), signals=((done, 1),))  # type: ignore[arg-type]
    data[:] = b"changed late"
    gate.signal(1)
    done.wait(1, 5)
    assert target.read(1, 12) == b"captured now"


def test_read_from_files(device: Device, tmp_path: Path) -> None:
    data = random.Random(6).randbytes(10_000)
    path = tmp_path / "weights.bin"
    path.write_bytes(data)
    target = device.create_buffer(8000, memory_type=HOST)
    queue = device.compute_queue
    with path.open("rb") as file, device.create_semaphore() as done:
        queue.read(file, target, 7000, source_offset=1234, target_offset=13, signals=((done, 1),))
        done.wait(1, 5)
        assert target.read(13, 7000) == data[1234:8234]
        for source in (file, io.BytesIO(data), data):
            with pytest.raises(OutOfRangeError, match="5000 bytes at 6000"):
                queue.read(source, target, 5000, source_offset=6000)
        for offset, size in ((-1, 5), (0, -1)):
            with pytest.raises(InvalidArgumentError):
                queue.read(file, target, size, source_offset=offset)
        with pytest.raises(OutOfRangeError):
            queue.read(file, target, 7000, target_offset=1001)
        floats = np.arange(100, dtype=np.float32)
        queue.read(memoryview(floats), target, 100, source_offset=40)
        device.wait_idle(5)
        assert target.read(0, 100) == floats.tobytes()[40:140]
    target.close()
    device.retire()
    assert device.allocator.statistics().allocations == 0


def test_operations_that_are_refused_leave_nothing(device: Device) -> None:
    buffer, queue = device.create_buffer(16), device.compute_queue
    semaphore = device.create_semaphore(5)
    queue.fill(buffer, b"\0")
    device.wait_idle(5)
    device.retire()
    before = live_objects()
    for _ in range(20):
        for call in (
            lambda: queue.fill(buffer, b"\0", 20),
            lambda: queue.fill(buffer, b"abc"),
            lambda: queue.update(buffer, bytes(17)),
            lambda: queue.copy(buffer, buffer, 8, target_offset=4),
            lambda: queue.fill(buffer, b"\0", signals=((semaphore, 5),)),
            lambda: queue.alloca(16, signals=((semaphore, 1),)),
            lambda: queue.alloca(1 << 60),
            lambda: queue.read(b"1234", buffer, 4, target_offset=15),
        ):
            with pytest.raises(
                (OutOfRangeError, InvalidArgumentError, FailedPreconditionError, ResourceExhaustedError)
            ):
                call()
    device.retire()
    assert live_objects() == before


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_random_graphs_of_held_work(driver: Driver, data: st.DataObject) -> None:
    """Copies down a random tree, submitted in random order and with random gates, all come out as in order."""
    count = data.draw(st.integers(2, 12))
    parents = [data.draw(st.integers(0, index - 1)) for index in range(1, count)]
    order = data.draw(st.permutations(range(count)))
    with Device(driver, persistent_cache=False) as device:
        buffers = [device.create_buffer(64, memory_type=HOST) for _ in range(count)]
        done = [device.create_semaphore() for _ in range(count)]
        for index in order:
            if index == 0:
                device.compute_queue.fill(buffers[0], b"\x2a", signals=((done[0], 1),))
            else:
                parent = parents[index - 1]
                device.compute_queue.copy(
                    buffers[parent], buffers[index], waits=((done[parent], 1),), signals=((done[index], 1),)
                )
        wait_all([(semaphore, 1) for semaphore in done], 10)
        assert device.held == 0
        assert all(set(buffer.read()) == {0x2A} for buffer in buffers)


# ---- threads --------------------------------------------------------------------------------------------------------


def test_eight_threads_submit_to_one_device(device: Device) -> None:
    pipeline = device.create_pipeline(shaders.spirv("mul"))
    rounds = 12 if device.validation else 60

    def work(seed: int) -> None:
        source = np.random.default_rng(seed)
        queue = device.compute_queue
        done = device.create_semaphore(name=f"thread {seed}")
        for round_ in range(1, rounds):
            n = int(source.integers(1, 500))
            a, b = source.standard_normal((2, n), np.float32)
            left, right = host_buffer(device, a.tobytes()), host_buffer(device, b.tobytes())
            out = device.create_buffer(4 * n, memory_type=HOST)
            commands = device.create_command_buffer(one_shot=bool(round_ % 2))
            commands.begin().dispatch(pipeline, [left, right, out], (-(-n // 64), 1, 1))
            commands.execution_barrier()
            commands.fill(out, b"\1", 4 * n - 1, 1)
            queue.submit((commands.end(),), signals=((done, round_),))
            left.close()
            done.wait(round_, 20)
            expected = bytearray((a * b).tobytes())
            expected[-1] = 1
            assert out.read() == bytes(expected)
            for thing in (right, out, commands):
                thing.close()
        done.close()

    in_threads(work, range(8))
    device.wait_idle()
    device.retire()
    assert device.allocator.statistics().allocations == 0


def test_threads_that_hold_and_release_each_others_work(device: Device) -> None:
    """A ring of threads, each of which waits on the host's side for what another will submit later."""
    count, rounds = 4, 60
    semaphores = [device.create_semaphore(name=f"ring {i}") for i in range(count)]

    def work(index: int) -> None:
        before: TimelineSemaphore = semaphores[index - 1]
        for round_ in range(1, rounds + 1):
            wait = (before, round_ if index else round_ - 1)
            device.compute_queue.barrier(waits=(wait,), signals=((semaphores[index], round_),))
            if round_ % 16 == 0:
                time.sleep(0.001)

    in_threads(work, range(count))
    wait_all([(semaphore, rounds) for semaphore in semaphores], 10)
    assert device.held == 0


def test_host_signals_race_submissions_that_wait(device: Device) -> None:
    for _ in range(100):
        gate, out = device.create_semaphore(), device.create_semaphore()
        thread = Blocked(partial(gate.signal, 1))
        device.compute_queue.barrier(waits=((gate, 1),), signals=((out, 1),))
        out.wait(1, 5)
        thread.join()
        gate.close()
        out.close()
    for _ in range(100):
        gate, out = device.create_semaphore(), device.create_semaphore()
        thread = Blocked(partial(gate.fail, DataLossError("x")))
        try:
            device.compute_queue.barrier(waits=((gate, 1),), signals=((out, 1),))
            with pytest.raises(DataLossError):
                out.wait(1, 5)
        except PumiceError as error:
            assert isinstance(error, DataLossError)
        thread.join()
        until(lambda: device.held == 0)
        gate.close()
        out.close()


def test_the_host_and_a_queue_that_signal_at_once(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """A payload below the host's, submitted after the host has looked and before it signals, would go backwards."""
    semaphore, queue = device.create_semaphore(), device.compute_queue
    real = device.fn.vkSignalSemaphore
    barriers: list[Blocked] = []

    def signal(*arguments: object) -> int:
        barriers.append(Blocked(lambda: queue.barrier(signals=((semaphore, 3),))))
        barriers[0].thread.join(0.1)  # it has to wait
        return int(real(*arguments))

    monkeypatch.setattr(device.fn, "vkSignalSemaphore", signal)
    semaphore.signal(5)
    barriers[0].join()
    assert isinstance(barriers[0].error, FailedPreconditionError)
    device.wait_idle(5)
    assert semaphore.query() == 5


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("by", ["queue", "host"])
def test_a_payload_wanted_by_two_at_once(device: Device, monkeypatch: pytest.MonkeyPatch, by: str, count: int) -> None:
    """Another queue, or the host, that wants the payload of a submission that is being made."""
    semaphore, done = device.create_semaphore(), device.create_semaphore()
    queue = device.compute_queue
    commands = device.create_command_buffer().begin()
    commands.end()
    real = CommandBuffer.prepare
    refused: list[PumiceError] = []

    def signal(call: Callable[[], object]) -> None:
        try:
            call()
        except (FailedPreconditionError, InvalidArgumentError) as error:
            refused.append(error)

    def want() -> None:
        signal(lambda: semaphore.signal(1) if by == "host" else queue.barrier(signals=((semaphore, 1),)))

    other = threading.Thread(target=want)

    def prepare(self: CommandBuffer, bindings: object) -> object:
        if not other.ident:
            other.start()
            other.join(0.05)
        return real(self, None)

    with monkeypatch.context() as patch:
        patch.setattr(CommandBuffer, "prepare", prepare)
        signal(lambda: queue.submit((commands,), signals=((semaphore, 1), (done, 1))[:count]))
        other.join(5)
    assert len(refused) == 1
    queue.submit((commands,), signals=((semaphore, 2), (done, 2)))
    semaphore.wait(2, 5)
    device.wait_idle(5)


def test_each_payload_is_signalled_once_whatever_races(device: Device) -> None:
    queue = device.compute_queue
    for round_ in range(6):
        semaphore = device.create_semaphore()
        accepted: list[int] = []

        def work(index: int, semaphore: TimelineSemaphore = semaphore, accepted: list[int] = accepted) -> None:
            source = random.Random(index)
            for _ in range(300):
                value = semaphore.scheduled + source.choice((0, 1, 1, 2))
                try:
                    if index % 2:
                        value += 100_000  # above what other threads may submit meanwhile
                        semaphore.signal(value)
                    else:
                        queue.barrier(signals=((semaphore, value),))
                except PumiceError:
                    continue
                accepted.append(value)

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            in_threads(work, [10 * round_ + index for index in range(4)])
        finally:
            sys.setswitchinterval(interval)
        device.wait_idle(10)
        assert len(set(accepted)) == len(accepted) > 100
        assert semaphore.query() == semaphore.scheduled == max(accepted)
        semaphore.close()


def test_a_submission_that_is_refused_gives_its_payloads_back(device: Device) -> None:
    semaphore, full = device.create_semaphore(), device.create_semaphore(9)
    closed = device.create_command_buffer().begin()
    closed.end().close()
    queue = device.compute_queue
    for call in (
        lambda: queue.barrier(signals=((semaphore, 5), (full, 9))),
        lambda: queue.submit((closed,), signals=((semaphore, 5),)),
        lambda: queue.submit((closed,), signals=((semaphore, 5), (full, 10))),
    ):
        with pytest.raises((FailedPreconditionError, ClosedError)):
            call()
    semaphore.signal(3)
    queue.barrier(signals=((semaphore, 4), (full, 10)))
    semaphore.wait(4, 5)


def destructions(device: Device, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Records destructions, resets and submissions from now on, in order."""
    order: list[str] = []

    def note(name: str) -> None:
        real = getattr(device.fn, name)

        def call(*arguments: object) -> object:
            order.append(name)
            return real(*arguments)

        monkeypatch.setattr(device.fn, name, call)

    for name in ("vkDestroySemaphore", "vkResetCommandPool", "vkQueueSubmit"):
        note(name)
    return order


@pytest.mark.parametrize("kind", ["waits", "signals"])
@pytest.mark.parametrize("when", ["prepared", "submitted"])
def test_a_semaphore_closed_by_another_thread(
    device: Device, monkeypatch: pytest.MonkeyPatch, kind: str, when: str
) -> None:
    closed, other = device.create_semaphore(5), device.create_semaphore(5)
    value = 5 if kind == "waits" else 6
    points = {kind: ((closed, value), (other, value))}
    device.wait_idle(5)
    order = destructions(device, monkeypatch)
    queue = device.compute_queue
    closer = threading.Thread(target=closed.close)

    def close_before(owner: object, name: str) -> None:
        real = getattr(owner, name)

        def call(*arguments: object) -> object:
            closer.start()
            closer.join(0.05)
            return real(*arguments)

        monkeypatch.setattr(owner, name, call)

    if when == "submitted":
        close_before(device.fn, "vkQueueSubmit")
        queue.barrier(**points)
        closer.join(5)
        device.wait_idle(5)
        assert order[0] == "vkQueueSubmit"
    else:  # it must not be used any more
        close_before(queue, "commit")
        with pytest.raises(ClosedError):
            queue.barrier(**points)
        assert "vkQueueSubmit" not in order and other.query() == 5
    assert closed.is_closed and queue.is_idle


def test_commands_closed_while_they_are_prepared(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are closed after the checks, by another thread: what was prepared stays until the submission has retired."""
    commands = device.create_command_buffer().begin()
    commands.end()
    semaphore, queue = device.create_semaphore(), device.compute_queue
    prepared = PreparedSubmission(queue, (commands,))
    real = CommandBuffer.prepare

    def prepare(self: CommandBuffer, bindings: object) -> object:
        recording = real(self, None)
        closer = threading.Thread(target=self.close)
        closers.append(closer)
        closer.start()
        closer.join(0.05)
        return recording

    for submit in (prepared.submit, lambda: queue.submit((commands,), signals=((semaphore, 1),))):
        closers: list[threading.Thread] = []
        if commands.state.value == "closed":
            commands = device.create_command_buffer().begin()
            commands.end()
        device.wait_idle(5)
        with monkeypatch.context() as patch:
            patch.setattr(CommandBuffer, "prepare", prepare)
            order = destructions(device, patch)
            submit()
            closers[0].join(5)
            assert order[0] == "vkQueueSubmit", order
            device.wait_idle(5)


def test_a_refused_submission_between_two_equal_ones(device: Device) -> None:
    """Handles that a refused submission wrote into the structures must not reach the driver with the next."""
    buffer = device.create_buffer(16, memory_type=HOST)
    mine, other, full = device.create_semaphore(), device.create_semaphore(), device.create_semaphore(9)
    with device.create_command_buffer() as commands:
        commands.begin().fill(buffer, b"\1")
        commands.end()
        for value in range(1, 6):
            device.compute_queue.submit((commands,), signals=((mine, value),))
            with pytest.raises(FailedPreconditionError):
                device.compute_queue.submit((commands,), signals=((other, 1), (full, 9)))
            with pytest.raises(InvalidArgumentError):
                device.compute_queue.submit((commands,), signals=((other, 1), (other, 2)))
        mine.wait(5, 5)
        device.wait_idle(5)
        assert mine.query() == 5 and other.query() == 0 and full.query() == 9


def test_a_deferred_action_that_raises_is_logged_and_stops_nothing(
    device: Device, caplog: pytest.LogCaptureFixture
) -> None:
    """It may run on the notifier's thread, which everybody who waits needs."""
    gate, semaphore, queue = device.create_semaphore(), device.create_semaphore(), device.compute_queue
    told: list[PumiceError | None] = []
    semaphore.notify(1, told.append)
    gate.notify(1, told.append)  # starts the thread
    done: list[int] = []

    def broken() -> None:
        raise RuntimeError("mine")

    with queue._retire_lock:  # nobody retires before the actions are there
        queue.barrier(signals=((semaphore, 1),))
        queue.defer(broken)
        queue.defer(lambda: done.append(1))
        queue.after_next(broken)
    until(lambda: told == [None] and done == [1])
    queue.barrier()
    gate.signal(1)
    until(lambda: told == [None, None])
    queue.pass_idle()
    until(lambda: caplog.text.count("RuntimeError: mine") == 2)  # the notifier's thread may run the last one
    assert device.notifier.thread.is_alive
