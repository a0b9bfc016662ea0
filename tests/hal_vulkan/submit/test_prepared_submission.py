"""Submissions prepared for timing: they run what a queue runs, in its order, keep its books, and end in its errors."""

from __future__ import annotations

import functools
import struct
import time
from collections.abc import Iterator

import numpy as np
import pytest

from pumice import shaders
from pumice.hal.memory import MemoryTypeFlags
from pumice.hal_vulkan.commands.command_buffer import CommandBuffer
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.memory.buffer import Buffer
from pumice.hal_vulkan.pipelines.pipeline import ComputePipeline
from pumice.hal_vulkan.submit.prepared_submission import PreparedSubmission
from pumice.hal_vulkan.vulkan.live_objects import live_objects
from pumice.status import (
    ClosedError,
    DeadlineExceededError,
    DeviceLostError,
    FailedPreconditionError,
    InvalidArgumentError,
)

pytestmark = pytest.mark.vulkan
HOST = MemoryTypeFlags.HOST_VISIBLE | MemoryTypeFlags.DEVICE_LOCAL
N = 64
ONE = struct.pack("<f", 1.0)
LOST = -4
TIMEOUT = 2


@pytest.fixture
def saxpy(device: Device) -> ComputePipeline:
    return device.create_pipeline(shaders.spirv("examples/saxpy"))


@pytest.fixture
def arrays(device: Device) -> Iterator[list[Buffer]]:
    """x is 1, y is 0: each dispatch of saxpy adds 1 to y."""
    buffers = [device.create_buffer(4 * N, memory_type=HOST) for _ in range(2)]
    buffers[0].write(np.ones(N, np.float32).tobytes())
    buffers[1].write(np.zeros(N, np.float32).tobytes())
    yield buffers
    for buffer in buffers:
        buffer.close()


def count(arrays: list[Buffer]) -> float:
    y = np.frombuffer(arrays[1].read(), np.float32)
    assert np.all(y == y[0])
    return float(y[0])


def record(commands: CommandBuffer, saxpy: ComputePipeline, arrays: list[Buffer]) -> CommandBuffer:
    commands.begin().dispatch(saxpy, arrays, (1, 1, 1), ONE)
    return commands.end()


def test_it_runs_each_time_it_is_submitted(device: Device, saxpy: ComputePipeline, arrays: list[Buffer]) -> None:
    with device.create_command_buffer() as first, device.create_command_buffer() as second:
        prepared = PreparedSubmission(
            device.compute_queue, (record(first, saxpy, arrays), record(second, saxpy, arrays))
        )
        last = 0
        for turn in range(1, 51):
            began = time.monotonic_ns()
            number, called, returned = prepared.submit()
            awake = prepared.wait(number, 10) if turn % 2 else prepared.poll(number, 10)
            assert began <= called <= returned <= awake <= time.monotonic_ns()
            assert number > last
            last = number
        assert count(arrays) == 100
        # Several at a time: the queue's order holds, and one wait is for all before it.
        for _ in range(10):
            called, returned, awake = prepared.run(10)
            assert called <= returned <= awake
        assert count(arrays) == 120
        numbers = [prepared.submit()[0] for _ in range(20)]
        prepared.wait(numbers[-1], 10)
        assert numbers == sorted(numbers) and count(arrays) == 160


def test_it_has_its_place_among_ordinary_submissions(
    device: Device, saxpy: ComputePipeline, arrays: list[Buffer]
) -> None:
    queue = device.compute_queue
    done = device.create_semaphore()
    with device.create_command_buffer() as commands:
        prepared = PreparedSubmission(queue, (record(commands, saxpy, arrays),))
        for turn in range(1, 11):
            number, _, _ = prepared.submit()
            assert queue.submit((commands,), signals=((done, turn),)) == number + 1
            queue.fill(arrays[0], ONE)
        done.wait(10, 10)
        assert count(arrays) == 20
        queue.wait_idle(10)
        queue.retire()
        assert queue.is_idle and not queue.in_flight


def test_commands_may_be_recorded_anew_between(device: Device, saxpy: ComputePipeline, arrays: list[Buffer]) -> None:
    with device.create_command_buffer() as commands:
        prepared = PreparedSubmission(device.compute_queue, (commands,))
        with pytest.raises(FailedPreconditionError):
            prepared.submit()
        for dispatches in range(5):
            commands.begin()
            for _ in range(dispatches):
                commands.dispatch(saxpy, arrays, (1, 1, 1), ONE)
                commands.execution_barrier()
            commands.end()
            prepared.wait(prepared.submit()[0], 10)
        assert count(arrays) == 0 + 1 + 2 + 3 + 4
        commands.begin()
        with pytest.raises(FailedPreconditionError):
            prepared.submit()
        commands.end()
        # Refused submissions took no number of the timeline.
        before = device.compute_queue.submit((commands,))
        assert prepared.submit()[0] == before + 1
        device.compute_queue.wait_idle(10)


