"""Recordings that serve again: for one binding table after another, and for one-shot commands that are the same.

Each does what commands of its own would do.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import pytest
from support.runtime.hal_module import array_of, buffer_of, executable, multiply_commands, table, vm, wait_for

from pumice.hal_vulkan import Buffer, Device
from pumice.hal_vulkan.commands.replay import Replay
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.plan import PlanOptions
from pumice.hal_vulkan.programs.command_buffer import ProgramCommandBuffer
from pumice.hal_vulkan.programs.executable import ProgramExecutable
from pumice.runtime.modules.hal.module import HalState
from pumice.status import ClosedError, FailedPreconditionError, InvalidArgumentError, OutOfRangeError

pytestmark = pytest.mark.vulkan

COUNT = 256
SIZE = 4 * COUNT
DRAW = np.random.default_rng(0)
PART = 64  # floats: 256 bytes, which every device binds at


NEEDS_PUSHING = pytest.mark.features("VK_KHR_push_descriptor")


@pytest.fixture(
    params=[pytest.param("pushed", marks=NEEDS_PUSHING), "sets", pytest.param("guarded", marks=NEEDS_PUSHING)]
)
def device(driver: Driver, request: pytest.FixtureRequest) -> Iterator[Device]:
    """Devices whose descriptors are pushed, and bound as sets; and one whose pipelines report."""
    options = PlanOptions(push_descriptors=request.param != "sets", sanitize=request.param == "guarded")
    with Device(driver, options=options) as made:
        yield made


def run(state: HalState, device: Device, commands: ProgramCommandBuffer, entries: object) -> None:
    done = state.fence_create(device, 0)
    state.queue_execute_indirect(device, -1, None, done, commands, 0, entries)  # type: ignore[arg-type]
    assert wait_for(state, done) == 0


def bits(value: float) -> int:
    (word,) = struct.unpack("<i", struct.pack("<f", value))
    return int(word)


def mixed_commands(state: HalState, device: Device, static: Buffer) -> ProgramCommandBuffer:
    """Two kernels, parts of slots, push constants that change and stay, a buffer without a slot, other commands."""
    commands = state.command_buffer_create(device, 0, 3, -1, 3)
    both = executable(state, device, "mul", "examples/saxpy")
    barrier = 28, 13, 0

    def saxpy(factor: float, x: object, y: object) -> None:
        state.command_buffer_dispatch(commands, both, 1, COUNT // 64, 1, 1, 0, (bits(factor),), (x, y))  # type: ignore[arg-type]
        state.command_buffer_execution_barrier(commands, *barrier)

    size = 4 * COUNT
    whole = [(0, slot, None, 0, size) for slot in range(3)]
    state.command_buffer_dispatch(commands, both, 0, COUNT // 64, 1, 1, 0, (), tuple(whole))  # s2 = s0 * s1
    state.command_buffer_execution_barrier(commands, *barrier)
    saxpy(2.0, whole[0], whole[2])  # s2 += 2 s0
    saxpy(2.0, (0, 0, static, 0, -1), whole[2])  # s2 += 2 static
    saxpy(-1.0, (0, 1, None, 0, 4 * PART), (0, 2, None, 4 * PART, 4 * PART))  # s2[64:128] -= s1[:64]
    state.command_buffer_fill_buffer(commands, None, 4 * PART * 2, 4 * PART, 2, bits(9.0), 4, 0)  # s2[128:192] = 9
    state.command_buffer_execution_barrier(commands, *barrier)
    saxpy(-1.0, (0, 0, None, 4 * PART * 2, 4 * PART), (0, 2, None, 4 * PART * 2, 4 * PART))  # s2[128:192] -= s0[...]
    state.command_buffer_copy_buffer(
        commands, 0, 2, None, 4 * PART, None, 4 * PART * 3, 4 * PART, 0
    )  # s2[192:] = s0[64:128]
    state.command_buffer_update_buffer(commands, vm(struct.pack("<f", 5.0)), 0, None, 0, 4, 2)
    state.command_buffer_finalize(commands)
    return commands


def expected(a: np.ndarray, b: np.ndarray, static: np.ndarray) -> np.ndarray:
    c: np.ndarray = a * b + np.float32(2) * a
    c = c + np.float32(2) * static
    c[PART : 2 * PART] -= b[:PART]
    c[2 * PART : 3 * PART] = np.float32(9) - a[2 * PART : 3 * PART]
    c[3 * PART :] = a[PART : 2 * PART]
    c[0] = 5
    return c


def test_every_table_gets_what_the_first_gets(state: HalState, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    replays = []
    real = Replay.record
    monkeypatch.setattr(Replay, "record", lambda *arguments: replays.append(real(*arguments)))
    draw = np.random.default_rng(0)
    static = draw.integers(-9, 9, COUNT).astype(np.float32)
    commands = mixed_commands(state, device, buffer_of(state, device, static))
    kept = []  # so that no range comes again
    for _ in range(4):
        a, b = (draw.integers(-9, 9, COUNT).astype(np.float32) for _ in range(2))
        room = [buffer_of(state, device, np.zeros(3 * COUNT, np.float32)) for _ in range(3)]
        kept.append(room)
        entries = [(buffer, 4 * COUNT, 4 * COUNT) for buffer in room]  # the middle of each
        for (buffer, offset, size), data in zip(entries, (a, b), strict=False):
            buffer.subspan(offset, size).write(data.tobytes())
        run(state, device, commands, tuple(entries))
        given = array_of(state, room[2])
        np.testing.assert_allclose(given[COUNT : 2 * COUNT], expected(a, b, static), rtol=1e-6)
        assert not given[:COUNT].any() and not given[2 * COUNT :].any()
    assert len(replays) == 3


def test_wrong_tables_are_refused_as_at_first(state: HalState, device: Device) -> None:
    commands = multiply_commands(state, device, COUNT)
    good = [buffer_of(state, device, np.ones(COUNT, np.float32)) for _ in range(3)]
    for _ in range(2):
        run(state, device, commands, table(*good))
        small = buffer_of(state, device, np.ones(COUNT // 2, np.float32))
        with pytest.raises(OutOfRangeError):
            run(state, device, commands, table(good[0], small, good[2]))
        with pytest.raises(InvalidArgumentError, match="slot 2"):
            run(state, device, commands, (*table(*good[:2]), (None, 0, 0)))
        with pytest.raises(InvalidArgumentError, match="3 entries|3 binding|has 2|2 entries|slot"):
            run(state, device, commands, table(*good[:2]))
        odd = buffer_of(state, device, np.ones(2 * COUNT, np.float32))
        with pytest.raises(InvalidArgumentError, match="multiples"):
            run(state, device, commands, (*table(*good[:2]), (odd, 2, 4 * COUNT)))
        good[2] = buffer_of(state, device, np.zeros(COUNT, np.float32))
    run(state, device, commands, table(*good))
    assert array_of(state, good[2]).tolist() == [1] * COUNT


# -- one-shot commands -----------------------------------------------------------------------------


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
    state.command_buffer_dispatch(commands, both, 1, COUNT // 64, 1, 1, 0, (bits(factor),), (a, c))
    return commands


def run_once(state: HalState, device: Device, commands: ProgramCommandBuffer) -> None:
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
                run_once(state, device, commands)
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
        parts = (0, 0, buffers[1], 0, 256), (0, 0, buffers[2], SIZE - 256, -1)
        state.command_buffer_dispatch(commands, both, 1, 1, 1, 1, 0, (bits(1.0),), parts)
        state.command_buffer_finalize(commands)
        run_once(state, device, commands)
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
        run_once(state, device, commands)
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
            run_once(state, device, commands)
    buffers = [buffer_of(state, device, np.ones(COUNT, np.float32)) for _ in range(3)]
    commands = recorded(state, device, both, 1.0, buffers)
    with pytest.raises(FailedPreconditionError, match="being recorded|recording"):
        state.queue_execute(device, -1, None, None, commands, 0)
    with pytest.raises(OutOfRangeError):
        state.command_buffer_dispatch(commands, both, 7, 1, 1, 1, 0, (), ())
    state.command_buffer_finalize(commands)
    with pytest.raises(FailedPreconditionError):
        state.command_buffer_execution_barrier(commands, 28, 13, 0)
    run_once(state, device, commands)
    with pytest.raises(FailedPreconditionError, match="was submitted"):
        run_once(state, device, commands)


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
