func.func @main(%x0: tensor<8xi32>, %v0: tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<3> : tensor<i32>
  %a0 = stablehlo.negate %x0 : tensor<8xi32>
  %0:4 = stablehlo.while(%i = %zero, %x = %x0, %v = %v0, %a = %a0)
    : tensor<i32>, tensor<8xi32>, tensor<8xi32>, tensor<8xi32>
  cond {
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2 = stablehlo.add %i, %one : tensor<i32>
    %3 = stablehlo.add %v, %a : tensor<8xi32>
    %4 = stablehlo.add %x, %3 : tensor<8xi32>
    %5 = stablehlo.negate %4 : tensor<8xi32>
    %6 = stablehlo.add %3, %5 : tensor<8xi32>
    stablehlo.return %2, %4, %6, %5 : tensor<i32>, tensor<8xi32>, tensor<8xi32>, tensor<8xi32>
  }
  return %0#1, %0#2 : tensor<8xi32>, tensor<8xi32>
}
