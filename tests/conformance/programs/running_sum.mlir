func.func @inclusive(%x: tensor<6x20xf32>) -> tensor<6x20xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<6x20xf32>
  %total_empty = tensor.empty() : tensor<6xf32>
  %total = linalg.fill ins(%zero : f32) outs(%total_empty : tensor<6xf32>) -> tensor<6xf32>
  %y:2 = iree_linalg_ext.scan dimension(1) inclusive(true)
    ins(%x : tensor<6x20xf32>) outs(%empty, %total : tensor<6x20xf32>, tensor<6xf32>) {
  ^bb0(%a: f32, %b: f32):
    %sum = arith.addf %a, %b : f32
    iree_linalg_ext.yield %sum : f32
  } -> tensor<6x20xf32>, tensor<6xf32>
  return %y#0 : tensor<6x20xf32>
}
