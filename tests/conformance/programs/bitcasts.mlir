func.func @f32_to_i32(%a: tensor<16xf32>) -> tensor<16xi32> {
  %y = arith.bitcast %a : tensor<16xf32> to tensor<16xi32>
  return %y : tensor<16xi32>
}

func.func @i32_to_f32(%a: tensor<16xi32>) -> tensor<16xf32> {
  %y = arith.bitcast %a : tensor<16xi32> to tensor<16xf32>
  return %y : tensor<16xf32>
}

func.func @f32_to_bytes(%a: tensor<4xf32>) -> tensor<16xi8> {
  %y = flow.tensor.bitcast %a : tensor<4xf32> -> tensor<16xi8>
  return %y : tensor<16xi8>
}
