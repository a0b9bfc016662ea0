"""The hal module's exports, devices, allocators, buffers, buffer views and files."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest
from support.runtime.hal_module import (
    DEVICE_LOCAL,
    F32,
    HOST_LOCAL,
    MAPPED_USAGE,
    USAGE,
    array_of,
    buffer_of,
    multiply_commands,
    table,
    vm,
    wait_for,
)

from pumice.hal.programs.file import HalFile
from pumice.hal_vulkan import Buffer, BufferView, Device, ElementType, EncodingType
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.plan import PlanOptions
from pumice.hal_vulkan.programs.allocator import ProgramBuffer
from pumice.hal_vulkan.programs.executable import supported_formats
from pumice.runtime.modules.hal.module import HalState, hal_module
from pumice.status import (
    ClosedError,
    InvalidArgumentError,
    OutOfRangeError,
    PermissionDeniedError,
    PumiceError,
    UnimplementedError,
)
from pumice.vm.native.module import NativeModule
from pumice.vm.types.buffer import VmBuffer
from pumice.vm.types.ref_types import ref_type_class

EXPORTS = [
    line.split("\t") for line in (Path(__file__).parent / "hal_exports.tsv").read_text().splitlines()[1:] if line
]


@pytest.fixture
def device(any_device: Device) -> Device:
    return any_device


# -- exports -----------------------------------------------------------------------------------------


def test_exports_are_those_of_versions_5_to_7() -> None:
    """The table is of IREE's exports.inl at the tags v3.1.0 to v3.11.0 and at a commit of version 7."""
    module = NativeModule("hal", state=HalState)
    have = {(name, one.convention.text) for name, overloads in module.exports.items() for one in overloads}
    assert have == {(name, convention) for name, convention, _ in EXPORTS}
    assert [sum(str(version) in versions.split(",") for _, _, versions in EXPORTS) for version in (5, 6, 7)] == [
        51,
        57,
        58,
    ]


def test_each_overload_takes_what_its_convention_gives() -> None:
    import inspect

    for name, overloads in NativeModule("hal", state=HalState).exports.items():
        for one in overloads:
            assert isinstance(one.target, str)
            count = len(one.convention.arguments)
            inspect.signature(getattr(HalState, one.target)).bind(None, *([None] * count))
            assert one.convention.text in str([e[1] for e in EXPORTS if e[0] == name])


@pytest.mark.parametrize(
    "name",
    [
        "allocator",
        "buffer",
        "buffer_view",
        "channel",
        "command_buffer",
        "device",
        "event",
        "executable",
        "fence",
        "file",
        "semaphore",
    ],
)
def test_reference_types(name: str) -> None:
    assert ref_type_class(f"!hal.{name}")


@pytest.mark.vulkan
def test_module(device: Device) -> None:
    module = hal_module([device])
    assert module.name == "hal" and module.version == 7
    first, second = module.new_state(), module.new_state()
    assert isinstance(first, HalState) and first is not second


def test_collectives_are_refused() -> None:
    state = HalState(())
    for call in (
        lambda: state.collective(None, -1, 0, None, None, 0, 1),
        lambda: state.collective(None, 0, 0, 0),
        lambda: state.collective(None),
        lambda: state.collective(*([None] * 13)),
    ):
        with pytest.raises(UnimplementedError, match="collectives"):
            call()


# -- devices -----------------------------------------------------------------------------------------


@pytest.mark.vulkan
def test_devices(state: HalState, device: Device) -> None:
    assert state.devices_count() == 1
    assert state.devices_get(0) is device
    assert state.devices_get(1) is None and state.devices_get(-1) is None
    for wrong in (None, [], object()):
        with pytest.raises(InvalidArgumentError, match="expected a !hal.device"):
            state.device_allocator(wrong)


