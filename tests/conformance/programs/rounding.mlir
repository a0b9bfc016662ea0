func.func @half_away(%a: tensor<64xf32>) -> tensor<64xf32> {
  %y = math.round %a : tensor<64xf32>
  return %y : tensor<64xf32>
}

func.func @half_even(%a: tensor<64xf32>) -> tensor<64xf32> {
  %y = math.roundeven %a : tensor<64xf32>
  return %y : tensor<64xf32>
}

func.func @toward_zero(%a: tensor<64xf32>) -> tensor<64xf32> {
  %y = math.trunc %a : tensor<64xf32>
  return %y : tensor<64xf32>
}
