"""Older and composed forms, evaluated by the definitions of the general forms, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.evaluation import evaluated

from pumice.compiler.analysis.reference_program import ProgramWriter
from pumice.compiler.dialects.syntax.text import parse
from pumice.compiler.ir.source import CompileError, SourceText
from pumice.compiler.passes.canonical.canonicalize import canonicalize
from pumice.compiler.passes.dynamic.resolve import resolve
from pumice.compiler.passes.verification.verify import verify
from pumice.hal_reference.operations import evaluate
from pumice.hal_reference.program import Array


def run(body: str, arguments: str, *values: Array) -> list[Array]:
    results = body.rpartition(" : ")[2]
    text = f"func.func @main({arguments}) -> ({results}) {{ {body} }}"
    (function,) = parse(text)
    source = SourceText(text, "x")
    verify({"main": function}, source)
    function = resolve(function, {}, source)
    canonicalize(function.regions[0].block)
    return evaluate(ProgramWriter({"main": function}).function("main"), values)


def values(*shapes: tuple[int, ...]) -> list[Array]:
    rng = np.random.default_rng(2)
    return [rng.normal(size=shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize(
    ("config", "left", "right", "result"),
    [
        ("ab,bc->ac", (2, 3), (3, 4), (2, 4)),
        ("bij,bjk->bki", (2, 3, 4), (2, 4, 5), (2, 5, 3)),
        ("ab,cb->a", (2, 3), (4, 3), (2,)),
    ],
)
def test_einsum(config: str, left: tuple[int, ...], right: tuple[int, ...], result: tuple[int, ...]) -> None:
    a, b = values(left, right)
    types = [f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in (left, right, result)]
    einsum = f'stablehlo.einsum %a, %b, config = "{config}" : ({types[0]}, {types[1]}) -> {types[2]}'
    (found,) = run(f"%0 = {einsum}\nreturn %0 : {types[2]}", f"%a: {types[0]}, %b: {types[1]}", a, b)
    np.testing.assert_allclose(found, np.einsum(config, a, b), 1e-5)


def test_batch_normalisation_and_its_gradient() -> None:
    x, scale, offset, gradient = values((5, 3), (3,), (3,), (5, 3))
    attributes = "{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}"
    x_type = "tensor<5x3xf32>"
    body = f"""
    %0:3 = "stablehlo.batch_norm_training"(%x, %s, %o) {attributes} : (tensor<5x3xf32>, tensor<3xf32>, tensor<3xf32>)
      -> (tensor<5x3xf32>, tensor<3xf32>, tensor<3xf32>)
    %1:3 = "stablehlo.batch_norm_grad"(%x, %s, %0#1, %0#2, %g) {attributes} : (tensor<5x3xf32>, tensor<3xf32>,
      tensor<3xf32>, tensor<3xf32>, tensor<5x3xf32>) -> (tensor<5x3xf32>, tensor<3xf32>, tensor<3xf32>)
    %2 = "stablehlo.batch_norm_inference"(%x, %s, %o, %0#1, %0#2) {attributes} : (tensor<5x3xf32>, tensor<3xf32>,
      tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<5x3xf32>
    return %0#0, %2, %1#0, %1#1, %1#2 : {x_type}, {x_type}, {x_type}, tensor<3xf32>, tensor<3xf32>"""
    arguments = "%x: tensor<5x3xf32>, %s: tensor<3xf32>, %o: tensor<3xf32>, %g: tensor<5x3xf32>"
    training, inference, *gradients = run(body, arguments, x, scale, offset, gradient)

    def normalized(value: Array) -> Array:
        centered = value - value.mean(0)
        return centered / np.sqrt((centered**2).mean(0) + 1e-3)

    wide = x.astype(np.float64)
    np.testing.assert_allclose(training, scale * normalized(wide) + offset, 1e-4, 1e-5)
    np.testing.assert_allclose(inference, training, 1e-5, 1e-6)
    step = 1e-5
    numeric = np.zeros_like(wide)
    for index in np.ndindex(*wide.shape):
        moved = [wide.copy(), wide.copy()]
        moved[0][index] += step
        moved[1][index] -= step
        up, down = (np.sum(gradient * (scale * normalized(value) + offset)) for value in moved)
        numeric[index] = (up - down) / (2 * step)
    np.testing.assert_allclose(gradients[0], numeric, 1e-3, 1e-4)
    np.testing.assert_allclose(gradients[1], np.sum(gradient * normalized(wide), 0), 1e-4, 1e-5)
    np.testing.assert_allclose(gradients[2], gradient.sum(0), 1e-5)


def test_a_map_runs_its_body_over_whole_tensors() -> None:
    (x,) = values((2, 3))
    body = """
    %0 = "stablehlo.map"(%x) ({
      ^bb0(%e: tensor<f32>):
        %c = stablehlo.constant dense<2.0> : tensor<f32>
        %1 = stablehlo.multiply %e, %c : tensor<f32>
        stablehlo.return %1 : tensor<f32>
    }) {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    return %0 : tensor<2x3xf32>"""
    np.testing.assert_array_equal(run(body, "%x: tensor<2x3xf32>", x)[0], x * 2)


def test_torch_index_select_with_a_batch_dimension() -> None:
    (x,) = values((2, 4, 3))
    indices = np.array([[1, 3], [0, 0]], np.int32)
    body = """
    %0 = stablehlo.torch_index_select %x, %i, dim = 1, batch_dims = 1 : (tensor<2x4x3xf32>, tensor<2x2xi32>)
      -> tensor<2x2x3xf32>
    return %0 : tensor<2x2x3xf32>"""
    (found,) = run(body, "%x: tensor<2x4x3xf32>, %i: tensor<2x2xi32>", x, indices)
    np.testing.assert_array_equal(found, np.stack([x[b][indices[b]] for b in range(2)]))


def test_shapes_that_are_computed_from_known_lengths_become_known() -> None:
    (x,) = values((2, 3))
    body = """
    %0 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<2x3xf32>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<2> : tensor<1xi32>
    %3 = stablehlo.concatenate %1, %2, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %4 = stablehlo.dynamic_reshape %x, %3 : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<?x?xf32>
    %5 = stablehlo.tanh %4 : tensor<?x?xf32>
    %6 = stablehlo.dynamic_iota %3, dim = 0 : (tensor<2xi32>) -> tensor<?x?xf32>
    %7 = stablehlo.add %5, %6 : tensor<?x?xf32>
    return %7 : tensor<?x?xf32>"""
    (found,) = run(body, "%x: tensor<2x3xf32>", x)
    np.testing.assert_allclose(found, np.tanh(x.reshape(3, 2)) + np.arange(3)[:, None], 1e-6)


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
