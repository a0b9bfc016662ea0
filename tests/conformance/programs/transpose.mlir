func.func @two(%x: tensor<17x5xf32>) -> tensor<5x17xf32> {
  %empty = tensor.empty() : tensor<5x17xf32>
  %y = linalg.transpose ins(%x : tensor<17x5xf32>) outs(%empty : tensor<5x17xf32>) permutation = [1, 0]
  return %y : tensor<5x17xf32>
}

func.func @four(%x: tensor<2x3x4x5xi32>) -> tensor<4x2x5x3xi32> {
  %empty = tensor.empty() : tensor<4x2x5x3xi32>
  %y = linalg.transpose ins(%x : tensor<2x3x4x5xi32>) outs(%empty : tensor<4x2x5x3xi32>) permutation = [2, 0, 3, 1]
  return %y : tensor<4x2x5x3xi32>
}
