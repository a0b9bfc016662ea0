func.func @f32_to_f16(%a: tensor<16xf32>) -> tensor<16xf16> {
  %y = arith.truncf %a : tensor<16xf32> to tensor<16xf16>
  return %y : tensor<16xf16>
}

func.func @f16_to_f32(%a: tensor<16xf16>) -> tensor<16xf32> {
  %y = arith.extf %a : tensor<16xf16> to tensor<16xf32>
  return %y : tensor<16xf32>
}
