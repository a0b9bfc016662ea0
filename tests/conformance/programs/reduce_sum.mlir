func.func @rows(%x: tensor<6x100xf32>) -> tensor<6xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<6xf32>) -> tensor<6xf32>
  %sum = linalg.reduce ins(%x : tensor<6x100xf32>) outs(%init : tensor<6xf32>) dimensions = [1]
    (%value: f32, %so_far: f32) {
      %next = arith.addf %value, %so_far : f32
      linalg.yield %next : f32
    }
  return %sum : tensor<6xf32>
}

func.func @columns(%x: tensor<6x100xf32>) -> tensor<100xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<100xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<100xf32>) -> tensor<100xf32>
  %sum = linalg.reduce ins(%x : tensor<6x100xf32>) outs(%init : tensor<100xf32>) dimensions = [0]
    (%value: f32, %so_far: f32) {
      %next = arith.addf %value, %so_far : f32
      linalg.yield %next : f32
    }
  return %sum : tensor<100xf32>
}

func.func @all(%x: tensor<6x100xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<f32>) -> tensor<f32>
  %sum = linalg.reduce ins(%x : tensor<6x100xf32>) outs(%init : tensor<f32>) dimensions = [0, 1]
    (%value: f32, %so_far: f32) {
      %next = arith.addf %value, %so_far : f32
      linalg.yield %next : f32
    }
  return %sum : tensor<f32>
}
