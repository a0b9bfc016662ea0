"""Device loss, injected where a driver reports it: sticky, told to everybody, and closed without trouble."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support.devices.host_buffers import HOST
from support.waiting import Blocked, armed, until

from pumice import shaders
from pumice.hal.command_buffer import BindingSlot
from pumice.hal.fence import wait_any
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.sync import notifier
from pumice.hal_vulkan.vulkan.functions import NULL, InstanceFunctions, ffi
from pumice.hal_vulkan.vulkan.live_objects import live_objects
from pumice.hal_vulkan.vulkan.results import listed
from pumice.status import DeviceLostError, PumiceError, ResourceExhaustedError, StatusCode

pytestmark = pytest.mark.vulkan
LOST = -4


@contextmanager
def failing(device: Device, name: str, result: int = LOST, *, once: bool = False) -> Iterator[list[int]]:
    """Replaces a native function with one that fails; yields a list with an entry a failure.

    With ``once`` the first call of this thread fails and the others go to the driver, which knows of no loss: a driver
    that does makes every wait return.
    """
    calls: list[int] = []
    real = getattr(device.fn, name)

    def fail(*arguments: object) -> int:
        if once and (calls or threading.current_thread() is not threading.main_thread()):
            return int(real(*arguments))
        calls.append(1)
        return result

    setattr(device.fn, name, fail)
    try:
        yield calls
    finally:
        setattr(device.fn, name, real)


@pytest.fixture
def victim(driver: Driver) -> Iterator[Device]:
    """A device that a test loses; everything of it is gone after close."""
    before = live_objects()
    device = Device(driver)
    yield device
    device.close()
    assert live_objects() == before


def lose(device: Device) -> DeviceLostError:
    with failing(device, "vkQueueSubmit"), pytest.raises(DeviceLostError) as caught:
        device.compute_queue.barrier()
    return caught.value


def test_the_message_says_what_was_in_flight(victim: Device) -> None:
    device = victim
    buffer = device.create_buffer(64 << 20)
    names = [f"step {index}" for index in range(11)]
    with failing(device, "vkGetSemaphoreCounterValue", -13):  # nothing retires
        for name in names[:-1]:
            commands = device.create_command_buffer(name=name)
            commands.begin().fill(buffer, b"\1", 0, 64)
            device.compute_queue.submit((commands.end(),))
        last = device.create_command_buffer(name=names[-1])
        last.begin().end()
        with failing(device, "vkQueueSubmit"), pytest.raises(DeviceLostError) as caught:
            device.compute_queue.submit((last,))
    message = caught.value.message
    assert device.profile.name in message and caught.value.vk_result == "VK_ERROR_DEVICE_LOST"
    assert caught.value.code is StatusCode.UNAVAILABLE
    assert "In flight: step 0, step 1, " in message and "step 7 and 2 more" in message
    assert "submitting step 10" in message
    assert "lost" in repr(device)


def test_loss_with_nothing_in_flight(victim: Device) -> None:
    with failing(victim, "vkCreateSemaphore"), pytest.raises(DeviceLostError, match="In flight: nothing"):
        victim.create_semaphore()


def test_loss_is_sticky(victim: Device) -> None:
    device = victim
    buffer, semaphore = device.create_buffer(64, memory_type=HOST), device.create_semaphore(3)
    pipeline = device.create_pipeline(shaders.spirv("mul"))
    executable = device.create_executable(shaders.spirv("mul"))
    commands = device.create_command_buffer()
    commands.begin().fill(buffer, b"\1")
    commands.end()
    slots = device.create_command_buffer(binding_capacity=1)
    slots.begin().fill(BindingSlot(0), b"\1")
    slots.end()
    first = lose(device)
    queue = device.compute_queue
    seen = []
    for call in (
        lambda: device.create_buffer(1),
        lambda: device.import_buffer(bytearray(10)),
        device.create_semaphore,
        lambda: device.create_pipeline(shaders.spirv("mul")),
        lambda: device.create_executable(shaders.spirv("mul")),
        device.create_command_buffer,
        device.calibrate,
        device.wait_idle,
        device.trim,
        executable.pipeline,
        commands.begin,
        lambda: queue.submit((commands,)),
        lambda: queue.submit((commands,), signals=((semaphore, 9),)),
        lambda: queue.submit((slots,), bindings=[buffer]),
        lambda: queue.submit((), waits=((semaphore, 9),)),
        queue.barrier,
        queue.wait_idle,
        lambda: queue.alloca(4),
        lambda: queue.fill(buffer, b"\0"),
        semaphore.query,
        lambda: semaphore.wait(1),
        lambda: semaphore.wait(9),
        lambda: semaphore.signal(9),
        lambda: wait_any([(semaphore, 9)]),
    ):
        with pytest.raises(DeviceLostError) as caught:
            call()
        seen.append(caught.value)
    assert {error.message for error in seen} == {first.message}
    assert len({id(error) for error in seen}) == len(seen)
    # What needs no device goes on: reading results back, and closing.
    buffer.write(b"still mapped")
    assert buffer.read(0, 12) == b"still mapped"
    for thing in (commands, slots, pipeline, executable, semaphore, buffer):
        thing.close()


WAYS = {
    "submit": ("vkQueueSubmit", lambda d: d.compute_queue.barrier()),
    "wait": ("vkWaitSemaphores", lambda d: d.create_semaphore().wait(1)),
    "wait idle": ("vkWaitSemaphores", lambda d: d.compute_queue.wait_idle()),
    "query": ("vkGetSemaphoreCounterValue", lambda d: d.create_semaphore().query()),
    "signal": ("vkSignalSemaphore", lambda d: d.create_semaphore().signal(1)),
    "memory": ("vkAllocateMemory", lambda d: d.create_buffer(10)),
    "recording": ("vkEndCommandBuffer", lambda d: d.create_command_buffer().begin().end()),
    "beginning": ("vkBeginCommandBuffer", lambda d: d.create_command_buffer().begin()),
    "semaphore": ("vkCreateSemaphore", lambda d: d.create_semaphore()),
    "pipeline": ("vkCreateComputePipelines", lambda d: d.create_pipeline(shaders.spirv("mul"))),
    "module": ("vkCreateShaderModule", lambda d: d.create_pipeline(shaders.spirv("mul"))),
    "set layout": ("vkCreateDescriptorSetLayout", lambda d: d.create_pipeline(shaders.spirv("mul"))),
    "pipeline layout": ("vkCreatePipelineLayout", lambda d: d.create_pipeline(shaders.spirv("mul"))),
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("way", WAYS)
def test_every_waiter_is_told_however_the_loss_is_found(victim: Device, way: str) -> None:
    device = victim
    name, call = WAYS[way]
    semaphores = [device.create_semaphore(name=f"s{i}") for i in range(6)]
    told: list[PumiceError | None] = []
    blocked = [Blocked(lambda s=s: s.wait(5)) for s in semaphores[:3]]
    blocked += [Blocked(lambda: wait_any([(semaphores[3], 1), (semaphores[4], 1)]))]
    for _ in range(10):
        semaphores[5].notify(7, told.append)
    gate, out = device.create_semaphore(), device.create_semaphore()
    device.compute_queue.barrier(waits=((gate, 1),), signals=((out, 1),))
    out.notify(1, told.append)
    until(lambda: len(device.semaphore_context.waiting) == 3 and armed(device.notifier) == 13)
    start = time.monotonic()
    with failing(device, name, once=True) as calls:
        with pytest.raises(DeviceLostError):
            call(device)
        assert calls
        for each in blocked:
            each.join()
        until(lambda: len(told) == 11)
    assert device.lost is not None
    for each in blocked:
        assert isinstance(each.error, DeviceLostError) and each.error.message == device.lost.message
        assert each.ended - start < 1
    assert all(error is device.lost for error in told)
    with pytest.raises(DeviceLostError):
        out.wait(1)
    semaphores[0].notify(1, told.append)
    assert len(told) == 12 and device.held == 0


def test_the_notifier_finds_the_loss(victim: Device) -> None:
    """Nobody calls the driver but the notifier's thread; it tells everybody, and goes on telling."""
    device = victim
    semaphore, other = device.create_semaphore(), device.create_semaphore()
    told: list[PumiceError | None] = []
    buffer = device.create_buffer(64 << 20, memory_type=HOST)
    commands = device.create_command_buffer(name="slow").begin()
    for _ in range(8):
        commands.fill(buffer, b"\1")
        commands.execution_barrier()
    commands.end()
    with failing(device, "vkWaitSemaphores"):
        # It waits for work in flight only.
        device.compute_queue.submit((commands,), signals=((semaphore, 1),))
        semaphore.notify(1, told.append)
        until(lambda: device.lost is not None and len(told) == 1)
    assert isinstance(told[0], DeviceLostError)
    other.notify(1, told.append)
    assert len(told) == 2


