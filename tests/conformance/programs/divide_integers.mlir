func.func @divide_signed(%a: tensor<24xi32>, %b: tensor<24xi32>) -> tensor<24xi32> {
  %y = arith.divsi %a, %b : tensor<24xi32>
  return %y : tensor<24xi32>
}

func.func @divide_unsigned(%a: tensor<24xi32>, %b: tensor<24xi32>) -> tensor<24xi32> {
  %y = arith.divui %a, %b : tensor<24xi32>
  return %y : tensor<24xi32>
}

func.func @remainder_signed(%a: tensor<24xi32>, %b: tensor<24xi32>) -> tensor<24xi32> {
  %y = arith.remsi %a, %b : tensor<24xi32>
  return %y : tensor<24xi32>
}

func.func @remainder_unsigned(%a: tensor<24xi32>, %b: tensor<24xi32>) -> tensor<24xi32> {
  %y = arith.remui %a, %b : tensor<24xi32>
  return %y : tensor<24xi32>
}

func.func @floor_divide(%a: tensor<24xi32>, %b: tensor<24xi32>) -> tensor<24xi32> {
  %y = arith.floordivsi %a, %b : tensor<24xi32>
  return %y : tensor<24xi32>
}

func.func @ceiling_divide(%a: tensor<24xi32>, %b: tensor<24xi32>) -> tensor<24xi32> {
  %y = arith.ceildivsi %a, %b : tensor<24xi32>
  return %y : tensor<24xi32>
}
