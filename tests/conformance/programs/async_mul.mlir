func.func @mul(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %product = arith.mulf %a, %b : tensor<4xf32>
  return %product : tensor<4xf32>
}
