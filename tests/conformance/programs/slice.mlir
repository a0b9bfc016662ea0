func.func @part(%x: tensor<8x9xf32>) -> tensor<3x4xf32> {
  %y = tensor.extract_slice %x[2, 5] [3, 4] [1, 1] : tensor<8x9xf32> to tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

func.func @strided(%x: tensor<8x9xf32>) -> tensor<4x3xf32> {
  %y = tensor.extract_slice %x[1, 0] [4, 3] [2, 3] : tensor<8x9xf32> to tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}

func.func @replace(%x: tensor<8x9xf32>, %part: tensor<2x2xf32>) -> tensor<8x9xf32> {
  %y = tensor.insert_slice %part into %x[3, 4] [2, 2] [1, 1] : tensor<2x2xf32> into tensor<8x9xf32>
  return %y : tensor<8x9xf32>
}
