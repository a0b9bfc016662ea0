// Newton's steps until the change is small: the device's value decides.
func.func @square_root(%x: tensor<f32>) -> (tensor<f32>, i32) {
  %half = arith.constant dense<0.5> : tensor<f32>
  %close = arith.constant 1.0e-4 : f32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %limit = arith.constant 50 : i32
  %y:2 = scf.while (%guess = %x, %count = %c0) : (tensor<f32>, i32) -> (tensor<f32>, i32) {
    %square = arith.mulf %guess, %guess : tensor<f32>
    %error = arith.subf %square, %x : tensor<f32>
    %size = math.absf %error : tensor<f32>
    %value = tensor.extract %size[] : tensor<f32>
    %far = arith.cmpf ogt, %value, %close : f32
    %early = arith.cmpi slt, %count, %limit : i32
    %go_on = arith.andi %far, %early : i1
    scf.condition(%go_on) %guess, %count : tensor<f32>, i32
  } do {
  ^bb0(%guess: tensor<f32>, %count: i32):
    %quotient = arith.divf %x, %guess : tensor<f32>
    %sum = arith.addf %guess, %quotient : tensor<f32>
    %next = arith.mulf %sum, %half : tensor<f32>
    %next_count = arith.addi %count, %c1 : i32
    scf.yield %next, %next_count : tensor<f32>, i32
  }
  return %y#0, %y#1 : tensor<f32>, i32
}
