"""Device memory: type choice, blocks, imports, budgets, trimming, statistics, and running out of it."""

from __future__ import annotations

import gc
import mmap
import traceback
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.devices.features import require_import
from support.devices.host_buffers import HOST

from pumice.hal.memory import MemoryAccess, MemoryTypeFlags
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.plan import PlanOptions
from pumice.hal_vulkan.instance.profile import MemoryProperty
from pumice.hal_vulkan.memory.memory_type import rank_memory_types
from pumice.hal_vulkan.vulkan.live_objects import live_objects
from pumice.status import (
    InvalidArgumentError,
    OutOfRangeError,
    PermissionDeniedError,
    PumiceError,
    ResourceExhaustedError,
)

pytestmark = pytest.mark.vulkan
BLOCK = 64 << 10
OUT_OF_DEVICE_MEMORY = -2


@pytest.fixture
def small(driver: Driver) -> Iterator[Device]:
    """A device with blocks of 64 KiB, and so dedicated memory from 32 KiB."""
    with Device(driver, options=PlanOptions(block_size=BLOCK)) as device:
        yield device


def run_copy(device: Device, source: object, target: object) -> None:
    done = device.create_semaphore()
    device.compute_queue.copy(source, target, signals=((done, 1),))  # type: ignore[arg-type]
    done.wait(1, 10)
    done.close()
    device.wait_idle(10)  # its own signal comes after those of the submission


@pytest.mark.parametrize(
    "flags",
    [
        MemoryTypeFlags.NONE,
        MemoryTypeFlags.DEVICE_LOCAL,
        MemoryTypeFlags.HOST_VISIBLE,
        MemoryTypeFlags.HOST_LOCAL,
        MemoryTypeFlags.HOST_LOCAL | MemoryTypeFlags.DEVICE_VISIBLE,
        MemoryTypeFlags.OPTIMAL_FOR_DEVICE,
        MemoryTypeFlags.OPTIMAL_FOR_HOST,
        MemoryTypeFlags.HOST_VISIBLE | MemoryTypeFlags.HOST_CACHED,
        MemoryTypeFlags.HOST_VISIBLE | MemoryTypeFlags.HOST_COHERENT | MemoryTypeFlags.DEVICE_LOCAL,
    ],
)
def test_the_type_chosen_is_the_best_ranked(device: Device, flags: MemoryTypeFlags) -> None:
    with device.create_buffer(100, memory_type=flags) as buffer:
        (block,) = device.allocator.statistics().blocks
        profile = device.profile
        best = rank_memory_types(
            profile.memory_types, profile.memory_heaps, device.allocator._factory.type_bits, flags
        )[0]
        assert block.memory_type_index == best
        properties = profile.memory_types[best].property_flags
        if flags & (MemoryTypeFlags.HOST_VISIBLE | MemoryTypeFlags.HOST_COHERENT):
            assert properties & MemoryProperty.HOST_VISIBLE and buffer.host_visible
        if flags & MemoryTypeFlags.HOST_COHERENT:
            assert properties & MemoryProperty.HOST_COHERENT
        assert buffer.host_visible == bool(properties & MemoryProperty.HOST_VISIBLE)


def test_unknown_flags_and_sizes_are_refused(device: Device) -> None:
    before = live_objects()
    with pytest.raises(InvalidArgumentError):
        device.create_buffer(10, memory_type=MemoryTypeFlags(0x80))
    with pytest.raises(InvalidArgumentError, match="negative"):
        device.create_buffer(-1)
    for size in (1.5, "4", None, True, np.float32(4)):
        with pytest.raises(InvalidArgumentError, match="int of bytes"):
            device.create_buffer(size)  # type: ignore[arg-type]
    assert live_objects() == before


