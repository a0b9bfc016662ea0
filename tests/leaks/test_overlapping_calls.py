"""Calls with round trips to the device leave memory where it was, however they are made and however they end.

``PUMICE_SOAK=1`` makes 50,000 calls of each kind. The short form holds the same limits over 1,000 calls: it finds what
stays behind at every third call, the long form what stays behind at one in a hundred.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import psutil
import pytest

import pumice

pytestmark = [pytest.mark.vulkan, pytest.mark.peer]

_VALIDATION = os.environ.get("PUMICE_VALIDATION", "0") not in ("", "0")
_SOAK = os.environ.get("PUMICE_SOAK", "0") not in ("", "0")
_CALLS = 50_000 if _SOAK else 1_000
_WARM = 2_000 if _SOAK else 700
_IN_FLIGHT = 20
# What is in flight at once differs from run to run, and pools keep the most that was.
_MAX_NATIVE_OBJECTS = 64
_MAX_RECORDINGS = 160
_MAX_PYTHON_OBJECTS = 300
_MAX_BLOCKS = 1_200  # of Python's allocator
_MAX_RESIDENT = 4 << 20
LOOP = """
func.func @loop(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %four = arith.constant 4.0 : f32
  %end = scf.while (%value = %x) : (tensor<8xf32>) -> tensor<8xf32> {
    %first = tensor.extract %value[%c0] : tensor<8xf32>
    %on = arith.cmpf olt, %first, %four : f32
    scf.condition(%on) %value : tensor<8xf32>
  } do {
  ^bb0(%value: tensor<8xf32>):
    %next = arith.addf %value, %x : tensor<8xf32>
    scf.yield %next : tensor<8xf32>
  }
  return %end : tensor<8xf32>
}
"""
X = np.ones(8, np.float32)


def _synchronous(loop: pumice.SessionFunction, calls: int) -> None:
    for step in range(calls):
        result = loop(X)
        if step % 100 == 0:
            np.testing.assert_array_equal(np.asarray(result), 4 * X)


def _synchronous_timed_out(loop: pumice.SessionFunction, calls: int) -> None:
    for step in range(calls):
        try:
            loop(X, timeout=step % 5 * 0.0005)
        except pumice.DeadlineExceededError:
            pass


def _threads(loop: pumice.SessionFunction, calls: int) -> None:
    threads = [threading.Thread(target=_synchronous, args=(loop, calls // 4)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


async def _asynchronous(loop: pumice.SessionFunction, step: int) -> None:
    result = await loop.call_async(X)
    if step % 100 == 0:
        np.testing.assert_array_equal(np.asarray(result), 4 * X)


async def _cancelled(loop: pumice.SessionFunction, step: int) -> None:
    task = asyncio.ensure_future(loop.call_async(X))
    for _ in range(step % 7):
        await asyncio.sleep(0)
    if step % 3 == 0:
        await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.wait([task])


async def _timed_out(loop: pumice.SessionFunction, step: int) -> None:
    try:
        await loop.call_async(X, timeout=step % 5 * 0.002)
    except pumice.DeadlineExceededError:
        pass


def _overlapping(one: Callable[[pumice.SessionFunction, int], object]) -> Callable[[pumice.SessionFunction, int], None]:
    """Twenty at a time, each by ``one``."""

    def run(loop: pumice.SessionFunction, calls: int) -> None:
        async def caller(number: int) -> None:
            for step in range(number, calls, _IN_FLIGHT):
                await one(loop, step)  # type: ignore[misc]  # coroutine functions

        async def main() -> None:
            await asyncio.gather(*(caller(number) for number in range(_IN_FLIGHT)))

        asyncio.run(main())

    return run


@pytest.mark.parametrize(
    "run",
    [
        _synchronous,
        _synchronous_timed_out,
        _threads,
        _overlapping(_asynchronous),
        _overlapping(_cancelled),
        _overlapping(_timed_out),
    ],
    ids=["synchronous", "synchronous-timed-out", "threads", "asynchronous", "cancelled", "timed-out"],
)
def test_memory_stays_flat(run: Callable[[pumice.SessionFunction, int], None]) -> None:
    compiler = pytest.importorskip("iree.compiler", reason="needs the IREE compiler: install the peer extra")
    module = compiler.compile_str(LOOP, extra_args=["--iree-hal-target-device=vulkan"])
    process = psutil.Process()

    def measure(session: pumice.Session) -> tuple[int, ...]:
        end = time.monotonic() + 20
        while not session.context.is_idle() and time.monotonic() < end:
            time.sleep(0.01)
        session.device.hal.wait_idle()
        session.device.hal.retire()
        gc.collect()
        counts = pumice.live_objects()
        return (
            sum(count for kind, count in counts.items() if kind != "command pool"),
            counts.get("command pool", 0),
            len(gc.get_objects()),
            sys.getallocatedblocks(),
            process.memory_info().rss,
        )

    with pumice.Session(options=pumice.SessionOptions(concurrent=True)) as session:
        session.load(module)
        loop = session.lookup("module.loop")
        run(loop, _WARM)
        before = measure(session)
        run(loop, _CALLS)
        native, recordings, objects, blocks, resident = (b - a for a, b in zip(before, measure(session), strict=True))
    assert native <= _MAX_NATIVE_OBJECTS
    assert recordings <= _MAX_RECORDINGS
    assert objects <= _MAX_PYTHON_OBJECTS
    assert blocks <= _MAX_BLOCKS
    # The validation layers keep records of their own.
    assert _VALIDATION or resident <= _MAX_RESIDENT
