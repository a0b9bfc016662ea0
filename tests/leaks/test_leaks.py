"""Thousands of rounds leave nothing behind: native objects and resident memory stay flat."""

from __future__ import annotations

import gc
import struct
import threading
import time
from collections.abc import Callable

import psutil
import pytest

from pumice import shaders
from pumice.hal.command_buffer import BindingSlot
from pumice.hal.fence import wait_any
from pumice.hal.memory import MemoryTypeFlags
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.process import finish_teardowns
from pumice.hal_vulkan.vulkan.live_objects import live_objects
from pumice.status import DataLossError

pytestmark = [pytest.mark.vulkan, pytest.mark.sample(2)]
HOST = MemoryTypeFlags.HOST_VISIBLE | MemoryTypeFlags.DEVICE_LOCAL
MEGABYTE = 1 << 20


def resident() -> int:
    gc.collect()
    return int(psutil.Process().memory_info().rss)


def hold_flat(device: Device, round_: Callable[[int], None], rounds: int, megabytes: float = 6.0) -> None:
    """Runs a tenth of the rounds to warm up and the rest against the counts and the memory seen then.

    Pools grow to what was in flight at once, which differs from run to run: they may differ by a few, not by rounds.
    """
    warm = rounds // 10
    for index in range(warm):
        round_(index)

    def settle() -> dict[str, int]:
        """The counts once they stand still: the notifier's thread may be retiring at the same time."""
        seen: dict[str, int] = {}
        for _ in range(100):
            device.wait_idle(20)
            device.retire()
            device.trim()
            gc.collect()
            last, seen = seen, live_objects()
            if last == seen:
                break
            time.sleep(0.01)
        return seen

    before, memory = settle(), resident()
    for index in range(warm, rounds):
        round_(index)
    after = settle()
    grown = resident() - memory
    exact = {kind for kind in {*before, *after} if kind not in ("command pool", "query pool", "descriptor pool")}
    assert {k: after.get(k, 0) for k in exact} == {k: before.get(k, 0) for k in exact}
    for kind in ("command pool", "query pool", "descriptor pool"):
        assert after.get(kind, 0) - before.get(kind, 0) <= 64  # every test makes hundreds of rounds more
    # The layers keep books of their own on every object they have seen.
    assert device.validation or grown < megabytes * MEGABYTE, f"resident memory grew by {grown / MEGABYTE:.1f} MiB"


def rounds_of(device: Device, wanted: int) -> int:
    return wanted // 10 if device.validation else wanted


def test_submissions_of_one_shots(device: Device) -> None:
    pipeline = device.create_pipeline(shaders.spirv("mul"))
    buffers = [device.create_buffer(256, memory_type=HOST) for _ in range(3)]
    done = device.create_semaphore()

    def one(index: int) -> None:
        commands = device.create_command_buffer(one_shot=True)
        commands.begin().dispatch(pipeline, buffers, (1, 1, 1))
        device.compute_queue.submit((commands.end(),), signals=((done, index + 1),))
        if index % 16 == 0:
            done.wait(index + 1, 10)

    hold_flat(device, one, rounds_of(device, 20_000))


def test_submissions_of_a_reusable_one(device: Device) -> None:
    buffer, done = device.create_buffer(256), device.create_semaphore()
    commands = device.create_command_buffer()
    commands.begin().fill(buffer, b"\1")
    commands.end()

    def one(index: int) -> None:
        device.compute_queue.submit((commands,), signals=((done, index + 1),))
        if index % 16 == 0:
            done.wait(index + 1, 10)

    hold_flat(device, one, rounds_of(device, 20_000))
    commands.close()


def test_everything_made_and_closed(device: Device) -> None:
    code = shaders.spirv("examples/saxpy")
    push = struct.pack("<f", 1)

    def one(index: int) -> None:
        with (
            device.create_executable(code) as executable,
            device.create_buffer(4096, memory_type=HOST) as a,
            device.create_buffer(4096, memory_type=HOST) as b,
            device.create_buffer(64 + index % 900) as odd,
            device.create_semaphore(name=f"s{index}") as done,
            device.create_command_buffer(timing=True) as timed,
            device.create_command_buffer(binding_capacity=1) as slots,
        ):
            pipeline = executable.pipeline()
            bound = pipeline.bind([a, b])
            timed.begin().dispatch(pipeline, bound, (16, 1, 1), push)
            timed.fill(odd, b"\1", 1, 5)
            timed.update(odd, b"abc", 7)
            slots.begin().dispatch(pipeline, [a, BindingSlot(0)], (16, 1, 1), push)
            slots.end()
            bound.close()
            device.compute_queue.submit((timed.end(),), signals=((done, 1),))
            device.compute_queue.submit((slots,), bindings=[b], waits=((done, 1),), signals=((done, 2),))
            view = a.map()
            done.notify(2, lambda error: None)
            if index % 3 == 0:
                done.wait(2, 10)
                assert len(timed.timings()) == 2
            del view

    hold_flat(device, one, rounds_of(device, 2_000), 10.0)


