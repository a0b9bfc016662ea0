"""Quantized tensors by the specification's formulas in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.evaluation import evaluated

from pumice.compiler.ir.source import CompileError
from pumice.hal_reference.program import Array

X = np.random.default_rng(5).normal(size=(3, 4)).astype(np.float32) * 4
Y = np.random.default_rng(6).normal(size=(3, 4)).astype(np.float32) * 4
A, B, C = "!quant.uniform<i8:f32, 0.05:-10>", "!quant.uniform<u8:f32, 0.1:128>", "!quant.uniform<i8<-20:90>:f32, 0.25>"
BY_COLUMN = "!quant.uniform<i8:f32:1, {0.05:1, 0.1:2, 0.2:-3, 0.4}>"


def stored(x: Array, scale: Array | float, zero: Array | int, low: int, high: int) -> Array:
    scaled = x / np.float32(scale) + np.float32(zero)
    return np.rint(np.clip(scaled, low, high)).astype(np.int32)


def meant(q: Array, scale: Array | float, zero: Array | int) -> Array:
    return ((q - np.int32(zero)).astype(np.float32) * np.asarray(scale, np.float32)).astype(np.float32)


def run(body: str, result: str, *values: Array) -> Array:
    arguments = ", ".join(f"%{name}: tensor<3x4xf32>" for name in "xy"[: len(values)])
    return evaluated(f"func.func @main({arguments}) -> {result} {{\n{body}\n}}", *values)[0]


@pytest.mark.parametrize(
    ("type", "storage", "parameters"),
    [
        (A, "i8", (0.05, -10, -128, 127)),
        (B, "ui8", (0.1, 128, 0, 255)),
        (C, "i8", (0.25, 0, -20, 90)),
        (BY_COLUMN, "i8", (np.array([0.05, 0.1, 0.2, 0.4]), np.array([1, 2, -3, 0]), -128, 127)),
    ],
)
def test_numbers_are_stored_and_meant(type: str, storage: str, parameters: tuple[Array, Array, int, int]) -> None:
    body = f"""
      %0 = stablehlo.uniform_quantize %x : (tensor<3x4xf32>) -> tensor<3x4x{type}>
      %1 = stablehlo.bitcast_convert %0 : (tensor<3x4x{type}>) -> tensor<3x4x{storage}>
      return %1 : tensor<3x4x{storage}>"""
    scale, zero, low, high = parameters
    expected = stored(X, scale, zero, low, high)
    np.testing.assert_array_equal(run(body, f"tensor<3x4x{storage}>", X), expected)
    back = f"""
      %0 = stablehlo.uniform_quantize %x : (tensor<3x4xf32>) -> tensor<3x4x{type}>
      %1 = stablehlo.uniform_dequantize %0 : (tensor<3x4x{type}>) -> tensor<3x4xf32>
      return %1 : tensor<3x4xf32>"""
    np.testing.assert_allclose(run(back, "tensor<3x4xf32>", X), meant(expected, scale, zero), 1e-6)


def test_sums_of_two_types_are_of_a_third() -> None:
    body = f"""
      %0 = stablehlo.uniform_quantize %x : (tensor<3x4xf32>) -> tensor<3x4x{A}>
      %1 = stablehlo.uniform_quantize %y : (tensor<3x4xf32>) -> tensor<3x4x{B}>
      %2 = stablehlo.add %0, %1 : (tensor<3x4x{A}>, tensor<3x4x{B}>) -> tensor<3x4x{C}>
      %3 = stablehlo.bitcast_convert %2 : (tensor<3x4x{C}>) -> tensor<3x4xi8>
      return %3 : tensor<3x4xi8>"""
    total = meant(stored(X, 0.05, -10, -128, 127), 0.05, -10) + meant(stored(Y, 0.1, 128, 0, 255), 0.1, 128)
    np.testing.assert_array_equal(run(body, "tensor<3x4xi8>", X, Y), stored(total, 0.25, 0, -20, 90))


def test_what_moves_is_what_is_stored() -> None:
    """With 32 bits, which f32 could not carry."""
    wide = "!quant.uniform<i32:f32, 1.0>"
    text = f"""
      func.func @main(%x: tensor<2x3xi32>) -> tensor<3x2xi32> {{
        %0 = stablehlo.bitcast_convert %x : (tensor<2x3xi32>) -> tensor<2x3x{wide}>
        %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x3x{wide}>) -> tensor<3x2x{wide}>
        %2 = stablehlo.reverse %1, dims = [0] : tensor<3x2x{wide}>
        %3 = stablehlo.bitcast_convert %2 : (tensor<3x2x{wide}>) -> tensor<3x2xi32>
        return %3 : tensor<3x2xi32>
      }}"""
    values = np.array([[2**31 - 1, -(2**31), 16777217], [1, -2, 33554433]], np.int32)
    np.testing.assert_array_equal(evaluated(text, values)[0], values.T[::-1])


def test_a_product_with_quantized_weights_and_its_sum() -> None:
    body = f"""
      %0 = stablehlo.uniform_quantize %y : (tensor<3x4xf32>) -> tensor<3x4x{BY_COLUMN}>
      %1 = stablehlo.dot_general %x, %0, contracting_dims = [0] x [0]
        : (tensor<3x4xf32>, tensor<3x4x{BY_COLUMN}>) -> tensor<4x4xf32>
      %2 = stablehlo.uniform_quantize %1 : (tensor<4x4xf32>) -> tensor<4x4x{B}>
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %i = stablehlo.uniform_quantize %z : (tensor<f32>) -> tensor<{B}>
      %3 = "stablehlo.reduce"(%2, %i) ({{
      ^bb0(%p: tensor<{B}>, %q: tensor<{B}>):
        %s = stablehlo.maximum %p, %q : tensor<{B}>
        stablehlo.return %s : tensor<{B}>
      }}) {{dimensions = array<i64: 1>}} : (tensor<4x4x{B}>, tensor<{B}>) -> tensor<4x{B}>
      %4 = stablehlo.bitcast_convert %3 : (tensor<4x{B}>) -> tensor<4xui8>
      return %4 : tensor<4xui8>"""
    scale, zero = np.array([0.05, 0.1, 0.2, 0.4]), np.array([1, 2, -3, 0])
    product = X.T @ meant(stored(Y, scale, zero, -128, 127), scale, zero)
    expected = np.maximum(stored(product, 0.1, 128, 0, 255).max(1), 128)
    assert np.abs(run(body, "tensor<4xui8>", X, Y).astype(np.int32) - expected).max() <= 1


@pytest.mark.parametrize(
    ("type", "message"),
    [
        ("!quant.uniform<i8:f32, 0.0:1>", "positive scales"),
        ("!quant.uniform<i8:f32:0, {0.1, 0.2}>", "a scale for each element of dimension 0"),
        ("!quant.uniform<i8:f32:{0:1, 1:2}, {{0.1}, {0.2}}>", "per tensor or along one dimension"),
        ("!quant.uniform<i9:f32, 0.1>", "storage of 2 to 32 bits"),
        ("!quant.uniform<i8<-200:3>:f32, 0.1>", "bounds within the storage type"),
    ],
)
def test_other_quantizations_are_refused_at_their_place(type: str, message: str) -> None:
    body = (
        f"  %0 = stablehlo.uniform_quantize %x : (tensor<3x4xf32>) -> tensor<3x4x{type}>\n  return %x : tensor<3x4xf32>"
    )
    with pytest.raises(CompileError, match=message):
        run(body, "tensor<3x4xf32>", X)