@pytest.mark.vulkan
def test_queries(state: HalState, device: Device) -> None:
    def query(category: str, key: str) -> tuple[int, int]:
        return state.device_query_i64(device, vm(category), vm(key))

    for pattern, matches in (("vulkan", 1), ("vulkan*", 1), ("v?lkan", 1), ("*", 1), ("local*", 0), ("[v]ulkan", 0)):
        assert query("hal.device.id", pattern) == (1, matches)
    for name in supported_formats(device):
        assert query("hal.executable.format", name) == (1, 1)
    assert query("hal.executable.format", "embedded-elf-x86_64") == (1, 0)
    assert query("hal.device", "concurrency") == (1, len(device.queues))
    assert query("hal.dispatch", "concurrency") == (1, 1)
    limits = device.profile.limits
    assert query("vulkan.device", "max_compute_workgroup_size_y") == (1, limits.max_compute_work_group_size[1])
    assert query("vulkan.device", "max_compute_workgroup_count_z") == (1, limits.max_compute_work_group_count[2])
    assert query("vulkan.device", "subgroup_size") == (1, device.profile.subgroup.size)
    major, minor = device.profile.version
    assert query("vulkan.device", "api_version")[1] >> 12 == major << 10 | minor
    assert query("vulkan.feature", "shader_int64") == (1, int("shaderInt64" in device.plan.features))
    for key in ("fp", "int"):
        assert query("hal.dispatch", f"compute.bitwidths.{key}")[0] == 1
    for key in ("storage.bitwidths", "subgroup.ops", "dotprod.ops", "coopmatrix.ops", "address.mode"):
        assert query("hal.dispatch", key)[0] == 1
    for category in ("hal.device", "hal.dispatch", "vulkan.device", "vulkan.feature", "vulkan.cooperative_matrix", "x"):
        assert query(category, "no such key") == (0, 0)


# -- allocators and buffers --------------------------------------------------------------------------


@pytest.mark.vulkan
def test_allocate(state: HalState, device: Device) -> None:
    allocator = state.device_allocator(device)
    buffer = state.allocator_allocate(allocator, -1, DEVICE_LOCAL, USAGE, 100)
    assert isinstance(buffer, Buffer) and state.buffer_length(buffer) == 100
    assert state.allocator_select(0, 0, 0, ((device, 3),)) == (device, 3)
    with pytest.raises(InvalidArgumentError, match="at least one"):
        state.allocator_select(0, 0, 0, ())
    with pytest.raises(InvalidArgumentError):
        state.allocator_allocate(allocator, -1, DEVICE_LOCAL, USAGE, -1)
    with pytest.raises(InvalidArgumentError):
        state.allocator_allocate(allocator, -1, 1 << 20, USAGE, 4)
    with pytest.raises(InvalidArgumentError, match="allocator"):
        state.allocator_allocate(None, -1, DEVICE_LOCAL, USAGE, 4)


@pytest.mark.vulkan
def test_memory_goes_back_with_the_last_reference(state: HalState, device: Device) -> None:
    allocator = state.device_allocator(device)
    before = device.allocator.statistics().allocations
    buffer = state.allocator_allocate(allocator, -1, DEVICE_LOCAL, USAGE, 100)
    part = state.buffer_subspan(buffer, 16, 32)
    assert device.allocator.statistics().allocations == before + 1
    del buffer
    state.close()
    device.retire()
    assert device.allocator.statistics().allocations == before + 1  # its part is still there
    assert part.parent is not None and not part.is_closed
    del part
    device.retire()
    assert device.allocator.statistics().allocations == before


