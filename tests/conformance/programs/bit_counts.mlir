func.func @leading_zeros(%a: tensor<64xi32>) -> tensor<64xi32> {
  %y = math.ctlz %a : tensor<64xi32>
  return %y : tensor<64xi32>
}

func.func @absolute(%a: tensor<64xi32>) -> tensor<64xi32> {
  %y = math.absi %a : tensor<64xi32>
  return %y : tensor<64xi32>
}
