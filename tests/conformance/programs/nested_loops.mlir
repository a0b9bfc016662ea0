// Two counted loops around a dispatch; the bounds come from the caller.
func.func @accumulate(%x: tensor<6xf32>, %outer: index, %inner: index) -> tensor<6xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %half = arith.constant dense<0.5> : tensor<6xf32>
  %y = scf.for %i = %c0 to %outer step %c1 iter_args(%row = %x) -> tensor<6xf32> {
    %scaled = arith.mulf %row, %half : tensor<6xf32>
    %next = scf.for %j = %c0 to %inner step %c1 iter_args(%value = %scaled) -> tensor<6xf32> {
      %sum = arith.addf %value, %x : tensor<6xf32>
      scf.yield %sum : tensor<6xf32>
    }
    scf.yield %next : tensor<6xf32>
  }
  return %y : tensor<6xf32>
}
