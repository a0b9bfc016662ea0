func.func @matmul(%a: tensor<3x8x16xf32>, %b: tensor<3x16x12xf32>) -> tensor<3x8x12xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3x8x12xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x8x12xf32>) -> tensor<3x8x12xf32>
  %c = linalg.batch_matmul ins(%a, %b : tensor<3x8x16xf32>, tensor<3x16x12xf32>) outs(%init : tensor<3x8x12xf32>) -> tensor<3x8x12xf32>
  return %c : tensor<3x8x12xf32>
}
