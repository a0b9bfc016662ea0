func.func @transpose(%x: tensor<?x?xi32>) -> tensor<?x?xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = tensor.dim %x, %c0 : tensor<?x?xi32>
  %columns = tensor.dim %x, %c1 : tensor<?x?xi32>
  %empty = tensor.empty(%columns, %rows) : tensor<?x?xi32>
  %y = linalg.transpose ins(%x : tensor<?x?xi32>) outs(%empty : tensor<?x?xi32>) permutation = [1, 0]
  return %y : tensor<?x?xi32>
}
