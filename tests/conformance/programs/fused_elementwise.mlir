func.func @gelu(%x: tensor<3x50xf32>) -> tensor<3x50xf32> {
  %half = arith.constant dense<0.5> : tensor<3x50xf32>
  %one = arith.constant dense<1.0> : tensor<3x50xf32>
  %root = arith.constant dense<0.707106781> : tensor<3x50xf32>
  %scaled = arith.mulf %x, %root : tensor<3x50xf32>
  %erf = math.erf %scaled : tensor<3x50xf32>
  %sum = arith.addf %erf, %one : tensor<3x50xf32>
  %halved = arith.mulf %x, %half : tensor<3x50xf32>
  %y = arith.mulf %halved, %sum : tensor<3x50xf32>
  return %y : tensor<3x50xf32>
}

func.func @clamp(%x: tensor<40xf32>) -> tensor<40xf32> {
  %low = arith.constant dense<-0.75> : tensor<40xf32>
  %high = arith.constant dense<0.5> : tensor<40xf32>
  %above = arith.maximumf %x, %low : tensor<40xf32>
  %y = arith.minimumf %above, %high : tensor<40xf32>
  return %y : tensor<40xf32>
}
