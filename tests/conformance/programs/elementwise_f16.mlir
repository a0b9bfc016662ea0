func.func @add(%a: tensor<33xf16>, %b: tensor<33xf16>) -> tensor<33xf16> {
  %y = arith.addf %a, %b : tensor<33xf16>
  return %y : tensor<33xf16>
}

func.func @subtract(%a: tensor<33xf16>, %b: tensor<33xf16>) -> tensor<33xf16> {
  %y = arith.subf %a, %b : tensor<33xf16>
  return %y : tensor<33xf16>
}

func.func @multiply(%a: tensor<33xf16>, %b: tensor<33xf16>) -> tensor<33xf16> {
  %y = arith.mulf %a, %b : tensor<33xf16>
  return %y : tensor<33xf16>
}

func.func @divide(%a: tensor<33xf16>, %b: tensor<33xf16>) -> tensor<33xf16> {
  %y = arith.divf %a, %b : tensor<33xf16>
  return %y : tensor<33xf16>
}

func.func @maximum(%a: tensor<33xf16>, %b: tensor<33xf16>) -> tensor<33xf16> {
  %y = arith.maximumf %a, %b : tensor<33xf16>
  return %y : tensor<33xf16>
}

func.func @minimum(%a: tensor<33xf16>, %b: tensor<33xf16>) -> tensor<33xf16> {
  %y = arith.minimumf %a, %b : tensor<33xf16>
  return %y : tensor<33xf16>
}

func.func @negate(%a: tensor<33xf16>) -> tensor<33xf16> {
  %y = arith.negf %a : tensor<33xf16>
  return %y : tensor<33xf16>
}
