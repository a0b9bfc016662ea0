func.func @grow_or_shrink(%x: tensor<5xf32>) -> tensor<5xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %two = arith.constant dense<2.0> : tensor<5xf32>
  %first = tensor.extract %x[%c0] : tensor<5xf32>
  %positive = arith.cmpf ogt, %first, %zero : f32
  %y = scf.if %positive -> tensor<5xf32> {
    %grown = arith.mulf %x, %two : tensor<5xf32>
    scf.yield %grown : tensor<5xf32>
  } else {
    %shrunk = arith.divf %x, %two : tensor<5xf32>
    scf.yield %shrunk : tensor<5xf32>
  }
  return %y : tensor<5xf32>
}

func.func @by_scalar(%x: tensor<5xi32>, %up: i1) -> tensor<5xi32> {
  %one = arith.constant dense<1> : tensor<5xi32>
  %y = scf.if %up -> tensor<5xi32> {
    %more = arith.addi %x, %one : tensor<5xi32>
    scf.yield %more : tensor<5xi32>
  } else {
    scf.yield %x : tensor<5xi32>
  }
  return %y : tensor<5xi32>
}
