// Globals computed once, when the module is loaded.
util.global private @table : tensor<8xf32>
util.global private @scale = 3 : i32
util.global private @steps : i64

util.initializer {
  %base = util.unfoldable_constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
  %squares = arith.mulf %base, %base : tensor<8xf32>
  util.global.store %squares, @table : tensor<8xf32>
  %steps = util.unfoldable_constant 5000000000 : i64
  util.global.store %steps, @steps : i64
  util.return
}

func.func @add_table(%x: tensor<8xf32>) -> tensor<8xf32> {
  %table = util.global.load @table : tensor<8xf32>
  %y = arith.addf %x, %table : tensor<8xf32>
  return %y : tensor<8xf32>
}

func.func @scalars() -> (i32, i64) {
  %scale = util.global.load @scale : i32
  %steps = util.global.load @steps : i64
  return %scale, %steps : i32, i64
}