@pytest.mark.vulkan
def test_memory_of_transients_is_used_again(state: HalState, device: Device) -> None:
    commands = multiply_commands(state, device, 4)
    operand = buffer_of(state, device, np.arange(4, dtype=np.float32))
    offsets = set()
    for _ in range(20):
        result = state.queue_alloca(device, -1, None, None, 0, DEVICE_LOCAL, USAGE, 16)
        done = state.fence_create(device, 0)
        state.queue_execute_indirect(device, -1, None, done, commands, 0, table(operand, operand, result))
        assert wait_for(state, done) == 0
        np.testing.assert_array_equal(array_of(state, result), np.arange(4, dtype=np.float32) ** 2)
        offsets.add((result.block_serial, result.offset))
    assert len(offsets) <= 3
    assert state.device_allocator(device).kept <= 64


@pytest.mark.vulkan
def test_memory_in_use_is_not_used_again(state: HalState, device: Device) -> None:
    """Nothing waits between the calls: each result must have been computed in memory of its own time."""
    count = 1 << 16
    commands = multiply_commands(state, device, count)
    one = buffer_of(state, device, np.ones(count, np.float32))
    two = buffer_of(state, device, np.full(count, 2, np.float32))
    kept = []
    for index in range(24):
        result = state.queue_alloca(device, -1, None, None, 0, DEVICE_LOCAL, USAGE, 4 * count)
        done = state.fence_create(device, 0)
        operands = (one, two) if index % 2 else (two, two)
        state.queue_execute_indirect(device, -1, None, done, commands, 0, table(*operands, result))
        if index % 3 == 0:
            kept.append((result, operands))
    for result, operands in kept:
        assert set(array_of(state, result).tolist()) == {2.0 if operands[0] is one else 4.0}


@pytest.mark.vulkan
def test_memory_out_of_use_is_found_behind_memory_in_use(state: HalState, device: Device) -> None:
    def place(buffer: ProgramBuffer) -> tuple[int, int]:
        return (buffer.block_serial, buffer.offset)

    allocator = state.device_allocator(device)
    buffers = [state.allocator_allocate(allocator, -1, DEVICE_LOCAL, USAGE, 64) for _ in range(10)]
    buffers.sort(key=place)
    idle = place(buffers.pop())  # returned before the submission: free though the queue is busy
    state.allocator_allocate(allocator, -1, DEVICE_LOCAL, USAGE, 16)  # takes note of what was returned
    gate, done = device.create_semaphore(), device.create_semaphore()
    gate.scheduled = 1  # as if other work were to signal it, so the submission is not held back on the host
    device.compute_queue.submit((), waits=((gate, 1),), signals=((done, 1),))
    buffers.clear()
    try:
        assert place(state.allocator_allocate(allocator, -1, DEVICE_LOCAL, USAGE, 64)) == idle
    finally:
        gate.scheduled = 0
        gate.signal(1)
        done.wait(1)


@pytest.mark.vulkan
def test_memory_with_a_host_view_is_not_used_again(driver: Driver) -> None:
    with Device(driver, options=PlanOptions(staging=False)) as device:
        state = HalState((device,))
        buffer = state.queue_alloca(device, -1, None, None, 0, HOST_LOCAL, MAPPED_USAGE, 64)
        place, view = (buffer.block_serial, buffer.offset), np.frombuffer(buffer.map(), np.uint8)
        view[:] = 7
        del buffer
        others = [state.queue_alloca(device, -1, None, None, 0, HOST_LOCAL, MAPPED_USAGE, 64) for _ in range(4)]
        assert place not in [(other.block_serial, other.offset) for other in others]
        assert set(view.tolist()) == {7}
        del view
        state.close()


@pytest.mark.vulkan
def test_kept_memory_is_given_up_when_it_is_short(state: HalState, device: Device) -> None:
    allocator = state.device_allocator(device)
    state.allocator_allocate(allocator, -1, DEVICE_LOCAL, USAGE, 1 << 20)
    state.allocator_allocate(allocator, -1, DEVICE_LOCAL, USAGE, 16)
    assert allocator.kept == 1 << 20
    device.trim()
    assert allocator.kept == 0
    allocator.budget = 1000
    for _ in range(3):
        state.allocator_allocate(allocator, -1, DEVICE_LOCAL, USAGE, 4096)
    state.allocator_allocate(allocator, -1, DEVICE_LOCAL, USAGE, 16)
    assert allocator.kept <= 1000


