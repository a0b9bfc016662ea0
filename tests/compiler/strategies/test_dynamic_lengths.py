"""Kernels whose lengths depend on the call: one kernel for every length, compared with the definitions in NumPy."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np
import pytest
from support.compiler.dynamic import specialised
from support.compiler.regions import (
    EMULATED,
    Array,
    arguments_of,
    by_definition,
    contraction,
    from_words,
    function_of,
    region_of,
    require_runs,
    to_words,
)

import pumice
from pumice.compiler.ir.operation import Operation
from pumice.compiler.ir.sizes import evaluated
from pumice.compiler.kernels.kernel import Kernel, Workload, buffer_size
from pumice.compiler.kernels.strategy import Strategy
from pumice.compiler.strategies.choice import compile_region, ranked
from pumice.compiler.strategies.contraction.contraction_tile import ContractionTile
from pumice.compiler.strategies.contraction.workgroup_tile import WorkgroupTile
from pumice.compiler.strategies.movement.elements import Elements
from pumice.compiler.strategies.rows.rows import Rows
from pumice.spirv.checks.validation import ensure_valid

LAVAPIPE = dataclasses.replace(EMULATED, family="cpu", subgroup_size=8, subgroup_operations=("shuffle",))


def convolution(left: str, right: str, result: str) -> str:
    """Returns a convolution of images with a border of zeros."""
    return f"""
        func.func @main(%a: tensor<{left}xf32>, %b: tensor<{right}xf32>) -> tensor<{result}xf32> {{
          %0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
            window = {{pad = [[1, 1], [1, 1]]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
            : (tensor<{left}xf32>, tensor<{right}xf32>) -> tensor<{result}xf32>
          return %0 : tensor<{result}xf32>
        }}
    """


def reduction(operand: str, left: str, how: str, dims: str, start: str) -> str:
    """Returns a reduction, and twice its result."""
    element = operand.rpartition("x")[2]
    return f"""
        func.func @main(%a: tensor<{operand}>) -> tensor<{left}> {{
          %init = stablehlo.constant dense<{start}> : tensor<{element}>
          %0 = stablehlo.reduce(%a init: %init) applies stablehlo.{how} across dimensions = {dims}
            : (tensor<{operand}>, tensor<{element}>) -> tensor<{left}>
          %1 = stablehlo.add %0, %0 : tensor<{left}>
          return %1 : tensor<{left}>
        }}
    """


def centred(operand: str, left: str) -> str:
    """Returns elements minus the largest of their row, as at the start of a softmax, and their shares of the sum."""
    element = operand.rpartition("x")[2]
    return f"""
        func.func @main(%a: tensor<{operand}>) -> tensor<{operand}> {{
          %zero = stablehlo.constant dense<0.0> : tensor<{element}>
          %low = stablehlo.constant dense<0xFF800000> : tensor<{element}>
          %0 = stablehlo.reduce(%a init: %low) applies stablehlo.maximum across dimensions = [1]
            : (tensor<{operand}>, tensor<{element}>) -> tensor<{left}>
          %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<{left}>) -> tensor<{operand}>
          %2 = stablehlo.subtract %a, %1 : tensor<{operand}>
          %3 = stablehlo.exponential %2 : tensor<{operand}>
          %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1]
            : (tensor<{operand}>, tensor<{element}>) -> tensor<{left}>
          %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<{left}>) -> tensor<{operand}>
          %6 = stablehlo.divide %3, %5 : tensor<{operand}>
          return %6 : tensor<{operand}>
        }}
    """


PLAIN = "contracting_dims = [1] x [0]"
BATCHED = "batching_dims = [0] x [0], contracting_dims = [2] x [1]"
CONTRACTIONS = {
    "rows": contraction("(d0)x48xf32", "48x64xf32", "(d0)x64xf32", PLAIN),
    "columns": contraction("32x48xf32", "48x(d0)xf32", "32x(d0)xf32", PLAIN),
    "products": contraction("32x(d0)xf32", "(d0)x64xf32", "32x64xf32", PLAIN),
    "products of several": contraction(
        "32x3x(d0)xf32", "3x(d0)x64xf32", "32x64xf32", "contracting_dims = [1, 2] x [0, 1]"
    ),
    "batches": contraction("(d0)x19x48xf32", "(d0)x48x64xf32", "(d0)x19x64xf32", BATCHED),
    "all": contraction("(d2)x(d0)x(d1)xf32", "(d2)x(d1)x(2*d0+1)xf32", "(d2)x(d0)x(2*d0+1)xf32", BATCHED),
    "transposed": contraction("(d1)x(d0)xf32", "37x(d1)xf32", "(d0)x37xf32", "contracting_dims = [0] x [1]"),
    "halves": contraction("(d0)x(d1)xf16", "(d1)x24xf16", "(d0)x24xf16", PLAIN),
    "bytes": contraction("(d0)x(d1)xi8", "(d1)x24xi8", "(d0)x24xi32", PLAIN),
    "pictures": convolution("(d0)x9x10x5", "3x3x5x16", "(d0)x9x10x16"),
    "wide pictures": convolution("2x9x(d0)x5", "3x3x5x16", "2x9x(d0)x16"),
}
TILES: list[Strategy] = [
    ContractionTile(3, 8, 2, 4, 7, 0),
    ContractionTile(4, 4, 8, 1, 8, 1),
    WorkgroupTile(2, 4, 4, 8, 16),
]
ROWS = {
    "rows": (centred("(d0)x48xf32", "(d0)xf32"), Rows(8, 8, 2, 1)),
    "lengths": (centred("67x(d1)xf32", "67xf32"), Rows(64, 1, 1, 0)),
    "wide lengths": (centred("(d0)x(d1)xf32", "(d0)xf32"), Rows(8, 4, 4, 0)),
    "wide and long": (centred("(d0)x(d1+3)xf32", "(d0)xf32"), Rows(64, 1, 4, 0)),
    "fewer invocations than lanes": (centred("(d0)x(d1)xf32", "(d0)xf32"), Rows(2, 1, 1, 0)),
    "both": (centred("(d0)x(4*d1)xf32", "(d0)xf32"), Rows(16, 4, 4, 0)),
    "halves of rows": (reduction("(d0)x64xf16", "(d0)xf16", "add", "[1]", "0.0"), Rows(4, 4, 2, 1)),
    "halves of lengths": (reduction("(d0)x(2*d1)xf16", "(d0)xf16", "maximum", "[1]", "0xFC00"), Rows(8, 2, 2, 0)),
    "bytes": (reduction("2x(d0)x(d1)x3xi8", "2x(d0)xi8", "minimum", "[2, 3]", "127"), Rows(64, 1, 1, 0)),
    "words": (reduction("(d0)x(d1)xi64", "(d0)xi64", "add", "[1]", "5"), Rows(1, 32, 1, 0)),
}
CALLS = [{"d0": 1, "d1": 1, "d2": 1}, {"d0": 67, "d1": 300, "d2": 2}, {"d0": 13, "d1": 0, "d2": 3}]


def run_for(
    device: pumice.Device, kernel: Kernel, function: Operation, arguments: list[Array], values: Mapping[str, int]
) -> list[Array]:
    """Runs a kernel for values of its symbols and returns its results."""
    block = function.regions[0].block
    types = [value.tensor for value in block.terminator.operands]
    sizes = [buffer_size(type) // 4 for type in types]
    outputs = [pumice.empty(max(size, 8), np.uint32) for size in sizes]
    words = [to_words(array, value.tensor) for array, value in zip(arguments, block.arguments, strict=True)]
    # The device's own interface requires a whole vector where a shader has vectors, also for an empty tensor.
    whole = [np.pad(array, (0, max(0, 8 - array.size))) for array in words]
    inputs = [array for array, binding in zip(whole, kernel.bindings, strict=False) if binding.is_read]
    groups = kernel.workgroup_count
    if isinstance(groups, Workload):
        groups = (-(-evaluated(groups.elements, values) // groups.per_group), 1, 1)
    push = b"".join(values[name].to_bytes(4, "little") for name in kernel.symbols)
    for limit in kernel.limits:
        assert evaluated(limit.size, values) <= limit.most
    with device.load_kernel(kernel.code) as shader:
        actual = shader(*inputs, *outputs, groups=groups, push=push or None)
    listed = actual if isinstance(actual, tuple) else (actual,)
    return [from_words(np.asarray(words)[:size], type) for words, size, type in zip(listed, sizes, types, strict=True)]


def check(gpu: pumice.Device, text: str, strategy: Strategy, values: Mapping[str, int]) -> None:
    function = function_of(text)
    kernel = compile_region(region_of(function, LAVAPIPE), strategy)
    ensure_valid(kernel.code, "vulkan1.1")
    require_runs(gpu, kernel, LAVAPIPE)
    called = specialised(function, values)
    arguments = arguments_of(called, has_fractions=True)
    for actual, wanted in zip(
        run_for(gpu, kernel, called, arguments, values), by_definition(called, arguments), strict=True
    ):
        error = {"float16": 2**-8}.get(str(actual.dtype), 1e-4)
        scale = max(math.sqrt(values["d1"]), 1)
        np.testing.assert_allclose(actual.astype(np.float64), wanted.astype(np.float64), rtol=error, atol=error * scale)


@pytest.mark.sample(8)
@pytest.mark.vulkan
@pytest.mark.parametrize("strategy", TILES, ids=str)
@pytest.mark.parametrize("name", CONTRACTIONS)
def test_tiles_take_lengths_of_every_call(gpu: pumice.Device, name: str, strategy: Strategy) -> None:
    region = region_of(CONTRACTIONS[name], LAVAPIPE)
    assert strategy.takes(region)
    for values in CALLS:
        check(gpu, CONTRACTIONS[name], strategy, values)


@pytest.mark.sample(4)
@pytest.mark.vulkan
@pytest.mark.parametrize("name", ROWS)
def test_rows_take_lengths_of_every_call(gpu: pumice.Device, name: str) -> None:
    text, strategy = ROWS[name]
    assert strategy.takes(region_of(text, LAVAPIPE))
    for values in CALLS:
        check(gpu, text, strategy, values)


def test_rows_without_elements_need_an_identity() -> None:
    """Checks a body without an identity element: an invocation without elements could not start."""
    text = reduction("(d0)x(d1)xf8E5M2", "(d0)xf8E5M2", "maximum", "[1]", "0.0")
    region = region_of(text, LAVAPIPE)
    assert not Rows(8, 1, 1, 0).takes(region)
    assert [type(value) for _, value in ranked(region)] == [Elements]


def test_tiles_are_chosen_without_knowing_the_lengths() -> None:
    text = contraction("(d0)x512xf32", "512x512xf32", "(d0)x512xf32", PLAIN)
    (_, chosen), *_ = ranked(region_of(text, LAVAPIPE))
    assert isinstance(chosen, ContractionTile)
