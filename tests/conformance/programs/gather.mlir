func.func @rows(%table: tensor<10x6xf32>, %indices: tensor<4xi32>) -> tensor<4x6xf32> {
  %empty = tensor.empty() : tensor<4x6xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]
  } ins(%indices : tensor<4xi32>) outs(%empty : tensor<4x6xf32>) {
  ^bb0(%index: i32, %out: f32):
    %row = arith.index_cast %index : i32 to index
    %column = linalg.index 1 : index
    %value = tensor.extract %table[%row, %column] : tensor<10x6xf32>
    linalg.yield %value : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// Reads at a position that is computed from where it writes.
func.func @reversed(%x: tensor<12xi32>) -> tensor<12xi32> {
  %last = arith.constant 11 : index
  %empty = tensor.empty() : tensor<12xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%empty : tensor<12xi32>) {
  ^bb0(%out: i32):
    %i = linalg.index 0 : index
    %from = arith.subi %last, %i : index
    %value = tensor.extract %x[%from] : tensor<12xi32>
    linalg.yield %value : i32
  } -> tensor<12xi32>
  return %y : tensor<12xi32>
}