@pytest.mark.vulkan
def test_import(state: HalState, device: Device) -> None:
    allocator = state.device_allocator(device)
    data = np.arange(1 << 15, dtype=np.uint32)
    immutable = USAGE | 0x80000
    tried = state.allocator_import(allocator, 1, -1, DEVICE_LOCAL, immutable, vm(data.tobytes()), 0, -1)
    if tried is not None:
        np.testing.assert_array_equal(array_of(state, tried, np.uint32), data)
        assert isinstance(tried, ProgramBuffer) and not device.plan.staging
    made = state.allocator_import(allocator, 0, -1, HOST_LOCAL, immutable, vm(data.tobytes()), 8, 16)
    assert made is not None and array_of(state, made, np.uint32).tolist() == [2, 3, 4, 5]
    with pytest.raises(InvalidArgumentError, match="do not lie within"):
        state.allocator_import(allocator, 1, -1, DEVICE_LOCAL, immutable, vm(b"abcd"), 2, 3)
    with pytest.raises(PermissionDeniedError, match="constant"):
        state.allocator_import(allocator, 1, -1, DEVICE_LOCAL, USAGE, vm(b"abcd"), 0, 4)


@pytest.mark.vulkan
def test_subspan_load_and_store(state: HalState, device: Device) -> None:
    buffer = buffer_of(state, device, np.array([1, 0xFFFFFFFF, 0x80000001], np.uint32))
    for memory in (HOST_LOCAL, DEVICE_LOCAL):
        buffer = buffer_of(state, device, np.array([1, 0xFFFFFFFF, 0x80000001], np.uint32), memory)
        assert state.buffer_subspan(buffer, 0, 12) is buffer and state.buffer_subspan(buffer, 0, -1) is buffer
        part = state.buffer_subspan(buffer, 4, -1)
        assert state.buffer_length(part) == 8
        assert state.buffer_load(part, 0, 4) == -1 and state.buffer_load(part, 0, 2) == 0xFFFF
        assert state.buffer_load(buffer, 8, 4) == 0x80000001 - (1 << 32)
        assert state.buffer_load(buffer, 0, 0) == 0
        state.buffer_store(-2, buffer, 0, 4)
        state.buffer_store(0x1234, part, 4, 1)
        assert array_of(state, buffer, np.uint32).tolist() == [0xFFFFFFFE, 0xFFFFFFFF, 0x80000034]
        for call in (
            lambda b=buffer: state.buffer_load(b, 9, 4),
            lambda b=buffer: state.buffer_load(b, -1, 4),
            lambda b=buffer: state.buffer_store(0, b, 12, 1),
            lambda b=buffer: state.buffer_subspan(b, 4, 9),
            lambda b=buffer: state.buffer_subspan(b, -4, 4),
            lambda b=buffer: state.buffer_subspan(b, 0, -2),
        ):
            with pytest.raises(OutOfRangeError):
                call()
        with pytest.raises(InvalidArgumentError):
            state.buffer_load(buffer, 0, 5)
        with pytest.raises(InvalidArgumentError):
            state.buffer_store(0, buffer, 0, -1)


