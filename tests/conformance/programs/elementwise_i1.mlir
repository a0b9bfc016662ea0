func.func @and(%a: tensor<24xi1>, %b: tensor<24xi1>) -> tensor<24xi1> {
  %y = arith.andi %a, %b : tensor<24xi1>
  return %y : tensor<24xi1>
}

func.func @or(%a: tensor<24xi1>, %b: tensor<24xi1>) -> tensor<24xi1> {
  %y = arith.ori %a, %b : tensor<24xi1>
  return %y : tensor<24xi1>
}

func.func @xor(%a: tensor<24xi1>, %b: tensor<24xi1>) -> tensor<24xi1> {
  %y = arith.xori %a, %b : tensor<24xi1>
  return %y : tensor<24xi1>
}

func.func @less(%a: tensor<24xf32>, %b: tensor<24xf32>) -> tensor<24xi1> {
  %y = arith.cmpf olt, %a, %b : tensor<24xf32>
  return %y : tensor<24xi1>
}

func.func @choose(%c: tensor<24xi1>, %a: tensor<24xf32>, %b: tensor<24xf32>) -> tensor<24xf32> {
  %y = arith.select %c, %a, %b : tensor<24xi1>, tensor<24xf32>
  return %y : tensor<24xf32>
}
