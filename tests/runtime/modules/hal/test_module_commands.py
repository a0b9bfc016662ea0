"""Command buffers and executables of the hal module, and what queues do with them."""

from __future__ import annotations

import gc
import struct

import numpy as np
import pytest
from support.runtime.hal_module import (
    DEVICE_LOCAL,
    FORMAT,
    HOST_LOCAL,
    MAPPED_USAGE,
    USAGE,
    array_of,
    buffer_of,
    direct,
    executable,
    executable_blob,
    multiply_commands,
    storage_blob,
    table,
    vm,
    wait_for,
)

from pumice.formats.vke1 import HEADER
from pumice.hal.programs.fence import HalFence
from pumice.hal_vulkan import Buffer, Device, MemoryAccess
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.programs.command_buffer import ProgramCommandBuffer
from pumice.hal_vulkan.vulkan.live_objects import live_objects
from pumice.runtime.modules.hal.module import HalState
from pumice.status import (
    ClosedError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
    UnimplementedError,
)

SAXPY = "examples/saxpy"
SPECIALIZED = """#version 450
layout(constant_id = 1) const uint a = 1;
layout(constant_id = 2) const int b = 2;
layout(constant_id = 3) const float c = 3.0;
layout(constant_id = 4) const bool d = true;
layout(set = 0, binding = 0) buffer Out { uint data[]; };
void main() { data[0] = a; data[1] = uint(b); data[2] = uint(c); data[3] = d ? 1 : 0; }
"""


@pytest.fixture
def device(any_device: Device) -> Device:
    return any_device


def once(state: HalState, device: Device, capacity: int = 0) -> ProgramCommandBuffer:
    return state.command_buffer_create(device, 17, 3, -1, capacity)


def run(
    state: HalState, device: Device, commands: ProgramCommandBuffer, *bindings: tuple[Buffer | None, int, int]
) -> None:
    state.command_buffer_finalize(commands)
    done = state.fence_create(device, 0)
    if bindings:
        state.queue_execute_indirect(device, -1, None, done, commands, 0, bindings)
    else:
        state.queue_execute(device, -1, None, done, commands, 0)
    assert wait_for(state, done) == 0


def bits(value: float) -> int:
    (word,) = struct.unpack("<i", struct.pack("<f", value))
    return int(word)


# -- executables -------------------------------------------------------------------------------------


@pytest.mark.vulkan
def test_executables(state: HalState, device: Device) -> None:
    made = executable(state, device, "mul", SAXPY)
    assert len(made.pipelines) == 2 and state.executable_lookup_function(made, vm("main")) == 0
    with pytest.raises(NotFoundError, match="it has: main, main"):
        state.executable_lookup_function(made, vm("other"))
    assert executable(state, device, "mul", SAXPY).pipelines is made.pipelines
    other = HalState((device,))
    assert executable(other, device, "mul", SAXPY).pipelines is made.pipelines
    blob = executable_blob("mul")
    only = executable(state, device, "mul")
    assert only.pipelines is not made.pipelines
    assert state.executable_create(device, vm(FORMAT), vm(blob), None).pipelines is only.pipelines
    bare = state.executable_create(device, -1, vm(FORMAT), vm(blob[HEADER.size :]), None)
    assert len(bare.pipelines) == 1
    with pytest.raises(NotFoundError, match="it runs vulkan-spirv-fb"):
        state.executable_create(device, -1, vm("vmvx-bytecode-fb"), vm(blob), None)
    for damaged in (b"", b"VKE1", blob[:100], b"x" * 200):
        with pytest.raises(InvalidArgumentError):
            state.executable_create(device, -1, vm(FORMAT), vm(damaged), None)
    with pytest.raises(InvalidArgumentError, match="u32"):
        state.executable_create(device, -1, vm(FORMAT), vm(blob), vm(b"abc"))
    with pytest.raises(InvalidArgumentError, match="hal.executable"):
        state.executable_lookup_function(None, vm("main"))


