// Ten sweeps over a grid: each reads four neighbours of the one before.
func.func @relax(%grid: tensor<10x10xf32>) -> tensor<10x10xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %sweeps = arith.constant 10 : index
  %quarter = arith.constant dense<0.25> : tensor<8x8xf32>
  %y = scf.for %i = %c0 to %sweeps step %c1 iter_args(%now = %grid) -> tensor<10x10xf32> {
    %north = tensor.extract_slice %now[0, 1] [8, 8] [1, 1] : tensor<10x10xf32> to tensor<8x8xf32>
    %south = tensor.extract_slice %now[2, 1] [8, 8] [1, 1] : tensor<10x10xf32> to tensor<8x8xf32>
    %west = tensor.extract_slice %now[1, 0] [8, 8] [1, 1] : tensor<10x10xf32> to tensor<8x8xf32>
    %east = tensor.extract_slice %now[1, 2] [8, 8] [1, 1] : tensor<10x10xf32> to tensor<8x8xf32>
    %vertical = arith.addf %north, %south : tensor<8x8xf32>
    %horizontal = arith.addf %west, %east : tensor<8x8xf32>
    %sum = arith.addf %vertical, %horizontal : tensor<8x8xf32>
    %inside = arith.mulf %sum, %quarter : tensor<8x8xf32>
    %next = tensor.insert_slice %inside into %now[1, 1] [8, 8] [1, 1] : tensor<8x8xf32> into tensor<10x10xf32>
    scf.yield %next : tensor<10x10xf32>
  }
  return %y : tensor<10x10xf32>
}
