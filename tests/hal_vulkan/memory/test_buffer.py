"""Buffers: ranges checked before any native call, subspans, host views, and use after everything was closed."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.devices.host_buffers import HOST

from pumice.hal.memory import BufferUsage, MemoryAccess
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.process import finish_teardowns
from pumice.hal_vulkan.vulkan.live_objects import live_objects
from pumice.status import (
    ClosedError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    PermissionDeniedError,
    PumiceError,
)

pytestmark = pytest.mark.vulkan
NATIVE = ("vkFlushMappedMemoryRanges", "vkInvalidateMappedMemoryRanges", "vkCmdFillBuffer", "vkCmdCopyBuffer")
NATIVE += ("vkCmdUpdateBuffer", "vkCmdDispatch", "vkCmdDispatchIndirect", "vkCmdPushConstants")


@pytest.fixture
def no_native(device: Device) -> Iterator[list[str]]:
    """Names of the native functions that touch memory, in the order called."""
    called: list[str] = []
    real = {name: getattr(device.fn, name) for name in NATIVE}
    for name, function in real.items():

        def spy(*arguments: object, name: str = name, function: object = function) -> object:
            called.append(name)
            return function(*arguments)  # type: ignore[operator]

        setattr(device.fn, name, spy)
    yield called
    for name, function in real.items():
        setattr(device.fn, name, function)


def test_ranges_are_checked_before_any_native_call(device: Device, no_native: list[str]) -> None:
    buffer = device.create_buffer(100, memory_type=HOST)
    before = buffer.read()
    with device.create_command_buffer() as commands, device.create_buffer(50, memory_type=HOST) as other:
        commands.begin()
        wrong = [
            lambda: buffer.read(0, 101),
            lambda: buffer.read(-1, 1),
            lambda: buffer.read(101),
            lambda: buffer.read(5, -1),
            lambda: buffer.read(1 << 70, 1),
            lambda: buffer.write(bytes(101)),
            lambda: buffer.write(b"x", 100),
            lambda: buffer.write(b"x", -1),
            lambda: buffer.map(50, 51),
            lambda: buffer.map(-4),
            lambda: buffer.subspan(0, 101),
            lambda: buffer.subspan(101),
            lambda: buffer.subspan(-1),
            lambda: buffer.flush(0, 101),
            lambda: buffer.flush(200),
            lambda: buffer.invalidate(99, 2),
            lambda: buffer.read_into(memoryview(bytearray(101))),
            lambda: commands.fill(buffer, b"\1", 0, 101),
            lambda: commands.fill(buffer, b"\1", 101),
            lambda: commands.fill(buffer, b"\1", -4, 4),
            lambda: commands.update(buffer, bytes(8), 96),
            lambda: commands.update(buffer, bytes(8), -8),
            lambda: commands.copy(buffer, other),
            lambda: commands.copy(buffer, other, 51),
            lambda: commands.copy(buffer, other, 8, source_offset=96),
            lambda: commands.copy(buffer, other, 8, target_offset=-8),
            lambda: commands.copy(buffer, other, -1),
        ]
        for call in wrong:
            with pytest.raises(OutOfRangeError) as caught:
                call()
            assert "bytes" in caught.value.message
        for pattern in (b"", b"abc", b"abcde"):
            with pytest.raises(InvalidArgumentError, match="1, 2 or 4"):
                commands.fill(buffer, pattern, 0, 4)
        with pytest.raises(InvalidArgumentError, match="multiple"):
            commands.fill(buffer, b"ab", 0, 3)
        assert no_native == []
    assert buffer.read() == before


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_subspans_of_subspans_against_bytes(driver: Driver, data: st.DataObject) -> None:
    with Device(driver, persistent_cache=False) as device:
        size = data.draw(st.integers(0, 300))
        model = np.arange(size, dtype=np.uint8)
        view, span = model, device.create_buffer(size, memory_type=HOST)
        span.write(model.tobytes())
        for _ in range(data.draw(st.integers(0, 5))):
            offset = data.draw(st.integers(0, len(view)))
            length = data.draw(st.one_of(st.none(), st.integers(0, len(view) - offset)))
            span = span.subspan(offset, length)
            view = view[offset:] if length is None else view[offset : offset + length]
        assert span.size == len(view) and span.read() == view.tobytes()
        if len(view):
            at = data.draw(st.integers(0, len(view) - 1))
            span.write(b"\xff", at)
            view[at] = 0xFF
            np.testing.assert_array_equal(np.frombuffer(span.map(), np.uint8), view)
            root = span
            while root.parent is not None:
                root = root.parent
            assert root.read() == model.tobytes()


def test_closing_a_subspan_closes_the_view_only(device: Device) -> None:
    buffer = device.create_buffer(64, memory_type=HOST)
    first, second = buffer.subspan(0, 32), buffer.subspan(16)
    inner = first.subspan(8)
    first.close()
    assert first.is_closed and inner.is_closed and not second.is_closed and not buffer.is_closed
    with pytest.raises(ClosedError):
        inner.read()
    second.write(b"still here")
    assert buffer.read(16, 10) == b"still here"
    buffer.close()
    assert second.is_closed
    with pytest.raises(ClosedError):
        second.read()


def test_subspans_nested_without_end(device: Device) -> None:
    buffer = device.create_buffer(8, memory_type=HOST)
    span = buffer
    for _ in range(5000):
        span = span.subspan(0)
    assert not span.is_closed and len(span.read()) == 8
    buffer.close()
    assert span.is_closed
    # Let go from the end: the chain itself must not be taken apart recursively.
    while span.parent is not None:
        span = span.parent


def test_write_takes_whole_objects_whatever_their_shape(device: Device) -> None:
    with device.create_buffer(64, memory_type=HOST) as buffer:
        array = np.arange(8, dtype=np.float64).reshape(2, 4)
        for data in (array, memoryview(array), array.tobytes(), bytearray(array.tobytes())):
            buffer.write(bytes(64))
            buffer.write(data)  # type: ignore[arg-type]
            assert buffer.read() == array.tobytes()
        with pytest.raises(OutOfRangeError):
            buffer.write(np.zeros(9))  # type: ignore[arg-type]
        for strided in (array[:, ::2], array.T):
            with pytest.raises(InvalidArgumentError, match="contiguous"):
                buffer.write(strided)  # type: ignore[arg-type]
        buffer.write(b"", 64)
        assert buffer.read(64) == b"" and buffer.read(3, 0) == b""
        target = np.zeros((2, 4))
        buffer.read_into(memoryview(target))
        np.testing.assert_array_equal(target, array)
        with pytest.raises(InvalidArgumentError, match="read-only"):
            buffer.read_into(memoryview(bytes(64)))


def test_access_bits_hold_for_the_host(device: Device) -> None:
    with device.create_buffer(16, memory_type=HOST, access=MemoryAccess.READ) as buffer:
        assert len(buffer.read()) == 16
        for call in (lambda: buffer.write(b"x"), buffer.map, lambda: buffer.subspan(4).write(b"x")):
            with pytest.raises(PermissionDeniedError):
                call()


def test_usage_bits_hold_for_queues(device: Device) -> None:
    with (
        device.create_buffer(16, usage=BufferUsage.DISPATCH_STORAGE) as storage,
        device.create_buffer(16, usage=BufferUsage.TRANSFER_SOURCE) as source,
        device.create_buffer(16) as both,
        device.create_command_buffer() as commands,
    ):
        commands.begin()
        for call in (
            lambda: commands.fill(storage, b"\0"),
            lambda: commands.update(source, b"1234"),
            lambda: commands.copy(storage, both),
            lambda: commands.copy(both, source),
        ):
            with pytest.raises(PermissionDeniedError, match="TRANSFER_"):
                call()
        commands.copy(source, both)
        commands.end()


def test_memory_the_host_cannot_see_says_so(device: Device) -> None:
    buffer = device.create_buffer(16)
    buffer._pointer = None  # what device-local memory of a discrete GPU looks like
    for call in (buffer.read, buffer.map, lambda: buffer.write(b"1"), buffer.flush, buffer.invalidate):
        with pytest.raises(FailedPreconditionError, match="HOST_VISIBLE"):
            call()
    assert not buffer.host_visible


def test_memory_that_is_not_coherent_is_flushed_in_whole_atoms(device: Device, no_native: list[str]) -> None:
    buffer = device.create_buffer(1000, memory_type=HOST)
    block = buffer._allocation.block
    seen: list[tuple[int, int]] = []
    real = device.fn.vkFlushMappedMemoryRanges
    device.fn.vkFlushMappedMemoryRanges = lambda d, n, r: (seen.append((r.offset, r.size)), real(d, n, r))[1]
    block.coherent = False
    atom = device.profile.limits.non_coherent_atom_size
    buffer.write(b"abc", 501)
    assert buffer.read(501, 3) == b"abc" and no_native.count("vkInvalidateMappedMemoryRanges") == 1
    buffer.flush()
    buffer.subspan(7, 0).flush()
    assert len(seen) == 2
    for offset, size in seen:
        assert offset % atom == 0 and (size % atom == 0 or size == (1 << 64) - 1)
    (start, size), address = seen[0], buffer.offset + 501
    assert start <= address and start + size >= address + 3
    block.coherent = True
    device.fn.vkFlushMappedMemoryRanges = real


# ---- views that outlive what they look into -------------------------------------------------------------------------


def test_a_view_outlives_its_buffer(device: Device) -> None:
    buffer = device.create_buffer(4096, memory_type=HOST)
    buffer.write(bytes(range(256)) * 16)
    array = np.frombuffer(buffer.map(), np.uint8)
    part = np.frombuffer(buffer.map(100, 28), np.uint32)
    buffer.close()
    others = [device.create_buffer(4096, memory_type=HOST) for _ in range(50)]
    for other in others:
        other.write(b"\xee" * 4096)
    assert array.tobytes() == bytes(range(256)) * 16
    assert device.allocator.statistics().allocations == 51
    del array
    assert device.allocator.statistics().allocations == 51
    assert part.tobytes() == bytes(range(100, 128))
    del part
    gc.collect()
    assert device.allocator.statistics().allocations == 50
    for other in others:
        other.close()
    assert device.allocator.statistics().allocations == 0


def test_a_view_outlives_the_device(driver: Driver) -> None:
    before = live_objects()
    device = Device(driver)
    buffer = device.create_buffer(1 << 20, memory_type=HOST)
    array = np.frombuffer(buffer.map(), np.uint8)
    array.setflags(write=True)
    semaphore = device.create_semaphore()
    device.compute_queue.fill(buffer, b"\x5a", signals=((semaphore, 1),))
    device.close()
    assert device.is_closed and (array == 0x5A).all()
    array[:] = 3
    half = array[::2]
    del array
    assert half.sum() == 3 * (1 << 19)
    assert live_objects()["device"] == before.get("device", 0) + 1
    with pytest.raises(ClosedError):
        buffer.read()
    buffer.close()
    del half
    gc.collect()
    finish_teardowns()
    assert live_objects() == before


def test_views_in_garbage_cycles_do_no_harm(device: Device) -> None:
    for _ in range(200):
        buffer = device.create_buffer(300, memory_type=HOST)
        cycle: list[object] = [buffer.map()]
        cycle.append(cycle)
        buffer.close()
        del cycle
    gc.collect()
    device.trim()
    assert device.allocator.statistics().allocations == 0


def test_views_of_imported_memory_keep_it(device: Device) -> None:
    data = bytearray(1 << 16)
    buffer = device.import_buffer(data)
    assert buffer is not None
    view = buffer.map()
    buffer.close()
    view[5] = 77
    if any(block.kind == "imported" for block in device.allocator.statistics().blocks):
        assert data[5] == 77
        with pytest.raises(BufferError):
            data.clear()
    view.release()
    del view
    gc.collect()
    assert device.allocator.statistics().allocations == 0


# ---- closed ---------------------------------------------------------------------------------------------------------


def test_a_closed_buffer_refuses_everything(device: Device) -> None:
    buffer = device.create_buffer(16, memory_type=HOST)
    buffer.close()
    buffer.close()
    assert buffer.is_closed and "closed" in repr(buffer)
    calls = [buffer.read, buffer.map, lambda: buffer.write(b""), buffer.flush, buffer.invalidate]
    calls += [lambda: buffer.subspan(0), lambda: buffer.read_into(memoryview(bytearray(1)))]
    for call in calls:
        with pytest.raises(ClosedError):
            call()


def test_a_buffer_of_a_closed_device_refuses_everything(driver: Driver) -> None:
    device = Device(driver)
    buffer = device.create_buffer(16, memory_type=HOST)
    span = buffer.subspan(4)
    device.close()
    for each in (buffer, span):
        assert each.is_closed
        calls = [each.read, each.map, lambda e=each: e.write(b"1"), each.flush, lambda e=each: e.subspan(0)]
        for call in calls:
            with pytest.raises(ClosedError, match="device"):
                call()
    span.close()
    buffer.close()


def test_a_buffer_closed_in_flight_is_kept_until_the_work_is_done(device: Device) -> None:
    source = device.create_buffer(1 << 20, memory_type=HOST)
    target = device.create_buffer(1 << 20, memory_type=HOST)
    source.write(b"\x11" * (1 << 20))
    gate, done = device.create_semaphore(), device.create_semaphore()
    # Held on the host first, and then in flight.
    device.compute_queue.copy(source, target, waits=((gate, 1),), signals=((done, 1),))
    source.close()
    reuse = [device.create_buffer(1 << 20, memory_type=HOST) for _ in range(4)]
    for buffer in reuse:
        buffer.write(b"\x99" * (1 << 20))
    gate.signal(1)
    done.wait(1, 10)
    assert target.read() == b"\x11" * (1 << 20)
    device.wait_idle()
    device.retire()
    assert device.allocator.statistics().allocations == 5
    for buffer in (target, *reuse):
        buffer.close()


def test_zero_bytes(device: Device) -> None:
    with device.create_buffer(0, memory_type=HOST) as buffer:
        assert buffer.read() == b"" and buffer.subspan(0).size == 0
        buffer.write(b"")
        assert buffer.map().nbytes == 0
        with device.create_command_buffer() as commands:
            commands.begin()
            commands.fill(buffer, b"x")
            commands.update(buffer, b"")
            commands.copy(buffer, buffer)
            commands.end()
        with pytest.raises(PumiceError):
            buffer.write(b"1")
