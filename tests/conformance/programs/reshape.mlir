func.func @flatten(%x: tensor<3x4x5xf32>) -> tensor<60xf32> {
  %y = tensor.collapse_shape %x [[0, 1, 2]] : tensor<3x4x5xf32> into tensor<60xf32>
  return %y : tensor<60xf32>
}

func.func @expand(%x: tensor<24xi32>) -> tensor<2x3x4xi32> {
  %y = tensor.expand_shape %x [[0, 1, 2]] output_shape [2, 3, 4] : tensor<24xi32> into tensor<2x3x4xi32>
  return %y : tensor<2x3x4xi32>
}

func.func @double_flat(%x: tensor<3x4xf32>) -> tensor<2x6xf32> {
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<3x4xf32> into tensor<12xf32>
  %double = arith.addf %flat, %flat : tensor<12xf32>
  %y = tensor.expand_shape %double [[0, 1]] output_shape [2, 6] : tensor<12xf32> into tensor<2x6xf32>
  return %y : tensor<2x6xf32>
}
