"""Many threads over one kernel, array, session and context, with threads switched at lines of the code under test.

They run on every Python; without the GIL the threads are truly parallel. The printed seed determines how often each
thread yields, but not the order in which threads run.
"""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest
from support.runtime.sessions import COUNTER, function, module
from support.vm.contexts import is_idle
from support.waiting import until

import pumice
from pumice.status import ClosedError, FailedPreconditionError
from pumice.vm import Context, NativeModule, export

ROOT = Path(pumice.__file__).parent
THREADS = 6
UNDER_TEST = tuple(
    str(ROOT / name)
    for name in (
        "runtime/kernels/dispatcher.py",
        "runtime/kernels/recorder.py",
        "runtime/kernels/bound_call.py",
        "vm/execution/admission.py",
        "vm/execution/run.py",
        "hal_vulkan/submit/retirement.py",
        "hal_vulkan/submit/submission.py",
        "hal_vulkan/sync/semaphore.py",
    )
)


@contextlib.contextmanager
def switching(seed: int, share: float) -> Iterator[None]:
    """Gives the processor away at some lines of ``UNDER_TEST``, and lets threads switch every microsecond."""
    print(f"seed {seed}")
    source = random.Random(seed)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def give_way() -> None:
        if source.random() < share:
            time.sleep(0)

    stop = _monitor(give_way) if sys.version_info >= (3, 12) else _trace(give_way)
    try:
        yield
    finally:
        stop()
        sys.setswitchinterval(interval)


def _monitor(give_way: Callable[[], None]) -> Callable[[], None]:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
    tool = 4  # no tool of the library has it
    monitoring.use_tool_id(tool, "pumice threads")

    def line(code: CodeType, _: int) -> Any:
        if code.co_filename not in UNDER_TEST:
            return monitoring.DISABLE
        give_way()
        return None

    monitoring.register_callback(tool, monitoring.events.LINE, line)
    monitoring.set_events(tool, monitoring.events.LINE)
    monitoring.restart_events()

    def stop() -> None:
        monitoring.set_events(tool, 0)
        monitoring.register_callback(tool, monitoring.events.LINE, None)
        monitoring.free_tool_id(tool)

    return stop


def _trace(give_way: Callable[[], None]) -> Callable[[], None]:
    def line(_: FrameType, event: str, __: Any) -> Any:
        if event == "line":
            give_way()
        return line

    def call(frame: FrameType, _: str, __: Any) -> Any:
        return line if frame.f_code.co_filename in UNDER_TEST else None

    threading.settrace(call)
    return lambda: threading.settrace(None)


def in_threads(work: Callable[[int], None], count: int = THREADS, seed: int = 1, share: float = 0.02) -> None:
    """Runs ``work(index)`` in threads that begin together; raises the first error."""
    start = threading.Barrier(count)
    errors: list[BaseException] = []

    def run(index: int) -> None:
        try:
            start.wait(60)
            work(index)
        except BaseException as error:
            errors.append(error)

    with switching(seed, share):
        threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


@pytest.fixture
def device() -> Iterator[pumice.Device]:
    with pumice.open_device() as opened:
        yield opened


MUL = str(ROOT / "shaders/mul.spv")


@pytest.mark.vulkan
@pytest.mark.parametrize("seed", [1, 2])
def test_one_kernel_with_arrays_of_each_thread(device: pumice.Device, seed: int) -> None:
    kernel = device.load_kernel(MUL)
    left = np.arange(256, dtype=np.float32)

    def work(index: int) -> None:
        right = np.full(256, index + 1, np.float32)
        inputs = device.asarray(left), device.asarray(right)
        outputs = [device.empty((256,), np.float32) for _ in range(3)]
        for call in range(12):
            output = outputs[call % 3]
            kernel(*inputs, output)
            np.testing.assert_array_equal(output.numpy(), left * right)
            np.testing.assert_array_equal(kernel(left, right, pumice.empty(256, np.float32)), left * right)

    in_threads(work, seed=seed)


