"""Cases about calls: copies between host and device, kernels from threads, programs in flight, shared memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np

from ... import shaders
from ...compiler.compile import compile
from ...runtime.device import Device
from ...runtime.opening import open_device
from ...runtime.sessions.session import Session
from ...runtime.sessions.session_function import SessionFunction
from ...runtime.sessions.session_options import SessionOptions
from ...testing.closeness import assert_close
from .case import Case

_SIZES = (1, 3, 4, 5, 63, 255, 256, 4095, 65_537, (1 << 20) + 3)
_SECONDS = 30.0
_STEP = """
func.func public @main(%x: tensor<1000xf32>, %y: tensor<1000xf32>) -> tensor<1000xf32> {
  %0 = stablehlo.add %x, %y : tensor<1000xf32>
  return %0 : tensor<1000xf32>
}
"""
_X = np.arange(1000, dtype=np.float32)


def _load(session: Session, device: Device) -> SessionFunction:
    name = session.load(compile(_STEP, device=device.profile)).name
    return session.lookup(f"{name}.main")


def _there_and_back(device: Device) -> None:
    rng = np.random.default_rng(1)
    for size in _SIZES:
        values = rng.integers(0, 256, size).astype(np.uint8)
        with device.asarray(values) as array:
            assert_close(array.numpy(), values, what=f"{size} bytes")
            array.copy_from(values[::-1].copy())
            assert_close(array.numpy(), values[::-1], what=f"{size} bytes, written again")
            assert_close(array[size // 3 :].numpy(), values[::-1][size // 3 :], what=f"the end of {size} bytes")


def _staged(device: Device) -> None:
    """Copies in both directions: through mapped memory, and through staging buffers."""
    for staging in (False, True):
        with open_device(device.uri, staging=staging) as other:
            _there_and_back(other)


def _odd_bytes(device: Device) -> None:
    """Fills and copies on the device at odd offsets and lengths."""
    rng = np.random.default_rng(2)
    with device.zeros(5000, np.uint8) as source, device.zeros(5000, np.uint8) as target:
        expected, queue = np.zeros(5000, np.uint8), device.vulkan.compute_queue
        for number in range(60):
            begin, size = int(rng.integers(0, 4000)), int(rng.integers(1, 999))
            queue.fill(source.buffer, bytes([number + 1]), begin, size)
            expected[begin : begin + size] = number + 1
        copied = np.zeros(5000, np.uint8)
        for _ in range(60):
            begin, end, size = (int(value) for value in rng.integers(1, [4000, 4000, 999]))
            queue.copy(source.buffer, target.buffer, size, source_offset=begin, target_offset=end)
            copied[end : end + size] = expected[begin : begin + size]
        queue.wait_idle(_SECONDS)
        assert_close(source.numpy(), expected, what="fills")
        assert_close(target.numpy(), copied, what="copies")


def _host_arrays(device: Device) -> None:
    """Calls a kernel on NumPy arrays, whose memory may be imported."""
    with device.load_kernel(shaders.path("mul")) as kernel:
        for size in (1, 63, 1024, 100_000):
            for number in range(5):
                a, b = np.arange(size, dtype=np.float32), np.full(size, number, np.float32)
                c = np.empty_like(a)
                kernel(a, b, out=c)
                assert_close(c, a * b, what=f"{size} elements")


def _threads(device: Device) -> None:
    """Calls kernels of one device from four threads."""
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            with device.load_kernel(shaders.path("mul")) as kernel, device.empty(500) as z:
                for step in range(50):
                    with device.asarray(np.full(500, number, np.float32)) as a:
                        kernel(a, np.full(500, step, np.float32), z)
                        assert_close(z.numpy(), np.full(500, number * step), what=f"thread {number}, call {step}")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def _in_place(device: Device) -> None:
    """Writes results into arrays of the caller."""
    with Session(device) as session, device.zeros(1000) as out, device.asarray(_X) as x:
        function = _load(session, device)
        for number in range(1, 20):
            function(x, np.full(1000, number, np.float32), out=out)
            assert_close(out.numpy(), _X + number, what=f"call {number}")


def _donated(device: Device) -> None:
    """Runs a hundred steps that each compute in the memory of their argument."""
    with Session(device) as session, device.asarray(np.ones(1000, np.float32)) as step:
        function = _load(session, device)
        state = device.asarray(_X)
        for _ in range(100):
            before = state
            state = function(state, step, donate=0)
            assert before.is_closed, "a donated array is still open"
        assert_close(state.numpy(), _X + 100, what="after a hundred steps")
        state.close()


def _in_flight(device: Device) -> None:
    """Runs sixty-four concurrent calls from coroutines, and a stream of two hundred."""

    async def work(function: SessionFunction) -> None:
        results = await asyncio.gather(*(function.call_async(_X, _X + number) for number in range(64)))
        for number, result in enumerate(results):
            assert_close(result, 2 * _X + number, what=f"call {number}")
        number = 0
        async for result in function.stream([(_X, _X + n) for n in range(200)], depth=8):
            assert_close(result, 2 * _X + number, what=f"call {number} of the stream")
            number += 1
        assert number == 200, f"{number} results of 200"

    with Session(device, options=SessionOptions(concurrent=True)) as session:
        asyncio.run(asyncio.wait_for(work(_load(session, device)), _SECONDS))


def _sessions(device: Device) -> None:
    """Opens twenty sessions one after another, and five at a time that pass arrays to each other."""
    for _ in range(20):
        with Session(device) as session:
            assert_close(_load(session, device)(_X, _X), 2 * _X, what="a session's result")
    with ExitStack() as stack:
        value = device.asarray(_X)
        for _ in range(5):
            session = stack.enter_context(Session(device))
            value = _load(session, device)(value, value)
        assert_close(value, 32 * _X, what="after five sessions")


def _profiled(device: Device) -> None:
    """Checks that a profile has the time of each dispatch."""
    with Session(device) as session:
        function = _load(session, device)
        function(_X, _X)
        with session.profile() as profile:
            for _ in range(3):
                function(_X, _X)
        assert profile.calls, "the profile has no calls"


def _robust(device: Device) -> None:
    """Checks that a kernel that reads past its arrays ends normally with bounded accesses."""
    with (
        open_device(device.uri, robust=True) as other,
        other.load_kernel(shaders.path("mul")) as kernel,
        other.asarray(_X) as x,
        other.zeros(1000) as z,
    ):
        kernel(x, x, z, groups=1000)
        assert_close(z.numpy(), _X * _X, what="products")


def call_cases() -> Iterator[Case]:
    """Yields the cases of the area ``runtime``."""
    for title, run in (
        ("arrays there and back", _there_and_back),
        ("arrays there and back, mapped and staged", _staged),
        ("fills and copies at odd bytes", _odd_bytes),
        ("kernels on arrays of the host", _host_arrays),
        ("kernels from four threads", _threads),
        ("results in place", _in_place),
        ("donated arguments", _donated),
        ("async calls in flight", _in_flight),
        ("sessions, many and together", _sessions),
        ("profiles", _profiled),
        ("bounded accesses", _robust),
    ):
        yield Case("runtime", title, run)
