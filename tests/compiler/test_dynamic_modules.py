"""Modules of programs whose lengths depend on the call give, for every size and device, the static
program's results.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from support.compiler.modules import load_main, peer_results
from support.compiler.stages import check_stages

import pumice
from pumice.hal_reference.program import Array
from pumice.status import InvalidArgumentError

SIZES = (1, 2, 7, 64, 0)

LAYERS = """
module @layers {
  func.func public @main(%x: tensor<?x8xf32>, %w: tensor<8x3xf32>)
      -> (tensor<?x3xf32>, tensor<3xf32>, tensor<?x?xf32>) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<?x8xf32>, tensor<8x3xf32>) -> tensor<?x3xf32>
    %1 = stablehlo.tanh %0 : tensor<?x3xf32>
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %2 = stablehlo.reduce(%1 init: %c) applies stablehlo.add across dimensions = [0]
      : (tensor<?x3xf32>, tensor<f32>) -> tensor<3xf32>
    %3 = stablehlo.dot_general %1, %1, contracting_dims = [1] x [1]
      : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x?xf32>
    return %1, %2, %3 : tensor<?x3xf32>, tensor<3xf32>, tensor<?x?xf32>
  }
}
"""
BYTES = """
func.func @main(%x: tensor<?xi8>) -> (tensor<?xi8>, tensor<?xi1>, tensor<?xi8>) {
  %0 = stablehlo.add %x, %x : tensor<?xi8>
  %1 = stablehlo.compare GT, %0, %x : (tensor<?xi8>, tensor<?xi8>) -> tensor<?xi1>
  %2 = stablehlo.concatenate %x, %0, dim = 0 : (tensor<?xi8>, tensor<?xi8>) -> tensor<?xi8>
  return %0, %1, %2 : tensor<?xi8>, tensor<?xi1>, tensor<?xi8>
}
"""
SCAN = """
func.func @main(%x: tensor<?x2xf32>) -> (tensor<?x2xf32>, tensor<i32>) {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x2xf32>) -> tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<?x2xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.dynamic_slice %v, %i, %zero, sizes = [1, 2]
      : (tensor<?x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
    %2 = stablehlo.add %1, %1 : tensor<1x2xf32>
    %3 = stablehlo.dynamic_update_slice %v, %2, %i, %zero
      : (tensor<?x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<?x2xf32>
    %4 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %4, %3 : tensor<i32>, tensor<?x2xf32>
  }
  return %0#1, %0#0 : tensor<?x2xf32>, tensor<i32>
}
"""
SORT = """
func.func @main(%x: tensor<?x3xi32>) -> tensor<?x3xi32> {
  %0 = "stablehlo.sort"(%x) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) {dimension = 0 : i64} : (tensor<?x3xi32>) -> tensor<?x3xi32>
  return %0 : tensor<?x3xi32>
}
"""
TAIL = """
func.func @main(%x: tensor<?x2xf32>, %y: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %d = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x2xf32>) -> tensor<i32>
  %n = stablehlo.reshape %d : (tensor<i32>) -> tensor<1xi32>
  %two = stablehlo.constant dense<2> : tensor<1xi32>
  %one = stablehlo.constant dense<1> : tensor<1xi32>
  %zero = stablehlo.constant dense<0> : tensor<1xi32>
  %start = stablehlo.concatenate %two, %zero, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %limit = stablehlo.concatenate %n, %two, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %stride = stablehlo.concatenate %one, %one, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %0 = stablehlo.add %x, %y : tensor<?x2xf32>
  %1 = stablehlo.real_dynamic_slice %0, %start, %limit, %stride
    : (tensor<?x2xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x2xf32>
  return %1 : tensor<?x2xf32>
}
"""

BATCH = """
func.func @main(%n: tensor<i64>, %x: tensor<?x4xf32>, %y: tensor<2x?x4xf32>) -> (tensor<2x?x4xf32>, tensor<i64>) {
  %0 = stablehlo.convert %n : (tensor<i64>) -> tensor<i32>
  %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
  %two = stablehlo.constant dense<2> : tensor<1xi32>
  %four = stablehlo.constant dense<4> : tensor<1xi32>
  %2 = stablehlo.concatenate %two, %1, %four, dim = 0
    : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
  %3 = stablehlo.dynamic_broadcast_in_dim %x, %2, dims = [1, 2]
    : (tensor<?x4xf32>, tensor<3xi32>) -> tensor<2x?x4xf32>
  %4 = stablehlo.add %3, %y : tensor<2x?x4xf32>
  %5 = stablehlo.add %n, %n : tensor<i64>
  return %4, %5 : tensor<2x?x4xf32>, tensor<i64>
}
"""
COUNT = """
func.func @main(%n: tensor<i64>) -> tensor<?xf32> {
  %0 = stablehlo.add %n, %n : tensor<i64>
  %1 = stablehlo.reshape %0 : (tensor<i64>) -> tensor<1xi64>
  %2 = stablehlo.dynamic_iota %1, dim = 0 : (tensor<1xi64>) -> tensor<?xf32>
  return %2 : tensor<?xf32>
}
"""


def _floats(size: int) -> list[Array]:
    rng = np.random.default_rng(size)
    return [rng.normal(size=(size, 8)).astype(np.float32), rng.normal(size=(8, 3)).astype(np.float32)]


def _layers(x: Array, w: Array) -> list[Array]:
    h = np.tanh(x @ w)
    return [h, h.sum(0), h @ h.T]


PROGRAMS: dict[str, tuple[str, Callable[[int], list[Array]], Callable[..., list[Array]]]] = {
    "layers": (LAYERS, _floats, _layers),
    "bytes": (
        BYTES,
        lambda size: [np.random.default_rng(size).integers(-50, 50, size).astype(np.int8)],
        lambda x: [x + x, x + x > x, np.concatenate([x, x + x])],
    ),
    "scan": (SCAN, lambda size: [np.ones((size, 2), np.float32)], lambda x: [x + x, np.int32(len(x))]),
    "batch": (
        BATCH,
        lambda size: [np.array(size), np.ones((size, 4), np.float32), np.full((2, size, 4), 3, np.float32)],
        lambda n, x, y: [x + y, n + n],
    ),
    "count": (COUNT, lambda size: [np.array(size)], lambda n: [np.arange(2 * n, dtype=np.float32)]),
    "sort": (
        SORT,
        lambda size: [np.random.default_rng(size).integers(0, 9, (size, 3)).astype(np.int32)],
        lambda x: [np.sort(x, 0)],
    ),
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_every_size_gives_what_numpy_gives(session: pumice.Session, name: str) -> None:
    text, arguments, expected = PROGRAMS[name]
    call = load_main(session, text)
    for size in (*SIZES, SIZES[0]):
        given = arguments(size)
        for found, wanted in zip(call(*given), expected(*given), strict=True):
            assert found.shape == np.shape(wanted)
            np.testing.assert_allclose(found, wanted, 1e-5, 1e-5, err_msg=str(size))


@pytest.mark.slow
@pytest.mark.parametrize("device", [pytest.param(None, marks=pytest.mark.vulkan), "reference"])
def test_calls_of_several_sizes_do_not_mix(device: str | None) -> None:
    text, arguments, expected = PROGRAMS["layers"]
    options = pumice.SessionOptions(concurrent=True)
    with pumice.Session(device=device or "vulkan", options=options) as session:
        call = load_main(session, text)

        def check(size: int) -> None:
            given = arguments(size)
            for _ in range(4):
                for result, wanted in zip(call(*given), expected(*given), strict=True):
                    np.testing.assert_allclose(result, wanted, 1e-5, 1e-5)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(check, (1, 3, 17, 40)))


@pytest.mark.vulkan
def test_results_are_those_of_the_program_for_the_size() -> None:
    text, arguments, _ = PROGRAMS["layers"]
    with pumice.open_device() as device, pumice.Session(device=device) as session:
        call = load_main(session, text)
        for size in (1, 7, 64):
            given = arguments(size)
            fixed = load_main(session, text.replace("?", str(size)).replace("@layers", f"@layers_{size}"))
            for found, wanted in zip(call(*given), fixed(*given), strict=True):
                np.testing.assert_array_equal(found, wanted)


def test_arguments_whose_shapes_do_not_agree_are_refused(session: pumice.Session) -> None:
    call = load_main(session, TAIL)
    with pytest.raises(InvalidArgumentError, match=r"argument 1 shape dimension 0 mismatch; expected 4 but have 3"):
        call(np.ones((4, 2), np.float32), np.ones((3, 2), np.float32))
    with pytest.raises(InvalidArgumentError, match="argument 0"):
        call(np.ones((4, 3), np.float32), np.ones((4, 3), np.float32))
    np.testing.assert_array_equal(call(*[np.ones((4, 2), np.float32)] * 2)[0], np.full((2, 2), 2, np.float32))


def test_a_length_that_is_not_the_dimension_is_refused(session: pumice.Session) -> None:
    call = load_main(session, BATCH)
    arrays = [np.ones((3, 4), np.float32), np.ones((2, 3, 4), np.float32)]
    for number in (4, -1, 3 + 2**32):
        expected = "argument 0: expected its value to be d0, where d0 is dimension 0 of argument 1"
        with pytest.raises(InvalidArgumentError, match=expected):
            call(np.array(number), *arrays)
    assert call(np.array(3), *arrays)[1] == 6


def test_a_value_that_is_no_length_is_refused(session: pumice.Session) -> None:
    call = load_main(session, COUNT)
    with pytest.raises(InvalidArgumentError, match="argument 0: expected a length as its value, which is 0 or more"):
        call(np.array(-1))
    with pytest.raises(InvalidArgumentError, match="argument 0: expected at most 2147483647 as its value"):
        call(np.array(2**31))


@pytest.mark.parametrize("scalar", ["i8", "ui8", "i16", "ui16", "i32", "ui32", "i64", "ui64"])
def test_values_of_every_integer_type_are_lengths(session: pumice.Session, scalar: str) -> None:
    dtype = np.dtype(scalar.replace("i", "int"))
    call = load_main(session, COUNT.replace("i64", scalar))
    for size in (5, 60):
        np.testing.assert_array_equal(call(np.array(size, dtype))[0], np.arange(2 * size, dtype=np.float32))
    if scalar[0] == "i":
        with pytest.raises(InvalidArgumentError, match="which is 0 or more"):
            call(np.array(-1, dtype))


def test_a_reshape_counts_elements_at_the_call(session: pumice.Session) -> None:
    text = """func.func @main(%m: tensor<i64>, %n: tensor<i64>, %x: tensor<?x?xf32>) -> tensor<?x?xf32> {
      %0 = stablehlo.reshape %m : (tensor<i64>) -> tensor<1xi64>
      %1 = stablehlo.reshape %n : (tensor<i64>) -> tensor<1xi64>
      %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
      %3 = stablehlo.dynamic_reshape %x, %2 : (tensor<?x?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
      %4 = stablehlo.add %3, %3 : tensor<?x?xf32>
      return %4 : tensor<?x?xf32>
    }"""
    call = load_main(session, text)
    x = np.arange(24, dtype=np.float32).reshape(3, 8)
    np.testing.assert_array_equal(call(np.array(4), np.array(6), x)[0], 2 * x.reshape(4, 6))
    with pytest.raises(InvalidArgumentError, match="as many elements in the result"):
        call(np.array(4), np.array(5), x)
    with pytest.raises(InvalidArgumentError, match="as many elements in the result"):
        call(np.array(4), np.array(7), x)


def test_padding_between_elements_may_be_a_length(session: pumice.Session) -> None:
    text = """func.func @main(%n: tensor<i64>, %x: tensor<?xf32>) -> tensor<?xf32> {
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %c = stablehlo.constant dense<1> : tensor<1xi64>
      %p = stablehlo.reshape %n : (tensor<i64>) -> tensor<1xi64>
      %0 = stablehlo.dynamic_pad %x, %z, %c, %c, %p
        : (tensor<?xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
      return %0 : tensor<?xf32>
    }"""
    call = load_main(session, text)
    for count in (0, 1, 3):
        expected = np.zeros(3 + 2 * count + 2, np.float32)
        expected[1 :: count + 1][:3] = (1, 2, 3)
        np.testing.assert_array_equal(call(np.array(count), np.array([1, 2, 3], np.float32))[0], expected)


def test_a_size_that_the_program_rules_out_is_refused(session: pumice.Session) -> None:
    call = load_main(session, TAIL)
    for size in (0, 1):
        with pytest.raises(InvalidArgumentError, match=r"expected d0-2 >= 0, where d0 is dimension 0 of argument 0"):
            call(*[np.ones((size, 2), np.float32)] * 2)
    assert call(*[np.ones((2, 2), np.float32)] * 2)[0].shape == (0, 2)


@pytest.mark.vulkan
def test_more_iterations_than_a_kernel_may_run_are_refused() -> None:
    text = """func.func @main(%x: tensor<?xf32>) -> tensor<f32> {
      %0 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<?xf32>, tensor<?xf32>) -> tensor<f32>
      return %0 : tensor<f32>
    }"""
    with pumice.open_device() as device, pumice.Session(device=device) as session:
        call = load_main(session, text)
        np.testing.assert_allclose(call(np.ones(60_000, np.float32))[0], 60_000)
        with pytest.raises(InvalidArgumentError, match="at most 60000 iterations of loops in a kernel, got d0"):
            call(np.ones(60_001, np.float32))


def test_reductions_go_in_runs(session: pumice.Session) -> None:
    text = """func.func @main(%x: tensor<?x3x100xf32>) -> (tensor<f32>, tensor<3xf32>) {
      %c = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [0, 1, 2]
        : (tensor<?x3x100xf32>, tensor<f32>) -> tensor<f32>
      %l = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %1 = stablehlo.reduce(%x init: %l) applies stablehlo.maximum across dimensions = [0, 2]
        : (tensor<?x3x100xf32>, tensor<f32>) -> tensor<3xf32>
      return %0, %1 : tensor<f32>, tensor<3xf32>
    }"""
    call = load_main(session, text)
    for size in (0, 1, 5, 700):
        x = np.random.default_rng(size).normal(size=(size, 3, 100)).astype(np.float32)
        total, largest = call(x)
        np.testing.assert_allclose(total, x.sum(), 1e-3, 1e-3)
        np.testing.assert_array_equal(largest, x.max((0, 2), initial=-np.inf))


@pytest.mark.slow
@pytest.mark.sample(3)
@pytest.mark.parametrize("text", [LAYERS, BYTES, SCAN, SORT, TAIL, BATCH, COUNT])
def test_every_stage_goes_on_from_its_text(text: str) -> None:
    assert "ll_seq" in check_stages(text)


@pytest.mark.vulkan
@pytest.mark.peer
@pytest.mark.parametrize("name", ["layers", "batch"])
def test_the_peers_runtime_takes_every_size(tmp_path: Path, name: str) -> None:
    text, arguments, expected = PROGRAMS[name]
    module = pumice.compile(text)
    for size in (1, 7):
        wanted = expected(*arguments(size))
        results = peer_results(tmp_path, module, arguments(size), len(wanted))
        for result, value in zip(results, wanted, strict=True):
            np.testing.assert_allclose(result, value, 1e-5, 1e-5)
