func.func @layer_norm(%x: tensor<6x32xf32>, %scale: tensor<32xf32>, %shift: tensor<32xf32>) -> tensor<6x32xf32> {
  %zero = arith.constant 0.0 : f32
  %count = arith.constant 32.0 : f32
  %epsilon = arith.constant 1.0e-5 : f32
  %row_empty = tensor.empty() : tensor<6xf32>
  %empty = tensor.empty() : tensor<6x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row_empty : tensor<6xf32>) -> tensor<6xf32>
  %sum = linalg.reduce ins(%x : tensor<6x32xf32>) outs(%init : tensor<6xf32>) dimensions = [1]
    (%value: f32, %so_far: f32) {
      %next = arith.addf %value, %so_far : f32
      linalg.yield %next : f32
    }
  %centred = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%x, %sum : tensor<6x32xf32>, tensor<6xf32>) outs(%empty : tensor<6x32xf32>) {
  ^bb0(%value: f32, %row_sum: f32, %out: f32):
    %mean = arith.divf %row_sum, %count : f32
    %difference = arith.subf %value, %mean : f32
    linalg.yield %difference : f32
  } -> tensor<6x32xf32>
  %squares = arith.mulf %centred, %centred : tensor<6x32xf32>
  %square_sum = linalg.reduce ins(%squares : tensor<6x32xf32>) outs(%init : tensor<6xf32>) dimensions = [1]
    (%value: f32, %so_far: f32) {
      %next = arith.addf %value, %so_far : f32
      linalg.yield %next : f32
    }
  %y = linalg.generic {
    indexing_maps = [
      affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (j)>,
      affine_map<(i, j) -> (i, j)>
    ],
    iterator_types = ["parallel", "parallel"]
  } ins(%centred, %square_sum, %scale, %shift : tensor<6x32xf32>, tensor<6xf32>, tensor<32xf32>, tensor<32xf32>)
    outs(%empty : tensor<6x32xf32>) {
  ^bb0(%value: f32, %row_squares: f32, %factor: f32, %offset: f32, %out: f32):
    %variance = arith.divf %row_squares, %count : f32
    %safe = arith.addf %variance, %epsilon : f32
    %inverse = math.rsqrt %safe : f32
    %unit = arith.mulf %value, %inverse : f32
    %scaled = arith.mulf %unit, %factor : f32
    %shifted = arith.addf %scaled, %offset : f32
    linalg.yield %shifted : f32
  } -> tensor<6x32xf32>
  return %y : tensor<6x32xf32>
}
