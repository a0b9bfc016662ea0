"""Command buffers against a NumPy model, and every state they can be in."""

from __future__ import annotations

import gc
import struct
import time
import weakref
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.devices.host_buffers import HOST, host_buffer, submitted
from support.waiting import in_threads

from pumice import shaders
from pumice.hal.command_buffer import BindingSlot, CommandBufferState
from pumice.hal.memory import BufferUsage
from pumice.hal_vulkan.commands.command_buffer import CommandBuffer
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.plan import PlanOptions
from pumice.hal_vulkan.memory.buffer import Buffer
from pumice.hal_vulkan.pipelines.pipeline import ComputePipeline
from pumice.hal_vulkan.vulkan.live_objects import live_objects
from pumice.status import (
    ClosedError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    PermissionDeniedError,
    PumiceError,
    ResourceExhaustedError,
)

pytestmark = pytest.mark.vulkan
SIZE = 700


@pytest.fixture(params=["push", "sets"])
def device(driver: Driver, request: pytest.FixtureRequest) -> Iterator[Device]:
    """A device that pushes descriptors where it can, and one that binds sets."""
    with Device(driver, options=PlanOptions(push_descriptors=None if request.param == "push" else False)) as fresh:
        yield fresh


def floats(device: Device, *values: float) -> Buffer:
    return host_buffer(device, np.array(values, np.float32).tobytes())


def run(device: Device, commands: CommandBuffer, bindings: list[Buffer] | None = None) -> None:
    device.compute_queue.submit((commands,), bindings=bindings)
    device.wait_idle(10)


def mul(device: Device) -> ComputePipeline:
    return device.create_pipeline(shaders.spirv("mul"))


# ---- against a model ------------------------------------------------------------------------------------------------

ranges = st.tuples(st.integers(0, SIZE), st.integers(0, SIZE))
commands_drawn = st.lists(
    st.one_of(
        st.tuples(
            st.just("fill"), st.integers(0, 1), ranges, st.binary(min_size=4, max_size=4), st.sampled_from([1, 2, 4])
        ),
        st.tuples(st.just("update"), st.integers(0, 1), ranges, st.binary(max_size=40), st.just(0)),
        st.tuples(st.just("copy"), st.integers(0, 3), ranges, st.integers(0, SIZE), st.just(0)),
        st.tuples(st.just("barrier"), st.just(0), st.just((0, 0)), st.just(b""), st.just(0)),
    ),
    min_size=1,
    max_size=14,
)


