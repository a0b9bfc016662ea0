func.func @identity(%x: tensor<5xf32>) -> tensor<5xf32> {
  return %x : tensor<5xf32>
}

func.func @second(%x: tensor<5xf32>, %y: tensor<3xi32>) -> tensor<3xi32> {
  return %y : tensor<3xi32>
}

func.func @swap(%x: tensor<5xf32>, %y: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
  return %y, %x : tensor<5xf32>, tensor<5xf32>
}

func.func @same_twice(%x: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
  %y = arith.negf %x : tensor<5xf32>
  return %y, %y : tensor<5xf32>, tensor<5xf32>
}
