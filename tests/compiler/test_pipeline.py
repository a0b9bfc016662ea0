"""Programs from text to a module, run on Vulkan, on the peer's runtime, and by the definitions of operations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.peer import run_peer

import pumice
from pumice.compiler.codegen.target import Target
from pumice.compiler.dialects.text import parse, to_text
from pumice.compiler.ir.source import CompileError
from pumice.compiler.pipeline import STAGES, compile_text

SIMPLE_MUL = """
func.func @simple_mul(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.multiply %arg0, %arg1 : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
LAYER = """
module @layer {
  func.func public @main(%x: tensor<4x8xf32>, %w: tensor<8x3xf32>) -> (tensor<4x3xf32>, tensor<4xf32>) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
    %b = stablehlo.constant dense<[0.5, -1.0, 2.0]> : tensor<3xf32>
    %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<3xf32>) -> tensor<4x3xf32>
    %2 = stablehlo.add %0, %1 : tensor<4x3xf32>
    %3 = call @activation(%2) : (tensor<4x3xf32>) -> tensor<4x3xf32>
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %c) applies stablehlo.add across dimensions = [1]
      : (tensor<4x3xf32>, tensor<f32>) -> tensor<4xf32>
    return %3, %4 : tensor<4x3xf32>, tensor<4xf32>
  }
  func.func private @activation(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
    %0 = stablehlo.tanh %x : tensor<4x3xf32>
    return %0 : tensor<4x3xf32>
  }
}
"""
POWERS = """
func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> (tensor<4xf32>, tensor<i32>) {
  %k = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.5]> : tensor<4xf32>
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c, %v = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2 = stablehlo.multiply %v, %k : tensor<4xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %3 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %3, %2 : tensor<i32>, tensor<4xf32>
  }
  return %0#1, %0#0 : tensor<4xf32>, tensor<i32>
}
"""
CHOICE = """
func.func @main(%i: tensor<i32>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.case"(%i) ({
    %1 = stablehlo.negate %x : tensor<2xf32>
    stablehlo.return %1 : tensor<2xf32>
  }, {
    %2 = stablehlo.add %x, %x : tensor<2xf32>
    stablehlo.return %2 : tensor<2xf32>
  }, {
    stablehlo.return %x : tensor<2xf32>
  }) : (tensor<i32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""


@pytest.fixture
def opened() -> Iterator[pumice.Device]:
    with pumice.open_device() as device:
        yield device


def compiled(text: str) -> bytes:
    return compile_text(text, "x.mlir", Target()).module


@pytest.mark.vulkan
def test_the_walkthroughs_program_multiplies(opened: pumice.Device) -> None:
    a, b = np.arange(4, dtype=np.float32), np.full(4, 2.5, np.float32)
    with pumice.Session(device=opened) as session:
        session.load(compiled(SIMPLE_MUL))
        np.testing.assert_array_equal(session.call("module.simple_mul", a, b).numpy(), a * b)


@pytest.mark.vulkan
def test_a_layer_has_two_results(opened: pumice.Device) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(4, 8)).astype(np.float32), rng.normal(size=(8, 3)).astype(np.float32)
    with pumice.Session(device=opened) as session:
        session.load(compiled(LAYER))
        found, total = session.call("layer.main", x, w)
    expected = np.tanh(x @ w + np.array([0.5, -1.0, 2.0], np.float32))
    np.testing.assert_allclose(found.numpy(), expected, 1e-5, 1e-6)
    np.testing.assert_allclose(total.numpy(), expected.sum(1), 1e-5, 1e-5)


@pytest.mark.vulkan
@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_loop_whose_length_is_an_argument(opened: pumice.Device, count: int) -> None:
    x = np.ones(4, np.float32)
    with pumice.Session(device=opened) as session:
        session.load(compiled(POWERS))
        for _ in range(2):
            found, steps = session.call("module.main", x, np.int32(count))
            np.testing.assert_allclose(found.numpy(), np.array([1, 2, 3, 4.5]) ** count, 1e-6)
            assert int(np.asarray(steps.numpy() if hasattr(steps, "numpy") else steps)) == count


@pytest.mark.vulkan
@pytest.mark.parametrize(("index", "factor"), [(0, -1), (1, 2), (2, 1), (7, 1), (-1, 1)])
def test_a_case_has_its_last_branch_as_default(opened: pumice.Device, index: int, factor: float) -> None:
    x = np.array([1.5, -2], np.float32)
    with pumice.Session(device=opened) as session:
        session.load(compiled(CHOICE))
        np.testing.assert_array_equal(session.call("module.main", np.int32(index), x).numpy(), x * factor)


@pytest.mark.peer
@pytest.mark.vulkan
def test_the_peers_runtime_gives_the_same(tmp_path: Path) -> None:
    path = tmp_path / "powers.vmfb"
    path.write_bytes(compiled(POWERS))
    flags = ["--device=vulkan", f"--module={path}", "--function=main", "--input=4xf32=1,1,1,1", "--input=i32=3"]
    run = run_peer("iree-run-module", *flags)
    assert "4xf32=1 8 27 91.125" in run.stdout and "i32=3" in run.stdout


@pytest.mark.parametrize("text", [SIMPLE_MUL, LAYER, POWERS, CHOICE])
@pytest.mark.parametrize("stage", STAGES[:-1])
def test_each_stage_prints_a_program_that_reads_the_same(text: str, stage: str) -> None:
    printed = compile_text(text, "x.mlir", Target(), until=stage).text[stage]
    assert to_text(parse(printed)) == printed


def test_equal_programs_make_equal_files() -> None:
    assert compiled(LAYER) == compiled(LAYER)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func private @f() { return }", "no public function with a body"),
        ("func.func @f() { return }\nfunc.func @f() { return }", "@f is defined twice"),
        ('"x.y"() : () -> ()', "expected functions in a module, got x.y"),
    ],
)
def test_what_is_no_program_is_refused(text: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        compiled(text)
