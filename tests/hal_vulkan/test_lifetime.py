"""Close against use: whatever other threads do, a call ends in its result or ClosedError, and nothing is left."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.devices.host_buffers import HOST
from support.interrupts import interrupted, points
from support.soak import SOAK, rounds
from support.waiting import Blocked, until

import pumice
from pumice import shaders
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.process import finish_teardowns
from pumice.hal_vulkan.vulkan.live_objects import live_objects
from pumice.status import CancelledError, ClosedError, DeadlineExceededError, PumiceError

pytestmark = pytest.mark.vulkan
_TIMEOUT = 2  # VK_TIMEOUT


@pytest.fixture
def victim(driver: Driver) -> Iterator[Device]:
    """A device that a test closes; everything of it is gone afterwards."""
    before = live_objects()
    device = Device(driver)
    yield device
    device.close()
    gc.collect()
    finish_teardowns()
    assert live_objects() == before


class _Watched:
    """A device's functions, which note the calls that no lock protects from the device's end."""

    def __init__(self, device: Device) -> None:
        self._device, self._functions = device, device.fn
        self.called: set[str] = set()
        self.unguarded: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        device, function = self._device, getattr(self._functions, name)

        def call(*arguments: object) -> object:
            self.called.add(name)
            is_guarded = (
                device.rundown.is_inside()
                or device.lock._is_owned()  # type: ignore[attr-defined]  # close takes it before it tears down
                or any(queue._retire_lock.locked() for queue in device.queues)  # close takes these, too
                or device.semaphore_context.waiting  # waited for
                or threading.current_thread() is device.notifier.thread._thread  # joined
                or device.is_closed
            )
            if not is_guarded:
                self.unguarded.add(name)
            return function(*arguments)

        setattr(self, name, call)
        return call


@pytest.mark.slow
@pytest.mark.parametrize("staging", ["0", "1"])
def test_every_native_call_is_guarded(monkeypatch: pytest.MonkeyPatch, staging: str) -> None:
    monkeypatch.setenv("PUMICE_STAGING", staging)
    program = pumice.compile(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %0 = stablehlo.add %x, %x : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}",
        targets=("vulkan",),
    )
    with pumice.open_device() as device:
        hal = device.vulkan
        watched: Any = _Watched(hal)
        hal.fn = watched
        ones = np.ones(1000, np.float32)
        mul = device.load_kernel(shaders.path("mul"))
        x, y, z = device.asarray(ones), device.asarray(ones), device.zeros(1000)
        for _ in range(3):
            mul(x, y, z)
            mul(ones, ones, ones)
        z.copy_from(ones).copy().numpy()
        z[3:17].numpy()
        image = device.asimage(np.zeros((64, 64, 4), np.uint8), mips=True)
        image.numpy()
        image.close()
        device.sampler("linear", "repeat").close()
        hal.calibrate()
        with hal.create_command_buffer(timing=True) as commands:
            commands.begin()
            commands.begin_label("label")
            commands.fill(x.buffer, b"\1", 3, 5)
            commands.execution_barrier()
            commands.update(x.buffer, b"abc", 1)
            commands.execution_barrier()
            commands.copy(x.buffer, y.buffer)
            commands.execution_barrier()
            commands.end_label()
            hal.compute_queue.execute(commands.end())
            hal.wait_idle()
        semaphore, told = hal.create_semaphore(), threading.Event()
        semaphore.signal(3)
        assert semaphore.query() == 3
        semaphore.notify(4, lambda _: told.set())
        hal.compute_queue.barrier(signals=((semaphore, 4),))
        assert told.wait(20)
        with pumice.Session(device=device) as session:
            main = session.lookup(session.load(program).name + ".main")
            for _ in range(3):
                assert main(ones[:4]).numpy().tolist() == [2] * 4
        device.texel_buffer(np.zeros((16, 4), np.float32))
        hal.trim()
        assert len(watched.called) > 30
        assert not watched.unguarded


# -- in threads --------------------------------------------------------------------------------------

WORK = r"""
import faulthandler, random, sys, threading, time
faulthandler.enable()
import numpy as np, pumice
from pumice import shaders
from pumice.hal_vulkan.instance.process import finish_teardowns
kind, turns = sys.argv[1], int(sys.argv[2])
rng = random.Random(kind)
ones = np.ones(64, np.float32)
big, out = np.ones(16 << 20, np.uint8), np.empty(16 << 20, np.uint8)
def work(device, array):
    try:
        while True:
            if kind == "kernel":
                with device.load_kernel(shaders.path("mul")) as kernel:
                    kernel(ones, ones, ones)
            elif kind == "buffer":
                device.empty(rng.choice([10, 1000, 40_000_000])).close()
            elif kind == "image":
                with device.asimage(np.zeros((64, 64, 4), np.uint8)) as image:
                    image.numpy()
            elif kind == "array":
                with device.asarray(np.zeros(300_000, np.float32)) as made:
                    made.numpy()
            elif kind == "sampler":
                device.sampler("linear", "repeat").close()
            elif kind == "map":
                device.asarray(np.zeros(300_000, np.float32)).map()[:] = 1
            elif kind.startswith("read"):
                assert array.numpy(out).all()
            elif kind.startswith("write"):
                array.copy_from(big)
    except pumice.PumiceError:
        pass
