func.func @exp(%a: tensor<64xf32>) -> tensor<64xf32> {
  %y = math.exp %a : tensor<64xf32>
  return %y : tensor<64xf32>
}

func.func @exp2(%a: tensor<64xf32>) -> tensor<64xf32> {
  %y = math.exp2 %a : tensor<64xf32>
  return %y : tensor<64xf32>
}

func.func @expm1(%a: tensor<64xf32>) -> tensor<64xf32> {
  %y = math.expm1 %a : tensor<64xf32>
  return %y : tensor<64xf32>
}

func.func @log(%a: tensor<64xf32>) -> tensor<64xf32> {
  %y = math.log %a : tensor<64xf32>
  return %y : tensor<64xf32>
}

func.func @log2(%a: tensor<64xf32>) -> tensor<64xf32> {
  %y = math.log2 %a : tensor<64xf32>
  return %y : tensor<64xf32>
}

func.func @log1p(%a: tensor<64xf32>) -> tensor<64xf32> {
  %y = math.log1p %a : tensor<64xf32>
  return %y : tensor<64xf32>
}

func.func @sqrt(%a: tensor<64xf32>) -> tensor<64xf32> {
  %y = math.sqrt %a : tensor<64xf32>
  return %y : tensor<64xf32>
}

func.func @rsqrt(%a: tensor<64xf32>) -> tensor<64xf32> {
  %y = math.rsqrt %a : tensor<64xf32>
  return %y : tensor<64xf32>
}

func.func @sin(%a: tensor<64xf32>) -> tensor<64xf32> {
  %y = math.sin %a : tensor<64xf32>
  return %y : tensor<64xf32>
}

func.func @cos(%a: tensor<64xf32>) -> tensor<64xf32> {
  %y = math.cos %a : tensor<64xf32>
  return %y : tensor<64xf32>
}

func.func @tan(%a: tensor<64xf32>) -> tensor<64xf32> {
  %y = math.tan %a : tensor<64xf32>
  return %y : tensor<64xf32>
}

func.func @atan(%a: tensor<64xf32>) -> tensor<64xf32> {
  %y = math.atan %a : tensor<64xf32>
  return %y : tensor<64xf32>
}

func.func @tanh(%a: tensor<64xf32>) -> tensor<64xf32> {
  %y = math.tanh %a : tensor<64xf32>
  return %y : tensor<64xf32>
}

func.func @erf(%a: tensor<64xf32>) -> tensor<64xf32> {
  %y = math.erf %a : tensor<64xf32>
  return %y : tensor<64xf32>
}

func.func @ceil(%a: tensor<64xf32>) -> tensor<64xf32> {
  %y = math.ceil %a : tensor<64xf32>
  return %y : tensor<64xf32>
}

func.func @floor(%a: tensor<64xf32>) -> tensor<64xf32> {
  %y = math.floor %a : tensor<64xf32>
  return %y : tensor<64xf32>
}
