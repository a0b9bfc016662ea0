// mul of four floats: the program of module-call.toml.
//   iree-compile --iree-hal-target-device=vulkan module-call.mlir -o module-call.vmfb
func.func @mul(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.mulf %a, %b : tensor<4xf32>
  return %c : tensor<4xf32>
}
