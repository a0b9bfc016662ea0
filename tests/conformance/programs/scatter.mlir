// Adds rows at given places, one after the other, so that equal places add up.
func.func @add_rows(%table: tensor<8x4xf32>, %indices: tensor<5xi32>, %rows: tensor<5x4xf32>) -> tensor<8x4xf32> {
  %empty = tensor.empty() : tensor<8x4xf32>
  %y = linalg.generic {
    indexing_maps = [
      affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>
    ],
    iterator_types = ["parallel", "parallel", "reduction"]
  } ins(%indices, %rows : tensor<5xi32>, tensor<5x4xf32>) outs(%table : tensor<8x4xf32>) {
  ^bb0(%index: i32, %value: f32, %so_far: f32):
    %zero = arith.constant 0.0 : f32
    %i = linalg.index 0 : index
    %row = arith.index_cast %index : i32 to index
    %here = arith.cmpi eq, %i, %row : index
    %term = arith.select %here, %value, %zero : f32
    %next = arith.addf %so_far, %term : f32
    linalg.yield %next : f32
  } -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

func.func @put(%x: tensor<10xi32>, %at: tensor<i32>, %value: tensor<3xi32>) -> tensor<10xi32> {
  %at_value = tensor.extract %at[] : tensor<i32>
  %offset = arith.index_cast %at_value : i32 to index
  %y = tensor.insert_slice %value into %x[%offset] [3] [1] : tensor<3xi32> into tensor<10xi32>
  return %y : tensor<10xi32>
}
