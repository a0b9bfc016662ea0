func.func @add(%a: tensor<16xi32>, %b: tensor<16xi32>) -> tensor<16xi32> {
  %y = arith.addi %a, %b : tensor<16xi32>
  return %y : tensor<16xi32>
}

func.func @scale_and_sum(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>) {
  %two = arith.constant dense<2.0> : tensor<4x8xf32>
  %zero = arith.constant 0.0 : f32
  %scaled = arith.mulf %x, %two : tensor<4x8xf32>
  %empty = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.reduce ins(%scaled : tensor<4x8xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
    (%value: f32, %so_far: f32) {
      %next = arith.addf %value, %so_far : f32
      linalg.yield %next : f32
    }
  return %scaled, %sum : tensor<4x8xf32>, tensor<4xf32>
}
