// A constant upload, a chain of dispatches and a read of the device's value on the host, with caller-owned fences.
func.func @double_until(%start: tensor<4xf32>, %limit: tensor<f32>) -> tensor<4xf32> {
  %step = arith.constant dense<[1.0, 0.5, 0.25, 0.125]> : tensor<4xf32>
  %c0 = arith.constant 0 : index
  %bound = tensor.extract %limit[] : tensor<f32>
  %end = scf.while (%value = %start) : (tensor<4xf32>) -> tensor<4xf32> {
    %first = tensor.extract %value[%c0] : tensor<4xf32>
    %go_on = arith.cmpf olt, %first, %bound : f32
    scf.condition(%go_on) %value : tensor<4xf32>
  } do {
  ^bb0(%value: tensor<4xf32>):
    %twice = arith.addf %value, %value : tensor<4xf32>
    %next = arith.addf %twice, %step : tensor<4xf32>
    scf.yield %next : tensor<4xf32>
  }
  return %end : tensor<4xf32>
}