@pytest.mark.vulkan
def test_one_array_that_threads_read(device: pumice.Device) -> None:
    kernel = device.load_kernel(MUL)
    host = np.arange(256, dtype=np.float32)
    shared = device.asarray(host)

    def work(_: int) -> None:
        for _ in range(12):
            output = device.empty((256,), np.float32)
            kernel(shared, shared, output)
            np.testing.assert_array_equal(output.numpy(), host * host)
            np.testing.assert_array_equal(shared.numpy(), host)

    in_threads(work)


@pytest.mark.vulkan
def test_semaphores_that_many_threads_wait_for(device: pumice.Device) -> None:
    semaphores = [device.hal.create_semaphore() for _ in range(4)]
    last = 20

    def work(index: int) -> None:
        if index < len(semaphores):
            for value in range(1, last + 1):
                semaphores[index].signal(value)
            return
        for value in range(1, last + 1):
            for semaphore in semaphores:
                semaphore.wait(value, 30)

    in_threads(work, count=8)
    assert [semaphore.query() for semaphore in semaphores] == [last] * 4


def most_inside(context: Context, seed: int) -> int:
    """The most threads that were at once in the function ``host.call``, which many call."""
    target = context.lookup("host.call")

    def work(_: int) -> None:
        for n in range(60):
            with contextlib.suppress(FailedPreconditionError):
                assert context.invoke(target, (n,)) == n + 1

    in_threads(work, seed=seed, share=0.1)
    return context.module_state("host").most  # type: ignore[no-any-return, attr-defined]


class Inside:
    """Counts the threads in ``host.call``."""

    def __init__(self) -> None:
        self.now = self.most = 0

    @export("call", "0i_i")
    def call(self, value: int) -> int:
        self.now += 1
        self.most = max(self.most, self.now)
        time.sleep(0)
        self.now -= 1
        return value + 1


def counting(*, concurrent: bool = False) -> Context:
    return Context([NativeModule("host", state=Inside)], concurrent=concurrent)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_one_thread_at_a_time_is_in_a_context(seed: int) -> None:
    with counting() as context:
        assert most_inside(context, seed) == 1
        assert is_idle(context) and context.is_idle()


def test_a_concurrent_context_loses_no_turn() -> None:
    with counting(concurrent=True) as context:
        most_inside(context, 1)
        assert is_idle(context) and context.is_idle()


class NoLock(contextlib.AbstractContextManager["NoLock"]):
    def acquire(self) -> None: ...

    def release(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def test_a_gate_without_its_lock_is_seen() -> None:
    """The tests above can fail."""

    def is_broken(seed: int) -> bool:
        context = counting()
        context.gate.lock = NoLock()  # type: ignore[assignment]
        try:
            return most_inside(context, seed) > 1 or not is_idle(context) or not context.is_idle()
        except Exception:
            return True

    assert any(is_broken(seed) for seed in range(30))


@pytest.mark.vulkan
def test_a_concurrent_session_and_its_close(device: pumice.Device) -> None:
    session = pumice.Session(device, options=pumice.SessionOptions(concurrent=True))
    session.append_module(
        module(function("same", "sync func @same(%x: tensor<4xf32>) -> (%y: tensor<4xf32>)") + COUNTER)
    )
    same = session.lookup("program.same")
    ended: list[int] = []

    def work(index: int) -> None:
        value = np.full(4, index, np.float32)
        try:
            for n in range(1000):
                if index == 0 and n == 5:
                    until(lambda: _closes(session))
                np.testing.assert_array_equal(same(value), value)
        except ClosedError:
            ended.append(index)

    in_threads(work)
    assert session.is_closed and ended


def _closes(session: pumice.Session) -> bool:
    try:
        session.close()
    except FailedPreconditionError:  # a call is inside
        return False
    return True


LAZY = """
import random, sys, threading
import pumice
names = [name for name in pumice.__all__ if not name.startswith("_")]
seen = []
start = threading.Barrier(4)
def work(index):
    start.wait()
    order = random.Random(index).sample(names, len(names))
    seen.append({name: getattr(pumice, name) for name in order})
threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(seen) == 4 and all(values[name] is seen[0][name] for values in seen for name in names)
"""


def test_lazy_names_from_threads() -> None:
    subprocess.run([sys.executable, "-c", LAZY], check=True, timeout=60)
