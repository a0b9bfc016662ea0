func.func @matmul(%a: tensor<6x9xi32>, %b: tensor<9x5xi32>) -> tensor<6x5xi32> {
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<6x5xi32>
  %init = linalg.fill ins(%zero : i32) outs(%empty : tensor<6x5xi32>) -> tensor<6x5xi32>
  %c = linalg.matmul ins(%a, %b : tensor<6x9xi32>, tensor<9x5xi32>) outs(%init : tensor<6x5xi32>) -> tensor<6x5xi32>
  return %c : tensor<6x5xi32>
}
