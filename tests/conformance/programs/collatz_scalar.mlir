// Host scalars only: the loop runs in the virtual machine.
func.func @steps(%start: i64) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c0_64 = arith.constant 0 : i64
  %c1_64 = arith.constant 1 : i64
  %c2_64 = arith.constant 2 : i64
  %c3_64 = arith.constant 3 : i64
  %end:2 = scf.while (%v = %start, %count = %c0) : (i64, i32) -> (i64, i32) {
    %go_on = arith.cmpi ugt, %v, %c1_64 : i64
    scf.condition(%go_on) %v, %count : i64, i32
  } do {
  ^bb0(%v: i64, %count: i32):
    %bit = arith.remui %v, %c2_64 : i64
    %odd = arith.cmpi ne, %bit, %c0_64 : i64
    %next = scf.if %odd -> (i64) {
      %triple = arith.muli %v, %c3_64 : i64
      %up = arith.addi %triple, %c1_64 : i64
      scf.yield %up : i64
    } else {
      %half = arith.divui %v, %c2_64 : i64
      scf.yield %half : i64
    }
    %next_count = arith.addi %count, %c1 : i32
    scf.yield %next, %next_count : i64, i32
  }
  return %end#1 : i32
}
