"""Results in the memory of arguments: wherever a module allows it, results stay the same; training steps allow it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from support.compiler.regions import Array
from support.compiler.tensor_programs import BATCH, CHOICE, LAYER, POWERS, floats
from support.compiler.tensor_strategies import Program, programs
from support.devices.features import computes
from support.soak import SOAK, rounds

import pumice
from pumice.hal_vulkan import BufferView

STEP = """
func.func @main(%w: tensor<8x8xf32>, %v: tensor<8x4xf32>, %b: tensor<4xf32>, %x: tensor<2x8xf32>, %y: tensor<2x4xf32>)
    -> (tensor<f32>, tensor<8x8xf32>, tensor<8x4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %rate = stablehlo.constant dense<0.125> : tensor<f32>
  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %a = stablehlo.tanh %h : tensor<2x8xf32>
  %o = stablehlo.dot_general %a, %v, contracting_dims = [1] x [0]
    : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %bb = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
  %p = stablehlo.add %o, %bb : tensor<2x4xf32>
  %e = stablehlo.subtract %p, %y : tensor<2x4xf32>
  %ee = stablehlo.multiply %e, %e : tensor<2x4xf32>
  %loss = stablehlo.reduce(%ee init: %zero) applies stablehlo.add across dimensions = [0, 1]
    : (tensor<2x4xf32>, tensor<f32>) -> tensor<f32>
  %db = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<2x4xf32>, tensor<f32>) -> tensor<4xf32>
  %dv = stablehlo.dot_general %a, %e, contracting_dims = [0] x [0]
    : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
  %da = stablehlo.dot_general %e, %v, contracting_dims = [1] x [1]
    : (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<2x8xf32>
  %aa = stablehlo.multiply %a, %a : tensor<2x8xf32>
  %one = stablehlo.constant dense<1.0> : tensor<2x8xf32>
  %slope = stablehlo.subtract %one, %aa : tensor<2x8xf32>
  %dh = stablehlo.multiply %da, %slope : tensor<2x8xf32>
  %dw = stablehlo.dot_general %x, %dh, contracting_dims = [0] x [0]
    : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
  %rw = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
  %rv = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
  %rb = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %sw = stablehlo.multiply %dw, %rw : tensor<8x8xf32>
  %sv = stablehlo.multiply %dv, %rv : tensor<8x4xf32>
  %sb = stablehlo.multiply %db, %rb : tensor<4xf32>
  %nw = stablehlo.subtract %w, %sw : tensor<8x8xf32>
  %nv = stablehlo.subtract %v, %sv : tensor<8x4xf32>
  %nb = stablehlo.subtract %b, %sb : tensor<4xf32>
  return %loss, %nw, %nv, %nb : tensor<f32>, tensor<8x8xf32>, tensor<8x4xf32>, tensor<4xf32>
}
"""
SHIFT = """
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.reverse %x, dims = [0] : tensor<8xf32>
  %1 = stablehlo.add %x, %y : tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
