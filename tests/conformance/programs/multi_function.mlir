func.func @double(%a: tensor<8xf32>) -> tensor<8xf32> {
  %sum = arith.addf %a, %a : tensor<8xf32>
  return %sum : tensor<8xf32>
}

func.func private @square(%a: tensor<8xf32>) -> tensor<8xf32> attributes {noinline} {
  %product = arith.mulf %a, %a : tensor<8xf32>
  return %product : tensor<8xf32>
}

func.func @square_plus_double(%a: tensor<8xf32>) -> tensor<8xf32> {
  %square = call @square(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %double = call @double(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %sum = arith.addf %square, %double : tensor<8xf32>
  return %sum : tensor<8xf32>
}

func.func @sum_and_difference(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %sum = arith.addf %a, %b : tensor<8xf32>
  %difference = arith.subf %a, %b : tensor<8xf32>
  return %sum, %difference : tensor<8xf32>, tensor<8xf32>
}
