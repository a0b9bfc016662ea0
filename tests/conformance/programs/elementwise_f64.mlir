func.func @add(%a: tensor<9xf64>, %b: tensor<9xf64>) -> tensor<9xf64> {
  %y = arith.addf %a, %b : tensor<9xf64>
  return %y : tensor<9xf64>
}

func.func @subtract(%a: tensor<9xf64>, %b: tensor<9xf64>) -> tensor<9xf64> {
  %y = arith.subf %a, %b : tensor<9xf64>
  return %y : tensor<9xf64>
}

func.func @multiply(%a: tensor<9xf64>, %b: tensor<9xf64>) -> tensor<9xf64> {
  %y = arith.mulf %a, %b : tensor<9xf64>
  return %y : tensor<9xf64>
}

func.func @divide(%a: tensor<9xf64>, %b: tensor<9xf64>) -> tensor<9xf64> {
  %y = arith.divf %a, %b : tensor<9xf64>
  return %y : tensor<9xf64>
}