@pytest.mark.vulkan
def test_buffer_assert(state: HalState, device: Device) -> None:
    allocator = state.device_allocator(device)
    buffer = state.allocator_allocate(allocator, -1, DEVICE_LOCAL, USAGE, 16)
    state.buffer_assert(buffer, vm("tensor"), allocator, 16, 16, 0xC03)
    state.buffer_assert(state.buffer_subspan(buffer, 4, 8), vm("tensor"), allocator, 8, 16, 0xC03)
    with pytest.raises(InvalidArgumentError, match="tensor buffer byte length 16 less than expected minimum 17"):
        state.buffer_assert(buffer, vm("tensor"), allocator, 17, 16, 0xC03)
    with pytest.raises(PermissionDeniedError, match="usage"):
        state.buffer_assert(buffer, vm("tensor"), allocator, 16, 16, 0x10000)
    with pytest.raises(PermissionDeniedError, match="memory type"):
        state.buffer_assert(buffer, vm("tensor"), allocator, 16, 0x40, 0xC03)
    for wrong in (None, 5, allocator):
        with pytest.raises(InvalidArgumentError, match="hal.buffer"):
            state.buffer_assert(wrong, vm("tensor"), allocator, 16, 16, 0xC03)
    buffer.close()
    with pytest.raises(ClosedError):
        state.buffer_assert(buffer, vm("tensor"), allocator, 16, 16, 0xC03)


@pytest.mark.vulkan
def test_allocation_owners(state: HalState, device: Device) -> None:
    buffer = state.queue_alloca(device, -1, None, None, 0, DEVICE_LOCAL, USAGE, 16)
    part = state.buffer_subspan(buffer, 4, 4)
    assert state.buffer_allocation_is_terminal(part) == 1
    state.buffer_allocation_preserve(buffer)
    assert state.buffer_allocation_is_terminal(buffer) == 0
    assert state.buffer_allocation_discard(part) == 0
    assert state.buffer_allocation_discard(buffer) == 1
    with device.create_buffer(16) as foreign:
        state.buffer_allocation_preserve(foreign)
        assert state.buffer_allocation_discard(foreign) == 0 == state.buffer_allocation_is_terminal(foreign)


# -- buffer views ------------------------------------------------------------------------------------


@pytest.mark.vulkan
def test_buffer_views(state: HalState, device: Device) -> None:
    buffer = buffer_of(state, device, np.arange(6, dtype=np.float32))
    view = state.buffer_view_create(buffer, 0, 24, F32, 1, (2, 3))
    assert state.buffer_view_buffer(view) is buffer
    assert state.buffer_view_element_type(view) == F32 and state.buffer_view_encoding_type(view) == 1
    assert state.buffer_view_rank(view) == 2
    assert [state.buffer_view_dim(view, axis) for axis in (0, 1, 2, -1)] == [2, 3, 0, 0]
    part = state.buffer_view_create(buffer, 8, -1, F32, 1, (4,))
    assert part.buffer.size == 16 and part.buffer.parent is buffer
    with pytest.raises(OutOfRangeError, match="do not fit"):
        state.buffer_view_create(buffer, 0, 24, F32, 1, (7,))
    with pytest.raises(OutOfRangeError):
        state.buffer_view_create(buffer, 8, 24, F32, 1, (1,))
    for element_type, encoding, shape in ((0x12345678, 1, (1,)), (F32, 77, (1,)), (F32, 1, (-1,))):
        with pytest.raises(InvalidArgumentError):
            state.buffer_view_create(buffer, 0, 24, element_type, encoding, shape)
    for wrong in (None, buffer):
        for call in (
            lambda w=wrong: state.buffer_view_buffer(w),
            lambda w=wrong: state.buffer_view_rank(w),
            lambda w=wrong: state.buffer_view_assert(w, vm("input0"), F32, 1, ()),
        ):
            with pytest.raises(InvalidArgumentError, match="buffer_view"):
                call()
    with pytest.raises(InvalidArgumentError, match="null"):
        state.buffer_view_create(None, 0, 24, F32, 1, (2, 3))


