func.func @rows(%x: tensor<2x3xf32>, %y: tensor<4x3xf32>) -> tensor<6x3xf32> {
  %z = tensor.concat dim(0) %x, %y : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<6x3xf32>
  return %z : tensor<6x3xf32>
}

func.func @columns(%x: tensor<4x3xi8>, %y: tensor<4x2xi8>, %z: tensor<4x4xi8>) -> tensor<4x9xi8> {
  %w = tensor.concat dim(1) %x, %y, %z : (tensor<4x3xi8>, tensor<4x2xi8>, tensor<4x4xi8>) -> tensor<4x9xi8>
  return %w : tensor<4x9xi8>
}