@pytest.mark.vulkan
def test_executables_go_with_their_last_user(state: HalState, device: Device) -> None:
    before = live_objects().get("pipeline", 0)
    made = executable(state, device, "mul")
    a = buffer_of(state, device, np.ones(4, np.float32))
    commands = state.command_buffer_create(device, 0, 3, -1, 0)
    state.command_buffer_dispatch(commands, made, 0, 1, 1, 1, 0, (), direct(a, a, a))
    del made
    gc.collect()
    device.retire()
    run(state, device, commands)
    assert live_objects()["pipeline"] == before + 1
    del commands
    gc.collect()
    device.wait_idle()
    device.retire()
    device.retire()
    assert live_objects().get("pipeline", 0) == before


@pytest.mark.vulkan
def test_an_executable_made_again_while_the_last_is_dropped(state: HalState, device: Device) -> None:
    """As in programs compiled without memoization: dropping one executable leaves the other usable."""
    a = buffer_of(state, device, np.full(4, 3, np.float32))
    for _ in range(3):
        made = executable(state, device, "mul")
        commands = once(state, device)
        state.command_buffer_dispatch(commands, made, 0, 1, 1, 1, 0, (), direct(a, a, a))
        run(state, device, commands)
        del made, commands
        gc.collect()
    np.testing.assert_array_equal(array_of(state, a), 3.0**8)


@pytest.mark.vulkan
def test_specialization_constants(state: HalState, device: Device) -> None:
    """Word i is the value of constant id i, in the declared type; undeclared constants are left out."""
    blob = storage_blob(SPECIALIZED, 1)
    out = buffer_of(state, device, np.zeros(4, np.uint32))
    for constants, expected in (
        (None, [1, 2, 3, 1]),
        (struct.pack("<2Ii", 77, 9, -5), [9, 2**32 - 5, 3, 1]),
        (struct.pack("<2IifI", 77, 0xFFFFFFFF, -5, 7.5, 0), [0xFFFFFFFF, 2**32 - 5, 7, 0]),
    ):
        made = state.executable_create(device, -1, vm(FORMAT), vm(blob), None if constants is None else vm(constants))
        commands = once(state, device)
        state.command_buffer_dispatch(commands, made, 0, 1, 1, 1, 0, (), direct(out))
        run(state, device, commands)
        assert array_of(state, out, np.uint32).tolist() == expected


# -- recording ---------------------------------------------------------------------------------------


@pytest.mark.vulkan
def test_dispatch_with_constants(state: HalState, device: Device) -> None:
    x = buffer_of(state, device, np.arange(128, dtype=np.float32), DEVICE_LOCAL)
    y = buffer_of(state, device, np.ones(128, np.float32), DEVICE_LOCAL)
    commands = once(state, device)
    saxpy = executable(state, device, SAXPY)
    state.command_buffer_dispatch(commands, saxpy, 0, 2, 1, 1, 0, (bits(-2.5),), direct(x, y))
    state.command_buffer_execution_barrier(commands, 28, 13, 0)
    half = ((0, 0, x, 256, 256), (0, 0, y, 0, 256))
    state.command_buffer_dispatch(commands, saxpy, 0, 1, 1, 1, 0, (bits(1.0),), half)
    run(state, device, commands)
    expected = np.float32(-2.5) * np.arange(128, dtype=np.float32) + 1
    expected[:64] += np.arange(64, 128, dtype=np.float32)
    np.testing.assert_array_equal(array_of(state, y), expected)


@pytest.mark.vulkan
def test_no_workgroups_do_nothing(state: HalState, device: Device) -> None:
    made = executable(state, device, "mul")
    a = buffer_of(state, device, np.full(4, 3, np.float32))
    for groups in ((0, 1, 1), (1, 0, 1), (1, 1, 0)):
        commands = once(state, device)
        state.command_buffer_dispatch(commands, made, 0, *groups, 0, (), direct(a, a, a))
        run(state, device, commands)
        assert array_of(state, a).tolist() == [3] * 4


@pytest.mark.vulkan
def test_empty_bindings(state: HalState, device: Device) -> None:
    made = executable(state, device, "mul")
    a = buffer_of(state, device, np.full(4, 3, np.float32))
    empty = state.queue_alloca(device, -1, None, None, 0, DEVICE_LOCAL, USAGE, 0)
    out = buffer_of(state, device, np.zeros(4, np.float32))
    commands = once(state, device)
    state.command_buffer_dispatch(
        commands, made, 0, 1, 1, 1, 0, (), ((0, 0, a, 0, 16), (0, 0, empty, 0, 0), (0, 0, out, 0, 16))
    )
    run(state, device, commands)


