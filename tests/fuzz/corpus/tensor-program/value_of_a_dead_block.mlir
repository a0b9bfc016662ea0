func.func @main(%x: tensor<4xi32>, %n: i32, %p: i1) -> tensor<4xi32> {
  cf.cond_br %p, ^bb1, ^bb2(%a : i1)
^bb1:
  cf.switch %n : i32, [default: ^bb1, 0: ^bb2(%p : i1)]
^bb2(%a: i1):
  %0 = arith.addi %n, %n : i32
  cf.br ^bb1
}
