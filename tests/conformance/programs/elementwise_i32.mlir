func.func @add(%a: tensor<35xi32>, %b: tensor<35xi32>) -> tensor<35xi32> {
  %y = arith.addi %a, %b : tensor<35xi32>
  return %y : tensor<35xi32>
}

func.func @subtract(%a: tensor<35xi32>, %b: tensor<35xi32>) -> tensor<35xi32> {
  %y = arith.subi %a, %b : tensor<35xi32>
  return %y : tensor<35xi32>
}

func.func @multiply(%a: tensor<35xi32>, %b: tensor<35xi32>) -> tensor<35xi32> {
  %y = arith.muli %a, %b : tensor<35xi32>
  return %y : tensor<35xi32>
}

func.func @maximum_signed(%a: tensor<35xi32>, %b: tensor<35xi32>) -> tensor<35xi32> {
  %y = arith.maxsi %a, %b : tensor<35xi32>
  return %y : tensor<35xi32>
}

func.func @minimum_unsigned(%a: tensor<35xi32>, %b: tensor<35xi32>) -> tensor<35xi32> {
  %y = arith.minui %a, %b : tensor<35xi32>
  return %y : tensor<35xi32>
}

func.func @and(%a: tensor<35xi32>, %b: tensor<35xi32>) -> tensor<35xi32> {
  %y = arith.andi %a, %b : tensor<35xi32>
  return %y : tensor<35xi32>
}

func.func @or(%a: tensor<35xi32>, %b: tensor<35xi32>) -> tensor<35xi32> {
  %y = arith.ori %a, %b : tensor<35xi32>
  return %y : tensor<35xi32>
}

func.func @xor(%a: tensor<35xi32>, %b: tensor<35xi32>) -> tensor<35xi32> {
  %y = arith.xori %a, %b : tensor<35xi32>
  return %y : tensor<35xi32>
}
