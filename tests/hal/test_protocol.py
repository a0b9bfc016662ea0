"""What every device has to do: the same tests on the reference device and on Vulkan."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import queue as queue_library
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from pumice import hal
from pumice.hal.command_buffer import BindingSlot
from pumice.hal.device import Device
from pumice.hal.fence import Fence, wait_any
from pumice.hal.memory import BufferUsage, MemoryAccess, MemoryTypeFlags
from pumice.hal_reference.device import Device as ReferenceDevice
from pumice.hal_vulkan.instance.driver import Driver
from pumice.status import (
    CancelledError,
    ClosedError,
    DataLossError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
)

HOST = MemoryTypeFlags.HOST_LOCAL | MemoryTypeFlags.DEVICE_VISIBLE
LONG = 30.0


@pytest.fixture(params=["reference", pytest.param("vulkan", marks=pytest.mark.vulkan)])
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """A fresh device of each kind."""
    if request.param == "reference":
        with ReferenceDevice() as made:
            yield made
        return
    from pumice.hal_vulkan.device import Device as VulkanDevice

    driver: Driver = request.getfixturevalue("driver")
    with VulkanDevice(driver) as made:
        yield made


def submit(device: Device, commands: hal.command_buffer.CommandBuffer, *table: object) -> None:
    """Runs commands and waits for them."""
    with device.create_semaphore() as done:
        device.compute_queue.submit((commands,), signals=((done, 1),), bindings=table or None)
        done.wait(1, LONG)


@pytest.mark.parametrize("package", ["hal_reference", "hal_vulkan"])
def test_a_device_has_all_that_the_protocol_asks_for(package: str) -> None:
    """Abstract methods of ``hal/`` are overridden in every class below, or stay abstract on the way there."""
    room = importlib.import_module(f"pumice.{package}")
    for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
        importlib.import_module(found.name)
    protocol = [
        member
        for found in pkgutil.iter_modules(hal.__path__)
        for member in vars(importlib.import_module(f"pumice.hal.{found.name}")).values()
        if inspect.isclass(member) and member.__module__.startswith("pumice.hal.")
    ]
    held = 0
    for base in protocol:
        abstract = {name for name, value in inspect.getmembers(base) if getattr(value, "__isabstractmethod__", False)}
        leaves = [one for one in subclasses(base) if one.__module__.startswith(room.__name__) and not subclasses(one)]
        for leaf in leaves:
            missing = {name for name in abstract if getattr(getattr(leaf, name), "__isabstractmethod__", False)}
            assert not missing, f"{leaf} lacks {missing}"
            held += len(abstract)
    assert held > 50


def subclasses(kind: type) -> list[type]:
    """All of them."""
    direct = type.__subclasses__(kind)
    return direct + [deeper for one in direct for deeper in subclasses(one)]


# -- buffers ---------------------------------------------------------------------------------------------


def test_bytes_go_in_and_out(device: Device) -> None:
    with device.create_buffer(100, memory_type=HOST) as buffer:
        assert buffer.host_visible and buffer.size == 100 and buffer.device is device
        buffer.write(bytes(range(100)))
        part = buffer.subspan(10, 20)
        assert (part.offset - buffer.offset, part.size, part.parent) == (10, 20, buffer)
        assert part.read(1, 3) == b"\x0b\x0c\x0d"
        part.write(b"abc", 2)
        into = bytearray(5)
        buffer.read_into(memoryview(into), 11)
        assert into == b"\x0babc\x0f"
        view = part.map()
        view[0] = 255
        part.flush()
        assert buffer.read(10, 1) == b"\xff"
        view.release()
        with pytest.raises(OutOfRangeError, match=r"bytes \[90, 110\) do not lie within the buffer of 100 bytes"):
            buffer.read(90, 20)
        with pytest.raises(InvalidArgumentError, match="read-only"):
            buffer.read_into(memoryview(b"12345"))
    assert part.is_closed
    with pytest.raises(ClosedError):
        part.read()
    with pytest.raises(InvalidArgumentError, match="must not be negative"):
        device.create_buffer(-1)


def test_access_and_usage_are_kept(device: Device) -> None:
    with device.create_buffer(16, memory_type=HOST, access=MemoryAccess.READ) as fixed:
        with pytest.raises(PermissionDeniedError, match="no WRITE"):
            fixed.write(b"x")
        with device.create_command_buffer() as commands, pytest.raises(PermissionDeniedError, match="may only be read"):
            commands.begin().fill(fixed, b"\0")
    with (
        device.create_buffer(16, usage=BufferUsage.TRANSFER_SOURCE) as source,
        device.create_command_buffer() as commands,
        pytest.raises(PermissionDeniedError, match="without usage TRANSFER_TARGET"),
    ):
        commands.begin().update(source, b"1234")


def test_a_shared_buffer_closes_both(device: Device) -> None:
    buffer = device.create_buffer(16, memory_type=HOST)
    shared = buffer.shared()
    buffer.write(b"0123456789abcdef")
    assert shared.read(4, 4) == b"4567"
    shared.close()
    assert buffer.is_closed


# -- semaphores ------------------------------------------------------------------------------------------


def test_a_payload_only_goes_up(device: Device) -> None:
    with device.create_semaphore(3, "counter") as semaphore:
        assert semaphore.query() == 3 and not semaphore.has_reached(4)
        semaphore.signal(5)
        assert semaphore.has_reached(5) and "counter reached 5" in repr(semaphore)
        with pytest.raises(InvalidArgumentError, match="only increases"):
            semaphore.signal(5)
        with pytest.raises(DeadlineExceededError, match="did not reach 6"):
            semaphore.wait(6, 0.01)
        seen: list[object] = []
        semaphore.notify(5, seen.append)
        cancelled = semaphore.notify(6, seen.append)
        assert cancelled.cancel() and seen == [None]
        with pytest.raises(InvalidArgumentError):
            device.create_semaphore(-1)


def test_a_host_signal_wakes_a_waiting_thread(device: Device) -> None:
    with device.create_semaphore() as semaphore:
        thread = threading.Timer(0.05, semaphore.signal, (1,))
        thread.start()
        semaphore.wait(1, LONG)
        thread.join()


def test_failure_is_sticky(device: Device) -> None:
    with device.create_semaphore() as semaphore:
        failures: queue_library.SimpleQueue[object] = queue_library.SimpleQueue()
        semaphore.notify(1, failures.put)
        semaphore.fail(DataLossError("gone"))
        semaphore.fail(CancelledError("too late"))
        semaphore.notify(1, failures.put)
        assert [str(failures.get(timeout=LONG)) for _ in range(2)] == ["DATA_LOSS: gone"] * 2
        for use in (semaphore.query, lambda: semaphore.wait(1), lambda: semaphore.has_reached(0)):
            with pytest.raises(DataLossError, match="gone"):
                use()


def test_fences_join_semaphores(device: Device) -> None:
    with device.create_semaphore() as one, device.create_semaphore() as two:
        fence = Fence([(one, 2), (two, 1)])
        one.signal(2)
        assert not fence.query() and wait_any([(two, 1), (one, 1)], LONG) == 1
        two.signal(1)
        fence.wait(LONG)
        assert fence.query()


# -- queues ----------------------------------------------------------------------------------------------


def test_commands_run_in_order(device: Device) -> None:
    with device.create_buffer(64, memory_type=HOST) as buffer, device.create_buffer(64) as other:
        commands = device.create_command_buffer(name="steps").begin()
        commands.fill(other, b"\x01\x02")
        commands.execution_barrier()
        commands.update(other, b"xyz", 5)
        commands.execution_barrier()
        commands.copy(other, buffer, 20, source_offset=3, target_offset=1)
        commands.end()
        for _ in range(2):
            buffer.write(bytes(64))
            submit(device, commands)
            assert buffer.read(0, 22) == b"\0" + b"\x02\x01xyz" + b"\x01\x02" * 7 + b"\x01" + b"\0"
        commands.close()
        with pytest.raises(ClosedError):
            submit(device, commands)


def test_a_table_fills_slots(device: Device) -> None:
    commands = device.create_command_buffer(binding_capacity=2).begin()
    commands.copy(BindingSlot(0, 4, 8), BindingSlot(1))
    commands.end()
    with device.create_buffer(16, memory_type=HOST) as source, device.create_buffer(8, memory_type=HOST) as target:
        source.write(bytes(range(16)))
        submit(device, commands, source, target)
        assert target.read() == bytes(range(4, 12))
        with pytest.raises((InvalidArgumentError, OutOfRangeError)):
            submit(device, commands, source)
    commands.close()


def test_a_one_shot_buffer_runs_once(device: Device) -> None:
    with device.create_buffer(16) as buffer:
        commands = device.create_command_buffer(one_shot=True).begin()
        commands.fill(buffer, b"\0")
        with pytest.raises(FailedPreconditionError, match="is being recorded|is recording"):
            commands.begin()
        commands.end()
        submit(device, commands)
        with pytest.raises(FailedPreconditionError, match="one-shot and was submitted"):
            submit(device, commands)
        with pytest.raises(FailedPreconditionError, match="not being recorded"):
            commands.execution_barrier()


def test_what_commands_refuse(device: Device) -> None:
    with device.create_buffer(16) as buffer, device.create_command_buffer() as commands:
        commands.begin()
        for use, error in (
            (lambda: commands.fill(buffer, b"123"), InvalidArgumentError),
            (lambda: commands.fill(buffer, b"1234", 0, 6), InvalidArgumentError),
            (lambda: commands.update(buffer, b"1234", 13), OutOfRangeError),
            (lambda: commands.copy(buffer, buffer, 8, target_offset=4), InvalidArgumentError),
            (lambda: commands.copy(BindingSlot(0), buffer), InvalidArgumentError),
            (commands.end_label, FailedPreconditionError),
        ):
            with pytest.raises(error):
                use()
        commands.begin_label("a part")
        commands.end_label()


def test_held_work_blocks_no_other(device: Device) -> None:
    """A submission whose waits nobody has scheduled waits on the host; the rest of the queue goes on."""
    work = device.compute_queue
    gate, late, early = (device.create_semaphore() for _ in range(3))
    with device.create_buffer(4, memory_type=HOST) as buffer:
        held = device.create_command_buffer().begin()
        held.fill(buffer, b"h")
        other = device.create_command_buffer().begin()
        other.fill(buffer, b"o")
        assert work.submit((held.end(),), waits=((gate, 1),), signals=((late, 1),)) == 0
        work.submit((other.end(),), signals=((early, 1),))
        early.wait(1, LONG)
        assert buffer.read() == b"oooo" and not late.has_reached(1)
        gate.signal(1)
        late.wait(1, LONG)
        assert buffer.read() == b"hhhh"
        work.submit((other,), waits=((late, 1),), signals=((early, 2),))
        early.wait(2, LONG)
        for closed in (held, other, gate, late, early):
            closed.close()


def test_a_failed_wait_fails_the_signals(device: Device) -> None:
    work = device.compute_queue
    gate, done = device.create_semaphore(), device.create_semaphore()
    work.submit((), waits=((gate, 1),), signals=((done, 1),))
    gate.fail(DataLossError("lost"))
    with pytest.raises(DataLossError, match="lost"):
        done.wait(1, LONG)
    gate.close()
    done.close()


def test_a_signal_below_what_is_submitted_is_refused(device: Device) -> None:
    work = device.compute_queue
    with device.create_semaphore() as done:
        work.submit((), signals=((done, 2),))
        done.wait(2, LONG)
        with pytest.raises(FailedPreconditionError):
            work.submit((), signals=((done, 2),))


def test_closing_the_device_ends_everything(device: Device) -> None:
    gate, done = device.create_semaphore(), device.create_semaphore()
    buffer = device.create_buffer(16)
    device.compute_queue.submit((), waits=((gate, 1),), signals=((done, 1),))
    told: list[object] = []
    done.notify(1, told.append)
    device.close()
    device.close()
    assert buffer.is_closed and isinstance(told[0], CancelledError)
    for use in (lambda: device.create_buffer(4), lambda: device.create_semaphore(), lambda: device.wait_idle()):
        with pytest.raises(ClosedError):
            use()


# -- programs --------------------------------------------------------------------------------------------


def test_what_programs_ask(device: Device) -> None:
    formats = [name for name in ("vulkan-spirv-fb", "pumice-reference") if device.query("hal.executable.format", name)]
    assert len(formats) == 1
    assert device.query("hal.device", "concurrency") and device.query("hal.device", "colour") is None
    with pytest.raises(NotFoundError, match="executables of format 'x86'.*it runs " + formats[0]):
        device.program_executable("x86", memoryview(b""), b"")
    for damaged in (b"", b"PREF", b"VKE1", b"\xff" * 100):
        with pytest.raises(InvalidArgumentError):
            device.program_executable(formats[0], memoryview(damaged), b"")


def test_programs_own_their_memory(device: Device) -> None:
    with device.create_semaphore() as timeline:
        allocator = device.program_allocator(timeline)
        buffer = allocator.allocate(0x30, 0xC03, 256)
        assert buffer.size == 256 and buffer.owners == 1
        adopted = allocator.adopt(device.create_buffer(8, memory_type=HOST))
        adopted.write(b"adopted!")
        assert adopted.read() == b"adopted!"
        with pytest.raises(InvalidArgumentError):
            allocator.allocate(0x30, 0xC03, -1)
        allocator.close()
        allocator.trim()
        buffer.close()
        adopted.close()


def test_an_import_is_in_place_or_not_at_all(device: Device) -> None:
    data = np.arange(1 << 14, dtype=np.uint8)
    with_copy = device.import_buffer(data.data, copy=True)
    assert with_copy is not None and with_copy.read(256, 4) == bytes(range(4))
    with_copy.close()
    constant = device.import_buffer(bytes(64), copy=True)
    assert constant is not None
    with pytest.raises(PermissionDeniedError):
        constant.write(b"x")
    constant.close()


def test_the_stream_of_a_queue_counts_its_submissions(device: Device) -> None:
    queue, stream = device.compute_queue, device.compute_queue.stream
    with device.create_semaphore() as gate, device.create_semaphore() as done:
        first = queue.submit()
        assert first == stream.scheduled > 0
        assert queue.submit(waits=((gate, 1),), signals=((done, 1),)) == 0  # held back: no number yet
        second = queue.submit()
        assert second == first + 1
        stream.wait(second, LONG)
        gate.signal(1)
        done.wait(1, LONG)
        stream.wait(second + 1, LONG)
        assert stream.reached == stream.scheduled == second + 1
        told: queue_library.SimpleQueue[object] = queue_library.SimpleQueue()
        stream.notify(second + 2, told.put)
        queue.submit()
        assert told.get(timeout=LONG) is None
        done.fail(CancelledError("by this test"))
        queue.submit(waits=((done, 5),), signals=((gate, 2),))
        stream.wait(queue.submit(), LONG)  # what is dropped is not its business
