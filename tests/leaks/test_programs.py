"""Calls of compiled programs, and sessions whose calls fail, leave memory and live objects where they were."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.flat import hold_flat
from support.peer import compile_module
from support.runtime.outputs import compiled
from support.soak import SOAK

import pumice

pytestmark = [pytest.mark.vulkan, pytest.mark.sample(2)]

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


def _stays_flat(session: pumice.Session, call: Callable[[int], object], calls: int) -> None:
    def block() -> None:
        for step in range(calls):
            call(step)

    def idle() -> None:
        session.device.hal.wait_idle()
        session.trim()

    hold_flat(block, idle)


@pytest.mark.peer
@pytest.mark.parametrize("staging", [False, True], ids=["mapped", "staging"])
def test_calls_of_a_small_program_are_flat(staging: bool) -> None:
    a, b = np.arange(4, dtype=np.float32), np.float32([1, 2, 3, 4])
    calls = 25_000 if SOAK else 700
    with pumice.open_device(staging=staging) as device, pumice.Session(device) as session:
        session.load(compile_module(MULTIPLY))
        multiply = session.lookup("module.multiply")
        held = [device.asarray(a + i) for i in range(20)]
        kept: list[object] = []

        def call(step: int) -> None:
            result = multiply(held[step % 20], b) if step % 3 else multiply(a, b)
            if step % 7 == 0:
                kept[:] = [*kept[-5:], result]
            if step % 100 == 0:
                np.testing.assert_array_equal(np.asarray(result), (a + step % 20 if step % 3 else a) * b)

        _stays_flat(session, call, calls)
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

        _stays_flat(session, call, 5_000 if SOAK else 300)


@pytest.mark.parametrize("staging", [False, True], ids=["mapped", "staging"])
def test_results_in_the_callers_arrays_and_donations_are_flat(staging: bool) -> None:
    a, b = np.arange(4, dtype=np.float32), np.float32([1, -1, 1, -1])
    with pumice.open_device(staging=staging) as device, pumice.Session(device) as session:
        session.load(compiled())
        multiply, moved = session.lookup("program.mul"), [device.asarray(a)]
        sign, whole = device.asarray(b), device.zeros(128)

        def call(step: int) -> None:
            out = whole[step % 7 : step % 7 + 4]  # in place, or through a copy
            multiply(a, sign, out=out)
            moved[0] = multiply(moved[0], sign, donate=0)
            session.call("program.tanh", device.asarray(a), donate=0)
            with pytest.raises(pumice.InvalidArgumentError):
                multiply(moved[0], sign, donate=0, out=moved[0])
            if step % 100 == 0:
                np.testing.assert_array_equal(out.numpy(), a * b)
                np.testing.assert_array_equal(np.abs(moved[0].numpy()), a)

        _stays_flat(session, call, 5_000 if SOAK else 300)


@pytest.mark.peer
@pytest.mark.parametrize("memoized", [True, False])
def test_sessions_that_end_badly_leave_nothing(memoized: bool) -> None:
    module = compile_module(ENDS_BADLY, *([] if memoized else ["--iree-hal-memoization=false"]))
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