@pytest.mark.vulkan
def test_dispatch_arguments_are_checked(state: HalState, device: Device) -> None:
    made = executable(state, device, "mul")
    a = buffer_of(state, device, np.full(4, 3, np.float32))
    commands = once(state, device)

    def dispatch(
        function: int = 0, x: int = 1, flags: int = 0, constants: tuple[int, ...] = (), bindings: object = None
    ) -> None:
        given = direct(a, a, a) if bindings is None else bindings
        state.command_buffer_dispatch(commands, made, function, x, 1, 1, flags, constants, given)  # type: ignore[arg-type]

    for wrong, error in (
        ({"function": 1}, OutOfRangeError),
        ({"function": -1}, OutOfRangeError),
        ({"constants": (1,)}, InvalidArgumentError),
        ({"bindings": direct(a, a)}, InvalidArgumentError),
        ({"bindings": ((0, 0, a, 8, 16), (0, 0, a, 0, 16), (0, 0, a, 0, 16))}, OutOfRangeError),
        ({"bindings": ((0, 0, a, 0, -7), (0, 0, a, 0, 16), (0, 0, a, 0, 16))}, OutOfRangeError),
        ({"bindings": ((0, 0, None, 0, 16), (0, 0, a, 0, 16), (0, 0, a, 0, 16))}, InvalidArgumentError),
        ({"bindings": ((0, 0, made, 0, 16), (0, 0, a, 0, 16), (0, 0, a, 0, 16))}, InvalidArgumentError),
        ({"flags": 4}, UnimplementedError),
    ):
        with pytest.raises(error):
            dispatch(**wrong)  # type: ignore[arg-type]
    dispatch()
    run(state, device, commands)
    assert array_of(state, a).tolist() == [9] * 4
    with pytest.raises(FailedPreconditionError):
        dispatch()
    for ref in (None, a):
        with pytest.raises(InvalidArgumentError, match="command_buffer"):
            state.command_buffer_finalize(ref)
        with pytest.raises(InvalidArgumentError, match="executable"):
            state.command_buffer_dispatch(once(state, device), ref, 0, 1, 1, 1, 0, (), ())


@pytest.mark.vulkan
@pytest.mark.parametrize("slots", [False, True])
def test_transfers_and_indirect_counts(state: HalState, device: Device, slots: bool) -> None:
    """The same commands with buffers given now, and with slots."""
    a = buffer_of(state, device, np.arange(64, dtype=np.float32), DEVICE_LOCAL)
    out = buffer_of(state, device, np.zeros(64, np.float32), DEVICE_LOCAL)
    counts = buffer_of(state, device, np.array([9, 1, 1, 1], np.uint32), DEVICE_LOCAL)
    commands = once(state, device, 3 if slots else 0)
    buffers = (None, None, None) if slots else (a, out, counts)
    bindings = tuple((0, slot, buffers[slot], 0, 256) for slot in (0, 0, 1))
    made = executable(state, device, "mul")
    state.command_buffer_begin_debug_group(commands, vm("group"))
    state.command_buffer_dispatch_indirect(commands, made, 0, 2, buffers[2], 4, 0, (), bindings)
    state.command_buffer_execution_barrier(commands, 28, 13, 0)
    state.command_buffer_fill_buffer(commands, buffers[1], 4, 8, 1, 0x1122334455667788, 4, 0)
    state.command_buffer_fill_buffer(commands, buffers[1], 17, 3, 1, -1, 1)
    state.command_buffer_update_buffer(commands, vm(bytes(range(40, 80))), 4, buffers[1], 33, 7, 1, 0)
    state.command_buffer_update_buffer(commands, vm(bytes(range(40, 80))), 4, buffers[1], 44, 8, 1)
    state.command_buffer_copy_buffer(commands, 0, 1, buffers[0], 4, buffers[1], 100, 12, 0)
    state.command_buffer_advise_buffer(commands, buffers[1], 0, 0, 0, 1)
    state.command_buffer_end_debug_group(commands)
    run(state, device, commands, *(table(a, out, counts) if slots else ()))
    expected = bytearray((np.arange(64, dtype=np.float32) ** 2).tobytes())
    expected[4:12] = bytes.fromhex("88776655") * 2
    expected[17:20] = b"\xff" * 3
    expected[33:40] = bytes(range(44, 51))
    expected[44:52] = bytes(range(44, 52))
    expected[100:112] = np.arange(1, 4, dtype=np.float32).tobytes()
    assert array_of(state, out, np.uint8).tobytes() == bytes(expected)


