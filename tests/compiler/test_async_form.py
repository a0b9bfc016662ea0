"""``f$async``: results go to the caller's storages, between a wait fence and a signal fence."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from support.compiler.evaluation import evaluated
from support.compiler.modules import BOTH, call_arrays, peer_results
from support.compiler.tensor_programs import BATCH, CHOICE, LAYER, POWERS, SIMPLE_MUL, floats

import pumice
from pumice.hal_reference.program import Array
from pumice.status import InvalidArgumentError, PumiceError

PASSED = """
func.func @main(%x: tensor<3xi8>, %y: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<3xi8>, tensor<4xf32>, tensor<2xi1>, tensor<4xf32>, tensor<4xf32>, tensor<0xf32>,
        tensor<f16>) {
  %c = stablehlo.constant dense<[true, false]> : tensor<2xi1>
  %d = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %e = stablehlo.constant dense<> : tensor<0xf32>
  %h = stablehlo.constant dense<2.5> : tensor<f16>
  %0 = stablehlo.add %y, %d : tensor<4xf32>
  return %y, %x, %0, %c, %0, %d, %e, %h
    : tensor<4xf32>, tensor<3xi8>, tensor<4xf32>, tensor<2xi1>, tensor<4xf32>, tensor<4xf32>, tensor<0xf32>,
      tensor<f16>
}
"""
PARTIAL = """
func.func @main(%x: tensor<5xi8>, %y: tensor<5xi8>) -> (tensor<5xi8>, tensor<5xi1>, tensor<i1>, tensor<3xf16>) {
  %0 = stablehlo.multiply %x, %y : tensor<5xi8>
  %1 = stablehlo.compare LT, %x, %y : (tensor<5xi8>, tensor<5xi8>) -> tensor<5xi1>
  %c = stablehlo.constant dense<true> : tensor<i1>
  %2 = stablehlo.reduce(%1 init: %c) applies stablehlo.and across dimensions = [0]
    : (tensor<5xi1>, tensor<i1>) -> tensor<i1>
  %3 = stablehlo.slice %0 [1:4] : (tensor<5xi8>) -> tensor<3xi8>
  %4 = stablehlo.convert %3 : (tensor<3xi8>) -> tensor<3xf16>
  return %0, %1, %2, %4 : tensor<5xi8>, tensor<5xi1>, tensor<i1>, tensor<3xf16>
}
"""
CHAIN = """
func.func @main(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.dot_general %0, %x, contracting_dims = [1] x [0]
    : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.dot_general %1, %0, contracting_dims = [1] x [0]
    : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
"""
EMPTY = """
func.func @main(%x: tensor<0x3xf32>) -> (tensor<0x3xf32>, tensor<3xf32>) {
  %0 = stablehlo.add %x, %x : tensor<0x3xf32>
  %c = stablehlo.constant dense<1.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0]
    : (tensor<0x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %0, %1 : tensor<0x3xf32>, tensor<3xf32>
}
"""
CHECKED = """
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  %1 = stablehlo.add %y, %y : tensor<4xf32>
  stablehlo.custom_call @check.expect_almost_eq(%0, %1) {has_side_effect = true} : (tensor<4xf32>, tensor<4xf32>) -> ()
  %2 = stablehlo.add %0, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}
