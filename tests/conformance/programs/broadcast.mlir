func.func @rows(%x: tensor<6xf32>) -> tensor<4x6xf32> {
  %empty = tensor.empty() : tensor<4x6xf32>
  %y = linalg.broadcast ins(%x : tensor<6xf32>) outs(%empty : tensor<4x6xf32>) dimensions = [0]
  return %y : tensor<4x6xf32>
}

func.func @outer_sum(%x: tensor<7xi32>, %y: tensor<9xi32>) -> tensor<7x9xi32> {
  %empty = tensor.empty() : tensor<7x9xi32>
  %columns = linalg.broadcast ins(%x : tensor<7xi32>) outs(%empty : tensor<7x9xi32>) dimensions = [1]
  %rows = linalg.broadcast ins(%y : tensor<9xi32>) outs(%empty : tensor<7x9xi32>) dimensions = [0]
  %z = arith.addi %columns, %rows : tensor<7x9xi32>
  return %z : tensor<7x9xi32>
}
