func.func @product(%x: tensor<6x5xf32>) -> tensor<6xf32> {
  %first = arith.constant 1.0 : f32
  %empty = tensor.empty() : tensor<6xf32>
  %init = linalg.fill ins(%first : f32) outs(%empty : tensor<6xf32>) -> tensor<6xf32>
  %y = linalg.reduce ins(%x : tensor<6x5xf32>) outs(%init : tensor<6xf32>) dimensions = [1]
    (%value: f32, %so_far: f32) {
      %next = arith.mulf %value, %so_far : f32
      linalg.yield %next : f32
    }
  return %y : tensor<6xf32>
}

func.func @sum_i32(%x: tensor<4x9x5xi32>) -> tensor<9xi32> {
  %first = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<9xi32>
  %init = linalg.fill ins(%first : i32) outs(%empty : tensor<9xi32>) -> tensor<9xi32>
  %y = linalg.reduce ins(%x : tensor<4x9x5xi32>) outs(%init : tensor<9xi32>) dimensions = [0, 2]
    (%value: i32, %so_far: i32) {
      %next = arith.addi %value, %so_far : i32
      linalg.yield %next : i32
    }
  return %y : tensor<9xi32>
}
