// Internal functions with scalars of both widths, called from a loop.
func.func private @step(%a: i64, %b: i64, %c: i32) -> (i64, i64, i32) attributes {noinline} {
  %c3 = arith.constant 3 : i64
  %c1 = arith.constant 1 : i32
  %a_next = arith.muli %a, %c3 : i64
  %b_next = arith.subi %b, %a : i64
  %c_next = arith.addi %c, %c1 : i32
  return %a_next, %b_next, %c_next : i64, i64, i32
}

func.func private @mix(%a: i32, %b: f32, %c: i64, %d: f32) -> (f32, i64) attributes {noinline} {
  %real = arith.sitofp %a : i32 to f32
  %product = arith.mulf %real, %b : f32
  %sum = arith.addf %product, %d : f32
  %wide = arith.extsi %a : i32 to i64
  %total = arith.addi %wide, %c : i64
  return %sum, %total : f32, i64
}

func.func @repeat(%n: index, %a: i64, %b: i64) -> (i64, i64, i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant 0 : i32
  %y:3 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %z = %b, %c = %none) -> (i64, i64, i32) {
    %next:3 = func.call @step(%x, %z, %c) : (i64, i64, i32) -> (i64, i64, i32)
    scf.yield %next#0, %next#1, %next#2 : i64, i64, i32
  }
  return %y#0, %y#1, %y#2 : i64, i64, i32
}

func.func @mixed(%a: i32, %b: f32, %c: i64) -> (f32, i64) {
  %y:2 = call @mix(%a, %b, %c, %b) : (i32, f32, i64, f32) -> (f32, i64)
  %z:2 = call @mix(%a, %y#0, %y#1, %b) : (i32, f32, i64, f32) -> (f32, i64)
  return %z#0, %z#1 : f32, i64
}
