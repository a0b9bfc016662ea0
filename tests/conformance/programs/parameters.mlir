util.global private @weight = #stream.parameter.named<"model"::"weight"> : tensor<4x3xf32>
util.global private @bias = #stream.parameter.named<"model"::"bias"> : tensor<3xf32>

func.func @dense(%x: tensor<2x4xf32>) -> tensor<2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %weight = util.global.load @weight : tensor<4x3xf32>
  %bias = util.global.load @bias : tensor<3xf32>
  %empty = tensor.empty() : tensor<2x3xf32>
  %rows = linalg.broadcast ins(%bias : tensor<3xf32>) outs(%empty : tensor<2x3xf32>) dimensions = [0]
  %y = linalg.matmul ins(%x, %weight : tensor<2x4xf32>, tensor<4x3xf32>) outs(%rows : tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