@pytest.mark.vulkan
def test_transfer_arguments_are_checked(state: HalState, device: Device) -> None:
    a = buffer_of(state, device, np.arange(8, dtype=np.float32))
    commands = once(state, device)
    fill, copy = state.command_buffer_fill_buffer, state.command_buffer_copy_buffer
    for call, error in (
        (lambda: fill(commands, a, 0, 8, 0, 0, 3, 0), InvalidArgumentError),
        (lambda: fill(commands, a, 0, 6, 0, 0, 4, 0), InvalidArgumentError),
        (lambda: fill(commands, a, 28, 8, 0, 0, 4, 0), OutOfRangeError),
        (lambda: fill(commands, a, -4, 8, 0, 0, 4, 0), OutOfRangeError),
        (lambda: fill(commands, None, 0, 8, 0, 0, 4, 0), InvalidArgumentError),
        (lambda: copy(commands, 0, 0, a, 0, a, 8, 16, 0), InvalidArgumentError),
        (lambda: copy(commands, 0, 0, a, 0, a, 24, 16, 0), OutOfRangeError),
        (lambda: state.command_buffer_update_buffer(commands, vm(b"1234"), 2, a, 0, 4, 0, 0), OutOfRangeError),
        (lambda: state.command_buffer_update_buffer(commands, None, 2, a, 0, 4, 0, 0), InvalidArgumentError),
        (lambda: state.command_buffer_end_debug_group(commands), FailedPreconditionError),
        (lambda: state.command_buffer_create(device, 0, 3, -1, -1), InvalidArgumentError),
    ):
        with pytest.raises(error):
            call()
    plain = state.allocator_allocate(state.device_allocator(device), -1, DEVICE_LOCAL, 0xC00, 16)
    with pytest.raises(PermissionDeniedError, match="TRANSFER_TARGET"):
        fill(commands, plain, 0, 16, 0, 0, 4, 0)
    a.access = MemoryAccess.READ
    with pytest.raises(PermissionDeniedError):
        fill(commands, a, 0, 16, 0, 0, 4, 0)


# -- binding tables ----------------------------------------------------------------------------------


@pytest.mark.vulkan
def test_binding_tables(state: HalState, device: Device) -> None:
    commands = multiply_commands(state, device, 64)
    backing = buffer_of(state, device, np.arange(256, dtype=np.float32), DEVICE_LOCAL)
    out = buffer_of(state, device, np.zeros(128, np.float32), DEVICE_LOCAL)
    numbers = np.arange(256, dtype=np.float32)
    for start in (0, 64, 128, 192, 0):
        done = state.fence_create(device, 0)
        entries = ((backing, 4 * start, 256), (backing, 0, -1), (out, 256, 256))
        state.queue_execute_indirect(device, -1, None, done, commands, 0, entries)
        assert wait_for(state, done) == 0
        np.testing.assert_array_equal(array_of(state, out)[64:], numbers[start : start + 64] * numbers[:64])
    part = state.buffer_subspan(backing, 512, 256)
    done = state.fence_create(device, 0)
    state.queue_execute_indirect_v5(device, -1, None, done, commands, table(part, part, out))
    assert wait_for(state, done) == 0
    np.testing.assert_array_equal(array_of(state, out)[:64], numbers[128:192] ** 2)
    assert array_of(state, out)[64:128].tolist() != [0] * 64


