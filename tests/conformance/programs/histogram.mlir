func.func @count(%x: tensor<64xi32>) -> tensor<8xi32> {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %empty = tensor.empty() : tensor<8xi32>
  %init = linalg.fill ins(%zero : i32) outs(%empty : tensor<8xi32>) -> tensor<8xi32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]
  } ins(%x : tensor<64xi32>) outs(%init : tensor<8xi32>) {
  ^bb0(%value: i32, %so_far: i32):
    %i = linalg.index 0 : index
    %bin = arith.index_cast %i : index to i32
    %here = arith.cmpi eq, %value, %bin : i32
    %term = arith.select %here, %one, %zero : i32
    %next = arith.addi %so_far, %term : i32
    linalg.yield %next : i32
  } -> tensor<8xi32>
  return %y : tensor<8xi32>
}
