func.func @all(%x: tensor<4x12xi1>) -> tensor<4xi1> {
  %first = arith.constant true
  %empty = tensor.empty() : tensor<4xi1>
  %init = linalg.fill ins(%first : i1) outs(%empty : tensor<4xi1>) -> tensor<4xi1>
  %y = linalg.reduce ins(%x : tensor<4x12xi1>) outs(%init : tensor<4xi1>) dimensions = [1]
    (%value: i1, %so_far: i1) {
      %next = arith.andi %value, %so_far : i1
      linalg.yield %next : i1
    }
  return %y : tensor<4xi1>
}

func.func @any(%x: tensor<4x12xi1>) -> tensor<4xi1> {
  %first = arith.constant false
  %empty = tensor.empty() : tensor<4xi1>
  %init = linalg.fill ins(%first : i1) outs(%empty : tensor<4xi1>) -> tensor<4xi1>
  %y = linalg.reduce ins(%x : tensor<4x12xi1>) outs(%init : tensor<4xi1>) dimensions = [1]
    (%value: i1, %so_far: i1) {
      %next = arith.ori %value, %so_far : i1
      linalg.yield %next : i1
    }
  return %y : tensor<4xi1>
}