for turn in range(turns):
    device = pumice.open_device()
    array = device.asarray(big) if "+" in kind else None
    threads = [threading.Thread(target=work, args=(device, array)) for _ in range(1 if array is not None else 3)]
    for thread in threads:
        thread.start()
    time.sleep(rng.uniform(0, 0.06) if array is None else 0.0005 * (turn % 12))
    if kind.endswith("+array"):
        array.close()
        for thread in threads:
            thread.join()
    device.close()
    for thread in threads:
        thread.join()
    del array
finish_teardowns()
left = {kind: count for kind, count in pumice.live_objects().items() if kind != "instance"}
assert not left, left
"""
KINDS = (
    *("kernel", "buffer", "image", "array", "sampler", "map"),
    *("read+array", "read+device", "write+array", "write+device"),
)


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_closed_while_threads_use_it(kind: str) -> None:
    """In a process of its own: what goes wrong ends it."""
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", WORK, kind, str(rounds(12, 60))],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "PUMICE_VALIDATION": "0"},
    )
    assert not ended.returncode and "Traceback" not in ended.stderr, (ended.returncode, ended.stderr)


def test_what_is_closed_while_a_thread_is_inside_is_kept(victim: Device) -> None:
    device, leave = victim, threading.Event()
    buffer = device.create_buffer(100, memory_type=HOST)
    allocation = buffer._allocation

    def use() -> None:
        with device.guard.lock:
            leave.wait(20)

    blocked = Blocked(use)
    until(lambda: bool(device.rundown.inside()))
    buffer.close()
    with pytest.raises(ClosedError):
        buffer.read()
    device.retire()
    assert allocation in device.allocator._live
    leave.set()
    blocked.join()
    device.retire()
    assert allocation not in device.allocator._live and not device.in_use


def test_any_number_of_objects_may_be_closed_while_a_thread_is_inside(victim: Device) -> None:
    device, leave = victim, threading.Event()
    done: list[int] = []

    def use() -> None:
        with device.guard.lock:
            leave.wait(20)

    blocked = Blocked(use)
    until(lambda: bool(device.rundown.inside()))
    for number in range(2 * sys.getrecursionlimit()):
        device.defer(lambda number=number: done.append(number))
    assert not done
    leave.set()
    blocked.join()
    device.retire()
    assert done == [*range(2 * sys.getrecursionlimit())]
    assert not device.in_use


def test_what_a_signal_handler_closes_in_the_middle_of_a_read_is_kept(victim: Device) -> None:
    buffer = victim.create_buffer(100, memory_type=HOST)
    with victim.guard.lock:  # as in read()
        buffer.close()
        assert buffer._allocation in victim.allocator._live
    victim.retire()
    assert buffer._allocation not in victim.allocator._live


# -- bounds ------------------------------------------------------------------------------------------


def test_close_gives_up_on_work_that_does_not_end(victim: Device) -> None:
    device = victim
    buffer = device.create_buffer(1 << 20)
    commands = device.create_command_buffer(name="endless")
    commands.begin().fill(buffer, b"\1")
    device.compute_queue.submit((commands.end(),))
    real = device.fn.vkWaitSemaphores
    device.fn.vkWaitSemaphores = lambda *_: _TIMEOUT
    try:
        for _ in range(2):
            with pytest.raises(DeadlineExceededError, match=r"work is still running \(endless\).*left behind with 1 b"):
                device.close(timeout=0.1)
    finally:
        device.fn.vkWaitSemaphores = real
    assert device.is_closed and live_objects()["device"]
    with pytest.raises(ClosedError):
        device.create_buffer(10)


def test_close_gives_up_on_a_thread_that_does_not_leave(victim: Device) -> None:
    device, leave = victim, threading.Event()

    def use() -> None:
        with device.guard.lock:
            leave.wait(20)

    blocked = Blocked(use)
    until(lambda: bool(device.rundown.inside()))
    with pytest.raises(DeadlineExceededError, match="it is still used in another thread"):
        device.close(timeout=0.05)
    with device.guard.lock, pytest.raises(ClosedError):
        device.check_not_ended()
    leave.set()
    blocked.join()


def test_close_inside_a_use_is_refused(victim: Device) -> None:
    with victim.guard.lock:
        start = time.monotonic()
        with pytest.raises(DeadlineExceededError, match="the call that a signal handler or callback of this thread"):
            victim.close()
        assert time.monotonic() - start < 10
        assert live_objects()["device"]


def test_close_gives_up_on_a_callback_that_waits_for_its_thread(victim: Device) -> None:
    """The poll thread is joined: whoever closes the device may hold what a callback waits for."""
    device, users = victim, threading.Lock()
    semaphore, began = device.create_semaphore(), threading.Event()

    def call(_: PumiceError | None) -> None:
        began.set()
        with users:
            pass

    with users:
        semaphore.notify(1, call)
        device.compute_queue.barrier(signals=((semaphore, 1),))
        assert began.wait(20)
        with pytest.raises(DeadlineExceededError, match="a callback of a semaphore still runs"):
            device.close(timeout=0.1)
        assert live_objects()["device"]
    device.close()


def test_others_return_at_once_while_a_thread_closes(victim: Device) -> None:
    device, leave = victim, threading.Event()

    def use() -> None:
        with device.guard.lock:
            leave.wait(20)

    inside = Blocked(use)
    until(lambda: bool(device.rundown.inside()))
    closing = Blocked(device.close)
    until(lambda: device.rundown.is_over)
    device.close()
    assert not closing.ended
    leave.set()
    closing.join()
    inside.join()
    assert closing.error is None


# -- interrupts --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_ctrl_c_at_any_point_of_close() -> None:
    """Another close finishes what the first one began."""
    told: list[PumiceError | None] = []
    devices: list[pumice.Device] = []

    def use() -> None:
        device = pumice.open_device(validation=False, persistent_cache=False)
        devices.append(device)
        hal = device.vulkan
        buffer, semaphore = hal.create_buffer(64), hal.create_semaphore()
        hal.compute_queue.fill(buffer, b"\1", signals=((semaphore, 1),))
        semaphore.notify(2, told.append)
        hal.create_pipeline(shaders.spirv("mul")).close()
        device.close()

    names = ("device", "logical_device", "allocator", "block", "driver", "notifier", "queue", "poll_thread")
    names += ("retirement", "rundown", "process", "semaphore", "timeline", "context")

    def is_traced(path: str) -> bool:
        return path.endswith(tuple(f"/{name}.py" for name in names)) and "/tests/" not in path

    use()  # once without: what it imports and caches has no points
    before = live_objects()
    for number in points(use, is_traced, None if SOAK else 20):
        devices.clear()
        told.clear()
        interrupted(number, use, is_traced)
        for device in devices:
            device.close()
            assert device.is_closed and device.vulkan.is_destroyed
            assert len(told) <= 1 and all(isinstance(error, CancelledError) for error in told)
        gc.collect()
        assert live_objects() == before, number


EXIT = """
import signal, sys, time
import numpy as np, pumice
from pumice.hal_vulkan.instance import process
process.EXIT_TIMEOUT_S = 0.5
device = pumice.open_device()
kernel = device.load_kernel('''#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer A { float a[]; };
void main() { if (gl_GlobalInvocationID == uvec3(7)) a[0] += 1.0; }
''')
x = device.asarray(np.zeros(4, np.float32))
kernel(x, groups=(600, 600, 600))
try:
    x.wait(timeout=0.1)
except pumice.DeadlineExceededError:
    print("timed out", flush=True)
sys.exit(3)
"""


@pytest.mark.slow
def test_the_process_ends_although_work_does_not() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", EXIT], capture_output=True, text=True, check=False, timeout=100, env={**os.environ}
    )
    if not ended.stdout:
        pytest.skip("the device is too fast for the work")
    assert ended.returncode == 3, ended.stderr
    assert "the process ends, and after 0.5 s" in ended.stderr and "the device and its memory are left" in ended.stderr


def test_the_last_view_may_go_under_any_lock(driver: Driver) -> None:
    """A finaliser runs at any point, in this thread too, which may hold what the end of a device takes."""
    before = live_objects()
    device = Device(driver)
    view = device.create_buffer(100, memory_type=HOST).map()
    device.close()
    assert live_objects()["device"] == before.get("device", 0) + 1
    with driver._lock:
        del view
        gc.collect()
    finish_teardowns()
    assert live_objects() == before
