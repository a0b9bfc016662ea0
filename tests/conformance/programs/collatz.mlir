// The loop's exit depends on a value that only the device knows.
func.func @steps(%start: tensor<i32>) -> tensor<i32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %none = arith.constant dense<0> : tensor<i32>
  %one = arith.constant dense<1> : tensor<i32>
  %end:2 = scf.while (%value = %start, %count = %none) : (tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>) {
    %v = tensor.extract %value[] : tensor<i32>
    %go_on = arith.cmpi sgt, %v, %c1 : i32
    scf.condition(%go_on) %value, %count : tensor<i32>, tensor<i32>
  } do {
  ^bb0(%value: tensor<i32>, %count: tensor<i32>):
    %v = tensor.extract %value[] : tensor<i32>
    %bit = arith.remui %v, %c2 : i32
    %odd = arith.cmpi ne, %bit, %c0 : i32
    %half = arith.divui %v, %c2 : i32
    %triple = arith.muli %v, %c3 : i32
    %up = arith.addi %triple, %c1 : i32
    %next = arith.select %odd, %up, %half : i32
    %next_tensor = tensor.from_elements %next : tensor<i32>
    %next_count = arith.addi %count, %one : tensor<i32>
    scf.yield %next_tensor, %next_count : tensor<i32>, tensor<i32>
  }
  return %end#1 : tensor<i32>
}
