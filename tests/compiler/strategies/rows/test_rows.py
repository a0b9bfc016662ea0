"""Reductions of rows by workgroups, compared with the definitions in NumPy."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from support.compiler.regions import (
    EMULATED,
    arguments_of,
    by_definition,
    dispatch_regions,
    function_of,
    region_of,
    run_region,
)

import pumice
from pumice.compiler.kernels.scalars.device_target import target_of
from pumice.compiler.strategies.choice import candidates_of
from pumice.compiler.strategies.movement.elements import Elements
from pumice.compiler.strategies.rows.rows import Rows


def reduction(operation: str, type: str, start: str, axes: int = 1) -> str:
    """Returns a reduction of the innermost dimensions by one operation."""
    matched = re.fullmatch(r"((?:\d+x)+)(.*)", type)
    assert matched
    lengths, element = matched[1].split("x")[:-1], matched[2]
    rank = len(lengths)
    result = "x".join([*lengths[:-axes], element])
    return f"""
        func.func @main(%a: tensor<{type}>) -> tensor<{result}> {{
          %s = stablehlo.constant dense<{start}> : tensor<{element}>
          %r = stablehlo.reduce(%a init: %s) applies stablehlo.{operation} across dimensions =
            {list(range(rank - axes, rank))} : (tensor<{type}>, tensor<{element}>) -> tensor<{result}>
          return %r : tensor<{result}>
        }}
    """


def largest(type: str, element: str = "f32") -> str:
    """Returns the position of the largest element, the first of equal ones: a body of several operations."""
    rows, columns, _ = type.split("x")
    return f"""
        func.func @main(%a: tensor<{type}>) -> (tensor<{rows}x{element}>, tensor<{rows}xi32>) {{
          %n = stablehlo.constant dense<0xFF800000> : tensor<f32>
          %i = stablehlo.constant dense<0> : tensor<i32>
          %p = stablehlo.iota dim = 1 : tensor<{rows}x{columns}xi32>
          %r:2 = stablehlo.reduce(%a init: %n), (%p init: %i) across dimensions = [1] :
            (tensor<{type}>, tensor<{rows}x{columns}xi32>, tensor<f32>, tensor<i32>)
            -> (tensor<{rows}xf32>, tensor<{rows}xi32>)
            reducer(%x: tensor<f32>, %y: tensor<f32>) (%u: tensor<i32>, %v: tensor<i32>) {{
            %0 = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
            %1 = stablehlo.select %0, %x, %y : tensor<i1>, tensor<f32>
            %2 = stablehlo.select %0, %u, %v : tensor<i1>, tensor<i32>
            stablehlo.return %1, %2 : tensor<f32>, tensor<i32>
          }}
          return %r#0, %r#1 : tensor<{rows}xf32>, tensor<{rows}xi32>
        }}
    """


def softmax(rows: int, columns: int, element: str = "f32") -> str:
    """Returns maxima, sums, and computations with them for each element."""
    full, row = f"tensor<{rows}x{columns}x{element}>", f"tensor<{rows}x{element}>"
    scalar = f"tensor<{element}>"
    low = {"f32": "0xFF800000", "f16": "0xFC00", "f64": "0xFFF0000000000000"}[element]
    return f"""
        func.func @main(%a: {full}, %b: tensor<{columns}x{element}>) -> {full} {{
          %n = stablehlo.constant dense<{low}> : {scalar}
          %z = stablehlo.constant dense<0.0> : {scalar}
          %0 = stablehlo.reduce(%a init: %n) applies stablehlo.maximum across dimensions = [1] :
            ({full}, {scalar}) -> {row}
          %1 = stablehlo.reshape %0 : ({row}) -> tensor<{rows}x1x{element}>
          %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<{rows}x1x{element}>) -> {full}
          %3 = stablehlo.subtract %a, %2 : {full}
          %4 = stablehlo.exponential %3 : {full}
          %5 = stablehlo.reduce(%4 init: %z) applies stablehlo.add across dimensions = [1] : ({full}, {scalar}) -> {row}
          %6 = stablehlo.sqrt %5 : {row}
          %7 = stablehlo.broadcast_in_dim %6, dims = [0] : ({row}) -> {full}
          %8 = stablehlo.divide %4, %7 : {full}
          %9 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<{columns}x{element}>) -> {full}
          %r = stablehlo.multiply %8, %9 : {full}
          return %r : {full}
        }}
    """


CASES = {
    "sums": reduction("add", "6x512xf32", "0.5"),
    "sums of an odd number": reduction("add", "5x77xf32", "0.5"),
    "sums of a rest": reduction("add", "5x332xf32", "0.5"),
    "one row": reduction("add", "600xf32", "0.5"),
    "two dimensions": reduction("add", "3x1x6x44xf32", "0.5", 2),
    "products of doubles": reduction("multiply", "7x96xf64", "2.0"),
    "long integers": reduction("maximum", "7x96xi64", "-3"),
    "halves": reduction("add", "7x96xf16", "0.5"),
    "bytes": reduction("minimum", "9x160xi8", "7"),
    "booleans": reduction("and", "9x64xi1", "true"),
    "complex numbers": reduction("add", "9x64xcomplex<f32>", "(0.0, 0.0)"),
    "positions": largest("5x192xf32"),
    "softmax": softmax(5, 128),
    "softmax of a rest": softmax(6, 84),
    "softmax of an odd number": softmax(5, 67),
    "softmax of halves": softmax(5, 72, "f16"),
    "softmax of doubles": softmax(5, 72, "f64"),
}
SHARES = [(1, 64), (2, 4), (4, 16), (16, 4), (32, 1), (64, 1)]
"""Invocations that share a row, and rows of a workgroup."""


@pytest.mark.sample(8)
@pytest.mark.vulkan
@pytest.mark.parametrize("has_subgroups", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_rows_agree_with_the_definitions(gpu: pumice.Device, name: str, has_subgroups: bool) -> None:
    function = function_of(CASES[name])
    arguments = arguments_of(function)
    target = replace(target_of(gpu.profile), int64=False) if has_subgroups else EMULATED
    region = region_of(function, target)
    wanted = by_definition(function, arguments)
    (_, chosen), *_ = Rows.candidates(region)
    assert chosen.takes(region)
    listed = [replace(chosen, invocations=count, rows=rows) for count, rows in SHARES]
    taken = [strategy for strategy in listed if strategy.takes(region)]
    assert taken
    for strategy in {
        chosen,
        replace(taken[-1], unrolled=1 - chosen.unrolled),
        replace(taken[len(taken) // 2], unrolled=0),
    }:
        actual = run_region(gpu, function, arguments, target, strategy)
        for left, other in zip(actual, wanted, strict=True):
            near = {2: 2e-3, 4: 1e-6}.get(left.dtype.itemsize, 1e-12) if left.dtype.kind in "fc" else 0
            np.testing.assert_allclose(
                left.astype(other.dtype), other, rtol=near, atol=near, err_msg=str(strategy), equal_nan=True
            )


@pytest.mark.parametrize("rows", [100, 3])
def test_a_softmax_is_one_dispatch(rows: int) -> None:
    (region,) = dispatch_regions(softmax(rows, 4096))
    assert isinstance(candidates_of(region_of(region))[0], Rows)


@pytest.mark.parametrize("element", ["i8", "f16", "f32"])
def test_many_rows_are_not_left_to_neighbours(element: str) -> None:
    cpu = replace(EMULATED, family="cpu", int64=True, subgroup_size=8, subgroup_operations=("shuffle",))
    region = region_of(reduction("maximum", f"65536x4096x{element}", "0"), cpu)
    assert isinstance(candidates_of(region)[0], Rows)


@pytest.mark.parametrize("columns", [65, 99])
def test_rows_that_fill_no_words_are_dispatches_of_their_own(columns: int) -> None:
    # An element of two bytes may share its word with the next row's.
    actual = dispatch_regions(softmax(8, columns, "f16"))
    assert len(actual) > 1
    last = region_of(actual[-1])
    assert isinstance(candidates_of(last)[-1], Elements) and not any(isinstance(e, Rows) for e in candidates_of(last))
