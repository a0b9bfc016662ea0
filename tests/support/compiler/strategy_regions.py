"""Regions that many strategies take, as functions."""

from __future__ import annotations

from typing import Final

from support.compiler.regions import contraction, function

_SUM = """
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %r = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<64x1000xf32>, tensor<f32>) -> tensor<64xf32>"""
_SCAN = """
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %r = "stablehlo.reduce_window"(%a, %zero) <{
      window_dimensions = array<i64: 1, 8192>, padding = dense<[[0, 0], [8191, 0]]> : tensor<2x2xi64>}> ({
      ^bb0(%x: tensor<i32>, %y: tensor<i32>):
        %sum = stablehlo.add %x, %y : tensor<i32>
        stablehlo.return %sum : tensor<i32>
      }) : (tensor<4x8192xi32>, tensor<i32>) -> tensor<4x8192xi32>"""
_TRANSPOSE = "%r = stablehlo.transpose %a, dims = [1, 0] : (tensor<512x384xf32>) -> tensor<384x512xf32>"
_WIDE = "%r = stablehlo.multiply %a, %a : tensor<1000xi64>"
_HALF = "%r = stablehlo.add %a, %a : tensor<1000xf16>"

REGIONS: Final = {
    "contraction": contraction("256x128xf32", "128x192xf32", "256x192xf32", "contracting_dims = [1] x [0]"),
    "contraction of halves": contraction("64x64xf16", "64x64xf16", "64x64xf16", "contracting_dims = [1] x [0]"),
    "sum": function("%a: tensor<64x1000xf32>", "64xf32", _SUM),
    "scan": function("%a: tensor<4x8192xi32>", "4x8192xi32", _SCAN),
    "transpose": function("%a: tensor<512x384xf32>", "384x512xf32", _TRANSPOSE),
    "64-bit integers": function("%a: tensor<1000xi64>", "1000xi64", _WIDE),
    "halves": function("%a: tensor<1000xf16>", "1000xf16", _HALF),
}
