func.func @splat() -> tensor<100x10xf32> {
  %y = arith.constant dense<2.5> : tensor<100x10xf32>
  return %y : tensor<100x10xf32>
}

func.func @literal() -> tensor<2x3xi32> {
  %y = arith.constant dense<[[1, -2, 3], [-4, 5, -6]]> : tensor<2x3xi32>
  return %y : tensor<2x3xi32>
}

func.func @added(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %c = arith.constant dense<[[1.0, 2.0, 3.0, 4.0], [0.5, 0.25, 0.125, -1000.5]]> : tensor<2x4xf32>
  %y = arith.addf %x, %c : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

func.func @fills() -> (tensor<7xi8>, tensor<5xi16>, tensor<3xi64>) {
  %bytes = arith.constant dense<-3> : tensor<7xi8>
  %shorts = arith.constant dense<-300> : tensor<5xi16>
  %longs = arith.constant dense<-9> : tensor<3xi64>
  return %bytes, %shorts, %longs : tensor<7xi8>, tensor<5xi16>, tensor<3xi64>
}
