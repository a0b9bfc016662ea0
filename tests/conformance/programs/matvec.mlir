func.func @matvec(%a: tensor<12x40xf32>, %b: tensor<40xf32>) -> tensor<12xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<12xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<12xf32>) -> tensor<12xf32>
  %c = linalg.matvec ins(%a, %b : tensor<12x40xf32>, tensor<40xf32>) outs(%init : tensor<12xf32>) -> tensor<12xf32>
  return %c : tensor<12xf32>
}

func.func @vecmat(%a: tensor<40xf32>, %b: tensor<40x12xf32>) -> tensor<12xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<12xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<12xf32>) -> tensor<12xf32>
  %c = linalg.vecmat ins(%a, %b : tensor<40xf32>, tensor<40x12xf32>) outs(%init : tensor<12xf32>) -> tensor<12xf32>
  return %c : tensor<12xf32>
}

func.func @dot(%a: tensor<100xf32>, %b: tensor<100xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<f32>) -> tensor<f32>
  %c = linalg.dot ins(%a, %b : tensor<100xf32>, tensor<100xf32>) outs(%init : tensor<f32>) -> tensor<f32>
  return %c : tensor<f32>
}
