module @cnn {
  func.func public @main(%arg0: tensor<1x1x28x28xf32>, %arg1: tensor<8x1x3x3xf32>, %arg2: tensor<16x8x3x3xf32>, %arg3: tensor<784x10xf32>) -> (tensor<1x10xf32>) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x1x28x28xf32>, tensor<8x1x3x3xf32>) -> tensor<1x8x28x28xf32>
    %1 = call @relu(%0) : (tensor<1x8x28x28xf32>) -> tensor<1x8x28x28xf32>
    %2 = stablehlo.convolution(%1, %arg2) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [2, 2], pad = [[0, 1], [0, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x28x28xf32>, tensor<16x8x3x3xf32>) -> tensor<1x16x14x14xf32>
    %3 = call @relu_0(%2) : (tensor<1x16x14x14xf32>) -> tensor<1x16x14x14xf32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32>
    %5 = "stablehlo.reduce_window"(%3, %4) <{window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %9 = stablehlo.maximum %arg4, %arg5 : tensor<f32>
      stablehlo.return %9 : tensor<f32>
    }) : (tensor<1x16x14x14xf32>, tensor<f32>) -> tensor<1x16x7x7xf32>
    %6 = stablehlo.reshape %5 : (tensor<1x16x7x7xf32>) -> tensor<1x784xf32>
    %7 = stablehlo.dot_general %6, %arg3, contracting_dims = [1] x [0] : (tensor<1x784xf32>, tensor<784x10xf32>) -> tensor<1x10xf32>
    %8 = call @log_softmax(%7) : (tensor<1x10xf32>) -> tensor<1x10xf32>
    return %8 : tensor<1x10xf32>
  }
  func.func private @relu(%arg0: tensor<1x8x28x28xf32>) -> tensor<1x8x28x28xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x8x28x28xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<1x8x28x28xf32>
    return %1 : tensor<1x8x28x28xf32>
  }
  func.func private @relu_0(%arg0: tensor<1x16x14x14xf32>) -> tensor<1x16x14x14xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x14x14xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<1x16x14x14xf32>
    return %1 : tensor<1x16x14x14xf32>
  }
  func.func private @log_softmax(%arg0: tensor<1x10xf32>) -> tensor<1x10xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst_0) applies stablehlo.maximum across dimensions = [1] : (tensor<1x10xf32>, tensor<f32>) -> tensor<1xf32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<1xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<1xf32>) -> tensor<1x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<1x10xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<1x10xf32>
    %6 = stablehlo.exponential %5 : tensor<1x10xf32>
    %7 = stablehlo.reduce(%6 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<1x10xf32>, tensor<f32>) -> tensor<1xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<1xf32>) -> tensor<1x1xf32>
    %9 = stablehlo.log %8 : tensor<1x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<1x10xf32>
    %11 = stablehlo.subtract %5, %10 : tensor<1x10xf32>
    return %11 : tensor<1x10xf32>
  }
}