def test_eight_threads_find_the_loss_at_once(victim: Device) -> None:
    device = victim
    buffer = device.create_buffer(256, memory_type=HOST)
    start = threading.Barrier(9)

    def work(index: int) -> None:
        commands = device.create_command_buffer(name=f"thread {index}")
        done = device.create_semaphore()
        start.wait()
        for value in range(1, 100_000):
            commands.begin().fill(buffer, b"\1")
            device.compute_queue.submit((commands.end(),), signals=((done, value),))
            done.wait(value, 10)

    blocked = [Blocked(lambda i=i: work(i)) for i in range(8)]
    start.wait()
    time.sleep(0.05)
    with failing(device, "vkQueueSubmit"):
        for each in blocked:
            each.join()
    assert device.lost is not None
    for each in blocked:
        assert isinstance(each.error, DeviceLostError) and each.error.message == device.lost.message


def test_close_with_work_in_flight_and_things_held_and_deferred(driver: Driver) -> None:
    before = live_objects()
    device = Device(driver)
    buffer = device.create_buffer(64 << 20)
    gates = [device.create_semaphore() for _ in range(3)]
    for value in range(4):
        device.compute_queue.fill(buffer, bytes([value]))
    for gate in gates:
        device.compute_queue.fill(buffer, b"\1", 3, 9, waits=((gate, 1),), signals=((device.create_semaphore(), 1),))
    buffer.close()
    device.create_pipeline(shaders.spirv("mul")).close()
    commands = device.create_command_buffer(one_shot=True)
    commands.begin()
    commands.close()
    lose(device)
    assert device.held == 0
    device.close()
    device.close()
    assert live_objects() == before


