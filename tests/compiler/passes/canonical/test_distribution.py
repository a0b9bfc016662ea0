"""Collective operations in a program of one process."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.evaluation import evaluated

from pumice.compiler.ir.source import CompileError

X = np.arange(8, dtype=np.float32).reshape(2, 4)
SUM = """({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %s : tensor<f32>
  })"""
GROUP = "replica_groups = dense<0> : tensor<1x1xi64>"


def program(name: str, attributes: str, region: str = "") -> str:
    return f"""func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {{
  %0 = "stablehlo.{name}"(%x) {region} {{{attributes}}} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}}"""


@pytest.mark.parametrize(
    ("name", "attributes", "region"),
    [
        ("all_gather", f"all_gather_dim = 1 : i64, {GROUP}", ""),
        ("all_reduce", GROUP, SUM),
        ("all_to_all", f"split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 1 : i64, {GROUP}", ""),
        ("collective_broadcast", GROUP, ""),
        ("collective_permute", "source_target_pairs = dense<0> : tensor<1x2xi64>", ""),
        ("reduce_scatter", f"scatter_dimension = 0 : i64, {GROUP}", SUM),
    ],
)
def test_a_process_alone_keeps_what_it_has(name: str, attributes: str, region: str) -> None:
    np.testing.assert_array_equal(evaluated(program(name, attributes, region), X)[0], X)


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("collective_broadcast", "replica_groups = dense<> : tensor<0x0xi64>"),
        ("collective_permute", "source_target_pairs = dense<> : tensor<0x2xi64>"),
    ],
)
def test_a_process_that_nobody_sends_to_has_zeros(name: str, attribute: str) -> None:
    assert not evaluated(program(name, attribute), X)[0].any()


def test_what_is_begun_is_done() -> None:
    text = f"""func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {{
      %f = "stablehlo.async_start"(%x) ({{
      ^bb0(%y: tensor<2x4xf32>):
        %g = "stablehlo.all_gather"(%y) {{all_gather_dim = 1 : i64, {GROUP}}} : (tensor<2x4xf32>) -> tensor<2x4xf32>
        %d = stablehlo.add %g, %y : tensor<2x4xf32>
        stablehlo.return %d : tensor<2x4xf32>
      }}) : (tensor<2x4xf32>) -> !stablehlo.future<tensor<2x4xf32>>
      %0 = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<2x4xf32>>) -> tensor<2x4xf32>
      return %0 : tensor<2x4xf32>
    }}"""
    np.testing.assert_array_equal(evaluated(text, X)[0], X * 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            program("all_gather", "all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"),
            "one p",
        ),
        (program("all_gather", f"all_gather_dim = 2 : i64, {GROUP}"), "all_gather_dim to be different numbers"),
        (program("all_to_all", f"concat_dimension = 1 : i64, split_count = 2 : i64, {GROUP}"), "split_count to be 1"),
        (program("collective_permute", "source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>"), "process 1"),
        (program("infeed", ""), "pass what it reads as an argument"),
        (program("send", ""), "return what it sends as a result"),
    ],
)
def test_what_needs_others_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(CompileError, match=message) as error:
        evaluated(text, X)
    assert "x.mlir:2:" in str(error.value)
