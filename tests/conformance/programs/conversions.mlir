func.func @i32_to_f32(%a: tensor<16xi32>) -> tensor<16xf32> {
  %y = arith.sitofp %a : tensor<16xi32> to tensor<16xf32>
  return %y : tensor<16xf32>
}

func.func @u32_to_f32(%a: tensor<16xi32>) -> tensor<16xf32> {
  %y = arith.uitofp %a : tensor<16xi32> to tensor<16xf32>
  return %y : tensor<16xf32>
}

func.func @f32_to_i32(%a: tensor<16xf32>) -> tensor<16xi32> {
  %y = arith.fptosi %a : tensor<16xf32> to tensor<16xi32>
  return %y : tensor<16xi32>
}

func.func @f32_to_u32(%a: tensor<16xf32>) -> tensor<16xi32> {
  %y = arith.fptoui %a : tensor<16xf32> to tensor<16xi32>
  return %y : tensor<16xi32>
}

func.func @i8_to_i32(%a: tensor<16xi8>) -> tensor<16xi32> {
  %y = arith.extsi %a : tensor<16xi8> to tensor<16xi32>
  return %y : tensor<16xi32>
}

func.func @u8_to_i32(%a: tensor<16xi8>) -> tensor<16xi32> {
  %y = arith.extui %a : tensor<16xi8> to tensor<16xi32>
  return %y : tensor<16xi32>
}

func.func @i32_to_i8(%a: tensor<16xi32>) -> tensor<16xi8> {
  %y = arith.trunci %a : tensor<16xi32> to tensor<16xi8>
  return %y : tensor<16xi8>
}

func.func @i32_to_i16(%a: tensor<16xi32>) -> tensor<16xi16> {
  %y = arith.trunci %a : tensor<16xi32> to tensor<16xi16>
  return %y : tensor<16xi16>
}

func.func @i1_to_i32(%a: tensor<16xi1>) -> tensor<16xi32> {
  %y = arith.extui %a : tensor<16xi1> to tensor<16xi32>
  return %y : tensor<16xi32>
}
