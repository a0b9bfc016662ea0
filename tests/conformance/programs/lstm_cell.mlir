func.func @cell(%x: tensor<2x4xf32>, %h: tensor<2x8xf32>, %c: tensor<2x8xf32>, %wx: tensor<4x32xf32>, %wh: tensor<8x32xf32>, %bias: tensor<32xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %empty = tensor.empty() : tensor<2x32xf32>
  %rows = linalg.broadcast ins(%bias : tensor<32xf32>) outs(%empty : tensor<2x32xf32>) dimensions = [0]
  %from_x = linalg.matmul ins(%x, %wx : tensor<2x4xf32>, tensor<4x32xf32>) outs(%rows : tensor<2x32xf32>) -> tensor<2x32xf32>
  %gates = linalg.matmul ins(%h, %wh : tensor<2x8xf32>, tensor<8x32xf32>) outs(%from_x : tensor<2x32xf32>) -> tensor<2x32xf32>
  %i_pre = tensor.extract_slice %gates[0, 0] [2, 8] [1, 1] : tensor<2x32xf32> to tensor<2x8xf32>
  %f_pre = tensor.extract_slice %gates[0, 8] [2, 8] [1, 1] : tensor<2x32xf32> to tensor<2x8xf32>
  %g_pre = tensor.extract_slice %gates[0, 16] [2, 8] [1, 1] : tensor<2x32xf32> to tensor<2x8xf32>
  %o_pre = tensor.extract_slice %gates[0, 24] [2, 8] [1, 1] : tensor<2x32xf32> to tensor<2x8xf32>
  %one = arith.constant dense<1.0> : tensor<2x8xf32>
  %i_neg = arith.negf %i_pre : tensor<2x8xf32>
  %i_exp = math.exp %i_neg : tensor<2x8xf32>
  %i_den = arith.addf %one, %i_exp : tensor<2x8xf32>
  %i = arith.divf %one, %i_den : tensor<2x8xf32>
  %f_neg = arith.negf %f_pre : tensor<2x8xf32>
  %f_exp = math.exp %f_neg : tensor<2x8xf32>
  %f_den = arith.addf %one, %f_exp : tensor<2x8xf32>
  %f = arith.divf %one, %f_den : tensor<2x8xf32>
  %g = math.tanh %g_pre : tensor<2x8xf32>
  %o_neg = arith.negf %o_pre : tensor<2x8xf32>
  %o_exp = math.exp %o_neg : tensor<2x8xf32>
  %o_den = arith.addf %one, %o_exp : tensor<2x8xf32>
  %o = arith.divf %one, %o_den : tensor<2x8xf32>
  %kept = arith.mulf %f, %c : tensor<2x8xf32>
  %new = arith.mulf %i, %g : tensor<2x8xf32>
  %c_next = arith.addf %kept, %new : tensor<2x8xf32>
  %c_tanh = math.tanh %c_next : tensor<2x8xf32>
  %h_next = arith.mulf %o, %c_tanh : tensor<2x8xf32>
  return %h_next, %c_next : tensor<2x8xf32>, tensor<2x8xf32>
}
