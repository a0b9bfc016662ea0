"""Tensor programs that have every syntax between them: regions, attributes of all forms, calls, locations, aliases."""

from __future__ import annotations

from typing import Final

CALLS: Final = """#loc1 = loc("model.py":3:5)
#loc2 = loc("add"(#loc1))
module @calls attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32> {jax.arg_info = "x"} loc("x"), %arg1: tensor<i1>)
      -> (tensor<2x3xf32> {jax.result_info = "result"}, tensor<i32>) {
    %0:2 = call @helper(%arg0, %arg1) : (tensor<2x3xf32>, tensor<i1>) -> (tensor<2x3xf32>, tensor<i32>) loc(#loc2)
    %1 = "stablehlo.if"(%arg1) ({
      stablehlo.return %0#0 : tensor<2x3xf32>
    }, {
      %2 = stablehlo.exponential %arg0 : tensor<2x3xf32>
      stablehlo.return %2 : tensor<2x3xf32>
    }) : (tensor<i1>) -> tensor<2x3xf32>
    return %1, %0#1 : tensor<2x3xf32>, tensor<i32>
  }
  func.func private @helper(%a: tensor<2x3xf32>, %b: tensor<i1>) -> (tensor<2x3xf32>, tensor<i32>) {
    %cst = stablehlo.constant dense<[[1.0, -2.5, 0x7FC00000], [0.0, 1.0e+10, 3.0]]> : tensor<2x3xf32>
    %0 = stablehlo.maximum %a, %cst : tensor<2x3xf32>
    %1 = stablehlo.convert %b : (tensor<i1>) -> tensor<i32>
    return %0, %1 : tensor<2x3xf32>, tensor<i32>
  }
}
"""
INDEXING: Final = """func.func @main(%x: tensor<4x6xf32>, %i: tensor<3x1xi32>, %u: tensor<3x6xf32>) -> tensor<4x6xf32> {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
    start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 6>}>
    : (tensor<4x6xf32>, tensor<3x1xi32>) -> tensor<3x6xf32>
  %1 = stablehlo.add %0, %u : tensor<3x6xf32>
  %2 = "stablehlo.scatter"(%x, %i, %1) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<3x1xi32>, tensor<3x6xf32>) -> tensor<4x6xf32>
  %c = stablehlo.constant dense<1> : tensor<i32>
  %3 = stablehlo.dynamic_slice %2, %c, %c, sizes = [2, 3]
    : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
  %4 = stablehlo.dynamic_update_slice %2, %3, %c, %c
    : (tensor<4x6xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x6xf32>
  %5 = stablehlo.slice %4 [0:4:2, 1:5] : (tensor<4x6xf32>) -> tensor<2x4xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %6 = stablehlo.pad %5, %z, low = [1, -1], high = [0, 2], interior = [1, 0]
    : (tensor<2x4xf32>, tensor<f32>) -> tensor<4x5xf32>
  %7 = stablehlo.concatenate %6, %x, dim = 1 : (tensor<4x5xf32>, tensor<4x6xf32>) -> tensor<4x11xf32>
  %8 = stablehlo.reverse %7, dims = [0, 1] : tensor<4x11xf32>
  %9 = stablehlo.slice %8 [0:4, 0:6] : (tensor<4x11xf32>) -> tensor<4x6xf32>
  return %9 : tensor<4x6xf32>
}
"""
WINDOWS: Final = """func.func @main(%x: tensor<1x8x8x3xf32>, %k: tensor<3x3x3x4xf32>)
    -> (tensor<1x2x2x4xf32>, tensor<4xi64>) {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [2, 2], pad = [[1, 1], [1, 1]], rhs_dilate = [1, 1]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32>)
    -> tensor<1x4x4x4xf32>
  %m = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %1 = "stablehlo.reduce_window"(%0, %m) <{window_dimensions = array<i64: 1, 2, 2, 1>,
    window_strides = array<i64: 1, 2, 2, 1>, padding = dense<0> : tensor<4x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<1x4x4x4xf32>, tensor<f32>) -> tensor<1x2x2x4xf32>
  %2 = stablehlo.iota dim = 0 : tensor<4xi64>
  %3 = stablehlo.constant dense<"0x01000000000000000200000000000000030000000000000004000000000000FF"> : tensor<4xi64>
  %4 = stablehlo.xor %2, %3 : tensor<4xi64>
  return %1, %4 : tensor<1x2x2x4xf32>, tensor<4xi64>
}
"""
ORDERS: Final = """func.func @main(%x: tensor<3x5xf32>, %s: tensor<2xui64>)
    -> (tensor<3x5xf32>, tensor<3xi32>, tensor<3x2xf32>) {
  %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %i = stablehlo.iota dim = 1 : tensor<3x5xi32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %c = stablehlo.constant dense<0> : tensor<i32>
  %2:2 = stablehlo.reduce(%0 init: %z), (%i init: %c) across dimensions = [1]
    : (tensor<3x5xf32>, tensor<3x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%p: tensor<i32>, %q: tensor<i32>) {
      %3 = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.select %3, %a, %b : tensor<i1>, tensor<f32>
      %5 = stablehlo.select %3, %p, %q : tensor<i1>, tensor<i32>
      stablehlo.return %4, %5 : tensor<f32>, tensor<i32>
    }
  %t, %u = chlo.top_k(%x, k = 2) : tensor<3x5xf32> -> (tensor<3x2xf32>, tensor<3x2xi32>)
  %e = chlo.erf %t : tensor<3x2xf32> -> tensor<3x2xf32>
  %r:2 = stablehlo.rng_bit_generator %s, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3x2xui32>)
  %f = stablehlo.convert %r#1 : (tensor<3x2xui32>) -> tensor<3x2xf32>
  %g = stablehlo.add %e, %f : tensor<3x2xf32>
  return %0, %2#1, %g : tensor<3x5xf32>, tensor<3xi32>, tensor<3x2xf32>
}
"""
TYPES: Final = """func.func @main(%x: tensor<4xbf16>, %y: tensor<4xcomplex<f32>>, %n: tensor<4xui8>)
    -> (tensor<4xf16>, tensor<3xcomplex<f32>>) {
  %0 = stablehlo.convert %x : (tensor<4xbf16>) -> tensor<4xf32>
  %1 = stablehlo.fft %y, type = FFT, length = [4] : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  %2 = stablehlo.real %1 : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  %3 = stablehlo.dot_general %0, %2, contracting_dims = [0] x [0], precision = [HIGH, DEFAULT]
    : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %5 = stablehlo.bitcast_convert %4 : (tensor<4xf32>) -> tensor<4x4xui8>
  %6 = stablehlo.transpose %5, dims = [1, 0] : (tensor<4x4xui8>) -> tensor<4x4xui8>
  %c = stablehlo.constant dense<0> : tensor<ui8>
  %7 = stablehlo.reduce(%6 init: %c) applies stablehlo.xor across dimensions = [0]
    : (tensor<4x4xui8>, tensor<ui8>) -> tensor<4xui8>
  %8 = stablehlo.shift_left %7, %n : tensor<4xui8>
  %9 = stablehlo.convert %8 : (tensor<4xui8>) -> tensor<4xf16>
  %a = stablehlo.slice %y [1:4] : (tensor<4xcomplex<f32>>) -> tensor<3xcomplex<f32>>
  %b = stablehlo.constant dense<[(1.0, 2.0), (0.5, -1.0), (3.0, 0.0)]> : tensor<3xcomplex<f32>>
  %d = stablehlo.multiply %a, %b : tensor<3xcomplex<f32>>
  return %9, %d : tensor<4xf16>, tensor<3xcomplex<f32>>
}
"""
LOOP: Final = """module @loop {
  func.func @main(%x: tensor<5x2xf32>) -> (tensor<2xf32>, tensor<5x2xf32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %z = stablehlo.constant dense<0.0> : tensor<2xf32>
    %o = stablehlo.constant dense<0.0> : tensor<5x2xf32>
    %0:3 = stablehlo.while(%i = %c, %carry = %z, %out = %o) : tensor<i32>, tensor<2xf32>, tensor<5x2xf32>
    cond {
      %n = stablehlo.constant dense<5> : tensor<i32>
      %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %k = stablehlo.constant dense<0> : tensor<i32>
      %2 = stablehlo.dynamic_slice %x, %i, %k, sizes = [1, 2]
        : (tensor<5x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
      %3 = stablehlo.reshape %2 : (tensor<1x2xf32>) -> tensor<2xf32>
      %4 = stablehlo.add %carry, %3 : tensor<2xf32>
      %5 = stablehlo.tanh %4 : tensor<2xf32>
      %6 = stablehlo.reshape %5 : (tensor<2xf32>) -> tensor<1x2xf32>
      %7 = stablehlo.dynamic_update_slice %out, %6, %i, %k
        : (tensor<5x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<5x2xf32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %8 = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %8, %5, %7 : tensor<i32>, tensor<2xf32>, tensor<5x2xf32>
    }
    return %0#1, %0#2 : tensor<2xf32>, tensor<5x2xf32>
  }
}
"""
VARIED: Final = (CALLS, INDEXING, WINDOWS, ORDERS, TYPES, LOOP)
