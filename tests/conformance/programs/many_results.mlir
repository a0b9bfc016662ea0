func.func @spread(%x: tensor<4xi32>, %n: i32) -> (tensor<4xi32>, i32, tensor<i32>, tensor<2x2xi32>, i64) {
  %c1 = arith.constant 1 : index
  %double = arith.addi %x, %x : tensor<4xi32>
  %next = arith.addi %n, %n : i32
  %second = tensor.extract_slice %x[1] [1] [1] : tensor<4xi32> to tensor<i32>
  %square = tensor.expand_shape %x [[0, 1]] output_shape [2, 2] : tensor<4xi32> into tensor<2x2xi32>
  %wide = arith.extsi %n : i32 to i64
  return %double, %next, %second, %square, %wide : tensor<4xi32>, i32, tensor<i32>, tensor<2x2xi32>, i64
}
