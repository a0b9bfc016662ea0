"""Commands that are recorded for one binding table after another do what they do for the first."""

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
from pumice.runtime.modules.hal.module import HalState
from pumice.status import InvalidArgumentError, OutOfRangeError

pytestmark = pytest.mark.vulkan

COUNT = 256
PART = 64  # floats: 256 bytes, which every device binds at


@pytest.fixture(params=["pushed", "sets", "guarded"])
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
            run(state, device, commands, (*table(*good[:2]), (odd, 4, 4 * COUNT)))
        good[2] = buffer_of(state, device, np.zeros(COUNT, np.float32))
    run(state, device, commands, table(*good))
    assert array_of(state, good[2]).tolist() == [1] * COUNT