@pytest.mark.vulkan
def test_binding_tables_are_checked(state: HalState, device: Device) -> None:
    commands = multiply_commands(state, device, 64)
    a = buffer_of(state, device, np.arange(64, dtype=np.float32))
    longer = buffer_of(state, device, np.arange(128, dtype=np.float32))
    whole = (a, 0, 256)

    def execute(*entries: object) -> None:
        state.queue_execute_indirect(device, -1, None, None, commands, 0, entries)  # type: ignore[arg-type]

    execute(whole, whole, (longer, 256, 256))
    for entries, error in (
        ((whole, whole), InvalidArgumentError),
        ((), InvalidArgumentError),
        ((whole, whole, (None, 0, 0)), InvalidArgumentError),
        ((whole, whole, (commands, 0, 256)), InvalidArgumentError),
        ((whole, whole, (a, 16, 256)), OutOfRangeError),
        ((whole, whole, (a, -16, 256)), OutOfRangeError),
        ((whole, whole, (longer, 0, -2)), OutOfRangeError),
        ((whole, whole, (a, 0, 128)), OutOfRangeError),
    ):
        with pytest.raises(error):
            execute(*entries)
    state.queue_execute_indirect(device, -1, None, None, commands, 0, (whole, whole, whole, (None, 0, 0)))
    for given in (None, a):
        with pytest.raises(InvalidArgumentError, match="command_buffer"):
            state.queue_execute_indirect(device, -1, None, None, given, 0, ())
    a.close()
    with pytest.raises(ClosedError):
        execute(whole, whole, whole)


@pytest.mark.vulkan
def test_a_table_with_null_entries_where_nothing_is_used(state: HalState, device: Device) -> None:
    commands = state.command_buffer_create(device, 0, 3, -1, 4)
    state.command_buffer_fill_buffer(commands, None, 0, 16, 2, 7, 1, 0)
    state.command_buffer_finalize(commands)
    target = buffer_of(state, device, np.zeros(4, np.uint32))
    for _ in range(2):
        done = state.fence_create(device, 0)
        entries = ((None, 0, 0), (None, 0, 0), (target, 0, 16), (None, 0, 0))
        state.queue_execute_indirect(device, -1, None, done, commands, 0, entries)
        assert wait_for(state, done) == 0
    assert array_of(state, target, np.uint8).tolist() == [7] * 16


@pytest.mark.vulkan
def test_recordings_hold_no_buffers_of_their_tables(state: HalState, device: Device) -> None:
    commands = multiply_commands(state, device, 4)
    operand = buffer_of(state, device, np.arange(4, dtype=np.float32))
    before = device.allocator.statistics().allocations
    for size in range(16, 16 + 4 * 40, 4):
        result = state.allocator_allocate(state.device_allocator(device), -1, DEVICE_LOCAL, USAGE, size)
        done = state.fence_create(device, 0)
        state.queue_execute_indirect(device, -1, None, done, commands, 0, (*table(operand, operand), (result, 0, 16)))
        assert wait_for(state, done) == 0
        del result
    device.wait_idle()
    device.trim()
    device.retire()
    assert device.allocator.statistics().allocations == before


@pytest.mark.vulkan
def test_reusable_and_one_shot(state: HalState, device: Device) -> None:
    a = buffer_of(state, device, np.zeros(4, np.float32))
    for capacity in (0, 1):
        commands = once(state, device, capacity)
        state.command_buffer_fill_buffer(commands, None if capacity else a, 0, 16, 0, 1, 1, 0)
        run(state, device, commands, *(table(a) if capacity else ()))
        with pytest.raises(FailedPreconditionError, match="one-shot"):
            state.queue_execute_indirect(device, -1, None, None, commands, 0, table(a) if capacity else ())
    commands = once(state, device)
    with pytest.raises(FailedPreconditionError):
        state.queue_execute(device, -1, None, None, commands, 0)


@pytest.mark.vulkan
def test_version_5_takes_several_command_buffers(state: HalState, device: Device) -> None:
    a = buffer_of(state, device, np.zeros(4, np.uint8))
    several = []
    for value in (1, 2, 3):
        commands = once(state, device)
        state.command_buffer_fill_buffer(commands, a, value, 1, 0, value, 1)
        state.command_buffer_finalize(commands)
        several.append(commands)
    done = state.fence_create(device, 0)
    state.queue_execute_v5(device, -1, None, done, tuple(several))
    assert wait_for(state, done) == 0
    assert array_of(state, a, np.uint8).tolist() == [0, 1, 2, 3]
    none = state.fence_create(device, 0)
    state.queue_execute_v5(device, -1, done, none, ())
    assert none.query()


