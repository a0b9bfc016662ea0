func.func @add_i32(%a: i32, %b: i32) -> i32 {
  %sum = arith.addi %a, %b : i32
  return %sum : i32
}

func.func @muladd_i64(%a: i64, %b: i64, %c: i64) -> i64 {
  %product = arith.muli %a, %b : i64
  %sum = arith.addi %product, %c : i64
  return %sum : i64
}

func.func @muladd_f32(%a: f32, %b: f32, %c: f32) -> f32 {
  %product = arith.mulf %a, %b : f32
  %sum = arith.addf %product, %c : f32
  return %sum : f32
}

func.func @next_index(%a: index) -> index {
  %c1 = arith.constant 1 : index
  %sum = arith.addi %a, %c1 : index
  return %sum : index
}

func.func @compare(%a: i32, %b: i32) -> (i1, i1) {
  %less = arith.cmpi slt, %a, %b : i32
  %below = arith.cmpi ult, %a, %b : i32
  return %less, %below : i1, i1
}

func.func @scale(%x: tensor<4xf32>, %factor: f32) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  %factors = linalg.fill ins(%factor : f32) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  %y = arith.mulf %x, %factors : tensor<4xf32>
  return %y : tensor<4xf32>
}

func.func @nothing() {
  return
}
