"""One-shot commands that run the same over the same memory share a recording, and do what their own would do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from support.runtime.hal_module import array_of, buffer_of, executable, wait_for

from pumice.hal_vulkan import Buffer, Device
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.plan import PlanOptions
from pumice.hal_vulkan.programs.command_buffer import ProgramCommandBuffer
from pumice.hal_vulkan.programs.executable import ProgramExecutable
from pumice.runtime.modules.hal.module import HalState
from pumice.status import ClosedError, FailedPreconditionError, OutOfRangeError

pytestmark = pytest.mark.vulkan

COUNT = 256
SIZE = 4 * COUNT
DRAW = np.random.default_rng(0)


@pytest.fixture(params=["pushed", "sets", "guarded"])
def device(driver: Driver, request: pytest.FixtureRequest) -> Iterator[Device]:
    """Devices whose descriptors are pushed, and bound as sets; and one whose pipelines report."""
    options = PlanOptions(push_descriptors=request.param != "sets", sanitize=request.param == "guarded")
    with Device(driver, options=options) as made:
        yield made


def numbers() -> np.ndarray:
    return DRAW.integers(-9, 9, COUNT).astype(np.float32)


def recorded(
    state: HalState, device: Device, both: ProgramExecutable, factor: float, buffers: list[Buffer]
) -> ProgramCommandBuffer:
    """``c = a * b``, and then ``c += factor * a``."""
    commands = state.command_buffer_create(device, 1, 3, -1, 0)
    a, b, c = ((0, 0, buffer, 0, SIZE) for buffer in buffers)
    state.command_buffer_dispatch(commands, both, 0, COUNT // 64, 1, 1, 0, (), (a, b, c))
    state.command_buffer_execution_barrier(commands, 28, 13, 0)
    bits = int(np.float32(factor).view(np.int32))
    state.command_buffer_dispatch(commands, both, 1, COUNT // 64, 1, 1, 0, (bits,), (a, c))
    return commands


def run(state: HalState, device: Device, commands: ProgramCommandBuffer) -> None:
    done = state.fence_create(device, 0)
    state.queue_execute(device, -1, None, done, commands, 0)
    assert wait_for(state, done) == 0


def test_equal_commands_share_a_recording(state: HalState, device: Device) -> None:
    both = executable(state, device, "mul", "examples/saxpy")
    kept = device.command_context.kept
    sets = [[buffer_of(state, device, numbers()) for _ in range(3)] for _ in range(2)]
    for turn in range(6):
        for buffers in sets:
            for factor in (2.0, -1.0):
                a, b = array_of(state, buffers[0]), array_of(state, buffers[1])
                commands = recorded(state, device, both, factor, buffers)
                state.command_buffer_finalize(commands)
                run(state, device, commands)
                np.testing.assert_array_equal(array_of(state, buffers[2]), a * b + np.float32(factor) * a)
                buffers[0].write(numbers().tobytes())
        assert len(kept) == 4, turn


def test_other_commands_follow_noted_ones(state: HalState, device: Device) -> None:
    both = executable(state, device, "mul", "examples/saxpy")
    for _ in range(2):
        buffers = [buffer_of(state, device, numbers()) for _ in range(3)]
        a, b = array_of(state, buffers[0]), array_of(state, buffers[1])
        commands = recorded(state, device, both, 3.0, buffers)
        state.command_buffer_execution_barrier(commands, 28, 13, 0)
        state.command_buffer_fill_buffer(commands, buffers[2], 0, SIZE // 2, 0, 0, 4, 0)
        state.command_buffer_execution_barrier(commands, 28, 13, 0)
        one = int(np.float32(1).view(np.int32))
        state.command_buffer_dispatch(
            commands, both, 1, 1, 1, 1, 0, (one,), ((0, 0, buffers[1], 0, 256), (0, 0, buffers[2], SIZE - 256, -1))
        )
        state.command_buffer_finalize(commands)
        run(state, device, commands)
        expected = a * b + np.float32(3) * a
        expected[: COUNT // 2] = 0
        expected[-64:] += b[:64]
        np.testing.assert_array_equal(array_of(state, buffers[2]), expected)
    assert not device.command_context.kept


def test_many_combinations_are_recorded_in_turn(state: HalState, device: Device) -> None:
    both = executable(state, device, "mul", "examples/saxpy")
    buffers = [buffer_of(state, device, np.ones(COUNT, np.float32)) for _ in range(3)]
    waiting = []
    for factor in range(300):  # more than are kept, and all of them recorded before the first is submitted
        commands = recorded(state, device, both, factor, buffers)
        state.command_buffer_finalize(commands)
        waiting.append(commands)
    for factor, commands in enumerate(waiting):
        run(state, device, commands)
        assert (array_of(state, buffers[2]) == 1 + factor).all()
    assert len(device.command_context.kept) <= 128
    device.trim()
    assert not device.command_context.kept


def test_what_was_closed_or_submitted_is_refused(state: HalState, device: Device) -> None:
    both = executable(state, device, "mul", "examples/saxpy")
    for index in range(3):
        buffers = [buffer_of(state, device, np.ones(COUNT, np.float32)) for _ in range(3)]
        commands = recorded(state, device, both, 1.0, buffers)
        state.command_buffer_finalize(commands)
        buffers[index].close()
        with pytest.raises(ClosedError, match="closed"):
            run(state, device, commands)
    buffers = [buffer_of(state, device, np.ones(COUNT, np.float32)) for _ in range(3)]
    commands = recorded(state, device, both, 1.0, buffers)
    with pytest.raises(FailedPreconditionError, match="being recorded|recording"):
        state.queue_execute(device, -1, None, None, commands, 0)
    with pytest.raises(OutOfRangeError):
        state.command_buffer_dispatch(commands, both, 7, 1, 1, 1, 0, (), ())
    state.command_buffer_finalize(commands)
    with pytest.raises(FailedPreconditionError):
        state.command_buffer_execution_barrier(commands, 28, 13, 0)
    run(state, device, commands)
    with pytest.raises(FailedPreconditionError, match="was submitted"):
        run(state, device, commands)


def test_a_recording_may_run_twice_at_once(state: HalState, device: Device) -> None:
    both = executable(state, device, "mul", "examples/saxpy")
    buffers = [buffer_of(state, device, np.ones(COUNT, np.float32)) for _ in range(3)]
    gate = state.fence_create(device, 0)
    gate.points()
    fences = []
    for _ in range(3):
        commands = recorded(state, device, both, 4.0, buffers)
        state.command_buffer_finalize(commands)
        done = state.fence_create(device, 0)
        state.queue_execute(device, -1, gate, done, commands, 0)
        fences.append(done)
    del commands
    state.fence_signal(gate)
    for done in fences:
        assert wait_for(state, done) == 0
    assert (array_of(state, buffers[2]) == 5).all()
