func.func @small(%a: tensor<3x5xf32>, %b: tensor<5x7xf32>) -> tensor<3x7xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3x7xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x7xf32>) -> tensor<3x7xf32>
  %c = linalg.matmul ins(%a, %b : tensor<3x5xf32>, tensor<5x7xf32>) outs(%init : tensor<3x7xf32>) -> tensor<3x7xf32>
  return %c : tensor<3x7xf32>
}

func.func @square(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
  %c = linalg.matmul ins(%a, %b : tensor<64x64xf32>, tensor<64x64xf32>) outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %c : tensor<64x64xf32>
}

// The third operand is the accumulator: it comes from the caller.
func.func @accumulate(%a: tensor<16x33xf32>, %b: tensor<33x17xf32>, %c: tensor<16x17xf32>) -> tensor<16x17xf32> {
  %sum = linalg.matmul ins(%a, %b : tensor<16x33xf32>, tensor<33x17xf32>) outs(%c : tensor<16x17xf32>) -> tensor<16x17xf32>
  return %sum : tensor<16x17xf32>
}
