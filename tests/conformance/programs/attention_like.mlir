// Scores, softmax and weighted sum in full: several dispatches with transient buffers between them.
func.func @attend(%q: tensor<8x16xf32>, %k: tensor<12x16xf32>, %v: tensor<12x16xf32>) -> tensor<8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant dense<0.25> : tensor<8x12xf32>
  %kt_empty = tensor.empty() : tensor<16x12xf32>
  %kt = linalg.transpose ins(%k : tensor<12x16xf32>) outs(%kt_empty : tensor<16x12xf32>) permutation = [1, 0]
  %empty = tensor.empty() : tensor<8x12xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x12xf32>) -> tensor<8x12xf32>
  %scores = linalg.matmul ins(%q, %kt : tensor<8x16xf32>, tensor<16x12xf32>) outs(%init : tensor<8x12xf32>) -> tensor<8x12xf32>
  %scaled = arith.mulf %scores, %scale : tensor<8x12xf32>
  %weights = linalg.softmax dimension(1) ins(%scaled : tensor<8x12xf32>) outs(%empty : tensor<8x12xf32>) -> tensor<8x12xf32>
  %y_empty = tensor.empty() : tensor<8x16xf32>
  %y_init = linalg.fill ins(%zero : f32) outs(%y_empty : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = linalg.matmul ins(%weights, %v : tensor<8x12xf32>, tensor<12x16xf32>) outs(%y_init : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}
