func.func @maximum(%x: tensor<1x8x8x4xf32>) -> tensor<1x4x4x4xf32> {
  %lowest = arith.constant 0xFF800000 : f32
  %window = tensor.empty() : tensor<2x2xf32>
  %empty = tensor.empty() : tensor<1x4x4x4xf32>
  %init = linalg.fill ins(%lowest : f32) outs(%empty : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  %y = linalg.pooling_nhwc_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
    ins(%x, %window : tensor<1x8x8x4xf32>, tensor<2x2xf32>) outs(%init : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  return %y : tensor<1x4x4x4xf32>
}

func.func @average(%x: tensor<1x9x9x4xf32>) -> tensor<1x7x7x4xf32> {
  %zero = arith.constant 0.0 : f32
  %window = tensor.empty() : tensor<3x3xf32>
  %empty = tensor.empty() : tensor<1x7x7x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x7x7x4xf32>) -> tensor<1x7x7x4xf32>
  %sum = linalg.pooling_nhwc_sum {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %window : tensor<1x9x9x4xf32>, tensor<3x3xf32>) outs(%init : tensor<1x7x7x4xf32>) -> tensor<1x7x7x4xf32>
  %nine = arith.constant dense<9.0> : tensor<1x7x7x4xf32>
  %y = arith.divf %sum, %nine : tensor<1x7x7x4xf32>
  return %y : tensor<1x7x7x4xf32>
}
