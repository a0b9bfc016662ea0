// Sizes in bytes that are no multiple of four: shaders that compute with words touch the rest of the last one.
func.func @add_bytes(%a: tensor<5xi8>, %b: tensor<5xi8>) -> tensor<5xi8> {
  %y = arith.addi %a, %b : tensor<5xi8>
  return %y : tensor<5xi8>
}

func.func @add_shorts(%a: tensor<3xi16>, %b: tensor<3xi16>) -> tensor<3xi16> {
  %y = arith.addi %a, %b : tensor<3xi16>
  return %y : tensor<3xi16>
}

func.func @and_bits(%a: tensor<7xi1>, %b: tensor<7xi1>) -> tensor<7xi1> {
  %y = arith.andi %a, %b : tensor<7xi1>
  return %y : tensor<7xi1>
}
