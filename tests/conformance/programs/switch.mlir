func.func @choose(%which: index, %x: tensor<4xi32>) -> tensor<4xi32> {
  %double = arith.constant 2 : i32
  %negative = arith.constant -1 : i32
  %same = arith.constant 1 : i32
  %factor = scf.index_switch %which -> i32
  case 0 {
    scf.yield %double : i32
  }
  case 3 {
    scf.yield %negative : i32
  }
  default {
    scf.yield %same : i32
  }
  %empty = tensor.empty() : tensor<4xi32>
  %factors = linalg.fill ins(%factor : i32) outs(%empty : tensor<4xi32>) -> tensor<4xi32>
  %y = arith.muli %x, %factors : tensor<4xi32>
  return %y : tensor<4xi32>
}
