func.func @left(%a: tensor<24xi32>, %b: tensor<24xi32>) -> tensor<24xi32> {
  %y = arith.shli %a, %b : tensor<24xi32>
  return %y : tensor<24xi32>
}

func.func @right_signed(%a: tensor<24xi32>, %b: tensor<24xi32>) -> tensor<24xi32> {
  %y = arith.shrsi %a, %b : tensor<24xi32>
  return %y : tensor<24xi32>
}

func.func @right_unsigned(%a: tensor<24xi32>, %b: tensor<24xi32>) -> tensor<24xi32> {
  %y = arith.shrui %a, %b : tensor<24xi32>
  return %y : tensor<24xi32>
}
