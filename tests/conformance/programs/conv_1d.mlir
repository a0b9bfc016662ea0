func.func @conv(%x: tensor<2x20x3xf32>, %kernel: tensor<5x3x4xf32>) -> tensor<2x16x4xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x16x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x16x4xf32>) -> tensor<2x16x4xf32>
  %y = linalg.conv_1d_nwc_wcf {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>}
    ins(%x, %kernel : tensor<2x20x3xf32>, tensor<5x3x4xf32>) outs(%init : tensor<2x16x4xf32>) -> tensor<2x16x4xf32>
  return %y : tensor<2x16x4xf32>
}
