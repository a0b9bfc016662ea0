func.func @ascending(%x: tensor<4x17xi32>) -> tensor<4x17xi32> {
  %y = iree_linalg_ext.sort dimension(1) outs(%x : tensor<4x17xi32>) {
  ^bb0(%a: i32, %b: i32):
    %before = arith.cmpi slt, %a, %b : i32
    iree_linalg_ext.yield %before : i1
  } -> tensor<4x17xi32>
  return %y : tensor<4x17xi32>
}

// The second array follows the order of the first.
func.func @by_key(%keys: tensor<16xf32>, %values: tensor<16xi32>) -> (tensor<16xf32>, tensor<16xi32>) {
  %y:2 = iree_linalg_ext.sort dimension(0) outs(%keys, %values : tensor<16xf32>, tensor<16xi32>) {
  ^bb0(%a: f32, %b: f32, %c: i32, %d: i32):
    %before = arith.cmpf ogt, %a, %b : f32
    iree_linalg_ext.yield %before : i1
  } -> tensor<16xf32>, tensor<16xi32>
  return %y#0, %y#1 : tensor<16xf32>, tensor<16xi32>
}
