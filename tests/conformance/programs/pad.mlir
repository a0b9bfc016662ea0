func.func @pad(%x: tensor<3x4xf32>) -> tensor<6x9xf32> {
  %value = arith.constant -1.5 : f32
  %y = tensor.pad %x low[1, 2] high[2, 3] {
  ^bb0(%i: index, %j: index):
    tensor.yield %value : f32
  } : tensor<3x4xf32> to tensor<6x9xf32>
  return %y : tensor<6x9xf32>
}