"""
PASSED = """
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xi8>, tensor<8xf32>) {
  %0 = stablehlo.add %x, %y : tensor<8xf32>
  %1 = stablehlo.convert %0 : (tensor<8xf32>) -> tensor<8xi8>
  return %x, %0, %1, %y : tensor<8xf32>, tensor<8xf32>, tensor<8xi8>, tensor<8xf32>
}
"""
CACHE = """
func.func @main(%cache: tensor<16x4xf32>, %row: tensor<1x4xf32>, %at: tensor<i32>)
    -> (tensor<16x4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dynamic_update_slice %cache, %row, %at, %zero
    : (tensor<16x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<16x4xf32>
  %1 = stablehlo.reduce(%0 init: %none) applies stablehlo.add across dimensions = [0]
    : (tensor<16x4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0, %1 : tensor<16x4xf32>, tensor<4xf32>
}
"""


COUNTED = """
func.func @main(%t: tensor<f32>, %x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<f32>) {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %next = stablehlo.add %t, %one : tensor<f32>
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
    : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %tt = stablehlo.broadcast_in_dim %t, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
  %1 = stablehlo.multiply %0, %tt : tensor<4x4xf32>
  %2 = stablehlo.dot_general %1, %0, contracting_dims = [1] x [0]
    : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2, %next : tensor<4x4xf32>, tensor<f32>
}
"""


MOVING = [floats(8), np.arange(8, dtype=np.float32)]
PROGRAMS: dict[str, tuple[str, list[Array]]] = {
    "step": (STEP, [floats(8, 8), floats(8, 4), floats(4), floats(2, 8), floats(2, 4)]),
    "shift": (SHIFT, MOVING),
    "passed": (PASSED, MOVING),
    "cache": (CACHE, [floats(16, 4), floats(1, 4) + 5, np.array(3, np.int32)]),
    "counted": (COUNTED, [np.array(3, np.float32), floats(4, 4)]),
    "layer": (LAYER, [floats(4, 8), floats(8, 3)]),
    "loop": (POWERS, [floats(4), np.array(5, np.int32)]),
    "branch": (CHOICE, [np.array(1, np.int32), floats(2)]),
    "batch": (BATCH, [floats(4, 4), floats(4, 4) + 1]),
}
ALLOWED = {
    "step": [(), (0,), (1,), (2,)],
    "shift": [(), (1,)],
    "passed": [(0,), (), (), (1,)],
    "cache": [(0,), (1,)],
    "counted": [(1,), (0,)],
    "layer": [(), ()],
    "loop": [(0,), ()],
    "branch": [()],
    "batch": [(0,), ()],
}
"""Weights, a cache, a counter and values that a loop carries may be updated in place."""


def allowed(session: pumice.Session, module: str) -> list[tuple[int, ...]]:
    """Returns, for each result, the arguments whose memory it may have."""
    found = []
    for one in session.lookup(f"{module}.main$async").signature.arguments:
        if one.declared is not None and "iree.abi.output" in one.declared.attributes:
            text = one.declared.attributes.get("pumice.abi.reuses", "")
            found.append(tuple(map(int, re.findall(r"\d+", text))))
    return found


def called(session: pumice.Session, module: str, arguments: Sequence[Array], reused: dict[int, int]) -> None:
    """Checks a program's results when they are in the memory of arguments."""
    expected = session.call(f"{module}.main", *arguments)
    wanted = [each.numpy() for each in (expected if isinstance(expected, tuple) else (expected,))]
    function = session.lookup(f"{module}.main$async")
    given = [session.device.asarray(each) for each in arguments]
    storages = [session.device.asarray(np.zeros_like(each)) for each in wanted]
    views: list[object] = [*storages]
    for index, argument in reused.items():
        element_type = function.signature.arguments[len(given) + index].element_type
        assert element_type is not None
        views[index] = BufferView(given[argument].buffer, wanted[index].shape, element_type)
    function.call_bound(function.bind(*given, *views), timeout=60)
    for index, storage in enumerate(storages):
        if index in reused:
            array = given[reused[index]].numpy()
            storage_array = np.frombuffer(array.tobytes(), wanted[index].dtype).reshape(wanted[index].shape)
        else:
            storage_array = storage.numpy()
        np.testing.assert_array_equal(storage_array, wanted[index])


def combinations(found: Sequence[tuple[int, ...]]) -> Iterator[dict[int, int]]:
    """Yields each pair alone, and as many together as the first choices allow."""
    for index, arguments in enumerate(found):
        yield from ({index: each} for each in arguments)
    together: dict[int, int] = {}
    for index, arguments in enumerate(found):
        free = [each for each in arguments if each not in together.values()]
        together.update({index: free[0]} if free else {})
    yield together


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_in_the_memory_of_arguments_are_the_same(session: pumice.Session, name: str) -> None:
    text, arguments = PROGRAMS[name]
    module = session.load(pumice.compile(text, targets=("vulkan", "reference"))).name
    found = allowed(session, module)
    assert found == ALLOWED[name]
    for reused in combinations(found):
        called(session, module, arguments, reused)


@settings(max_examples=rounds(25, 3000), derandomize=not SOAK, deadline=None, suppress_health_check=list(HealthCheck))
@given(program=programs())
@pytest.mark.vulkan
@pytest.mark.slow
def test_random_programs(opened: tuple[pumice.Device, dict[str, int]], program: Program) -> None:
    device, counts = opened
    assume(computes(device, program.text))
    for each in (device, "reference"):
        with pumice.Session(device=each) as session:
            module = session.load(pumice.compile(program.text, targets=("vulkan", "reference"))).name
            for reused in combinations(allowed(session, module)):
                counts["pairs"] += len(reused)
                called(session, module, program.arguments, reused)


@pytest.fixture
def opened() -> Iterator[tuple[pumice.Device, dict[str, int]]]:
    counts = {"pairs": 0}
    with pumice.open_device("vulkan") as device:
        yield device, counts
    assert counts["pairs"] > 20