"""
NOTHING = "func.func @main(%x: tensor<2xf32>) { return }"
SLICED = """
func.func @main(%x: tensor<?x2xf32>, %n: tensor<i32>) -> tensor<?x2xf32> {
  %0 = stablehlo.constant dense<2> : tensor<1xi32>
  %1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %2 = stablehlo.concatenate %1, %0, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %3 = stablehlo.constant dense<1.5> : tensor<f32>
  %4 = stablehlo.dynamic_broadcast_in_dim %3, %2, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x2xf32>
  %5 = stablehlo.add %4, %x : tensor<?x2xf32>
  return %5 : tensor<?x2xf32>
}
"""
EMPTY_ROWS = """
func.func @main(%x: tensor<?x3xf32>, %i: tensor<?x2xi64>) -> tensor<?x1x0xf32> {
  %0 = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [0, 1],
    index_vector_dim = 1>, slice_sizes = array<i64: 1, 0>} : (tensor<?x3xf32>, tensor<?x2xi64>) -> tensor<?x1x0xf32>
  return %0 : tensor<?x1x0xf32>
}
"""


PROGRAMS: dict[str, tuple[str, list[Array]]] = {
    "simple_mul": (SIMPLE_MUL.replace("@simple_mul", "@main"), [floats(4), floats(4) + 1]),
    "layer": (LAYER, [floats(4, 8), floats(8, 3)]),
    "loop": (POWERS, [floats(4), np.array(5, np.int32)]),
    "branch": (CHOICE, [np.array(1, np.int32), floats(2)]),
    "passed": (PASSED, [np.array([1, -2, 3], np.int8), floats(4)]),
    "partial words": (PARTIAL, [np.array([1, -2, 3, 4, 5], np.int8), np.array([2, 2, 3, -4, 9], np.int8)]),
    "arena": (CHAIN, [floats(8, 8), floats(8, 8).T.copy()]),
    "empty": (EMPTY, [floats(0, 3)]),
    "nothing": (NOTHING, [floats(2)]),
    "any batch": (BATCH, [floats(5, 4), floats(4, 4)]),
    "empty batch": (BATCH, [floats(0, 4), floats(4, 4)]),
    "empty rows": (EMPTY_ROWS, [floats(5, 3), np.zeros((5, 2), np.int64)]),
    "value as length": (SLICED, [floats(3, 2), np.array(3, np.int32)]),
}


def expected_of(text: str, arguments: Sequence[Array]) -> list[Array]:
    for value in arguments:
        text = text.replace("tensor<?x", f"tensor<{value.shape[0]}x") if value.ndim else text
    return evaluated(text, *arguments)


def storages(session: pumice.Session, expected: Sequence[Array]) -> list[pumice.DeviceArray]:
    """Arrays for a call to overwrite."""
    return [session.device.asarray(np.full(each.shape, 77).astype(each.dtype)) for each in expected]


def assert_close(storages: Sequence[pumice.DeviceArray], expected: Sequence[Array]) -> None:
    for storage, value in zip(storages, expected, strict=True):
        np.testing.assert_allclose(storage.numpy(), value, rtol=1e-5)


def loaded(session: pumice.Session, text: str) -> str:
    """Loads a module that is for the session's device alone; returns its name."""
    kind = "reference" if session.device.uri.startswith("reference") else "vulkan"
    return str(session.load(pumice.compile(text, targets=(kind,))).name)


@pytest.mark.sample(10)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_written_to_the_storages(session: pumice.Session, name: str) -> None:
    text, arguments = PROGRAMS[name]
    expected = expected_of(text, arguments)
    module = loaded(session, text)
    for result, value in zip(call_arrays(session, f"{module}.main", *arguments), expected, strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-5)
    given = storages(session, expected)
    assert session.call(f"{module}.main$async", *arguments, *given) is None
    assert_close(given, expected)


@pytest.mark.sample(10)
@pytest.mark.parametrize("name", PROGRAMS)
def test_by_the_convention_outs_the_function_itself_takes_storages(session: pumice.Session, name: str) -> None:
    text, arguments = PROGRAMS[name]
    expected = expected_of(text, arguments)
    module = session.load(pumice.compile(text, targets=BOTH, calling_convention="outs")).name
    given = storages(session, expected)
    assert session.call(f"{module}.main", *arguments, *given) is None
    assert_close(given, expected)
    declared = [one for one in session.lookup(f"{module}.main").signature.arguments if one.declared is not None]
    marks = [one.declared.attributes.get("iree.abi.output") for one in declared if one.declared is not None]
    assert marks == [None] * len(arguments) + [f"{index} : index" for index in range(len(expected))]


@pytest.mark.sample(10)
@pytest.mark.parametrize("name", PROGRAMS)
def test_work_lies_between_the_fences(session: pumice.Session, name: str) -> None:
    text, arguments = PROGRAMS[name]
    expected = expected_of(text, arguments)
    module = loaded(session, text)
    # The values of lengths decide shapes; all else changes while the call waits.
    late = [value * 0 + 1 if value.dtype.kind == "f" else value for value in arguments]
    values = [session.device.asarray(value) for value in late]
    given = storages(session, expected)
    before, after = (session.device.hal.create_semaphore() for _ in range(2))

    def allow() -> None:
        time.sleep(0.02)
        for array, value in zip(values, arguments, strict=True):
            array.copy_from(value)
        before.signal(1)

    thread = threading.Thread(target=allow)
    thread.start()
    wait, signal = pumice.Fence([(before, 1)]), pumice.Fence([(after, 1)])
    session.call(f"{module}.main$async", *values, *given, wait=wait, signal=signal, timeout=60)
    signal.wait(60)
    thread.join()
    assert_close(given, expected)


def test_nothing_is_written_past_the_end_of_a_storage(session: pumice.Session) -> None:
    text, arguments = PROGRAMS["partial words"]
    module = loaded(session, text)
    expected = expected_of(text, arguments)
    around = [session.device.asarray(np.full(16, 77).astype(each.dtype)) for each in expected]
    given = [array[: max(each.size, 1)].reshape(*each.shape) for array, each in zip(around, expected, strict=True)]
    session.call(f"{module}.main$async", *arguments, *given)
    for array, each in zip(around, expected, strict=True):
        np.testing.assert_array_equal(array.numpy()[: each.size], each.reshape(-1))
        np.testing.assert_array_equal(array.numpy()[each.size :], np.full(16 - each.size, 77).astype(each.dtype))


