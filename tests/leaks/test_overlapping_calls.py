"""Calls with round trips to the device leave memory where it was, however they are made and however they end.

Calls come in blocks. Pools grow with what is in flight at once, but not for ever: one block has to leave nothing
behind. The short form finds what stays at one call in 25, the long form (``PUMICE_SOAK=1``), of 50,000 calls and more,
what stays at one in 400.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from support.flat import hold_flat
from support.peer import compile_module
from support.soak import SOAK

import pumice
from pumice.hal_vulkan.programs.command_buffer import ProgramCommandBuffer

pytestmark = [pytest.mark.vulkan, pytest.mark.peer, pytest.mark.sample(2)]

_BLOCK = 25_000 if SOAK else 400
_IN_FLIGHT = 20
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
def test_memory_stays_flat(run: Callable[[pumice.SessionFunction, int], None], monkeypatch: pytest.MonkeyPatch) -> None:
    # Recordings are kept up to a number, which calls that are aborted anywhere reach slowly.
    monkeypatch.setattr(ProgramCommandBuffer, "MAX_RECORDINGS", 32)
    module = compile_module(LOOP)
    with pumice.Session(options=pumice.SessionOptions(concurrent=True)) as session:
        session.load(module)
        loop = session.lookup("module.loop")

        def idle() -> None:
            end = time.monotonic() + 20
            while not session.context.is_idle() and time.monotonic() < end:
                time.sleep(0.01)
            session.device.hal.wait_idle()
            session.device.hal.retire()

        hold_flat(lambda: run(loop, _BLOCK), idle)
