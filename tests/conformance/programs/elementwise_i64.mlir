func.func @add(%a: tensor<11xi64>, %b: tensor<11xi64>) -> tensor<11xi64> {
  %y = arith.addi %a, %b : tensor<11xi64>
  return %y : tensor<11xi64>
}

func.func @subtract(%a: tensor<11xi64>, %b: tensor<11xi64>) -> tensor<11xi64> {
  %y = arith.subi %a, %b : tensor<11xi64>
  return %y : tensor<11xi64>
}

func.func @multiply(%a: tensor<11xi64>, %b: tensor<11xi64>) -> tensor<11xi64> {
  %y = arith.muli %a, %b : tensor<11xi64>
  return %y : tensor<11xi64>
}

func.func @maximum_signed(%a: tensor<11xi64>, %b: tensor<11xi64>) -> tensor<11xi64> {
  %y = arith.maxsi %a, %b : tensor<11xi64>
  return %y : tensor<11xi64>
}

func.func @minimum_unsigned(%a: tensor<11xi64>, %b: tensor<11xi64>) -> tensor<11xi64> {
  %y = arith.minui %a, %b : tensor<11xi64>
  return %y : tensor<11xi64>
}

func.func @and(%a: tensor<11xi64>, %b: tensor<11xi64>) -> tensor<11xi64> {
  %y = arith.andi %a, %b : tensor<11xi64>
  return %y : tensor<11xi64>
}

func.func @or(%a: tensor<11xi64>, %b: tensor<11xi64>) -> tensor<11xi64> {
  %y = arith.ori %a, %b : tensor<11xi64>
  return %y : tensor<11xi64>
}

func.func @xor(%a: tensor<11xi64>, %b: tensor<11xi64>) -> tensor<11xi64> {
  %y = arith.xori %a, %b : tensor<11xi64>
  return %y : tensor<11xi64>
}
