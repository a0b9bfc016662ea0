func.func @mean(%x: tensor<12x25xf32>) -> tensor<12xf32> {
  %zero = arith.constant 0.0 : f32
  %count = arith.constant dense<25.0> : tensor<12xf32>
  %empty = tensor.empty() : tensor<12xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<12xf32>) -> tensor<12xf32>
  %sum = linalg.reduce ins(%x : tensor<12x25xf32>) outs(%init : tensor<12xf32>) dimensions = [1]
    (%value: f32, %so_far: f32) {
      %next = arith.addf %value, %so_far : f32
      linalg.yield %next : f32
    }
  %y = arith.divf %sum, %count : tensor<12xf32>
  return %y : tensor<12xf32>
}
