"""Thousands of calls of compiled programs leave memory and live objects where they were; so do sessions that end badly."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest

import pumice

pytestmark = pytest.mark.vulkan

_VALIDATION = os.environ.get("PUMICE_VALIDATION", "0") not in ("", "0")
DIGITS = Path(__file__).parents[2] / "examples" / "digits"
MULTIPLY = """
func.func @multiply(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %product = arith.mulf %a, %b : tensor<4xf32>
  return %product : tensor<4xf32>
}
"""
# Fails, or goes round for ever, after work was submitted.
ENDS_BADLY = """
func.func @fail(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %sum = arith.addf %x, %x : tensor<8xf32>
  %first = tensor.extract %sum[%c0] : tensor<8xf32>
  %fine = arith.cmpf une, %first, %zero : f32
  cf.assert %fine, "the first element is zero"
  %product = arith.mulf %sum, %x : tensor<8xf32>
  return %product : tensor<8xf32>
}
func.func @loop(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %end = scf.while (%value = %x) : (tensor<8xf32>) -> tensor<8xf32> {
    %first = tensor.extract %value[%c0] : tensor<8xf32>
    %on = arith.cmpf oge, %first, %zero : f32
    scf.condition(%on) %value : tensor<8xf32>
  } do {
  ^bb0(%value: tensor<8xf32>):
    %next = arith.addf %value, %x : tensor<8xf32>
    scf.yield %next : tensor<8xf32>
  }
  return %end : tensor<8xf32>
}
"""


def _compile(text: str) -> bytes:
    compiler = pytest.importorskip("iree.compiler", reason="needs the IREE compiler: install the peer extra")
    module = compiler.compile_str(text, extra_args=["--iree-hal-target-device=vulkan"])
    assert isinstance(module, bytes)
    return module


def _stays_flat(session: pumice.Session, call: Callable[[int], object], warm: int, calls: int) -> None:
    process = psutil.Process()

    def settle() -> None:
        gc.collect()
        session.device.hal.wait_idle()
        session.trim()

    for step in range(warm):
        call(step)
    settle()
    objects, resident = dict(pumice.live_objects()), process.memory_info().rss
    for step in range(calls):
        call(step)
    settle()
    after = dict(pumice.live_objects())
    # One a recording, and how many of those there are depends on what was in flight at once; a leak would be one a call.
    assert after.pop("command pool", 0) <= objects.pop("command pool", 0) + 16 < calls
    assert after == objects
    # The layers keep records of their own.
    if not _VALIDATION:
        grown = process.memory_info().rss - resident
        assert grown < 8 << 20, f"resident memory grew by {grown / 2**20:.1f} MiB in {calls} calls"


@pytest.mark.peer
@pytest.mark.parametrize("staging", [False, True], ids=["mapped", "staging"])
def test_calls_of_a_small_program_are_flat(staging: bool) -> None:
    a, b = np.arange(4, dtype=np.float32), np.float32([1, 2, 3, 4])
    calls = 4_000 if _VALIDATION or staging else 20_000
    with pumice.open_device(staging=staging) as device, pumice.Session(device) as session:
        session.load(_compile(MULTIPLY))
        multiply = session.lookup("module.multiply")
        held = [device.asarray(a + i) for i in range(20)]
        kept: list[object] = []

        def call(step: int) -> None:
            result = multiply(held[step % 20], b) if step % 3 else multiply(a, b)
            if step % 7 == 0:
                kept[:] = [*kept[-5:], result]
            if step % 100 == 0:
                np.testing.assert_array_equal(np.asarray(result), (a + step % 20 if step % 3 else a) * b)

        _stays_flat(session, call, 1_000, calls)
        for array in held:
            array.close()


def test_calls_of_a_classifier_are_flat() -> None:
    picture = np.random.default_rng(3).random((1, 28, 28, 1), np.float32)
    with pumice.open_device() as device, pumice.Session(device) as session:
        session.load(DIGITS / "digits.vmfb")
        classify = session.lookup("module.classify")
        expected = [np.asarray(one).copy() for one in classify(picture)]

        def call(step: int) -> None:
            results = classify(picture)
            if step % 100 == 0:
                for result, same in zip(results, expected, strict=True):
                    np.testing.assert_array_equal(np.asarray(result), same)

        _stays_flat(session, call, 300, 400 if _VALIDATION else 2_000)


@pytest.mark.peer
@pytest.mark.parametrize("memoized", [True, False])
def test_sessions_that_end_badly_leave_nothing(memoized: bool) -> None:
    compiler = pytest.importorskip("iree.compiler", reason="needs the IREE compiler: install the peer extra")
    flags = ["--iree-hal-target-device=vulkan"] + ([] if memoized else ["--iree-hal-memoization=false"])
    module = compiler.compile_str(ENDS_BADLY, extra_args=flags)
    x = np.ones(8, np.float32)

    def session_of(device: pumice.Device | None) -> None:
        with pumice.Session(device) as session:
            session.load(module)
            for _ in range(3):
                with pytest.raises(pumice.PumiceError, match="the first element is zero"):
                    session.call("module.fail", 0 * x)
                with pytest.raises(pumice.DeadlineExceededError):
                    session.call("module.loop", x, timeout=0.05)
                np.testing.assert_array_equal(np.asarray(session.call("module.fail", x)), 2 * x)

    with pumice.open_device() as device:

        def settle() -> dict[str, int]:
            gc.collect()
            device.hal.wait_idle()
            device.hal.trim()
            return pumice.live_objects()

        session_of(device)
        before = settle()
        for _ in range(5):
            session_of(device)
        assert settle() == before
    gc.collect()
    before = pumice.live_objects()
    for _ in range(3):
        session_of(None)
        gc.collect()
        assert pumice.live_objects() == before
