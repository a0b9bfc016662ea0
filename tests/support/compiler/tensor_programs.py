"""Tensor programs for tests of the whole compiler: one dispatch, calls, a loop, a branch, any batch."""

from __future__ import annotations

import numpy as np

from pumice.hal_reference.program import Array


def floats(*shape: int) -> Array:
    """Evenly spaced numbers from -1 to 1."""
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


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
BATCH = """
func.func @main(%x: tensor<?x4xf32>, %w: tensor<4x4xf32>) -> (tensor<?x4xf32>, tensor<4xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %1 = stablehlo.tanh %0 : tensor<?x4xf32>
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0]
    : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %3 = stablehlo.reduce(%2 init: %c) applies stablehlo.add across dimensions = [0]
    : (tensor<?x4xf32>, tensor<f32>) -> tensor<4xf32>
  return %2, %3 : tensor<?x4xf32>, tensor<4xf32>
}
"""
