func.func @left(%a: tensor<24x10xf32>, %b: tensor<24x14xf32>) -> tensor<10x14xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<10x14xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<10x14xf32>) -> tensor<10x14xf32>
  %c = linalg.generic {
    indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
    iterator_types = ["parallel", "parallel", "reduction"]
  } ins(%a, %b : tensor<24x10xf32>, tensor<24x14xf32>) outs(%init : tensor<10x14xf32>) {
  ^bb0(%x: f32, %y: f32, %so_far: f32):
    %product = arith.mulf %x, %y : f32
    %sum = arith.addf %product, %so_far : f32
    linalg.yield %sum : f32
  } -> tensor<10x14xf32>
  return %c : tensor<10x14xf32>
}

func.func @right(%a: tensor<10x24xf32>, %b: tensor<14x24xf32>) -> tensor<10x14xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<10x14xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<10x14xf32>) -> tensor<10x14xf32>
  %c = linalg.generic {
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
    iterator_types = ["parallel", "parallel", "reduction"]
  } ins(%a, %b : tensor<10x24xf32>, tensor<14x24xf32>) outs(%init : tensor<10x14xf32>) {
  ^bb0(%x: f32, %y: f32, %so_far: f32):
    %product = arith.mulf %x, %y : f32
    %sum = arith.addf %product, %so_far : f32
    linalg.yield %sum : f32
  } -> tensor<10x14xf32>
  return %c : tensor<10x14xf32>
}
