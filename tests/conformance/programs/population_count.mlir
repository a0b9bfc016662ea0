func.func @ones(%a: tensor<64xi32>) -> tensor<64xi32> {
  %y = math.ctpop %a : tensor<64xi32>
  return %y : tensor<64xi32>
}
