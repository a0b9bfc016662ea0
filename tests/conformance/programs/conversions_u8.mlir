func.func @u8_to_f32(%a: tensor<16xi8>) -> tensor<16xf32> {
  %y = arith.uitofp %a : tensor<16xi8> to tensor<16xf32>
  return %y : tensor<16xf32>
}
