func.func @f32_to_bf16(%a: tensor<16xf32>) -> tensor<16xbf16> {
  %y = arith.truncf %a : tensor<16xf32> to tensor<16xbf16>
  return %y : tensor<16xbf16>
}

func.func @bf16_to_f32(%a: tensor<16xbf16>) -> tensor<16xf32> {
  %y = arith.extf %a : tensor<16xbf16> to tensor<16xf32>
  return %y : tensor<16xf32>
}