def test_queue_operations(device: Device) -> None:
    done = device.create_semaphore()
    target = device.create_buffer(1000, memory_type=HOST)
    value = [0]

    def one(index: int) -> None:
        queue = device.compute_queue
        temporary = queue.alloca(512)
        queue.fill(temporary, b"\1", 1, 6)
        queue.copy(temporary, target, 100)
        queue.update(target, bytes([index % 256]) * 7, index % 900)
        queue.read(b"x" * 100, target, 50, source_offset=index % 50)
        value[0] += 1
        queue.dealloca(temporary, signals=((done, value[0]),))
        if index % 8 == 0:
            done.wait(value[0], 10)

    hold_flat(device, one, rounds_of(device, 2_000))


def test_held_and_failed_submissions(device: Device) -> None:
    target = device.create_buffer(64, memory_type=HOST)

    def one(index: int) -> None:
        gate, out = device.create_semaphore(), device.create_semaphore()
        with device.create_buffer(64, memory_type=HOST) as source:
            for _ in range(3):
                device.compute_queue.copy(source, target, waits=((gate, 1),))
            device.compute_queue.update(target, b"odd", 1, waits=((gate, 1),), signals=((out, 1),))
        if index % 2:
            gate.signal(1)
            out.wait(1, 10)
        else:
            gate.fail(DataLossError("x"))
        gate.close()
        out.close()

    hold_flat(device, one, rounds_of(device, 2_000))


def test_waits_and_notifications(device: Device) -> None:
    never, ticking = device.create_semaphore(), device.create_semaphore()

    def one(index: int) -> None:
        value = index + 1
        timer = threading.Thread(target=ticking.signal, args=(value,))
        timer.start()
        assert wait_any([(never, 1), (ticking, value)], 10) == 1
        timer.join()
        with device.create_semaphore() as other:
            other.notify(1, lambda error: None)
            never.notify(1, lambda error: None).cancel()

    hold_flat(device, one, rounds_of(device, 3_000))
    assert len(never.notifications) < 200


def test_imports(device: Device) -> None:
    memory = bytearray(64 << 10)

    def one(index: int) -> None:
        buffer = device.import_buffer(memory)
        assert buffer is not None
        buffer.map()[0] = 1
        buffer.close()

    hold_flat(device, one, rounds_of(device, 2_000))


def test_refusals(device: Device) -> None:
    buffer = device.create_buffer(16, memory_type=HOST)
    pipeline = device.create_pipeline(shaders.spirv("mul"))
    full = device.create_semaphore(5)

    def one(index: int) -> None:
        with device.create_command_buffer(one_shot=True) as commands:
            commands.begin()
            for call in (
                lambda: commands.fill(buffer, b"\0", 99),
                lambda: commands.dispatch(pipeline, [buffer, buffer, buffer.subspan(4)], (1, 1, 1)),
                lambda: device.compute_queue.fill(buffer, b"\0", signals=((full, 5),)),
                lambda: device.create_buffer(1 << 60),
                lambda: device.create_pipeline(shaders.spirv("mul"), "other"),
            ):
                with pytest.raises(Exception):  # noqa: B017 - which one is tested elsewhere
                    call()

    hold_flat(device, one, rounds_of(device, 1_500))


def test_devices(driver: Driver) -> None:
    before, counts = 0, live_objects()
    rounds = 30 if driver.validation else 120
    for index in range(rounds):
        if index == rounds // 3:
            before = resident()
        with Device(driver, persistent_cache=False) as device:
            buffer = device.create_buffer(1024, memory_type=HOST)
            view = buffer.map()
            semaphore = device.create_semaphore()
            semaphore.notify(1, lambda error: None)
            device.compute_queue.fill(buffer, b"\1", 1, 3, signals=((semaphore, 1),))
        assert view[2] == 1
        del view
        gc.collect()
    finish_teardowns()
    assert live_objects() == counts
    grown = resident() - before
    assert driver.validation or grown < 8 * MEGABYTE, f"resident memory grew by {grown / MEGABYTE:.1f} MiB"
