func.func @add(%a: tensor<20xi16>, %b: tensor<20xi16>) -> tensor<20xi16> {
  %y = arith.addi %a, %b : tensor<20xi16>
  return %y : tensor<20xi16>
}

func.func @subtract(%a: tensor<20xi16>, %b: tensor<20xi16>) -> tensor<20xi16> {
  %y = arith.subi %a, %b : tensor<20xi16>
  return %y : tensor<20xi16>
}

func.func @multiply(%a: tensor<20xi16>, %b: tensor<20xi16>) -> tensor<20xi16> {
  %y = arith.muli %a, %b : tensor<20xi16>
  return %y : tensor<20xi16>
}

func.func @maximum_signed(%a: tensor<20xi16>, %b: tensor<20xi16>) -> tensor<20xi16> {
  %y = arith.maxsi %a, %b : tensor<20xi16>
  return %y : tensor<20xi16>
}

func.func @minimum_unsigned(%a: tensor<20xi16>, %b: tensor<20xi16>) -> tensor<20xi16> {
  %y = arith.minui %a, %b : tensor<20xi16>
  return %y : tensor<20xi16>
}

func.func @and(%a: tensor<20xi16>, %b: tensor<20xi16>) -> tensor<20xi16> {
  %y = arith.andi %a, %b : tensor<20xi16>
  return %y : tensor<20xi16>
}

func.func @or(%a: tensor<20xi16>, %b: tensor<20xi16>) -> tensor<20xi16> {
  %y = arith.ori %a, %b : tensor<20xi16>
  return %y : tensor<20xi16>
}

func.func @xor(%a: tensor<20xi16>, %b: tensor<20xi16>) -> tensor<20xi16> {
  %y = arith.xori %a, %b : tensor<20xi16>
  return %y : tensor<20xi16>
}
