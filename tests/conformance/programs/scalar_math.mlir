// Host arithmetic on every scalar type of the virtual machine.
func.func @integers(%a: i32, %b: i32) -> (i32, i32, i32, i32, i32, i32) {
  %product = arith.muli %a, %b : i32
  %quotient = arith.divsi %a, %b : i32
  %remainder = arith.remsi %a, %b : i32
  %shifted = arith.shli %a, %b : i32
  %high = arith.shrui %a, %b : i32
  %mixed = arith.xori %a, %b : i32
  return %product, %quotient, %remainder, %shifted, %high, %mixed : i32, i32, i32, i32, i32, i32
}

func.func @longs(%a: i64, %b: i64) -> (i64, i64, i64, i64) {
  %product = arith.muli %a, %b : i64
  %quotient = arith.divui %a, %b : i64
  %remainder = arith.remui %a, %b : i64
  %high = arith.shrsi %a, %b : i64
  return %product, %quotient, %remainder, %high : i64, i64, i64, i64
}

func.func @floats(%a: f32, %b: f32) -> (f32, f32, f32, f32) {
  %sum = arith.addf %a, %b : f32
  %quotient = arith.divf %a, %b : f32
  %root = math.sqrt %b : f32
  %power = math.exp %a : f32
  return %sum, %quotient, %root, %power : f32, f32, f32, f32
}

func.func @casts(%a: f32, %b: i32) -> (i32, f32, i64, i32) {
  %whole = arith.fptosi %a : f32 to i32
  %real = arith.sitofp %b : i32 to f32
  %wide = arith.extui %b : i32 to i64
  %byte = arith.trunci %b : i32 to i8
  %low = arith.extsi %byte : i8 to i32
  return %whole, %real, %wide, %low : i32, f32, i64, i32
}
