func.func @maximum_f32(%x: tensor<7x31xf32>) -> tensor<7xf32> {
  %first = arith.constant 0xFF800000 : f32
  %empty = tensor.empty() : tensor<7xf32>
  %init = linalg.fill ins(%first : f32) outs(%empty : tensor<7xf32>) -> tensor<7xf32>
  %y = linalg.reduce ins(%x : tensor<7x31xf32>) outs(%init : tensor<7xf32>) dimensions = [1]
    (%value: f32, %so_far: f32) {
      %next = arith.maximumf %value, %so_far : f32
      linalg.yield %next : f32
    }
  return %y : tensor<7xf32>
}

func.func @minimum_f32(%x: tensor<7x31xf32>) -> tensor<31xf32> {
  %first = arith.constant 0x7F800000 : f32
  %empty = tensor.empty() : tensor<31xf32>
  %init = linalg.fill ins(%first : f32) outs(%empty : tensor<31xf32>) -> tensor<31xf32>
  %y = linalg.reduce ins(%x : tensor<7x31xf32>) outs(%init : tensor<31xf32>) dimensions = [0]
    (%value: f32, %so_far: f32) {
      %next = arith.minimumf %value, %so_far : f32
      linalg.yield %next : f32
    }
  return %y : tensor<31xf32>
}

func.func @maximum_i32(%x: tensor<7x31xi32>) -> tensor<7xi32> {
  %first = arith.constant -2147483648 : i32
  %empty = tensor.empty() : tensor<7xi32>
  %init = linalg.fill ins(%first : i32) outs(%empty : tensor<7xi32>) -> tensor<7xi32>
  %y = linalg.reduce ins(%x : tensor<7x31xi32>) outs(%init : tensor<7xi32>) dimensions = [1]
    (%value: i32, %so_far: i32) {
      %next = arith.maxsi %value, %so_far : i32
      linalg.yield %next : i32
    }
  return %y : tensor<7xi32>
}

func.func @minimum_unsigned(%x: tensor<7x31xi32>) -> tensor<7xi32> {
  %first = arith.constant -1 : i32
  %empty = tensor.empty() : tensor<7xi32>
  %init = linalg.fill ins(%first : i32) outs(%empty : tensor<7xi32>) -> tensor<7xi32>
  %y = linalg.reduce ins(%x : tensor<7x31xi32>) outs(%init : tensor<7xi32>) dimensions = [1]
    (%value: i32, %so_far: i32) {
      %next = arith.minui %value, %so_far : i32
      linalg.yield %next : i32
    }
  return %y : tensor<7xi32>
}