@pytest.mark.vulkan
def test_buffer_view_assert(state: HalState, device: Device) -> None:
    buffer = buffer_of(state, device, np.arange(6, dtype=np.float32))

    def view(
        kind: ElementType, shape: tuple[int, ...], encoding: EncodingType = EncodingType.DENSE_ROW_MAJOR
    ) -> BufferView:
        return BufferView(buffer, shape, kind, encoding)

    message = vm("input0")
    int32, uint32 = ElementType.INT_32, ElementType.UINT_32
    state.buffer_view_assert(view(ElementType.FLOAT_32, (2, 3)), message, F32, 1, (2, 3))
    state.buffer_view_assert(view(uint32, (6,)), message, int(int32), 1, (6,))
    state.buffer_view_assert(view(ElementType.OPAQUE_32, (6,)), message, F32, 1, (6,))
    state.buffer_view_assert(view(int32, (6,), EncodingType.OPAQUE), message, int(int32), 1, (6,))
    for wrong, expected in (
        ((int32, (6,)), "input0 element type mismatch; expected f32 \\(21000020\\) but have i32 \\(10000020\\)"),
        ((ElementType.FLOAT_32, (6,)), "rank mismatch; expected 2 but have 1; expected shape `2x3`, actual shape `6`"),
        ((ElementType.FLOAT_32, ()), "but have 0 \\(scalar\\)"),
        ((ElementType.FLOAT_32, (2, 2)), "dimension 1 mismatch; expected 3 but have 2"),
    ):
        with pytest.raises(InvalidArgumentError, match=expected):
            state.buffer_view_assert(view(*wrong), message, F32, 1, (2, 3))
    with pytest.raises(InvalidArgumentError, match="encoding mismatch"):
        state.buffer_view_assert(view(ElementType.FLOAT_32, (2, 3)), message, F32, 2, (2, 3))


@pytest.mark.vulkan
def test_trace(state: HalState, device: Device, capsys: pytest.CaptureFixture[str]) -> None:
    for memory in (HOST_LOCAL, DEVICE_LOCAL):
        buffer = buffer_of(state, device, np.array([1, -2, 3, 4], np.int32), memory)
        view = state.buffer_view_create(buffer, 0, 16, int(ElementType.INT_32), 1, (2, 2))
        state.buffer_view_trace(vm("dispatch 0"), (view, view))
    text = "=== dispatch 0 ===\n2x2xi32=[1 -2][3 4]\n2x2xi32=[1 -2][3 4]\n\n"
    assert capsys.readouterr().err == text * 2


# -- files -------------------------------------------------------------------------------------------


@pytest.mark.vulkan
def test_files(state: HalState, device: Device) -> None:
    data = VmBuffer(memoryview(bytes(range(64))))
    file = state.file_from_memory(device, -1, 1, data, 8, 16, 0)
    buffer = state.allocator_allocate(state.device_allocator(device), -1, DEVICE_LOCAL, USAGE, 16)
    done = state.fence_create(device, 0)
    state.queue_fill(device, -1, None, done, buffer, 0, 16, 0, 1, 0)
    read = state.fence_create(device, 0)
    state.queue_read(device, -1, done, read, file, 4, buffer, 2, 8, 0)
    written = state.fence_create(device, 0)
    store = bytearray(20)
    state.queue_write(device, -1, read, written, buffer, 1, HalFile(memoryview(store)), 3, 12, 0)
    assert wait_for(state, written) == 0
    expected = bytearray(20)
    expected[4:12] = bytes(range(12, 20))
    assert store == expected
    with pytest.raises(PermissionDeniedError, match="read-only"):
        state.queue_write(device, -1, None, None, buffer, 0, file, 0, 4, 0)
    with pytest.raises(PermissionDeniedError):
        state.file_from_memory(device, -1, 3, data, 0, -1, 0)
    for call in (
        lambda: state.file_from_memory(device, -1, 1, data, 60, 5, 0),
        lambda: state.queue_read(device, -1, None, None, file, 9, buffer, 0, 8, 0),
        lambda: state.queue_read(device, -1, None, None, file, 0, buffer, 9, 8, 0),
        lambda: state.queue_read(device, -1, None, None, file, 0, buffer, -1, 8, 0),
        lambda: state.queue_read(device, -1, None, None, file, 0, buffer, 0, -1, 0),
        lambda: state.queue_write(device, -1, None, None, buffer, 9, HalFile(memoryview(store)), 0, 8, 0),
        lambda: state.queue_write(device, -1, None, None, buffer, 0, HalFile(memoryview(store)), 13, 8, 0),
    ):
        with pytest.raises(OutOfRangeError):
            call()