@pytest.mark.vulkan
def test_abandoned_recordings_go(state: HalState, device: Device) -> None:
    a = buffer_of(state, device, np.zeros(4, np.uint8))
    before = live_objects().get("command pool", 0)
    for _ in range(10):
        commands = once(state, device)
        state.command_buffer_fill_buffer(commands, a, 0, 4, 0, 1, 1, 0)
        del commands
        gc.collect()
        device.retire()
    assert live_objects().get("command pool", 0) <= before + 1
    assert not device.command_context.recording


@pytest.mark.vulkan
def test_buffers_of_another_device(driver: Driver, device: Device, state: HalState) -> None:
    with Device(driver) as other:
        both = HalState((device, other))
        assert both.devices_count() == 2 and both.devices_get(1) is other
        foreign = buffer_of(both, other, np.arange(64, dtype=np.float32))
        here = buffer_of(both, device, np.arange(64, dtype=np.float32))
        commands = multiply_commands(both, device, 64)
        with Device(driver) as third, third.create_buffer(256) as stranger:
            with pytest.raises(InvalidArgumentError, match="another device"):
                both.queue_execute_indirect(device, -1, None, None, commands, 0, table(here, here, stranger))
            with pytest.raises(InvalidArgumentError, match="another device"):
                both.queue_copy(device, -1, None, None, here, 0, stranger, 0, 16, 0)
        with pytest.raises(InvalidArgumentError):
            both.queue_execute(other, -1, None, None, commands, 0)
        mul = executable(both, other, "mul")
        with pytest.raises(InvalidArgumentError, match="made for"):
            both.command_buffer_dispatch(once(both, device), mul, 0, 1, 1, 1, 0, (), direct(here, here, here))
        with pytest.raises(InvalidArgumentError, match="hal.device of this context"):
            state.device_allocator(other)
        # Work on one device may wait for work on another: by way of the host.
        first, second = both.fence_create(device, 0), both.fence_create(other, 0)
        both.queue_fill(device, -1, None, first, here, 0, 256, 0, 1, 0)
        both.queue_fill(other, -1, first, second, foreign, 0, 256, 1, 1, 0)
        third = both.fence_create(device, 0)
        both.queue_fill(device, -1, second, third, here, 0, 4, 9, 1, 0)
        assert wait_for(both, third) == 0
        assert array_of(both, here, np.uint8)[:8].tolist() == [9] * 4 + [0] * 4
        both.close()
        del foreign, mul, first, second, third, both
        gc.collect()


@pytest.mark.vulkan
def test_queue_operations(state: HalState, device: Device) -> None:
    for memory in (HOST_LOCAL, DEVICE_LOCAL):
        a = state.allocator_allocate(state.device_allocator(device), -1, memory, MAPPED_USAGE, 32)
        fences: list[HalFence | None] = [None]
        for _ in range(4):
            fences.append(state.fence_create(device, 0))
        state.queue_fill(device, -1, fences[0], fences[1], a, 0, 32, 0xABCD, 2, 0)
        state.queue_update(device, -1, fences[1], fences[2], vm(bytes(range(16))), 2, a, 8, 5, 0)
        state.queue_copy(device, -1, fences[2], fences[3], a, 8, a, 20, 4, 0)
        state.queue_flush(device, -1)
        state.queue_barrier(device, -1, fences[3], fences[4], 0)
        assert wait_for(state, fences[4]) == 0
        expected = bytearray(b"\xcd\xab" * 16)
        expected[8:13] = bytes(range(2, 7))
        expected[20:24] = bytes(range(2, 6))
        assert array_of(state, a, np.uint8).tobytes() == bytes(expected)
        with pytest.raises(OutOfRangeError):
            state.queue_update(device, -1, None, None, vm(b"abc"), 2, a, 0, 2, 0)
        with pytest.raises(OutOfRangeError):
            state.queue_update(device, -1, None, None, vm(b"abc"), 0, a, 30, 3, 0)
        with pytest.raises(OutOfRangeError):
            state.queue_fill(device, -1, None, None, a, 30, 4, 0, 1, 0)
        with pytest.raises(InvalidArgumentError, match="hal.fence"):
            state.queue_fill(device, -1, a, None, a, 0, 4, 0, 1, 0)
    with pytest.raises(UnimplementedError, match="pool"):
        state.queue_alloca(device, -1, None, None, 3, DEVICE_LOCAL, USAGE, 4)
