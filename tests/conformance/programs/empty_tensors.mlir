func.func @double(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %y = arith.addf %x, %x : tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

func.func @sum(%x: tensor<?xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<f32>) -> tensor<f32>
  %y = linalg.reduce ins(%x : tensor<?xf32>) outs(%init : tensor<f32>) dimensions = [0]
    (%value: f32, %so_far: f32) {
      %next = arith.addf %value, %so_far : f32
      linalg.yield %next : f32
    }
  return %y : tensor<f32>
}

func.func @static(%x: tensor<0x3xf32>) -> tensor<0x3xf32> {
  %y = arith.mulf %x, %x : tensor<0x3xf32>
  return %y : tensor<0x3xf32>
}
