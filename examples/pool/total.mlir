// Adds up what the host finds for 0, 1, … count - 1, one after the other; ``host.find`` is a function of another module.
module @total {
  func.func private @host.find(i32) -> i32

  func.func @run(%count: i32) -> i32 {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c0_index = arith.constant 0 : index
    %c1_index = arith.constant 1 : index
    %end = arith.index_cast %count : i32 to index
    %sum = scf.for %i = %c0_index to %end step %c1_index iter_args(%so_far = %c0) -> (i32) {
      %key = arith.index_cast %i : index to i32
      %found = func.call @host.find(%key) : (i32) -> i32
      %next = arith.addi %so_far, %found : i32
      scf.yield %next : i32
    }
    return %sum : i32
  }
}