def test_calls_are_in_flight_together(session: pumice.Session) -> None:
    text, (x, w) = PROGRAMS["arena"]
    module = loaded(session, text)
    gate = session.device.hal.create_semaphore()
    done = session.device.hal.create_semaphore()
    calls = []
    for number in range(8):
        arguments = [session.device.asarray(x * number), session.device.asarray(w)]
        calls.append((evaluated(text, x * number, w), storages(session, [x])))
        wait, signal = pumice.Fence([(gate, 1)]), pumice.Fence([(done, number + 1)])
        session.call(f"{module}.main$async", *arguments, *calls[-1][1], wait=wait, signal=signal)
    assert not done.query()
    gate.signal(1)
    done.wait(8, 60)
    for (expected,), (storage,) in calls:
        np.testing.assert_allclose(storage.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_a_chain_of_calls_waits_on_the_device(session: pumice.Session) -> None:
    module = loaded(session, PROGRAMS["simple_mul"][0])
    x = session.device.asarray(np.full(4, 2, np.float32))
    ends = [storages(session, [floats(4)])[0] for _ in range(2)]
    gate = session.device.hal.create_semaphore()
    first, last = x, pumice.Fence([(gate, 1)])
    for number in range(10):
        after = pumice.Fence([(session.device.hal.create_semaphore(), 1)])
        session.call(f"{module}.main$async", first, x, ends[number % 2], wait=last, signal=after)
        first, last = ends[number % 2], after
    gate.signal(1)
    last.wait(60)
    np.testing.assert_array_equal(first.numpy(), np.full(4, 2.0**11, np.float32))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros(5, np.float32), "output0: tensor<4xf32>"),
        (np.zeros(4, np.int32), "output0: tensor<4xf32>"),
    ],
)
def test_a_wrong_storage_is_refused(session: pumice.Session, wrong: Array, message: str) -> None:
    text, arguments = PROGRAMS["simple_mul"]
    module = loaded(session, text)
    after = pumice.Fence([(session.device.hal.create_semaphore(), 1)])
    with pytest.raises(InvalidArgumentError, match=message):
        session.call(f"{module}.main$async", *arguments, session.device.asarray(wrong), signal=after)
    assert not after.query()


def test_the_module_itself_refuses_a_wrong_storage(session: pumice.Session) -> None:
    text, arguments = PROGRAMS["any batch"]
    module = loaded(session, text)
    given = storages(session, [floats(6, 4), floats(4)])
    after = pumice.Fence([(session.device.hal.create_semaphore(), 1)])
    with pytest.raises(InvalidArgumentError, match="result 0"):
        session.call(f"{module}.main$async", *arguments, *given, signal=after)
    assert not after.query()


@pytest.mark.slow
def test_what_fails_before_fails_what_follows(session: pumice.Session) -> None:
    for name in ("simple_mul", "arena", "loop", "nothing"):
        text, arguments = PROGRAMS[name]
        module = loaded(session, text.replace("func.func @main", f"module @{name} {{ func.func @main") + "}")
        given = storages(session, expected_of(text, arguments))
        before, after = (session.device.hal.create_semaphore() for _ in range(2))
        wait, signal = pumice.Fence([(before, 1)]), pumice.Fence([(after, 1)])
        before.fail(pumice.DataLossError("lost"))
        with pytest.raises(PumiceError, match="lost"):
            session.call(f"{module}.main$async", *arguments, *given, wait=wait, signal=signal)
            after.wait(1, 10)


def test_a_check_that_fails_leaves_the_signal_fence(session: pumice.Session) -> None:
    checks = pumice.NativeModule("check")
    failures = [PumiceError("not equal")]

    @checks.function("expect_almost_eq", "0rrrff_v")
    def expect_almost_eq(device: object, one: object, other: object, atol: float, rtol: float) -> None:
        if failures:
            raise failures.pop()

    session.append_module(checks)
    module = loaded(session, CHECKED)
    (storage,) = storages(session, [floats(4)])
    after = pumice.Fence([(session.device.hal.create_semaphore(), 1)])
    with pytest.raises(PumiceError, match="not equal"):
        session.call(f"{module}.main$async", floats(4), floats(4), storage, signal=after, timeout=60)
    assert not after.query()
    session.call(f"{module}.main$async", floats(4), floats(4), storage, signal=after, timeout=60)
    after.wait(60)
    np.testing.assert_array_equal(storage.numpy(), 4 * floats(4))


@pytest.mark.sample(3)
@pytest.mark.peer
@pytest.mark.vulkan
@pytest.mark.parametrize("name", ["simple_mul", "passed", "partial words", "arena", "loop", "nothing"])
def test_the_peer_runs_both_forms(tmp_path: Path, name: str) -> None:
    text, arguments = PROGRAMS[name]
    expected = expected_of(text, arguments)
    module = pumice.compile(text)
    peer_results(tmp_path, module, [*arguments, *map(np.zeros_like, expected)], 0, "main$async")
    for result, value in zip(peer_results(tmp_path, module, arguments, len(expected)), expected, strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-5)