def test_loss_while_recording(victim: Device) -> None:
    device = victim
    buffer = device.create_buffer(64)
    commands = device.create_command_buffer(name="half")
    commands.begin().fill(buffer, b"\1")
    lose(device)
    commands.execution_barrier()
    commands.fill(buffer, b"\2")  # the driver takes commands for a lost device, and runs none
    commands.end()
    with pytest.raises(DeviceLostError):
        device.compute_queue.submit((commands,))


def test_views_of_a_lost_device(driver: Driver) -> None:
    device = Device(driver)
    buffer = device.create_buffer(4096, memory_type=HOST)
    view = buffer.map()
    lose(device)
    device.close()
    view[10] = 5
    assert view[10] == 5
    del view


@pytest.mark.parametrize("name", ["vkWaitSemaphores", "vkGetSemaphoreCounterValue"])
def test_callbacks_outlast_a_driver_without_memory(victim: Device, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    device = victim
    semaphore, told = device.create_semaphore(), list[PumiceError | None]()
    buffer = device.create_buffer(64 << 20)
    slow = device.create_command_buffer(name="slow").begin()
    for _ in range(8):
        slow.fill(buffer, b"\1")
        slow.execution_barrier()
    slow.end()
    monkeypatch.setattr(notifier, "_PAUSE_S", 0.001)
    # It is asked again, and knows of no loss.
    with failing(device, name, -1) as calls:
        device.compute_queue.submit((slow,), signals=((semaphore, 1),))
        semaphore.notify(1, told.append)
        until(lambda: len(calls) > 5)
        assert not told
    until(lambda: told == [None])
    # After some time those who wait hear of it.
    monkeypatch.setattr(notifier, "_MOST_FAILURES", 3)
    with failing(device, name, -1):
        device.compute_queue.submit((slow,), signals=((semaphore, 2),))
        semaphore.notify(2, told.append)
        until(lambda: len(told) == 2)
    assert isinstance(told[1], ResourceExhaustedError) and device.lost is None
    semaphore.wait(2, 10)
    semaphore.notify(2, told.append)
    assert told[2] is None


def test_failing_a_semaphore_that_the_driver_cannot_read(victim: Device, caplog: pytest.LogCaptureFixture) -> None:
    semaphore, error = victim.create_semaphore(), PumiceError("given up")
    told: list[PumiceError | None] = []
    semaphore.notify(1, told.append)
    with failing(victim, "vkGetSemaphoreCounterValue", -1):
        semaphore.fail(error)
        until(lambda: told == [error])
    assert not caplog.records


@pytest.mark.parametrize("name", ["vkCreateSemaphore", "vkCreateCommandPool", "vkCreateShaderModule"])
def test_what_a_failed_creation_leaves_is_no_handle(victim: Device, name: str) -> None:
    """Outputs of a failed call are undefined (specification, 3.6)."""
    real = getattr(victim.fn, name)

    def fail(*arguments: Any) -> int:
        ffi.cast("uint64_t *", arguments[-1])[0] = 0xDEADBEE8
        return -1

    setattr(victim.fn, name, fail)
    before = live_objects()
    for call in (victim.create_semaphore, lambda: victim.create_command_buffer().begin(), _make_pipeline(victim)):
        with contextlib.suppress(ResourceExhaustedError):
            call().close()
    setattr(victim.fn, name, real)
    assert live_objects().get("semaphore") == before.get("semaphore")
    _make_pipeline(victim)().close()
    victim.create_semaphore().close()


def _make_pipeline(device: Device) -> Callable[[], Any]:
    return lambda: device.create_pipeline(shaders.spirv("mul"))


def test_close_waits_for_work_that_a_driver_without_memory_cannot_wait_for(driver: Driver) -> None:
    device = Device(driver)
    device.compute_queue.fill(device.create_buffer(1 << 20), b"\1")
    with failing(device, "vkWaitSemaphores", -1):
        real, answers = device.fn.vkDeviceWaitIdle, [-1, -2]
        device.fn.vkDeviceWaitIdle = lambda handle: answers.pop() if answers else real(handle)
        device.close()
    assert not answers


def test_a_driver_that_cannot_be_made_leaves_no_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    before = live_objects()
    monkeypatch.setattr(InstanceFunctions, "vkEnumeratePhysicalDevices", lambda *_: -1, raising=False)
    with pytest.raises(ResourceExhaustedError):
        Driver()
    assert live_objects() == before


def test_devices_that_come_while_they_are_listed(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    real = driver.functions.vkEnumeratePhysicalDevices
    answers = [0, 5]  # VK_INCOMPLETE to the first listing

    def enumerate_devices(instance: Any, count: Any, items: Any) -> int:
        result = int(real(instance, count, items))
        return answers.pop() if items != NULL and answers else result

    found = listed(enumerate_devices, "VkPhysicalDevice", "devices", driver.handle)
    assert len(list(found)) == len(driver.physical_devices) and not answers


def test_out_of_memory_is_no_loss(victim: Device) -> None:
    device = victim
    buffer, semaphore = device.create_buffer(16, memory_type=HOST), device.create_semaphore()
    commands = device.create_command_buffer(one_shot=True)
    commands.begin().fill(buffer, b"\6")
    commands.end()
    for result in (-1, -2):
        with failing(device, "vkQueueSubmit", result), pytest.raises(ResourceExhaustedError):
            device.compute_queue.submit((commands,), signals=((semaphore, 1),))
        assert device.lost is None and semaphore.query() == 0 and semaphore.scheduled == 0
    device.compute_queue.submit((commands,), signals=((semaphore, 1),))
    semaphore.wait(1, 10)
    assert buffer.read() == b"\6" * 16
    commands.close()
    with failing(device, "vkWaitSemaphores", -1), pytest.raises(ResourceExhaustedError):
        semaphore.wait(2)
    assert device.lost is None and not device.semaphore_context.waiting
    # A held submission that cannot be submitted later tells those who wait for it.
    gate, out = device.create_semaphore(), device.create_semaphore()
    device.compute_queue.fill(buffer, b"\7", waits=((gate, 1),), signals=((out, 1),))
    with failing(device, "vkQueueSubmit", -1):
        gate.signal(1)
    with pytest.raises(ResourceExhaustedError):
        out.wait(1, 5)
    assert device.lost is None and device.held == 0 and buffer.read() == b"\6" * 16
