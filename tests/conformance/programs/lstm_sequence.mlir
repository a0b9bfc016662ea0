// The cell's state stays in loop-carried tensors; each step takes its slice of the sequence.
func.func @sequence(%xs: tensor<6x2x4xf32>, %wx: tensor<4x16xf32>, %wh: tensor<4x16xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 6 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant dense<1.0> : tensor<2x4xf32>
  %start = arith.constant dense<0.0> : tensor<2x4xf32>
  %gates_empty = tensor.empty() : tensor<2x16xf32>
  %gates_init = linalg.fill ins(%zero : f32) outs(%gates_empty : tensor<2x16xf32>) -> tensor<2x16xf32>
  %end:2 = scf.for %step = %c0 to %steps step %c1 iter_args(%h = %start, %c = %start) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
    %x = tensor.extract_slice %xs[%step, 0, 0] [1, 2, 4] [1, 1, 1] : tensor<6x2x4xf32> to tensor<2x4xf32>
    %from_x = linalg.matmul ins(%x, %wx : tensor<2x4xf32>, tensor<4x16xf32>) outs(%gates_init : tensor<2x16xf32>) -> tensor<2x16xf32>
    %gates = linalg.matmul ins(%h, %wh : tensor<2x4xf32>, tensor<4x16xf32>) outs(%from_x : tensor<2x16xf32>) -> tensor<2x16xf32>
    %i_pre = tensor.extract_slice %gates[0, 0] [2, 4] [1, 1] : tensor<2x16xf32> to tensor<2x4xf32>
    %f_pre = tensor.extract_slice %gates[0, 4] [2, 4] [1, 1] : tensor<2x16xf32> to tensor<2x4xf32>
    %g_pre = tensor.extract_slice %gates[0, 8] [2, 4] [1, 1] : tensor<2x16xf32> to tensor<2x4xf32>
    %o_pre = tensor.extract_slice %gates[0, 12] [2, 4] [1, 1] : tensor<2x16xf32> to tensor<2x4xf32>
    %i_neg = arith.negf %i_pre : tensor<2x4xf32>
    %i_exp = math.exp %i_neg : tensor<2x4xf32>
    %i_den = arith.addf %one, %i_exp : tensor<2x4xf32>
    %i = arith.divf %one, %i_den : tensor<2x4xf32>
    %f_neg = arith.negf %f_pre : tensor<2x4xf32>
    %f_exp = math.exp %f_neg : tensor<2x4xf32>
    %f_den = arith.addf %one, %f_exp : tensor<2x4xf32>
    %f = arith.divf %one, %f_den : tensor<2x4xf32>
    %g = math.tanh %g_pre : tensor<2x4xf32>
    %o_neg = arith.negf %o_pre : tensor<2x4xf32>
    %o_exp = math.exp %o_neg : tensor<2x4xf32>
    %o_den = arith.addf %one, %o_exp : tensor<2x4xf32>
    %o = arith.divf %one, %o_den : tensor<2x4xf32>
    %kept = arith.mulf %f, %c : tensor<2x4xf32>
    %new = arith.mulf %i, %g : tensor<2x4xf32>
    %c_next = arith.addf %kept, %new : tensor<2x4xf32>
    %c_tanh = math.tanh %c_next : tensor<2x4xf32>
    %h_next = arith.mulf %o, %c_tanh : tensor<2x4xf32>
    scf.yield %h_next, %c_next : tensor<2x4xf32>, tensor<2x4xf32>
  }
  return %end#0, %end#1 : tensor<2x4xf32>, tensor<2x4xf32>
}
