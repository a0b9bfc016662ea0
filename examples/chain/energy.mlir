// The sum of the squares of all samples.
module @energy {
  func.func @run(%samples: tensor<256xf32> {iree.abi.name = "samples"}) -> tensor<f32> {
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<f32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<f32>) -> tensor<f32>
    %sum = linalg.reduce ins(%samples : tensor<256xf32>) outs(%init : tensor<f32>) dimensions = [0]
      (%value: f32, %so_far: f32) {
        %square = arith.mulf %value, %value : f32
        %next = arith.addf %square, %so_far : f32
        linalg.yield %next : f32
      }
    return %sum : tensor<f32>
  }
}
