func.func @nhwc(%x: tensor<1x10x10x3xf32>, %kernel: tensor<3x3x3x8xf32>) -> tensor<1x8x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x8x8x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  %y = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %kernel : tensor<1x10x10x3xf32>, tensor<3x3x3x8xf32>) outs(%init : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  return %y : tensor<1x8x8x8xf32>
}

func.func @strided(%x: tensor<1x11x11x2xf32>, %kernel: tensor<3x3x2x4xf32>) -> tensor<1x5x5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x5x5x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x5x5x4xf32>) -> tensor<1x5x5x4xf32>
  %y = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
    ins(%x, %kernel : tensor<1x11x11x2xf32>, tensor<3x3x2x4xf32>) outs(%init : tensor<1x5x5x4xf32>) -> tensor<1x5x5x4xf32>
  return %y : tensor<1x5x5x4xf32>
}

func.func @nchw_dilated(%x: tensor<2x3x9x9xf32>, %kernel: tensor<4x3x3x3xf32>) -> tensor<2x4x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x4x5x5xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x4x5x5xf32>) -> tensor<2x4x5x5xf32>
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<2> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %kernel : tensor<2x3x9x9xf32>, tensor<4x3x3x3xf32>) outs(%init : tensor<2x4x5x5xf32>) -> tensor<2x4x5x5xf32>
  return %y : tensor<2x4x5x5xf32>
}
