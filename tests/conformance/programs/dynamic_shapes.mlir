// The first dimension comes from the caller, the second is fixed.
func.func @normalize(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %sum_empty = tensor.empty(%n) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%sum_empty : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.reduce ins(%x : tensor<?x8xf32>) outs(%init : tensor<?xf32>) dimensions = [1]
    (%value: f32, %so_far: f32) {
      %next = arith.addf %value, %so_far : f32
      linalg.yield %next : f32
    }
  %empty = tensor.empty(%n) : tensor<?x8xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%x, %sum : tensor<?x8xf32>, tensor<?xf32>) outs(%empty : tensor<?x8xf32>) {
  ^bb0(%value: f32, %total: f32, %out: f32):
    %part = arith.divf %value, %total : f32
    linalg.yield %part : f32
  } -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

func.func @three(%x: tensor<?x?x?xf32>) -> tensor<?x?x?xf32> {
  %y = math.sqrt %x : tensor<?x?x?xf32>
  return %y : tensor<?x?x?xf32>
}

func.func @shape(%x: tensor<?x?xf32>) -> (index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = tensor.dim %x, %c0 : tensor<?x?xf32>
  %columns = tensor.dim %x, %c1 : tensor<?x?xf32>
  return %rows, %columns : index, index
}

func.func @iota(%n: index) -> tensor<?xi32> {
  %empty = tensor.empty(%n) : tensor<?xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%empty : tensor<?xi32>) {
  ^bb0(%out: i32):
    %i = linalg.index 0 : index
    %value = arith.index_cast %i : index to i32
    linalg.yield %value : i32
  } -> tensor<?xi32>
  return %y : tensor<?xi32>
}
