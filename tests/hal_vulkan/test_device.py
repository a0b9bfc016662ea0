"""Devices: making and closing them, and using what they made after they were closed."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from support.devices.host_buffers import HOST
from support.waiting import Blocked, in_threads

from pumice import shaders
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.driver import Driver, shared_driver
from pumice.hal_vulkan.instance.plan import PlanOptions
from pumice.hal_vulkan.vulkan.live_objects import live_objects
from pumice.status import (
    CancelledError,
    ClosedError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PumiceError,
    UnavailableError,
    UnimplementedError,
)

pytestmark = pytest.mark.vulkan


def test_the_device_is_the_one_that_its_uri_names(driver: Driver, device: Device) -> None:
    with Device(driver, device.uri) as again:
        assert again.index == device.index and again.profile == device.profile and again.plan == device.plan
    assert device.profile.name in repr(device)
    assert [queue.name for queue in device.queues][0] == "compute 0"
    assert device.transfer_queue in device.queues and device.compute_queue in device.queues


@pytest.mark.parametrize("index", [-1, 99])
def test_bad_indices(driver: Driver, index: int) -> None:
    before = live_objects()
    with pytest.raises(InvalidArgumentError, match="outside"):
        Device(driver, index)
    with pytest.raises(NotFoundError):
        Device(driver, "vulkan://GPU-00000000-0000-0000-0000-000000000bad")
    assert live_objects() == before


def test_queues_follow_the_plan(driver: Driver) -> None:
    with Device(driver, options=PlanOptions(max_compute_queues=4)) as device:
        plan = device.plan
        assert len(device.queues) == plan.compute_queue_count + plan.transfer_queue_count
        assert len({queue.name for queue in device.queues}) == len(device.queues)


def test_a_device_that_cannot_be_made_leaves_nothing(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    before = live_objects()
    monkeypatch.setattr(driver.functions, "vkCreateDevice", lambda *_: -8)
    with pytest.raises(UnimplementedError) as caught:
        Device(driver)
    assert caught.value.vk_result == "VK_ERROR_FEATURE_NOT_PRESENT" and live_objects() == before
    monkeypatch.undo()
    Device(driver).close()
    assert live_objects() == before


def test_a_driver_with_open_devices_stays(driver: Driver) -> None:
    with Driver(validation=driver.validation) as own:
        device = Device(own)
        with pytest.raises(FailedPreconditionError, match="1 device"):
            own.close()
        device.close()
    own.close()
    assert own.is_closed
    with pytest.raises(ClosedError):
        Device(own)


def test_a_driver_without_an_extension_says_which(driver: Driver) -> None:
    before = live_objects()
    with pytest.raises(UnavailableError, match=r"lack the instance extension\(s\) VK_KHR_none"):
        Driver(validation=driver.validation, extensions=["VK_KHR_none"])
    assert live_objects() == before


def test_close_is_idempotent_and_takes_everything_with_it(driver: Driver) -> None:
    before = live_objects()
    device = Device(driver)
    device.create_buffer(100)
    device.create_semaphore(3, "left open")
    pipeline = device.create_pipeline(shaders.spirv("mul"))
    device.create_executable(shaders.spirv("examples/saxpy")).pipeline()
    buffers = [device.create_buffer(64, memory_type=HOST) for _ in range(3)]
    commands = device.create_command_buffer(timing=True)
    commands.begin().dispatch(pipeline, buffers, (1, 1, 1))
    commands.fill(buffers[0], b"\1", 1, 5)
    device.create_command_buffer(one_shot=True).begin()
    device.compute_queue.submit((commands.end(),))
    pipeline.bind(buffers)
    device.close()
    device.close()
    assert live_objects() == before and device.is_closed and "closed" in repr(device)


def make_all(device: Device) -> dict[str, Callable[[], object]]:
    """A call of each kind on things made by the device, to be tried after it was closed."""
    buffer = device.create_buffer(64, memory_type=HOST)
    buffers = [device.create_buffer(64, memory_type=HOST) for _ in range(3)]
    executable = device.create_executable(shaders.spirv("mul"))
    pipeline = executable.pipeline()
    semaphore = device.create_semaphore()
    ready = device.create_command_buffer(name="ready")
    ready.begin().dispatch(pipeline, buffers, (1, 1, 1))
    ready.end()
    timed = device.create_command_buffer(timing=True)
    timed.begin().dispatch(pipeline, buffers, (1, 1, 1))
    device.compute_queue.submit((timed.end(),))
    device.wait_idle()
    recording = device.create_command_buffer(name="recording").begin()
    slots = device.create_command_buffer(binding_capacity=1, name="slots")
    slots.begin().fill(buffer, b"\0")
    queue = device.compute_queue
    return {
        "create_buffer": lambda: device.create_buffer(1),
        "import_buffer": lambda: device.import_buffer(bytearray(10)),
        "create_semaphore": lambda: device.create_semaphore(),
        "create_executable": lambda: device.create_executable(shaders.spirv("mul")),
        "create_pipeline": lambda: device.create_pipeline(shaders.spirv("mul")),
        "create_command_buffer": lambda: device.create_command_buffer(),
        "calibrate": device.calibrate,
        "wait_idle": device.wait_idle,
        "trim": device.trim,
        "executable.pipeline": executable.pipeline,
        "executable.pipeline, new": lambda: executable.pipeline("main"),
        "pipeline.bind": lambda: pipeline.bind([*buffers[1:], buffers[0]]),
        "semaphore.query": semaphore.query,
        "semaphore.signal": lambda: semaphore.signal(5),
        "semaphore.wait": lambda: semaphore.wait(5),
        "semaphore.has_reached": lambda: semaphore.has_reached(1),
        "ready.begin": ready.begin,
        "recording.dispatch": lambda: recording.dispatch(pipeline, buffers, (1, 1, 1)),
        "recording.fill": lambda: recording.fill(buffer, b"\0"),
        "recording.update": lambda: recording.update(buffer, b"abc"),
        "recording.copy": lambda: recording.copy(buffer, buffers[0]),
        "recording.execution_barrier": recording.execution_barrier,
        "recording.begin_label": lambda: recording.begin_label("x"),
        "recording.end": recording.end,
        "slots.end": slots.end,
        "timed.timings": timed.timings,
        "queue.submit": lambda: queue.submit((ready,)),
        "queue.submit, held": lambda: queue.submit((ready,), waits=((semaphore, 9),)),
        "queue.barrier": queue.barrier,
        "queue.fill": lambda: queue.fill(buffer, b"\0"),
        "queue.wait_idle": queue.wait_idle,
        "queue.alloca": lambda: queue.alloca(16),
        "queue.read": lambda: queue.read(b"1234", buffer, 4),
        "buffer.read": buffer.read,
        "buffer.map": buffer.map,
    }


def test_everything_says_that_the_device_was_closed(driver: Driver) -> None:
    device = Device(driver)
    calls = make_all(device)
    device.close()
    for name, call in calls.items():
        with pytest.raises((ClosedError, CancelledError)) as caught:
            call()
        # A semaphore that the device took with it was cancelled; everything else was closed.
        assert isinstance(caught.value, ClosedError) or name.startswith("semaphore."), name
        assert "closed" in caught.value.message, name


def test_closing_things_of_a_closed_device_is_fine(driver: Driver) -> None:
    before = live_objects()
    device = Device(driver)
    pipeline = device.create_pipeline(shaders.spirv("mul"))
    buffers = [device.create_buffer(64) for _ in range(3)]
    bound = pipeline.bind(buffers)
    commands = device.create_command_buffer(timing=True)
    commands.begin().dispatch(pipeline, bound, (1, 1, 1))
    commands.end()
    recording = device.create_command_buffer().begin()
    things = [bound, commands, recording, pipeline, *buffers, device.create_semaphore()]
    things.append(device.create_executable(shaders.spirv("mul")))
    device.close()
    for thing in things:
        thing.close()  # type: ignore[attr-defined]
        thing.close()  # type: ignore[attr-defined]
    assert live_objects() == before


def test_close_waits_for_work_in_flight(driver: Driver) -> None:
    device = Device(driver)
    buffer = device.create_buffer(32 << 20, memory_type=HOST)
    view = np.frombuffer(buffer.map(), np.uint8)
    for value in range(8):
        device.compute_queue.fill(buffer, bytes([value]))
    device.close()
    assert (view == 7).all()


def test_close_drops_what_is_held_back(driver: Driver) -> None:
    device = Device(driver)
    never, after = device.create_semaphore(name="never"), device.create_semaphore(name="after")
    device.compute_queue.barrier(waits=((never, 1),), signals=((after, 1),))
    told: list[PumiceError | None] = []
    after.notify(1, told.append)
    device.close()
    assert len(told) == 1 and isinstance(told[0], CancelledError)
    with pytest.raises(CancelledError):
        after.wait(1)


def test_close_releases_threads_that_wait(driver: Driver) -> None:
    for _ in range(20):
        device = Device(driver, persistent_cache=False)
        semaphores = [device.create_semaphore() for _ in range(8)]
        waits = [Blocked(partial(semaphore.wait, 1)) for semaphore in semaphores]
        while len(device.semaphore_context.waiting) < 8:
            time.sleep(0.001)
        start = time.monotonic()
        device.close()
        for wait in waits:
            wait.join(20)
        assert time.monotonic() - start < 20
        assert all(isinstance(wait.error, CancelledError) for wait in waits)


def test_close_from_a_notification(driver: Driver) -> None:
    device = Device(driver)
    semaphore = device.create_semaphore()
    closed = threading.Event()

    def close(error: PumiceError | None) -> None:
        device.close()
        closed.set()

    semaphore.notify(1, close)
    semaphore.signal(1)
    assert closed.wait(5)


def test_close_races_submissions(driver: Driver) -> None:
    for _ in range(10):
        device = Device(driver, persistent_cache=False)
        buffer = device.create_buffer(256)
        commands = device.create_command_buffer()
        commands.begin().fill(buffer, b"\1\2\3\4")
        commands.end()
        started = threading.Barrier(4)

        def submit() -> None:
            started.wait()
            while True:
                device.compute_queue.submit((commands,))

        threads = [Blocked(submit) for _ in range(3)]
        started.wait()
        time.sleep(0.005)
        device.close()
        for thread in threads:
            thread.join()
        assert all(isinstance(thread.error, ClosedError) for thread in threads)


@pytest.mark.parametrize("timeout", [0, -1, -0.5, 0.0, 1e-9])
def test_wait_idle_with_work_that_goes_on(device: Device, timeout: float) -> None:
    buffer = device.create_buffer(64 << 20)
    for _ in range(4):
        device.compute_queue.fill(buffer, b"\1")
    with pytest.raises(DeadlineExceededError):
        device.wait_idle(timeout)
    device.wait_idle(float("inf"))
    device.wait_idle(None)
    device.wait_idle(1e30)
    with pytest.raises(InvalidArgumentError, match="nan"):
        device.wait_idle(float("nan"))


def test_two_devices_do_not_mix(device: Device, driver: Driver) -> None:
    with Device(driver) as other:
        mine, foreign = device.create_buffer(64, memory_type=HOST), other.create_buffer(64, memory_type=HOST)
        pipeline = device.create_pipeline(shaders.spirv("mul"))
        foreign_pipeline = other.create_pipeline(shaders.spirv("mul"))
        gate = other.create_semaphore()
        foreign_commands = other.create_command_buffer()
        foreign_commands.begin().fill(foreign, b"\0")
        foreign_commands.end()
        with device.create_command_buffer() as commands, device.create_command_buffer(binding_capacity=1) as slots:
            commands.begin()
            slots.begin()
            for call in (
                lambda: commands.fill(foreign, b"\0"),
                lambda: commands.update(foreign, b"1234"),
                lambda: commands.copy(mine, foreign),
                lambda: commands.copy(foreign, mine),
                lambda: commands.dispatch(pipeline, [mine, mine, foreign], (1, 1, 1)),
                lambda: commands.dispatch(foreign_pipeline, [mine] * 3, (1, 1, 1)),
                lambda: commands.dispatch(foreign_pipeline, [foreign] * 3, (1, 1, 1)),
                lambda: commands.dispatch(pipeline, foreign_pipeline.bind([foreign] * 3), (1, 1, 1)),
                lambda: commands.dispatch_indirect(pipeline, [mine] * 3, foreign),
                lambda: slots.fill(foreign, b"\0"),
                lambda: device.compute_queue.submit((foreign_commands,)),
                lambda: device.compute_queue.submit((), waits=((gate, 0),)),
                lambda: device.compute_queue.submit((), waits=((gate, 5),)),
                lambda: device.compute_queue.submit((), signals=((gate, 5),)),
                lambda: device.compute_queue.fill(foreign, b"\0"),
            ):
                with pytest.raises(InvalidArgumentError):
                    call()
            slots.fill(mine, b"\0")
            device.compute_queue.submit((commands.end(),))
            with pytest.raises(InvalidArgumentError):
                device.compute_queue.submit((slots.end(),), bindings=[foreign])
            device.wait_idle()


def test_devices_made_and_closed_in_many_threads() -> None:
    # Without the layers: they look devices up in a table that another thread's vkCreateDevice changes, and may crash.
    driver = shared_driver(validation=False)
    before = live_objects()

    def work(value: int) -> None:
        for _ in range(5):
            with Device(driver, persistent_cache=False) as device:
                buffer = device.create_buffer(64, memory_type=HOST)
                done, told = device.create_semaphore(), threading.Event()
                done.notify(1, lambda error, told=told: told.set())
                device.compute_queue.fill(buffer, bytes([value]), 1, 62, signals=((done, 1),))
                assert told.wait(10)
                assert buffer.read(1, 62) == bytes([value]) * 62

    in_threads(work, range(6))
    assert live_objects() == before


LEFT_OPEN = """
import sys, threading, time
import numpy as np
from pumice.hal_vulkan import Device, MemoryTypeFlags
kind = sys.argv[1]
device = Device()
buffer = device.create_buffer(1 << 20, memory_type=MemoryTypeFlags.HOST_VISIBLE | MemoryTypeFlags.DEVICE_LOCAL)
view = np.frombuffer(buffer.map(), np.uint8)
semaphore = device.create_semaphore()
semaphore.notify(1, lambda error: None)
if kind == "busy":
    for _ in range(8):
        device.compute_queue.fill(device.create_buffer(32 << 20), b"1")
if kind == "waiting":
    threading.Thread(target=semaphore.wait, args=(5,), daemon=True).start()
    device.compute_queue.barrier(waits=((semaphore, 3),))
    time.sleep(0.05)
if kind == "view":
    sys.modules["keeps the view to the very end"] = view
    device.close()
if kind == "cycle":
    cycle = [view, device]
    cycle.append(cycle)
    del view, device, cycle
print("end")
"""


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", ["open", "busy", "waiting", "view", "cycle"])
def test_an_interpreter_ends_whatever_was_left_open(driver: Driver, kind: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEFT_OPEN, kind], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