def test_small_buffers_share_a_block(small: Device) -> None:
    buffers = [small.create_buffer(1000, memory_type=HOST) for _ in range(20)]
    seen = small.allocator.statistics()
    assert len(seen.blocks) == 1 and seen.blocks[0].kind == "shared"
    assert seen.allocations == 20 and seen.allocated == seen.peak == 20_000 and seen.reserved == BLOCK
    assert len({buffer.offset for buffer in buffers}) == 20
    ranges = sorted((buffer.offset, buffer.size) for buffer in buffers)
    assert all(a + s <= b for (a, s), (b, _) in zip(ranges, ranges[1:], strict=False))
    for index, buffer in enumerate(buffers):
        buffer.write(bytes([index]) * 1000)
    assert all(buffer.read() == bytes([index]) * 1000 for index, buffer in enumerate(buffers))
    for buffer in buffers:
        buffer.close()
    seen = small.allocator.statistics()
    assert seen.allocations == seen.allocated == 0 and seen.peak == 20_000
    assert seen.blocks[0].use.free_ranges == 1 and seen.blocks[0].use.fragmentation == 0.0


def test_a_second_block_comes_and_goes(small: Device) -> None:
    buffers = [small.create_buffer(BLOCK // 4, memory_type=HOST) for _ in range(9)]
    assert len(small.allocator.statistics().blocks) == 3
    for buffer in buffers:
        buffer.close()
    # One empty block is kept for the next allocation.
    assert len(small.allocator.statistics().blocks) == 1
    assert small.trim() == BLOCK
    assert small.allocator.statistics().blocks == () and small.trim() == 0


@pytest.mark.parametrize("size", [BLOCK // 2, BLOCK, BLOCK + 1, 3 * BLOCK - 1])
def test_large_buffers_get_memory_of_their_own(small: Device, size: int) -> None:
    other = small.create_buffer(16)
    buffer = small.create_buffer(size, memory_type=HOST)
    kinds = sorted(block.kind for block in small.allocator.statistics().blocks)
    assert kinds == ["dedicated", "shared"]
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()
    buffer.write(data)
    with small.create_buffer(size, memory_type=HOST) as copy:
        run_copy(small, buffer, copy)
        assert copy.read() == data
    buffer.close()
    assert [block.kind for block in small.allocator.statistics().blocks] == ["shared"]
    other.close()


def test_just_below_the_threshold_is_shared(small: Device) -> None:
    assert small.plan.dedicated_threshold == BLOCK // 2
    with small.create_buffer(BLOCK // 2 - 1):
        assert [block.kind for block in small.allocator.statistics().blocks] == ["shared"]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, BLOCK)), max_size=60))
def test_random_lifetimes_keep_contents_and_counts(driver: Driver, steps: list[tuple[bool, int]]) -> None:
    with Device(driver, options=PlanOptions(block_size=BLOCK), persistent_cache=False) as device:
        live: list[tuple[object, bytes]] = []
        for make, number in steps:
            if make:
                data = bytes([number % 251]) * number
                buffer = device.create_buffer(number, memory_type=HOST)
                buffer.write(data)
                live.append((buffer, data))
            elif live:
                buffer, data = live.pop(number % len(live))
                assert buffer.read() == data
                buffer.close()
            seen = device.allocator.statistics()
            assert seen.allocations == len(live)
            assert seen.allocated == sum(len(data) for _, data in live) <= seen.peak
            assert seen.reserved >= seen.allocated
        assert all(buffer.read() == data for buffer, data in live)


# ---- out of memory --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(1 << 31) + 1, 1 << 40, 1 << 62, (1 << 64) + 5, 1 << 200])
def test_huge_sizes_are_refused_with_sizes_and_heaps(device: Device, size: int) -> None:
    keep = device.create_buffer(64)
    before, seen = live_objects(), device.allocator.statistics()
    with pytest.raises(ResourceExhaustedError) as caught:
        device.create_buffer(size)
    assert f"{size:,} bytes" in caught.value.message and "heap 0" in caught.value.message
    assert "budget" in caught.value.message and "in use" in caught.value.message
    assert isinstance(caught.value, MemoryError)
    assert live_objects() == before and device.allocator.statistics() == seen
    keep.close()


class Failing:
    """Stands in for a native function: fails from the nth call on, or for chosen calls."""

    def __init__(self, real: Callable[..., int], fails: Callable[[int], bool], result: int) -> None:
        self.real, self.fails, self.result, self.calls = real, fails, result, 0

    def __call__(self, *arguments: object) -> int:
        self.calls += 1
        return self.result if self.fails(self.calls) else self.real(*arguments)


@pytest.mark.parametrize(
    ("function", "result"),
    [
        ("vkAllocateMemory", OUT_OF_DEVICE_MEMORY),
        ("vkAllocateMemory", -1),
        ("vkAllocateMemory", -10),
        ("vkCreateBuffer", -1),
        ("vkBindBufferMemory", OUT_OF_DEVICE_MEMORY),
        ("vkMapMemory", -5),
    ],
)
@pytest.mark.parametrize("size", [100, BLOCK])
def test_injected_failures_leave_nothing_half_made(small: Device, function: str, result: int, size: int) -> None:
    before = live_objects()
    real = getattr(small.fn, function)
    failing = Failing(real, lambda _: True, result)
    setattr(small.fn, function, failing)
    try:
        with pytest.raises(ResourceExhaustedError) as caught:
            small.create_buffer(size, memory_type=HOST)
    finally:
        setattr(small.fn, function, real)
    assert failing.calls and f"{size:,} bytes" in caught.value.message and "Heaps:" in caught.value.message
    assert caught.value.vk_result and caught.value.vk_result.startswith("VK_ERROR_")
    assert live_objects() == before
    with small.create_buffer(size, memory_type=HOST) as buffer:
        buffer.write(b"works")
        assert buffer.read(0, 5) == b"works"


def test_heap_use_is_not_counted_for_what_failed(small: Device) -> None:
    if small.plan.memory_budget:
        pytest.skip("the driver measures heap use itself here (VK_EXT_memory_budget)")
    real = small.fn.vkAllocateMemory
    small.fn.vkAllocateMemory = Failing(real, lambda _: True, OUT_OF_DEVICE_MEMORY)
    with pytest.raises(ResourceExhaustedError):
        small.create_buffer(10)
    small.fn.vkAllocateMemory = real
    assert all(heap.usage == 0 for heap in small.allocator.budgets())


def test_a_smaller_block_is_tried_where_a_whole_one_does_not_fit(small: Device) -> None:
    real = small.fn.vkAllocateMemory
    small.fn.vkAllocateMemory = Failing(real, lambda call: call <= 2, OUT_OF_DEVICE_MEMORY)
    with small.create_buffer(1000):
        (block,) = small.allocator.statistics().blocks
        assert block.use.size == 1024
    small.fn.vkAllocateMemory = real


def test_empty_blocks_are_given_back_before_giving_up(small: Device) -> None:
    small.create_buffer(100).close()
    assert len(small.allocator.statistics().blocks) == 1
    real = small.fn.vkAllocateMemory
    freed: list[int] = []
    real_free = small.fn.vkFreeMemory
    small.fn.vkFreeMemory = lambda *a: (freed.append(1), real_free(*a))[1]
    small.fn.vkAllocateMemory = Failing(real, lambda _: not freed, OUT_OF_DEVICE_MEMORY)
    with small.create_buffer(BLOCK):
        assert [block.kind for block in small.allocator.statistics().blocks] == ["dedicated"]
    small.fn.vkAllocateMemory, small.fn.vkFreeMemory = real, real_free


def test_a_failing_allocation_elsewhere_is_no_resource_exhaustion(small: Device) -> None:
    real = small.fn.vkAllocateMemory
    small.fn.vkAllocateMemory = Failing(real, lambda _: True, -13)
    before = live_objects()
    with pytest.raises(PumiceError) as caught:
        small.create_buffer(10)
    small.fn.vkAllocateMemory = real
    assert not isinstance(caught.value, ResourceExhaustedError) and caught.value.vk_result == "VK_ERROR_UNKNOWN"
    assert live_objects() == before


# ---- budgets --------------------------------------------------------------------------------------------------------


def test_budgets_follow_allocations(small: Device) -> None:
    before = small.allocator.budgets()
    assert len(before) == len(small.profile.memory_heaps)
    for heap, native in zip(before, small.profile.memory_heaps, strict=True):
        assert heap.size == native.size and heap.device_local == bool(native.flags & 1)
        assert heap.measured == small.plan.memory_budget
    with small.create_buffer(8 << 20):
        during = small.allocator.budgets()
        assert sum(heap.usage for heap in during) >= sum(heap.usage for heap in before) + (
            0 if before[0].measured else 8 << 20
        )
    if not before[0].measured:
        assert small.allocator.budgets() == before


# ---- host memory in place -------------------------------------------------------------------------------------------


def aligned_memory(device: Device, size: int) -> tuple[mmap.mmap, int]:
    """Page-aligned host memory; mmap is what the operating system aligns."""
    alignment = require_import(device)
    size = -(-size // alignment) * alignment
    return mmap.mmap(-1, size), size


def test_aligned_import_is_in_place_both_ways(device: Device) -> None:
    memory, size = aligned_memory(device, 10_000)
    memory[:5] = b"hello"
    view = memoryview(memory)
    buffer = device.import_buffer(view, copy=False)
    assert buffer is not None
    assert [block.kind for block in device.allocator.statistics().blocks] == ["imported"]
    other = device.create_buffer(size, memory_type=HOST)
    run_copy(device, buffer, other)
    assert other.read(0, 5) == b"hello"
    # The host writes, the device sees it; the device writes, the host sees it.
    memory[100:105] = b"later"
    run_copy(device, buffer, other)
    assert other.read(100, 5) == b"later"
    other.write(b"device" * 100, 2000)
    run_copy(device, other, buffer)
    assert memory[2000:2600] == b"device" * 100
    with device.create_command_buffer() as commands, device.create_semaphore() as done:
        commands.begin().fill(buffer, b"\xaa", 3001, 7)
        device.compute_queue.submit((commands.end(),), signals=((done, 1),))
        done.wait(1, 10)
    assert memory[3000:3009] == b"\0" + b"\xaa" * 7 + b"\0"
    assert np.frombuffer(buffer.map(3001, 7), np.uint8).tolist() == [0xAA] * 7
    buffer.close()
    other.close()
    gc.collect()
    device.trim()
    assert device.allocator.statistics().blocks == ()
    view.release()


@pytest.mark.parametrize("offset", [0, 16, 256, 4096 + 64])
def test_aligned_enough_inside_pages_is_in_place(device: Device, offset: int) -> None:
    memory, _ = aligned_memory(device, 20_000)
    buffer = device.import_buffer(memoryview(memory)[offset : offset + 5000], copy=False)
    step = device.profile.limits.min_storage_buffer_offset_alignment
    if offset % step:
        assert buffer is None
        return
    assert buffer is not None and buffer.size == 5000
    with device.create_buffer(5000, memory_type=HOST) as source:
        source.write(bytes(range(250)) * 20)
        run_copy(device, source, buffer)
    assert memory[offset : offset + 5000] == bytes(range(250)) * 20
    assert memory[:offset] == bytes(offset) and memory[offset + 5000 : offset + 6000] == bytes(1000)


@pytest.mark.parametrize("offset", [1, 2, 3, 7, 9])
def test_unaligned_import_is_a_copy_and_never_an_error(device: Device, offset: int) -> None:
    data = bytearray(range(256)) * 4
    view = memoryview(data)[offset:]
    assert device.import_buffer(view, copy=False) is None
    buffer = device.import_buffer(view)
    assert buffer is not None and buffer.read() == bytes(view)
    data[offset] ^= 0xFF
    assert buffer.read() != bytes(view)


def test_imported_memory_is_kept_alive(device: Device) -> None:
    alignment = require_import(device)
    raw = np.zeros(4 * alignment, np.uint8)
    start = -raw.ctypes.data % alignment
    array = raw[start : start + 2 * alignment]
    array[:] = 7
    buffer = device.import_buffer(memoryview(array), copy=False)
    assert buffer is not None
    del raw, array
    gc.collect()
    junk = [np.full(4 * alignment, 9, np.uint8) for _ in range(50)]
    with device.create_buffer(2 * alignment, memory_type=HOST) as target:
        run_copy(device, buffer, target)
        assert set(target.read()) == {7}
    del junk


def test_a_bytearray_cannot_be_resized_while_it_is_imported(device: Device) -> None:
    data = bytearray(1 << 16)
    buffer = device.import_buffer(data)
    assert buffer is not None
    imported = any(block.kind == "imported" for block in device.allocator.statistics().blocks)
    if imported:
        with pytest.raises(BufferError):
            data.append(1)
    buffer.close()
    device.trim()
    gc.collect()
    data.append(1)


def test_read_only_memory_is_not_written(device: Device) -> None:
    alignment = device.plan.host_import_alignment or 4096
    data = bytes(4 * alignment)
    address = np.frombuffer(data, np.uint8).ctypes.data
    start = -address % alignment
    for view in (memoryview(data)[start : start + alignment], memoryview(data)[start + 1 : start + 99]):
        buffer = device.import_buffer(view)
        assert buffer is not None and buffer.access == MemoryAccess.READ
        with pytest.raises(PermissionDeniedError):
            buffer.write(b"x")
        with pytest.raises(PermissionDeniedError):
            buffer.map()
        with device.create_command_buffer() as commands:
            commands.begin()
            with pytest.raises(PermissionDeniedError):
                commands.fill(buffer, b"x")
            with pytest.raises(PermissionDeniedError):
                commands.update(buffer, b"x")
            with device.create_buffer(16) as other:
                with pytest.raises(PermissionDeniedError):
                    commands.copy(other, buffer, 4)
                commands.copy(buffer, other, 4)
        buffer.close()
    assert data == bytes(len(data))


def test_odd_imports(device: Device) -> None:
    empty = device.import_buffer(b"")
    assert empty is not None and empty.size == 0 and empty.read() == b""
    assert device.import_buffer(bytearray(), copy=False) is None
    with pytest.raises(InvalidArgumentError, match="contiguous"):
        device.import_buffer(memoryview(bytes(100))[::2])
    floats = np.arange(1000, dtype=np.float32).reshape(10, 100)
    buffer = device.import_buffer(memoryview(floats))
    assert buffer is not None and buffer.size == 4000 and buffer.read() == floats.tobytes()
    with pytest.raises(OutOfRangeError):
        buffer.read(0, 4001)


def test_a_failing_import_falls_back_to_a_copy(device: Device) -> None:
    memory, size = aligned_memory(device, 4096)
    memory[:4] = b"abcd"
    before = live_objects()
    real = device.fn.vkAllocateMemory
    device.fn.vkAllocateMemory = Failing(real, lambda call: call == 1, -1000072003)
    buffer = device.import_buffer(memoryview(memory))
    device.fn.vkAllocateMemory = real
    assert buffer is not None and buffer.read(0, 4) == b"abcd"
    assert [block.kind for block in device.allocator.statistics().blocks] == ["shared"]
    buffer.close()
    device.trim()
    assert live_objects() == before


def test_a_free_that_comes_after_the_device_was_closed(driver: Driver) -> None:
    """As from a thread that ends a submission while another one closes the device."""
    device = Device(driver)
    allocation = device.create_buffer(64)._allocation
    device.close()
    before = live_objects()
    device.allocator.free(allocation)
    assert live_objects() == before


def test_an_interrupted_copy_has_no_view_in_use(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11 and 3.12 crash in the collector where the frames of an exception have a view that is in use."""

    def interrupted(*_: object) -> object:
        raise KeyboardInterrupt

    def import_host(*_: object) -> None:
        interrupted()

    size, released = 8 << 20, 0
    monkeypatch.setattr(device.allocator, "import_host", import_host)
    with device.create_buffer(size, memory_type=HOST) as buffer:
        monkeypatch.setattr(buffer, "_pointer_for", interrupted)
        for copy in (buffer.write, buffer.read_into, device.import_buffer):
            with pytest.raises(KeyboardInterrupt) as raised:
                copy(memoryview(bytearray(size)))
            for frame, _ in traceback.walk_tb(raised.tb):
                for value in frame.f_locals.values():
                    if isinstance(value, memoryview):
                        value.release()
                        released += 1
    assert released >= 3
