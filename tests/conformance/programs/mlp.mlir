func.func @forward(%x: tensor<4x16xf32>, %w1: tensor<16x32xf32>, %b1: tensor<32xf32>, %w2: tensor<32x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %h_empty = tensor.empty() : tensor<4x32xf32>
  %h_init = linalg.broadcast ins(%b1 : tensor<32xf32>) outs(%h_empty : tensor<4x32xf32>) dimensions = [0]
  %h = linalg.matmul ins(%x, %w1 : tensor<4x16xf32>, tensor<16x32xf32>) outs(%h_init : tensor<4x32xf32>) -> tensor<4x32xf32>
  %zeros = arith.constant dense<0.0> : tensor<4x32xf32>
  %rectified = arith.maximumf %h, %zeros : tensor<4x32xf32>
  %y_empty = tensor.empty() : tensor<4x8xf32>
  %y_init = linalg.fill ins(%zero : f32) outs(%y_empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = linalg.matmul ins(%rectified, %w2 : tensor<4x32xf32>, tensor<32x8xf32>) outs(%y_init : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
