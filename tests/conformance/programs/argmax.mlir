func.func @argmax(%x: tensor<5x40xf32>) -> (tensor<5xf32>, tensor<5xi32>) {
  %lowest = arith.constant 0xFF800000 : f32
  %none = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<5xf32>
  %init = linalg.fill ins(%lowest : f32) outs(%empty : tensor<5xf32>) -> tensor<5xf32>
  %index_empty = tensor.empty() : tensor<5xi32>
  %index_init = linalg.fill ins(%none : i32) outs(%index_empty : tensor<5xi32>) -> tensor<5xi32>
  %y:2 = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%x : tensor<5x40xf32>) outs(%init, %index_init : tensor<5xf32>, tensor<5xi32>) {
  ^bb0(%value: f32, %best: f32, %best_at: i32):
    %j = linalg.index 1 : index
    %at = arith.index_cast %j : index to i32
    %better = arith.cmpf ogt, %value, %best : f32
    %next = arith.select %better, %value, %best : f32
    %next_at = arith.select %better, %at, %best_at : i32
    linalg.yield %next, %next_at : f32, i32
  } -> (tensor<5xf32>, tensor<5xi32>)
  return %y#0, %y#1 : tensor<5xf32>, tensor<5xi32>
}
