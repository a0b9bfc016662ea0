// A ring of values kept on the device between calls.
util.global private mutable @ring = dense<0> : tensor<4xi32>
util.global private mutable @position = 0 : index

func.func @push(%value: tensor<1xi32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %ring = util.global.load @ring : tensor<4xi32>
  %position = util.global.load @position : index
  %next_ring = tensor.insert_slice %value into %ring[%position] [1] [1] : tensor<1xi32> into tensor<4xi32>
  %moved = arith.addi %position, %c1 : index
  %next = arith.remui %moved, %c4 : index
  util.global.store %next_ring, @ring : tensor<4xi32>
  util.global.store %next, @position : index
  return
}

func.func @read() -> (tensor<4xi32>, index) {
  %ring = util.global.load @ring : tensor<4xi32>
  %position = util.global.load @position : index
  return %ring, %position : tensor<4xi32>, index
}