@pytest.mark.vulkan
def test_writes_that_fail_leave_no_memory(state: HalState, device: Device) -> None:
    size, store = 1 << 20, HalFile(memoryview(bytearray(1 << 20)))
    buffer = state.allocator_allocate(state.device_allocator(device), -1, DEVICE_LOCAL, USAGE, size)
    before = device.allocator.statistics()
    for _ in range(5):
        ready, written = state.fence_create(device, 0), state.fence_create(device, 0)
        state.queue_write(device, -1, ready, written, buffer, 0, store, 0, size, 0)
        state.fence_fail(ready, 13)
        with pytest.raises(PumiceError, match="the program failed this fence"):
            wait_for(state, written)
    device.retire()
    after = device.allocator.statistics()
    assert (after.allocations, after.allocated) == (before.allocations, before.allocated)


@pytest.mark.vulkan
def test_a_context_that_is_dropped_leaves_nothing(device: Device) -> None:
    before = device.allocator.statistics().allocations
    state = HalState((device,))
    result = state.queue_alloca(device, -1, None, None, 0, DEVICE_LOCAL, USAGE, 64)
    state.queue_alloca(device, -1, None, None, 0, DEVICE_LOCAL, USAGE, 64)
    del state
    gc.collect()
    device.wait_idle()
    device.retire()
    assert device.allocator.statistics().allocations == before + 1
    del result
    gc.collect()
    device.retire()
    assert device.allocator.statistics().allocations == before


@pytest.mark.vulkan
def test_a_deallocated_buffer_lives_as_long_as_its_references(state: HalState, device: Device) -> None:
    # Compilers of release 3.11 go on using buffers of loops that they deallocated.
    device.trim()
    before = device.allocator.statistics().allocations
    buffer = state.queue_alloca(device, -1, None, None, 0, DEVICE_LOCAL, USAGE, 64)
    part = state.buffer_subspan(buffer, 16, 16)
    state.queue_dealloca(device, -1, None, None, buffer, 0)
    state.queue_fill(device, -1, None, None, buffer, 0, 64, 7, 1, 0)
    state.queue_fill(device, -1, None, None, part, 0, 16, 9, 1, 0)
    np.testing.assert_array_equal(array_of(state, buffer, np.uint8), [7] * 16 + [9] * 16 + [7] * 32)
    del buffer, part
    gc.collect()
    state.queue_fill(device, -1, None, None, state.queue_alloca(device, -1, None, None, 0, 0, USAGE, 4), 0, 4, 0, 1, 0)
    device.wait_idle()
    device.trim()
    assert device.allocator.statistics().allocations <= before
    with device.create_buffer(16) as foreign:
        done = state.fence_create(device, 0)
        state.queue_dealloca(device, -1, None, done, foreign, 0)
        assert done.query() and not foreign.is_closed
    with pytest.raises(ClosedError):
        state.queue_dealloca(device, -1, None, None, foreign, 0)


@pytest.mark.vulkan
def test_the_last_submission_holds_no_memory(state: HalState, device: Device) -> None:
    before = device.allocator.statistics().allocations
    buffer = buffer_of(state, device, np.zeros(16, np.uint8), DEVICE_LOCAL)
    done = state.fence_create(device, 0)
    state.queue_fill(device, -1, None, done, buffer, 0, 16, 1, 1, 0)
    assert wait_for(state, done) == 0
    del buffer
    device.wait_idle()
    state.close()
    device.retire()
    assert device.allocator.statistics().allocations == before
