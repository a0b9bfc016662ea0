func.func @multiply(%a: tensor<8xcomplex<f32>>, %b: tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>> {
  %empty = tensor.empty() : tensor<8xcomplex<f32>>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]
  } ins(%a, %b : tensor<8xcomplex<f32>>, tensor<8xcomplex<f32>>) outs(%empty : tensor<8xcomplex<f32>>) {
  ^bb0(%x: complex<f32>, %z: complex<f32>, %out: complex<f32>):
    %product = complex.mul %x, %z : complex<f32>
    linalg.yield %product : complex<f32>
  } -> tensor<8xcomplex<f32>>
  return %y : tensor<8xcomplex<f32>>
}

func.func @make(%re: tensor<8xf32>, %im: tensor<8xf32>) -> tensor<8xcomplex<f32>> {
  %empty = tensor.empty() : tensor<8xcomplex<f32>>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]
  } ins(%re, %im : tensor<8xf32>, tensor<8xf32>) outs(%empty : tensor<8xcomplex<f32>>) {
  ^bb0(%x: f32, %z: f32, %out: complex<f32>):
    %value = complex.create %x, %z : complex<f32>
    linalg.yield %value : complex<f32>
  } -> tensor<8xcomplex<f32>>
  return %y : tensor<8xcomplex<f32>>
}
