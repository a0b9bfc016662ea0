func.func @i32_to_i64(%a: tensor<16xi32>) -> tensor<16xi64> {
  %y = arith.extsi %a : tensor<16xi32> to tensor<16xi64>
  return %y : tensor<16xi64>
}

func.func @i64_to_i32(%a: tensor<16xi64>) -> tensor<16xi32> {
  %y = arith.trunci %a : tensor<16xi64> to tensor<16xi32>
  return %y : tensor<16xi32>
}
