// A scalar and a tensor that outlive each call.
util.global private mutable @count = 10 : i32
util.global private mutable @total = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>

func.func @add(%step: i32, %values: tensor<4xf32>) -> i32 {
  %count = util.global.load @count : i32
  %next_count = arith.addi %count, %step : i32
  util.global.store %next_count, @count : i32
  %total = util.global.load @total : tensor<4xf32>
  %next_total = arith.addf %total, %values : tensor<4xf32>
  util.global.store %next_total, @total : tensor<4xf32>
  return %next_count : i32
}

func.func @get() -> (i32, tensor<4xf32>) {
  %count = util.global.load @count : i32
  %total = util.global.load @total : tensor<4xf32>
  return %count, %total : i32, tensor<4xf32>
}
