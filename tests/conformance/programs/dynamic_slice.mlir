func.func @slice(%x: tensor<?xf32>, %from: index, %count: index) -> tensor<?xf32> {
  %y = tensor.extract_slice %x[%from] [%count] [1] : tensor<?xf32> to tensor<?xf32>
  return %y : tensor<?xf32>
}

func.func @join(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %z = tensor.concat dim(0) %x, %y : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %z : tensor<?xf32>
}
