func.func @add(%a: tensor<34xbf16>, %b: tensor<34xbf16>) -> tensor<34xbf16> {
  %y = arith.addf %a, %b : tensor<34xbf16>
  return %y : tensor<34xbf16>
}

func.func @subtract(%a: tensor<34xbf16>, %b: tensor<34xbf16>) -> tensor<34xbf16> {
  %y = arith.subf %a, %b : tensor<34xbf16>
  return %y : tensor<34xbf16>
}

func.func @multiply(%a: tensor<34xbf16>, %b: tensor<34xbf16>) -> tensor<34xbf16> {
  %y = arith.mulf %a, %b : tensor<34xbf16>
  return %y : tensor<34xbf16>
}
