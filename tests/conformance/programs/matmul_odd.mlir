func.func @tall(%a: tensor<129x7xf32>, %b: tensor<7x3xf32>) -> tensor<129x3xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<129x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<129x3xf32>) -> tensor<129x3xf32>
  %c = linalg.matmul ins(%a, %b : tensor<129x7xf32>, tensor<7x3xf32>) outs(%init : tensor<129x3xf32>) -> tensor<129x3xf32>
  return %c : tensor<129x3xf32>
}

func.func @row(%a: tensor<1x63xf32>, %b: tensor<63x17xf32>) -> tensor<1x17xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x17xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x17xf32>) -> tensor<1x17xf32>
  %c = linalg.matmul ins(%a, %b : tensor<1x63xf32>, tensor<63x17xf32>) outs(%init : tensor<1x17xf32>) -> tensor<1x17xf32>
  return %c : tensor<1x17xf32>
}

func.func @outer(%a: tensor<11x1xf32>, %b: tensor<1x13xf32>) -> tensor<11x13xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<11x13xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<11x13xf32>) -> tensor<11x13xf32>
  %c = linalg.matmul ins(%a, %b : tensor<11x1xf32>, tensor<1x13xf32>) outs(%init : tensor<11x13xf32>) -> tensor<11x13xf32>
  return %c : tensor<11x13xf32>
}
