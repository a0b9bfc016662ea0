"""Work on one device with buffers of another: ranges are copied through the host, in the order of fences."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator

import numpy as np
import pytest
from support.runtime.hal_module import (
    DEVICE_LOCAL,
    USAGE,
    array_of,
    buffer_of,
    direct,
    executable,
    multiply_commands,
    table,
    vm,
    wait_for,
)

from pumice.hal.mirror import Mirror
from pumice.hal_vulkan import Buffer, Device
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.plan import PlanOptions
from pumice.runtime.modules.hal.module import HalState
from pumice.status import AbortedError, InvalidArgumentError, OutOfRangeError, PumiceError

pytestmark = [pytest.mark.vulkan, pytest.mark.sample(13)]

Two = tuple[HalState, Device, Device]


@pytest.fixture(params=[(False, False), (True, True), (False, True), (True, False)], ids=str)
def two(driver: Driver, request: pytest.FixtureRequest) -> Iterator[Two]:
    """A context of two devices, each with mapped or staged memory."""
    here, there = request.param
    with (
        Device(driver, options=PlanOptions(staging=here)) as first,
        Device(driver, options=PlanOptions(staging=there)) as second,
    ):
        state = HalState((first, second))
        yield state, first, second
        state.close()
        gc.collect()


def numbers(state: HalState, device: Device, factor: float) -> Buffer:
    return buffer_of(state, device, factor * np.arange(64, dtype=np.float32), DEVICE_LOCAL)


def test_binding_tables(two: Two) -> None:
    state, here, there = two
    commands = multiply_commands(state, here, 64)
    a, b, out = numbers(state, here, 1), numbers(state, there, 2), numbers(state, there, 0)
    last = None
    for _ in range(3):
        done = state.fence_create(here, 0)
        state.queue_execute_indirect(here, -1, last, done, commands, 0, table(a, b, out))
        last = done
    assert wait_for(state, last) == 0
    np.testing.assert_array_equal(array_of(state, out), 2 * np.arange(64.0) ** 2)
    np.testing.assert_array_equal(array_of(state, b), 2 * np.arange(64))


def test_recorded_buffers(two: Two) -> None:
    state, here, there = two
    # Halves that every device binds: minStorageBufferOffsetAlignment is at most 256 bytes.
    a, b, out = (
        buffer_of(state, device, factor * np.arange(128, dtype=np.float32), DEVICE_LOCAL)
        for device, factor in ((there, 1), (here, 2), (there, 0))
    )
    once = state.command_buffer_create(here, 1, 3, -1, 0)
    half = [(0, 0, buffer, 256, 256) for buffer in (a, b, out)]
    state.command_buffer_dispatch(once, executable(state, here, "mul"), 0, 1, 1, 1, 0, (), tuple(half))
    state.command_buffer_execution_barrier(once, 28, 13, 0)
    state.command_buffer_fill_buffer(once, out, 0, 4, 0, 0x3F800000, 4, 0)
    state.command_buffer_update_buffer(once, vm(np.float32([7, 8]).tobytes()), 4, out, 4, 4, 0, 0)
    state.command_buffer_copy_buffer(once, 0, 0, a, 252, out, 8, 4, 0)
    state.command_buffer_finalize(once)
    done = state.fence_create(here, 0)
    state.queue_execute(here, -1, None, done, once, 0)
    assert wait_for(state, done) == 0
    expected = np.concatenate([np.float32([1, 8, 63]), np.zeros(61), 2 * np.arange(64, 128) ** 2])
    np.testing.assert_array_equal(array_of(state, out), expected)


def test_only_what_is_written_comes_back(two: Two) -> None:
    """Two devices may write different parts of one buffer at the same time."""
    state, here, there = two
    shared = numbers(state, there, 1)
    gate = state.fence_create(here, 0)
    fences = []
    for index, device in enumerate((here, there)):
        commands = state.command_buffer_create(device, 0, 3, -1, 1)
        state.command_buffer_fill_buffer(commands, None, 128 * index, 128, 0, index + 1, 1, 0)
        state.command_buffer_finalize(commands)
        fences.append(state.fence_create(device, 0))
        state.queue_execute_indirect(device, -1, gate, fences[-1], commands, 0, table(shared))
    gate.signal()
    assert wait_for(state, *fences) == 0
    assert array_of(state, shared, np.uint8).tolist() == [1] * 128 + [2] * 128


def test_queue_operations(two: Two) -> None:
    state, here, there = two
    a, b = numbers(state, here, 1), numbers(state, there, 0)
    fences = [None, *[state.fence_create(here, 0) for _ in range(5)]]
    state.queue_copy(here, -1, fences[0], fences[1], a, 64, b, 0, 64, 0)
    state.queue_fill(here, -1, fences[1], fences[2], b, 4, 4, 0x40000000, 4, 0)
    state.queue_update(here, -1, fences[2], fences[3], vm(np.float32([9]).tobytes()), 0, b, 8, 4, 0)
    file = state.file_from_memory(here, -1, 1, vm(np.float32([5, 6]).tobytes()), 0, 8, 0)
    state.queue_read(here, -1, fences[3], fences[4], file, 4, b, 12, 4, 0)
    state.queue_copy(there, -1, fences[4], fences[5], b, 0, a, 0, 32, 0)
    assert wait_for(state, fences[5]) == 0
    expected = np.arange(64, dtype=np.float32)
    expected[:8] = [16, 2, 9, 6, 20, 21, 22, 23]
    np.testing.assert_array_equal(array_of(state, a), expected)


def test_failures(two: Two) -> None:
    state, here, there = two
    commands = multiply_commands(state, here, 64)
    a = numbers(state, there, 1)
    with pytest.raises(OutOfRangeError):
        state.queue_execute_indirect(here, -1, None, None, commands, 0, ((a, 16, 256), (a, 0, 256), (a, 0, 256)))
    # What is found to be wrong only when the work is submitted, or while it waits, fails its fence.
    done = state.fence_create(here, 0)
    state.queue_execute_indirect(here, -1, None, done, commands, 0, table(a, a))
    with pytest.raises(InvalidArgumentError, match="slot"):
        wait_for(state, done)
    gate, done = state.fence_create(here, 0), state.fence_create(here, 0)
    state.queue_execute_indirect(here, -1, gate, done, commands, 0, table(a, a, a))
    assert not done.query()
    gate.fail(AbortedError("no"))
    with pytest.raises(AbortedError):
        wait_for(state, done)
    gate, done = state.fence_create(here, 0), state.fence_create(here, 0)
    gone = state.device_allocator(there).allocate(DEVICE_LOCAL, USAGE, 256)
    state.queue_execute_indirect(here, -1, gate, done, commands, 0, table(a, a, gone))
    gone.close()
    gate.signal()
    with pytest.raises(PumiceError):
        wait_for(state, done)
    np.testing.assert_array_equal(array_of(state, a), np.arange(64))


def test_random_work_follows_its_fences(two: Two) -> None:
    state, *devices = two
    choose = random.Random(7)
    mirrored = [np.full(64, index, np.float32) for index in range(4)]
    buffers = [buffer_of(state, devices[index % 2], array, DEVICE_LOCAL) for index, array in enumerate(mirrored)]
    commands = [multiply_commands(state, device, 64) for device in devices]
    last = None
    for _ in range(40):
        which = choose.randrange(2)
        device, done = devices[which], state.fence_create(devices[which], 0)
        x, y, z = (choose.randrange(4) for _ in range(3))
        kind = choose.randrange(3)
        if kind == 0 and z not in (x, y):
            state.queue_execute_indirect(
                device, -1, last, done, commands[which], 0, table(buffers[x], buffers[y], buffers[z])
            )
            mirrored[z] = np.clip(mirrored[x] * mirrored[y], -1e6, 1e6)
        elif kind == 1 and x != y:
            start = choose.randrange(0, 60)
            state.queue_copy(device, -1, last, done, buffers[x], 4 * start, buffers[y], 4 * start, 16, 0)
            mirrored[y][start : start + 4] = mirrored[x][start : start + 4]
        else:
            value = np.float32(choose.randrange(-2, 3))
            state.queue_fill(device, -1, last, done, buffers[z], 0, 128, int(value.view(np.int32)), 4, 0)
            mirrored[z][:32] = value
        last = done
    assert wait_for(state, last) == 0
    for buffer, expected in zip(buffers, mirrored, strict=True):
        np.testing.assert_array_equal(np.clip(array_of(state, buffer), -1e6, 1e6), expected)


def test_ranges_of_a_mirror(driver: Driver) -> None:
    with Device(driver) as here, Device(driver) as there, there.create_buffer(256) as foreign:
        mirror = Mirror(here.create_buffer(128), foreign, 64)
        assert mirror.part(64, 16, True).size == 16
        mirror.part(72, 16, False)
        mirror.part(88, 8, True)
        mirror.part(128, 32, True)
        mirror.part(160, 0, True)
        assert mirror.ranges(written=False) == [(64, 32), (128, 32)]
        assert mirror.ranges(written=True) == [(64, 16), (88, 8), (128, 32)]
        mirror.close()
        mirror.close()


def test_a_lone_device_takes_no_others(driver: Driver, device: Device) -> None:
    state = HalState((device, device))
    with Device(driver) as other, other.create_buffer(256) as foreign:
        commands = state.command_buffer_create(device, 1, 3, -1, 0)
        mul = executable(state, device, "mul")
        with pytest.raises(InvalidArgumentError, match="another device"):
            state.command_buffer_dispatch(commands, mul, 0, 1, 1, 1, 0, (), direct(foreign, foreign, foreign))
        state.close()
        del commands, mul
