func.func @power(%a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> {
  %y = math.powf %a, %b : tensor<64xf32>
  return %y : tensor<64xf32>
}

func.func @atan2(%a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> {
  %y = math.atan2 %a, %b : tensor<64xf32>
  return %y : tensor<64xf32>
}

func.func @copysign(%a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> {
  %y = math.copysign %a, %b : tensor<64xf32>
  return %y : tensor<64xf32>
}

func.func @remainder(%a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> {
  %y = arith.remf %a, %b : tensor<64xf32>
  return %y : tensor<64xf32>
}

func.func @fma(%a: tensor<64xf32>, %b: tensor<64xf32>, %c: tensor<64xf32>) -> tensor<64xf32> {
  %y = math.fma %a, %b, %c : tensor<64xf32>
  return %y : tensor<64xf32>
}
