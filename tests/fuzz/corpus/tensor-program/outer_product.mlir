func.func @main(%x: tensor<4096xf32>, %y: tensor<512xf32>) -> tensor<4096x512xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [] x [] : (tensor<4096xf32>, tensor<512xf32>) -> tensor<4096x512xf32>
  return %0 : tensor<4096x512xf32>
}