def test_an_empty_one_signals(device: Device) -> None:
    prepared = PreparedSubmission(device.compute_queue, ())
    number, called, returned = prepared.submit()
    assert called <= returned <= prepared.wait(number, 10)
    assert prepared.poll(number, 10) >= returned


def test_its_clock_is_the_one_that_it_is_given(device: Device) -> None:
    times = iter(range(100, 200))
    prepared = PreparedSubmission(device.compute_queue, (), clock=lambda: next(times))
    number, called, returned = prepared.submit()
    assert (called, returned) == (100, 101)
    assert prepared.wait(number, 10) == 102
    assert prepared.poll(number, 10) >= 103


def test_what_it_does_not_take(driver: Driver, device: Device) -> None:
    queue = device.compute_queue
    with device.create_command_buffer(one_shot=True) as one_shot, pytest.raises(InvalidArgumentError, match="one-shot"):
        PreparedSubmission(queue, (one_shot,))
    with (
        device.create_command_buffer(binding_capacity=2) as slots,
        pytest.raises(InvalidArgumentError, match="binding slots"),
    ):
        PreparedSubmission(queue, (slots,))
    with (
        Device(driver) as other,
        other.create_command_buffer() as foreign,
        pytest.raises(InvalidArgumentError, match="another device"),
    ):
        PreparedSubmission(queue, (foreign,))


def test_what_was_closed_is_not_submitted(driver: Driver, saxpy: ComputePipeline, arrays: list[Buffer]) -> None:
    device = saxpy.device
    commands = record(device.create_command_buffer(), saxpy, arrays)
    prepared = PreparedSubmission(device.compute_queue, (commands,))
    prepared.wait(prepared.submit()[0], 10)
    commands.close()
    with pytest.raises(ClosedError):
        prepared.submit()
    with Device(driver) as gone:
        prepared = PreparedSubmission(gone.compute_queue, ())
        prepared.wait(prepared.submit()[0], 10)
    with pytest.raises(ClosedError):
        prepared.submit()


@pytest.mark.parametrize("how", ["wait", "poll", "look"])
def test_a_wait_ends_in_time(device: Device, how: str) -> None:
    prepared = PreparedSubmission(device.compute_queue, ())
    wait = functools.partial(prepared.look, seconds=0.001) if how == "look" else getattr(prepared, how)
    number, _, _ = prepared.submit()
    wait(number, timeout=10)
    began = time.monotonic()
    with pytest.raises(DeadlineExceededError, match=r"not done within 0\.05 s"):
        wait(number + 1000, timeout=0.05)  # that nobody submits
    assert time.monotonic() - began < 20


def test_a_run_ends_in_time_and_goes_on_over_the_slices_of_a_wait(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait is in slices of a tenth of a second, so that an interrupt is served; here the first ones all run out."""
    prepared = PreparedSubmission(device.compute_queue, ())
    real, left = device.fn.vkWaitSemaphores, 0

    def slow(*arguments: object) -> int:
        nonlocal left
        left -= 1
        return TIMEOUT if left >= 0 else int(real(*arguments))

    monkeypatch.setattr(device.fn, "vkWaitSemaphores", slow)
    left = 3
    called, returned, awake = prepared.run(10)
    assert called <= returned <= awake and left < 0
    left = 10**9
    with pytest.raises(DeadlineExceededError, match=r"not done within 0\.05 s"):
        prepared.run(0.05)
    monkeypatch.undo()
    device.compute_queue.wait_idle(10)


@pytest.mark.parametrize("function", ["vkQueueSubmit", "vkWaitSemaphores", "vkGetSemaphoreCounterValue"])
def test_a_lost_device_is_said_and_sticks(driver: Driver, monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    before = live_objects()
    with Device(driver) as device:
        prepared = PreparedSubmission(device.compute_queue, ())
        prepared.wait(prepared.submit()[0], 10)
        with monkeypatch.context() as patch:
            patch.setattr(device.fn, function, lambda *arguments: LOST)
            with pytest.raises(DeviceLostError):
                if function == "vkGetSemaphoreCounterValue":
                    prepared.poll(prepared.submit()[0], 10)
                prepared.run(10)
        assert device.lost is not None
        with pytest.raises(DeviceLostError):
            prepared.submit()
    assert live_objects() == before


def test_many_leave_nothing(device: Device, saxpy: ComputePipeline, arrays: list[Buffer]) -> None:
    with device.create_command_buffer() as commands:
        prepared = PreparedSubmission(device.compute_queue, (record(commands, saxpy, arrays),))
        prepared.wait(prepared.submit()[0], 10)
        before = live_objects()
        for _ in range(300):
            number, _, _ = prepared.submit()
        prepared.wait(number, 10)
        device.compute_queue.retire()
        assert live_objects() == before and device.compute_queue.is_idle
        assert count(arrays) == 301
