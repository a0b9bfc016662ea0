func.func @add(%a: tensor<36xi8>, %b: tensor<36xi8>) -> tensor<36xi8> {
  %y = arith.addi %a, %b : tensor<36xi8>
  return %y : tensor<36xi8>
}

func.func @subtract(%a: tensor<36xi8>, %b: tensor<36xi8>) -> tensor<36xi8> {
  %y = arith.subi %a, %b : tensor<36xi8>
  return %y : tensor<36xi8>
}

func.func @multiply(%a: tensor<36xi8>, %b: tensor<36xi8>) -> tensor<36xi8> {
  %y = arith.muli %a, %b : tensor<36xi8>
  return %y : tensor<36xi8>
}

func.func @maximum_signed(%a: tensor<36xi8>, %b: tensor<36xi8>) -> tensor<36xi8> {
  %y = arith.maxsi %a, %b : tensor<36xi8>
  return %y : tensor<36xi8>
}

func.func @minimum_unsigned(%a: tensor<36xi8>, %b: tensor<36xi8>) -> tensor<36xi8> {
  %y = arith.minui %a, %b : tensor<36xi8>
  return %y : tensor<36xi8>
}

func.func @and(%a: tensor<36xi8>, %b: tensor<36xi8>) -> tensor<36xi8> {
  %y = arith.andi %a, %b : tensor<36xi8>
  return %y : tensor<36xi8>
}

func.func @or(%a: tensor<36xi8>, %b: tensor<36xi8>) -> tensor<36xi8> {
  %y = arith.ori %a, %b : tensor<36xi8>
  return %y : tensor<36xi8>
}

func.func @xor(%a: tensor<36xi8>, %b: tensor<36xi8>) -> tensor<36xi8> {
  %y = arith.xori %a, %b : tensor<36xi8>
  return %y : tensor<36xi8>
}
