// A loop whose end the device decides: 16 is halved four times, and the host reads each time whether to go on.
func.func @main(%n: tensor<i32>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %0:2 = stablehlo.while(%v = %n, %k = %zero) : tensor<i32>, tensor<i32>
  cond {
    %1 = stablehlo.compare NE, %v, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2 = stablehlo.divide %v, %two : tensor<i32>
    %3 = stablehlo.add %k, %one : tensor<i32>
    stablehlo.return %2, %3 : tensor<i32>, tensor<i32>
  }
  return %0#1 : tensor<i32>
}
