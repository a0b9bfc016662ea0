func.func @same(%x: tensor<1x8x8x4xf32>, %kernel: tensor<3x3x4x4xf32>) -> tensor<1x8x8x4xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%n: index, %h: index, %w: index, %c: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x4xf32> to tensor<1x10x10x4xf32>
  %empty = tensor.empty() : tensor<1x8x8x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x8x8x4xf32>) -> tensor<1x8x8x4xf32>
  %y = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%padded, %kernel : tensor<1x10x10x4xf32>, tensor<3x3x4x4xf32>) outs(%init : tensor<1x8x8x4xf32>) -> tensor<1x8x8x4xf32>
  return %y : tensor<1x8x8x4xf32>
}
