func.func @sum(%x: tensor<16384xf32>) -> tensor<f32> {
  %first = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%first : f32) outs(%empty : tensor<f32>) -> tensor<f32>
  %y = linalg.reduce ins(%x : tensor<16384xf32>) outs(%init : tensor<f32>) dimensions = [0]
    (%value: f32, %so_far: f32) {
      %next = arith.addf %value, %so_far : f32
      linalg.yield %next : f32
    }
  return %y : tensor<f32>
}

func.func @rows(%x: tensor<8x4096xf32>) -> tensor<8xf32> {
  %first = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%first : f32) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  %y = linalg.reduce ins(%x : tensor<8x4096xf32>) outs(%init : tensor<8xf32>) dimensions = [1]
    (%value: f32, %so_far: f32) {
      %next = arith.addf %value, %so_far : f32
      linalg.yield %next : f32
    }
  return %y : tensor<8xf32>
}