@pytest.mark.parametrize("slots", [False, True], ids=["buffers", "slots"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=commands_drawn, base=st.integers(0, 9), seed=st.integers(0, 1 << 30))
def test_fills_updates_and_copies_at_any_byte(
    device: Device, slots: bool, drawn: list[tuple[str, int, tuple[int, int], object, int]], base: int, seed: int
) -> None:
    """Two buffers that start at an odd byte of larger ones; what lies around them must stay."""
    source = np.random.default_rng(seed)
    wholes = [source.integers(0, 256, SIZE + 32, np.uint8) for _ in range(2)]
    buffers = [host_buffer(device, whole.tobytes()) for whole in wholes]
    spans = [buffer.subspan(base, SIZE) for buffer in buffers]
    model = [whole[base : base + SIZE] for whole in wholes]
    targets: list[Buffer | BindingSlot] = [BindingSlot(i) for i in range(2)] if slots else list(spans)
    commands = device.create_command_buffer(binding_capacity=2 if slots else 0)
    commands.begin()
    for what, which, (offset, size), extra, length in drawn:
        size = min(size, SIZE - offset)
        commands.execution_barrier()
        if what == "fill":
            assert isinstance(extra, bytes)
            pattern = extra[:length]
            size -= size % length
            commands.fill(targets[which], pattern, offset, size)
            model[which][offset : offset + size] = np.frombuffer(pattern * (size // length), np.uint8)
        elif what == "update":
            assert isinstance(extra, bytes)
            data = extra[: SIZE - offset]
            commands.update(targets[which], data, offset)
            model[which][offset : offset + len(data)] = np.frombuffer(data, np.uint8)
        elif what == "copy":
            assert isinstance(extra, int)
            source_index, target_index = which // 2, which % 2
            size = min(size, SIZE - extra)
            overlap = source_index == target_index and 0 < abs(offset - extra) < size
            if overlap:
                if not slots:
                    with pytest.raises(InvalidArgumentError, match="overlap"):
                        commands.copy(
                            targets[source_index],
                            targets[target_index],
                            size,
                            source_offset=offset,
                            target_offset=extra,
                        )
                continue
            commands.copy(targets[source_index], targets[target_index], size, source_offset=offset, target_offset=extra)
            model[target_index][extra : extra + size] = model[source_index][offset : offset + size]
    commands.end()
    run(device, commands, spans if slots else None)
    for buffer, whole in zip(buffers, wholes, strict=True):
        np.testing.assert_array_equal(np.frombuffer(buffer.read(), np.uint8), whole)
        buffer.close()
    commands.close()


@pytest.fixture(scope="module", params=["push", "sets"])
def shared_device(driver: Driver, request: pytest.FixtureRequest) -> Iterator[Device]:
    """One for many small tests: each closes its buffer and its commands, and waits for the device before."""
    with Device(driver, options=PlanOptions(push_descriptors=None if request.param == "push" else False)) as opened:
        with host_buffer(opened, bytes(8)) as buffer, opened.create_command_buffer() as commands:
            # The pipelines and pools that a device keeps from its first commands on.
            commands.begin().update(buffer, b"ab", 1)
            commands.fill(buffer, b"\x5a", 1, 2)
            run(opened, commands.end())
        yield opened


@pytest.mark.sample(40)
@pytest.mark.parametrize("offset", range(5))
@pytest.mark.parametrize("size", [1, 2, 3, 5, 255, 256, 257, 65535, 65536, 65537, 200_001])
def test_fills_and_updates_of_every_size(shared_device: Device, offset: int, size: int) -> None:
    device = shared_device
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()
    with device.create_buffer(size + 8, memory_type=HOST) as buffer, device.create_command_buffer() as commands:
        buffer.write(b"\xcd" * (size + 8))
        commands.begin().update(buffer, data, offset)
        run(device, commands.end())
        assert buffer.read() == b"\xcd" * offset + data + b"\xcd" * (8 - offset)
        commands.begin().fill(buffer, b"\x5a", offset, size)
        run(device, commands.end())
        assert buffer.read() == b"\xcd" * offset + b"\x5a" * size + b"\xcd" * (8 - offset)


def test_fills_of_neighbouring_bytes_need_no_barrier(device: Device) -> None:
    """The ranges do not overlap, so they may run at the same time, though they share words."""
    buffer = host_buffer(device, bytes(999))
    with submitted(device) as commands:
        for index in range(999):
            commands.fill(buffer, bytes([index % 251]), index, 1)
    assert buffer.read() == bytes(index % 251 for index in range(999))


def test_overlap_is_refused_to_the_byte(device: Device) -> None:
    buffer = device.create_buffer(100, memory_type=HOST)
    first, second = buffer.subspan(0, 60), buffer.subspan(40)
    with submitted(device) as commands:
        for call in (
            lambda: commands.copy(buffer, buffer, 10, source_offset=0, target_offset=9),
            lambda: commands.copy(buffer, buffer, 10, source_offset=9, target_offset=0),
            lambda: commands.copy(first, second, 41),
            lambda: commands.copy(second, first, 41),
        ):
            with pytest.raises(InvalidArgumentError, match="overlap by"):
                call()
        commands.copy(buffer, buffer, 10, source_offset=0, target_offset=10)
        commands.execution_barrier()
        commands.copy(first, second, 40)
        commands.execution_barrier()
        commands.copy(buffer, buffer, 0)
        commands.copy(buffer, buffer)
        commands.copy(first, buffer.subspan(20, 40), 40, source_offset=20)
    with device.create_command_buffer(binding_capacity=1) as commands:
        commands.begin().copy(BindingSlot(0, 0, 50), BindingSlot(0, 40), 20)
        commands.end()
        commands_slots = commands
        # With offset 0 of both entries 40 bytes apart 20 bytes fit; the table decides, so the check is at submission.
        run(device, commands_slots, [buffer])
        commands.begin().copy(BindingSlot(0, 0, 50), BindingSlot(0, 40), 41)
        commands.end()
        with pytest.raises(InvalidArgumentError, match="overlap by"):
            device.compute_queue.submit((commands,), bindings=[buffer])


# ---- dispatches -----------------------------------------------------------------------------------------------------


def test_indirect_dispatch_reads_its_counts_when_it_runs(any_device: Device) -> None:
    device = any_device
    pipeline = mul(device)
    n = 64 * 9
    a, b, out = (host_buffer(device, np.full(n, value, np.float32).tobytes()) for value in (3, 5, 0))
    parameters = host_buffer(device, struct.pack("<7I", 99, 99, 0, 0, 0, 99, 99))
    with device.create_command_buffer(timing=True) as commands:
        commands.begin()
        commands.update(parameters, struct.pack("<3I", 4, 1, 1), 8)
        commands.execution_barrier()
        commands.dispatch_indirect(pipeline, [a.subspan(0, 64 * 16), b, out], parameters, 8)
        run(device, commands.end())
        assert commands.timings()[0].groups is None
    result = np.frombuffer(out.read(), np.float32)
    # The kernel strides over the grid, and the shortest array counts.
    np.testing.assert_array_equal(result, np.where(np.arange(n) < 256, 15, 0))
    parameters.write(struct.pack("<3I", 0, 1, 1), 16)
    out.write(bytes(4 * n))
    with submitted(device) as commands:
        commands.dispatch_indirect(pipeline, [a, b, out], parameters, 16)
    assert out.read() == bytes(4 * n)


def test_wrong_indirect_parameters(device: Device) -> None:
    pipeline = mul(device)
    buffers = [floats(device, 1, 2, 3, 4) for _ in range(3)]
    small, plain = device.create_buffer(16), device.create_buffer(16, usage=BufferUsage.TRANSFER)
    with device.create_command_buffer() as commands, device.create_command_buffer(binding_capacity=1) as slots:
        commands.begin()
        slots.begin()
        for offset in (5, 8, -4, 1 << 60):
            with pytest.raises(OutOfRangeError, match="indirect parameters"):
                commands.dispatch_indirect(pipeline, buffers, small, offset)
        for offset in (1, 2, 3):
            with pytest.raises(InvalidArgumentError, match="multiple of 4"):
                commands.dispatch_indirect(pipeline, buffers, small, offset)
        with pytest.raises(PermissionDeniedError, match="INDIRECT"):
            commands.dispatch_indirect(pipeline, buffers, plain)
        with pytest.raises(InvalidArgumentError, match="slot"):
            commands.dispatch_indirect(pipeline, buffers, BindingSlot(0))
        with pytest.raises(OutOfRangeError, match="slot 3"):
            slots.dispatch_indirect(pipeline, buffers, BindingSlot(3))
        slots.dispatch_indirect(pipeline, buffers, BindingSlot(0, 4))
        small.write(struct.pack("<4I", 77, 1, 1, 1))
        run(device, slots.end(), [small])
    assert np.frombuffer(buffers[2].read(), np.float32).tolist() == [1, 4, 9, 16]


def test_wrong_dispatches(device: Device) -> None:
    pipeline, saxpy = mul(device), device.create_pipeline(shaders.spirv("examples/saxpy"))
    buffers = [floats(device, *range(100)) for _ in range(3)]
    most = device.profile.limits.max_compute_work_group_count
    with device.create_command_buffer() as commands, device.create_command_buffer(binding_capacity=1) as slots:
        for each in (commands, slots):
            each.begin()
            for count in (0, 2, 4):
                with pytest.raises(InvalidArgumentError, match="takes 3 buffer"):
                    each.dispatch(pipeline, (buffers * 2)[:count], (1, 1, 1))
            for groups in ((-1, 1, 1), (1, -1, 1), (1, 1, -1)):
                with pytest.raises(InvalidArgumentError, match="negative"):
                    each.dispatch(pipeline, buffers, groups)
            for axis in range(3):
                groups = tuple(most[i] + 1 if i == axis else 1 for i in range(3))
                with pytest.raises(ResourceExhaustedError, match="workgroups are more"):
                    each.dispatch(pipeline, buffers, groups)  # type: ignore[arg-type]
            for push in (b"x", bytes(4), bytes(8)):
                with pytest.raises(InvalidArgumentError, match="takes 0 bytes"):
                    each.dispatch(pipeline, buffers, (1, 1, 1), push)
            for push in (b"", bytes(3), bytes(8)):
                with pytest.raises(InvalidArgumentError, match="takes 4 bytes"):
                    each.dispatch(saxpy, buffers[:2], (1, 1, 1), push)
                with pytest.raises(InvalidArgumentError, match="takes 4 bytes"):
                    each.dispatch_indirect(saxpy, buffers[:2], buffers[2], 0, push)
        with pytest.raises(InvalidArgumentError, match="multiples of"):
            commands.dispatch(pipeline, [buffers[0].subspan(4), *buffers[1:]], (1, 1, 1))
        with pytest.raises(OutOfRangeError, match="at least one element"):
            commands.dispatch(pipeline, [buffers[0].subspan(0, 0), *buffers[1:]], (1, 1, 1))
        with pytest.raises(InvalidArgumentError, match="no binding slots"):
            commands.dispatch(pipeline, [BindingSlot(0), *buffers[1:]], (1, 1, 1))
        bound = saxpy.bind(buffers[:2])
        with pytest.raises(InvalidArgumentError, match="layout differs"):
            commands.dispatch(pipeline, bound, (1, 1, 1))
        bound.close()
        # After every refusal the recording goes on.
        commands.dispatch(pipeline, buffers, (2, 1, 1))
        commands.dispatch(saxpy, buffers[:2], (0, 1, 1), struct.pack("<f", 2))
        run(device, commands.end())
    np.testing.assert_array_equal(np.frombuffer(buffers[2].read(), np.float32), np.arange(100, dtype=np.float32) ** 2)


def test_push_constants_are_those_of_each_dispatch(device: Device) -> None:
    pipeline = device.create_pipeline(shaders.spirv("examples/saxpy"))
    other = mul(device)
    x = floats(device, *([1.0] * 64))
    ys = [floats(device, *([0.0] * 64)) for _ in range(6)]
    push = bytearray(4)
    with submitted(device) as commands:
        for index, y in enumerate(ys):
            struct.pack_into("<f", push, 0, index // 2)  # also twice the same, also the same object changed
            commands.dispatch(pipeline, [x, y], (1, 1, 1), push)  # type: ignore[arg-type]
            if index == 3:
                commands.dispatch(other, [x, x, floats(device, 0)], (1, 1, 1))
    assert [np.frombuffer(y.read(), np.float32)[5] for y in ys] == [0, 0, 1, 1, 2, 2]


def test_a_barrier_orders_dependent_dispatches(device: Device) -> None:
    pipeline = mul(device)
    x, two = floats(device, *([1.0] * 256)), floats(device, *([2.0] * 256))
    y = floats(device, *([0.0] * 256))
    with submitted(device) as commands:
        for _ in range(10):
            commands.dispatch(pipeline, [x, two, y], (4, 1, 1))
            commands.execution_barrier()
            commands.copy(y, x)
            commands.execution_barrier()
    assert set(np.frombuffer(x.read(), np.float32)) == {1024.0}


def test_nothing_recorded_is_fine(device: Device) -> None:
    with device.create_command_buffer() as commands:
        run(device, commands.begin().end())
    with device.create_command_buffer(binding_capacity=2) as commands:
        commands.begin().end()
        run(device, commands, [floats(device, 1), floats(device, 2)])


# ---- slots ----------------------------------------------------------------------------------------------------------


def test_a_table_for_each_submission(any_device: Device) -> None:
    device = any_device
    pipeline = mul(device)
    constant = floats(device, *([3.0] * 8))
    commands = device.create_command_buffer(binding_capacity=2, name="replayed")
    commands.begin()
    commands.dispatch(pipeline, [BindingSlot(0, 0, 32), constant, BindingSlot(1)], (1, 1, 1))
    commands.execution_barrier()
    commands.fill(BindingSlot(1, 4), b"\0", 1, 2)
    commands.end()
    tables = []
    for index in range(40):  # more than are remembered
        table = [floats(device, *(float(index + i) for i in range(12))), floats(device, *([-1.0] * 8))]
        tables.append(table)
    for _ in range(2):
        for index in [*range(40), 39, 0, 39]:
            tables[index][1].write(np.full(8, -1, np.float32).tobytes())
            device.compute_queue.submit((commands,), bindings=tables[index])
        device.wait_idle(10)
        for index, (_, out) in enumerate(tables):
            expected = 3.0 * np.arange(index, index + 8, dtype=np.float32)
            raw = bytearray(expected.tobytes())
            raw[5:7] = b"\0\0"
            assert out.read() == bytes(raw)


def test_wrong_tables(device: Device) -> None:
    buffers = [floats(device, 1, 2, 3, 4) for _ in range(3)]
    pipeline = mul(device)
    commands = device.create_command_buffer(binding_capacity=2, name="two slots")
    commands.begin()
    for slot in (2, 99, -1):
        for call in (
            lambda s=slot: commands.fill(BindingSlot(s), b"\0"),
            lambda s=slot: commands.update(BindingSlot(s), b"1"),
            lambda s=slot: commands.copy(BindingSlot(s), buffers[0]),
            lambda s=slot: commands.copy(buffers[0], BindingSlot(s)),
            lambda s=slot: commands.dispatch(pipeline, [BindingSlot(s), *buffers[:2]], (1, 1, 1)),
        ):
            with pytest.raises(OutOfRangeError, match=f"slot {slot} is outside the binding table of 2"):
                call()
    commands.fill(BindingSlot(1, 4, 8), b"\1", 2)
    commands.end()
    queue = device.compute_queue
    for table in (None, [], buffers[:1]):
        with pytest.raises(InvalidArgumentError, match="2 binding slot"):
            queue.submit((commands,), bindings=table)
    with pytest.raises(OutOfRangeError, match="subspan"):
        queue.submit((commands,), bindings=[buffers[0], buffers[1].subspan(8)])
    before = live_objects()
    for _ in range(20):
        with pytest.raises(OutOfRangeError):
            queue.submit((commands,), bindings=[buffers[0], buffers[1].subspan(8)])
    assert live_objects() == before
    queue.submit((commands,), bindings=buffers)
    device.wait_idle(5)
    assert buffers[1].read(6, 6) == b"\1" * 6
    with device.create_command_buffer() as plain:
        plain.begin().end()
        with pytest.raises(InvalidArgumentError, match="no binding slots"):
            queue.submit((plain,), bindings=buffers)
        # In one submission the table goes to those that have slots.
        queue.submit((plain, commands), bindings=buffers)
    buffers[1].close()
    with pytest.raises(ClosedError, match="binding table"):
        queue.submit((commands,), bindings=buffers)


def test_slots_need_a_capacity(device: Device) -> None:
    buffer = device.create_buffer(16)
    with pytest.raises(InvalidArgumentError, match="negative"):
        device.create_command_buffer(binding_capacity=-1)
    with device.create_command_buffer() as commands:
        commands.begin()
        for call in (
            lambda: commands.fill(BindingSlot(0), b"\0"),
            lambda: commands.update(BindingSlot(0), b"\0"),
            lambda: commands.copy(BindingSlot(0), buffer),
            lambda: commands.copy(buffer, BindingSlot(0)),
        ):
            with pytest.raises(InvalidArgumentError, match="binding_capacity"):
                call()
        with pytest.raises(InvalidArgumentError, match="takes a buffer"):
            commands.fill(b"no buffer", b"\0")  # type: ignore[arg-type]


def test_what_was_recorded_for_slots_is_captured(device: Device) -> None:
    target = host_buffer(device, bytes(16))
    pipeline = mul(device)
    a, b, out = floats(device, 2), floats(device, 3), floats(device, 0)
    data, bindings = bytearray(b"captured"), [a, b, BindingSlot(0)]
    with device.create_command_buffer(binding_capacity=2) as commands:
        commands.begin()
        commands.update(BindingSlot(1), data)  # type: ignore[arg-type]
        commands.dispatch(pipeline, bindings, (1, 1, 1))
        commands.end()
        data[:] = b"too late"
        bindings[0] = b
        run(device, commands, [out, target])
    assert target.read(0, 8) == b"captured" and np.frombuffer(out.read(), np.float32)[0] == 6


def test_a_one_shot_with_slots_runs_once(device: Device) -> None:
    table = [floats(device, 1)]
    with device.create_command_buffer(one_shot=True, binding_capacity=1) as commands:
        commands.begin().fill(BindingSlot(0), b"\7")
        commands.end()
        run(device, commands, table)
        with pytest.raises(FailedPreconditionError, match="one-shot"):
            device.compute_queue.submit((commands,), bindings=table)


# ---- states ---------------------------------------------------------------------------------------------------------


def every_command(device: Device, commands: CommandBuffer) -> list[Callable[[], object]]:
    buffer = device.create_buffer(16, memory_type=HOST)
    other = device.create_buffer(16, memory_type=HOST)
    pipeline = mul(device)
    return [
        lambda: commands.fill(buffer, b"\0"),
        lambda: commands.update(buffer, b"\0"),
        lambda: commands.copy(buffer, other),
        lambda: commands.dispatch(pipeline, [buffer, other, other], (1, 1, 1)),
        lambda: commands.dispatch_indirect(pipeline, [buffer, other, other], buffer),
        commands.execution_barrier,
        lambda: commands.begin_label("label"),
        commands.end_label,
        commands.end,
    ]


@pytest.mark.parametrize("capacity", [0, 1])
def test_commands_outside_begin_and_end(device: Device, capacity: int) -> None:
    commands = device.create_command_buffer(binding_capacity=capacity, name="stateful")
    calls = every_command(device, commands)
    assert commands.state is CommandBufferState.INITIAL and "initial" in repr(commands)
    for call in calls:
        with pytest.raises(FailedPreconditionError, match="stateful is initial"):
            call()
    with pytest.raises(FailedPreconditionError, match="stateful is initial"):
        device.compute_queue.submit((commands,), bindings=[device.create_buffer(4)] * capacity)
    commands.begin()
    with pytest.raises(FailedPreconditionError, match="being recorded"):
        commands.begin()
    with pytest.raises(FailedPreconditionError, match="stateful is recording"):
        device.compute_queue.submit((commands,), bindings=[device.create_buffer(4)] * capacity)
    commands.end()
    for call in calls:
        with pytest.raises(FailedPreconditionError, match="stateful is executable"):
            call()
    commands.close()
    commands.close()
    for call in [*calls, commands.begin]:
        with pytest.raises(ClosedError, match="stateful was closed"):
            call()
    with pytest.raises(ClosedError, match="stateful was closed"):
        device.compute_queue.submit((commands,))


def test_a_one_shot_runs_once(device: Device) -> None:
    buffer = host_buffer(device, bytes(8))
    gate = device.create_semaphore()
    commands = device.create_command_buffer(one_shot=True, name="once")
    queue = device.compute_queue
    commands.begin().fill(buffer, b"\1")
    queue.submit((commands.end(),))
    with pytest.raises(FailedPreconditionError, match="once is one-shot and was submitted"):
        queue.submit((commands,))
    with pytest.raises(FailedPreconditionError, match="one-shot"):
        queue.submit((commands,), waits=((gate, 1),))
    device.wait_idle(5)
    with pytest.raises(FailedPreconditionError, match="one-shot"):
        queue.submit((commands,))
    # Recorded again it runs again, also while the run before is still in flight.
    big = device.create_buffer(32 << 20)
    for value in range(2, 12):
        queue.fill(big, b"\0")
        commands.begin().fill(buffer, bytes([value]), 0, 4)
        queue.submit((commands.end(),))
    device.wait_idle(10)
    device.retire()
    assert buffer.read() == b"\x0b" * 4 + b"\1" * 4
    with pytest.raises(FailedPreconditionError, match="one-shot"):
        queue.submit((commands, commands))
    commands.begin().end()
    with pytest.raises(FailedPreconditionError, match="one-shot"):
        queue.submit((commands, commands))
    queue.submit((commands,))


def test_a_one_shot_held_back_is_taken(device: Device) -> None:
    buffer = host_buffer(device, bytes(8))
    gate, done = device.create_semaphore(), device.create_semaphore()
    commands = device.create_command_buffer(one_shot=True, name="once")
    commands.begin().fill(buffer, b"\1")
    device.compute_queue.submit((commands.end(),), waits=((gate, 1),), signals=((done, 1),))
    for waits in ((), ((gate, 1),)):
        with pytest.raises(FailedPreconditionError, match="one-shot"):
            device.compute_queue.submit((commands,), waits=waits)
    gate.signal(1)
    done.wait(1, 5)
    assert buffer.read() == b"\1" * 8
    with pytest.raises(FailedPreconditionError, match="one-shot"):
        device.compute_queue.submit((commands,))


def test_a_refused_submission_takes_nothing(device: Device) -> None:
    full = device.create_semaphore(9)
    with device.create_command_buffer(one_shot=True) as first, device.create_command_buffer() as second:
        first.begin().end()
        for signals in (((full, 9),), ((full, 5),)):
            with pytest.raises(FailedPreconditionError):
                device.compute_queue.submit((first,), signals=signals)
        with pytest.raises(FailedPreconditionError):
            device.compute_queue.submit((first, second))
        real = device.fn.vkQueueSubmit
        device.fn.vkQueueSubmit = lambda *_: -2
        for commands in ((first,), (first, first)):
            with pytest.raises((ResourceExhaustedError, FailedPreconditionError)):
                device.compute_queue.submit(commands)
        device.fn.vkQueueSubmit = real
        assert first.state is CommandBufferState.EXECUTABLE
        device.compute_queue.submit((first,), signals=((full, 10),))
        full.wait(10, 5)
        assert device.compute_queue.is_idle


def test_reusable_ones_run_while_pending(device: Device) -> None:
    buffer = host_buffer(device, bytes(4))
    pipeline = device.create_pipeline(shaders.spirv("examples/saxpy"))
    one = floats(device, 1)
    with device.create_command_buffer() as commands:
        commands.begin().dispatch(pipeline, [one, buffer], (1, 1, 1), struct.pack("<f", 1))
        commands.end()
        for _ in range(300):
            device.compute_queue.submit((commands,))
        device.compute_queue.submit((commands,) * 20)
        device.wait_idle(20)
    assert np.frombuffer(buffer.read(), np.float32)[0] == 320


def test_recording_again_while_pending(device: Device) -> None:
    buffer = host_buffer(device, bytes(64))
    with device.create_command_buffer() as commands:
        for value in range(50):
            commands.begin().fill(buffer, bytes([value]), value, 1)
            device.compute_queue.submit((commands.end(),))
        device.wait_idle(5)
    assert buffer.read(0, 50) == bytes(range(50))


# ---- closed resources -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before end", "after end", "after a run"])
@pytest.mark.parametrize("what", ["filled", "copied", "bound", "parameters", "pipeline", "given sets", "subspan"])
def test_what_was_closed_is_found_at_submission(device: Device, when: str, what: str) -> None:
    pipeline = mul(device)
    buffers = [floats(device, *range(4)) for _ in range(6)]
    buffers[5].write(struct.pack("<3I", 1, 1, 1))
    bound = pipeline.bind(buffers[1:4])
    commands = device.create_command_buffer(name="recorded")
    commands.begin()
    victim: Buffer | ComputePipeline
    if what == "filled":
        commands.fill(buffers[0], b"\1")
        victim = buffers[0]
    elif what == "copied":
        commands.copy(buffers[0], buffers[1])
        victim = buffers[0]
    elif what == "bound":
        commands.dispatch(pipeline, buffers[1:4], (1, 1, 1))
        victim = buffers[2]
    elif what == "parameters":
        commands.dispatch_indirect(pipeline, buffers[1:4], buffers[5])
        victim = buffers[5]
    elif what == "given sets":
        commands.dispatch(pipeline, bound, (1, 1, 1))
        victim = buffers[2]
    elif what == "subspan":
        commands.fill(buffers[0].subspan(4, 8), b"\1")
        victim = buffers[0]
    else:
        commands.dispatch(pipeline, buffers[1:4], (1, 1, 1))
        victim = pipeline
    if when == "before end":
        victim.close()
        with pytest.raises(ClosedError, match=r"recorded cannot run: .*closed; record it again"):
            commands.end()
        with pytest.raises(FailedPreconditionError):
            device.compute_queue.submit((commands,))
    else:
        commands.end()
    if when == "after a run":
        run(device, commands)
    victim.close()
    for _ in range(2 if when != "before end" else 0):
        with pytest.raises(ClosedError, match=r"recorded cannot run: .*closed; record it again"):
            device.compute_queue.submit((commands,))
    commands.begin().end()
    run(device, commands)


def test_what_is_closed_cannot_be_recorded(device: Device) -> None:
    pipeline, dead = mul(device), mul(device)
    buffers = [floats(device, 1) for _ in range(3)]
    closed = floats(device, 1)
    given, given_closed = pipeline.bind([*buffers[:2], closed]), pipeline.bind(buffers)
    closed.close()
    dead.close()
    given_closed.close()
    with submitted(device) as commands:
        for call in (
            lambda: commands.fill(closed, b"\1"),
            lambda: commands.update(closed, b"\1"),
            lambda: commands.copy(closed, buffers[0]),
            lambda: commands.copy(buffers[0], closed),
            lambda: commands.dispatch(pipeline, [*buffers[:2], closed], (1, 1, 1)),
            lambda: commands.dispatch(dead, buffers, (1, 1, 1)),
            lambda: commands.dispatch(pipeline, given, (1, 1, 1)),
            lambda: commands.dispatch(pipeline, given_closed, (1, 1, 1)),
            lambda: commands.dispatch_indirect(pipeline, buffers, closed),
            lambda: pipeline.bind([*buffers[:2], closed]),
            lambda: dead.bind(buffers),
        ):
            with pytest.raises(ClosedError):
                call()
        commands.dispatch(pipeline, buffers, (1, 1, 1))


def test_closing_things_in_flight(device: Device) -> None:
    """Everything that a submission uses is closed at once behind it; nothing of it is given back before it is done."""
    pipeline = mul(device)
    out = host_buffer(device, bytes(4 * 64))
    for round_ in range(30):
        a, b = floats(device, *([float(round_)] * 64)), floats(device, *([2.0] * 64))
        own = device.create_pipeline(shaders.spirv("mul")) if round_ % 10 == 0 else pipeline
        commands = device.create_command_buffer()
        commands.begin().dispatch(own, [a, b, out], (1, 1, 1))
        done = device.create_semaphore()
        device.compute_queue.submit((commands.end(),), signals=((done, 1),))
        commands.close()
        a.close()
        b.close()
        if own is not pipeline:
            own.close()
        junk = floats(device, *([777.0] * 64))
        done.wait(1, 5)
        done.close()
        junk.close()
        assert set(np.frombuffer(out.read(), np.float32)) == {2.0 * round_}
    out.close()
    device.wait_idle()
    device.retire()
    assert device.allocator.statistics().allocations == 0


def test_sets_that_a_recording_names_outlive_their_close(device: Device) -> None:
    """Closeable given sets must not let the cache write other buffers into a set that recorded commands name."""
    object.__setattr__(device.plan, "descriptor_pool_size", 8)
    pipeline = mul(device)
    a, b, out = floats(device, 3), floats(device, 5), floats(device, 0)
    bound = pipeline.bind([a, b, out])
    commands = device.create_command_buffer()
    commands.begin().dispatch(pipeline, bound, (1, 1, 1))
    commands.dispatch(pipeline, bound, (1, 1, 1))
    commands.end()
    bound.close()
    layout = pipeline.set_layouts[0]
    pool = [device.create_buffer(16) for _ in range(60)]
    for first in pool:
        for second in pool[:10]:
            pipeline.bind([first, second, first]).close()  # far more than the cache holds
    assert len(layout._sets) < 600
    run(device, commands)
    assert np.frombuffer(out.read(), np.float32)[0] == 15


# ---- labels and odds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("capacity", [0, 1])
def test_labels_do_not_disturb(device: Device, capacity: int) -> None:
    buffer = host_buffer(device, bytes(4))
    with device.create_command_buffer(binding_capacity=capacity) as commands:
        commands.begin()
        commands.begin_label("outer ümlaut")
        commands.begin_label("inner")
        commands.fill(buffer, b"\4")
        commands.end_label()
        commands.end_label()
        with pytest.raises(FailedPreconditionError, match="no open label"):
            commands.end_label()
        commands.end()
        run(device, commands, [buffer] * capacity or None)
        run(device, commands, [buffer] * capacity or None)
    assert buffer.read() == b"\4" * 4


def test_native_failures_while_recording(device: Device) -> None:
    buffer = device.create_buffer(16)
    before = live_objects()
    for name, make in (
        ("vkBeginCommandBuffer", lambda c: c.begin()),
        ("vkEndCommandBuffer", lambda c: c.begin().end()),
        ("vkCreateCommandPool", lambda c: c.begin()),
        ("vkAllocateCommandBuffers", lambda c: c.begin()),
    ):
        # The free list would serve the pool: empty it.
        kept, device.command_context._free = device.command_context._free, {}
        commands = device.create_command_buffer()
        real = getattr(device.fn, name)
        setattr(device.fn, name, lambda *_: -2)
        with pytest.raises(ResourceExhaustedError):
            make(commands)
        setattr(device.fn, name, real)
        assert commands.state is CommandBufferState.INITIAL
        commands.begin().fill(buffer, b"\1")
        run(device, commands.end())
        if name in ("vkBeginCommandBuffer", "vkEndCommandBuffer"):  # the pool is its own by now
            # Recorded before, and failing now: what was recorded is gone, and the next attempt is a fresh one.
            setattr(device.fn, name, lambda *_: -2)
            with pytest.raises(ResourceExhaustedError):
                make(commands)
            setattr(device.fn, name, real)
            with pytest.raises(FailedPreconditionError):
                device.compute_queue.submit((commands,))
            commands.begin().fill(buffer, b"\1")
            run(device, commands.end())
        commands.close()
        device.retire()
        for natives in device.command_context._free.values():
            for native in natives:
                device.destroy("command pool", native.pool)
        device.command_context._free = kept
    assert live_objects() == before


def test_recording_in_many_threads(device: Device) -> None:
    pipeline = mul(device)

    def work(seed: int) -> None:
        a, b, out = (
            floats(device, *([float(seed)] * 64)),
            floats(device, *([2.0] * 64)),
            floats(device, *([0.0] * 64)),
        )
        for _ in range(10):
            with device.create_command_buffer() as commands:
                commands.begin()
                for _ in range(50):
                    commands.dispatch(pipeline, [a, b, out], (1, 1, 1))
                commands.end()
                done = device.create_semaphore()
                device.compute_queue.submit((commands,), signals=((done, 1),))
                done.wait(1, 20)
                done.close()
            assert set(np.frombuffer(out.read(), np.float32)) == {2.0 * seed}

    start = time.monotonic()
    in_threads(work, range(6))
    assert time.monotonic() - start < 30


def test_a_slotted_one_from_many_threads(device: Device) -> None:
    commands = device.create_command_buffer(binding_capacity=1)
    commands.begin().fill(BindingSlot(0), b"\6", 1, 3)
    commands.end()

    def work() -> None:
        for _ in range(60):
            buffer = host_buffer(device, bytes(8))
            done = device.create_semaphore()
            device.compute_queue.submit((commands,), signals=((done, 1),), bindings=[buffer])
            done.wait(1, 10)
            assert buffer.read() == b"\0\6\6\6\0\0\0\0"
            done.close()
            buffer.close()

    in_threads(lambda _: work(), range(6))


def test_errors_are_pumice_errors(device: Device) -> None:
    with device.create_command_buffer() as commands, pytest.raises(PumiceError):
        commands.end()


def test_closing_a_buffer_leaves_what_is_recorded_for_other_tables(device: Device) -> None:
    kept, other, unrelated = (host_buffer(device, bytes(16)) for _ in range(3))
    pipeline, fixed = mul(device), floats(device, *range(4))
    with device.create_command_buffer(binding_capacity=1) as commands:
        commands.begin().dispatch(pipeline, [fixed, fixed, BindingSlot(0)], (1, 1, 1))
        commands.end()
        run(device, commands, [kept])
        recording = commands.prepare([kept])
        run(device, commands, [other])
        for closed in (unrelated, other):
            closed.close()
            assert commands.prepare([kept]) is recording
        run(device, commands, [kept])
        assert np.frombuffer(kept.read(), np.float32).tolist() == [0, 1, 4, 9]
        with pytest.raises(ClosedError):
            commands.prepare([other])
        fixed.close()
        with pytest.raises(ClosedError, match="a buffer that it uses was closed"):
            commands.prepare([kept])
        pipeline.close()


def test_recordings_of_a_table_keep_none_of_its_buffers(device: Device) -> None:
    pipeline = mul(device)
    with device.create_command_buffer(binding_capacity=3) as commands:
        commands.begin().dispatch(pipeline, [BindingSlot(i) for i in range(3)], (1, 1, 1))
        commands.end()
        table = [floats(device, *range(4)) for _ in range(3)]
        references = [weakref.ref(buffer) for buffer in table]
        run(device, commands, table)
        for buffer in table:
            buffer.close()
        del table, buffer
        device.retire()
        gc.collect()
        assert [reference() for reference in references] == [None] * 3


@pytest.mark.parametrize("name", ["vkBeginCommandBuffer", "vkEndCommandBuffer"])
def test_a_dispatch_that_fails_to_be_recorded_leaves_nothing_recorded(
    device: Device, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    pipeline, buffers = mul(device), [floats(device, *range(4)) for _ in range(3)]
    ranges = b"".join(buffer.descriptor for buffer in buffers)
    infos = None if pipeline.push_template is None else ranges

    def record() -> None:
        sets = () if infos is not None else pipeline.pin_sets(buffers, ranges)
        commands.record_dispatch(pipeline, sets, infos, (1, 1, 1), b"")

    commands = device.create_command_buffer()
    for _ in range(2):  # in place, and with fresh native commands
        record()
        run(device, commands)
        with monkeypatch.context() as patch:
            patch.setattr(device.fn, name, lambda *_: -2)
            with pytest.raises(ResourceExhaustedError):
                record()
        assert commands.state is CommandBufferState.INITIAL
        with pytest.raises(FailedPreconditionError):
            device.compute_queue.submit((commands,))
    commands.close()
    device.retire()
    assert all(one.pins == 0 for layout in pipeline.set_layouts for one in layout._sets.values())


def test_threads_prepare_tables_at_the_same_time(device: Device) -> None:
    pipeline = mul(device)
    tables = [[floats(device, *range(4)) for _ in range(3)] for _ in range(6)]
    before = live_objects()
    with device.create_command_buffer(binding_capacity=3) as commands:
        commands.begin().dispatch(pipeline, [BindingSlot(i) for i in range(3)], (1, 1, 1))
        commands.end()

        def prepare() -> None:
            for _ in range(20):
                for table in tables:
                    commands.prepare(table)

        in_threads(lambda _: prepare(), range(4))
        for table in tables:
            run(device, commands, table)
            assert np.frombuffer(table[2].read(), np.float32).tolist() == [0, 1, 4, 9]
    device.trim()
    # Every recording was given back, also those that two threads made for one table.
    assert {kind: count for kind, count in live_objects().items() if "command" in kind} == {
        kind: count for kind, count in before.items() if "command" in kind
    }
