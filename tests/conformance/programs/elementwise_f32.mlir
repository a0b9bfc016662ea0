func.func @add(%a: tensor<5x7xf32>, %b: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %y = arith.addf %a, %b : tensor<5x7xf32>
  return %y : tensor<5x7xf32>
}

func.func @subtract(%a: tensor<5x7xf32>, %b: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %y = arith.subf %a, %b : tensor<5x7xf32>
  return %y : tensor<5x7xf32>
}

func.func @multiply(%a: tensor<5x7xf32>, %b: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %y = arith.mulf %a, %b : tensor<5x7xf32>
  return %y : tensor<5x7xf32>
}

func.func @divide(%a: tensor<5x7xf32>, %b: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %y = arith.divf %a, %b : tensor<5x7xf32>
  return %y : tensor<5x7xf32>
}

func.func @maximum(%a: tensor<5x7xf32>, %b: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %y = arith.maximumf %a, %b : tensor<5x7xf32>
  return %y : tensor<5x7xf32>
}

func.func @minimum(%a: tensor<5x7xf32>, %b: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %y = arith.minimumf %a, %b : tensor<5x7xf32>
  return %y : tensor<5x7xf32>
}

func.func @negate(%a: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %y = arith.negf %a : tensor<5x7xf32>
  return %y : tensor<5x7xf32>
}

func.func @absolute(%a: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %y = math.absf %a : tensor<5x7xf32>
  return %y : tensor<5x7xf32>
}
