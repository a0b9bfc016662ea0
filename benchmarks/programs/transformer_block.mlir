module @transformer_block {
  func.func public @main(%arg0: tensor<32x64xf32>, %arg1: tensor<64x64xf32>, %arg2: tensor<64x64xf32>, %arg3: tensor<64x64xf32>, %arg4: tensor<64x64xf32>, %arg5: tensor<64x256xf32>, %arg6: tensor<256x64xf32>) -> (tensor<32x64xf32>) {
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_1 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %cst_2 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %cst_3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_4 = stablehlo.constant dense<-1.000000e+09> : tensor<f32>
    %cst_5 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %cst_6 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %c_7 = stablehlo.constant dense<0> : tensor<i32>
    %cst_8 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst_9) applies stablehlo.add across dimensions = [1] : (tensor<32x64xf32>, tensor<f32>) -> tensor<32xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<32xf32>) -> tensor<32x1xf32>
    %2 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<32x1xf32>
    %3 = stablehlo.divide %1, %2 : tensor<32x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<32x1xf32>) -> tensor<32x64xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<32x64xf32>
    %6 = call @_var(%arg0, %c_7) : (tensor<32x64xf32>, tensor<i32>) -> tensor<32x1xf32>
    %7 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<32x1xf32>
    %8 = stablehlo.add %6, %7 : tensor<32x1xf32>
    %9 = stablehlo.rsqrt %8 : tensor<32x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<32x1xf32>) -> tensor<32x64xf32>
    %11 = stablehlo.multiply %5, %10 : tensor<32x64xf32>
    %12 = stablehlo.dot_general %11, %arg1, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
    %13 = stablehlo.reshape %12 : (tensor<32x64xf32>) -> tensor<32x4x16xf32>
    %14 = stablehlo.transpose %13, dims = [1, 0, 2] : (tensor<32x4x16xf32>) -> tensor<4x32x16xf32>
    %15 = stablehlo.dot_general %11, %arg2, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
    %16 = stablehlo.reshape %15 : (tensor<32x64xf32>) -> tensor<32x4x16xf32>
    %17 = stablehlo.transpose %16, dims = [1, 0, 2] : (tensor<32x4x16xf32>) -> tensor<4x32x16xf32>
    %18 = stablehlo.dot_general %11, %arg3, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
    %19 = stablehlo.reshape %18 : (tensor<32x64xf32>) -> tensor<32x4x16xf32>
    %20 = stablehlo.transpose %19, dims = [1, 0, 2] : (tensor<32x4x16xf32>) -> tensor<4x32x16xf32>
    %21 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<32x32xi1>
    %22 = call @tril(%21) : (tensor<32x32xi1>) -> tensor<32x32xi1>
    %23 = stablehlo.transpose %17, dims = [0, 2, 1] : (tensor<4x32x16xf32>) -> tensor<4x16x32xf32>
    %24 = stablehlo.dot_general %14, %23, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x32x16xf32>, tensor<4x16x32xf32>) -> tensor<4x32x32xf32>
    %25 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4x32x32xf32>
    %26 = stablehlo.divide %24, %25 : tensor<4x32x32xf32>
    %27 = call @_where_0(%22, %26, %cst_4) : (tensor<32x32xi1>, tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32x32xf32>
    %28 = stablehlo.reduce(%27 init: %cst_3) applies stablehlo.maximum across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %29 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<4x32xf32>
    %30 = stablehlo.maximum %29, %28 : tensor<4x32xf32>
    %31 = stablehlo.broadcast_in_dim %30, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %32 = stablehlo.broadcast_in_dim %31, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %33 = stablehlo.subtract %27, %32 : tensor<4x32x32xf32>
    %34 = stablehlo.exponential %33 : tensor<4x32x32xf32>
    %35 = stablehlo.reduce(%34 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
    %36 = stablehlo.broadcast_in_dim %35, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x1xf32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [0, 1, 2] : (tensor<4x32x1xf32>) -> tensor<4x32x32xf32>
    %38 = stablehlo.divide %34, %37 : tensor<4x32x32xf32>
    %39 = stablehlo.dot_general %38, %20, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x32x32xf32>, tensor<4x32x16xf32>) -> tensor<4x32x16xf32>
    %40 = stablehlo.transpose %39, dims = [1, 0, 2] : (tensor<4x32x16xf32>) -> tensor<32x4x16xf32>
    %41 = stablehlo.reshape %40 : (tensor<32x4x16xf32>) -> tensor<32x64xf32>
    %42 = stablehlo.dot_general %41, %arg4, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
    %43 = stablehlo.add %arg0, %42 : tensor<32x64xf32>
    %44 = stablehlo.reduce(%43 init: %cst_9) applies stablehlo.add across dimensions = [1] : (tensor<32x64xf32>, tensor<f32>) -> tensor<32xf32>
    %45 = stablehlo.broadcast_in_dim %44, dims = [0] : (tensor<32xf32>) -> tensor<32x1xf32>
    %46 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<32x1xf32>
    %47 = stablehlo.divide %45, %46 : tensor<32x1xf32>
    %48 = stablehlo.broadcast_in_dim %47, dims = [0, 1] : (tensor<32x1xf32>) -> tensor<32x64xf32>
    %49 = stablehlo.subtract %43, %48 : tensor<32x64xf32>
    %50 = call @_var(%43, %c_7) : (tensor<32x64xf32>, tensor<i32>) -> tensor<32x1xf32>
    %51 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<32x1xf32>
    %52 = stablehlo.add %50, %51 : tensor<32x1xf32>
    %53 = stablehlo.rsqrt %52 : tensor<32x1xf32>
    %54 = stablehlo.broadcast_in_dim %53, dims = [0, 1] : (tensor<32x1xf32>) -> tensor<32x64xf32>
    %55 = stablehlo.multiply %49, %54 : tensor<32x64xf32>
    %56 = stablehlo.dot_general %55, %arg5, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x256xf32>) -> tensor<32x256xf32>
    %57 = stablehlo.multiply %56, %56 : tensor<32x256xf32>
    %58 = stablehlo.multiply %57, %56 : tensor<32x256xf32>
    %59 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<32x256xf32>
    %60 = stablehlo.multiply %59, %58 : tensor<32x256xf32>
    %61 = stablehlo.add %56, %60 : tensor<32x256xf32>
    %62 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<32x256xf32>
    %63 = stablehlo.multiply %62, %61 : tensor<32x256xf32>
    %64 = stablehlo.tanh %63 : tensor<32x256xf32>
    %65 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<32x256xf32>
    %66 = stablehlo.add %65, %64 : tensor<32x256xf32>
    %67 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<32x256xf32>
    %68 = stablehlo.multiply %67, %66 : tensor<32x256xf32>
    %69 = stablehlo.multiply %56, %68 : tensor<32x256xf32>
    %70 = stablehlo.dot_general %69, %arg6, contracting_dims = [1] x [0] : (tensor<32x256xf32>, tensor<256x64xf32>) -> tensor<32x64xf32>
    %71 = stablehlo.add %43, %70 : tensor<32x64xf32>
    return %71 : tensor<32x64xf32>
  }
  func.func private @_var(%arg0: tensor<32x64xf32>, %arg1: tensor<i32>) -> tensor<32x1xf32> {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<32x64xf32>, tensor<f32>) -> tensor<32xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<32xf32>) -> tensor<32x1xf32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<32x1xf32>
    %3 = stablehlo.divide %1, %2 : tensor<32x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<32x1xf32>) -> tensor<32x64xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<32x64xf32>
    %6 = stablehlo.multiply %5, %5 : tensor<32x64xf32>
    %7 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %8 = stablehlo.subtract %cst_0, %7 : tensor<f32>
    %9 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<32x64xf32>, tensor<f32>) -> tensor<32xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0] : (tensor<32xf32>) -> tensor<32x1xf32>
    %11 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<f32>) -> tensor<32x1xf32>
    %12 = stablehlo.divide %10, %11 : tensor<32x1xf32>
    %13 = stablehlo.compare GT, %8, %cst_1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %14 = call @_where(%13, %12, %cst) : (tensor<i1>, tensor<32x1xf32>, tensor<f32>) -> tensor<32x1xf32>
    return %14 : tensor<32x1xf32>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<32x1xf32>, %arg2: tensor<f32>) -> tensor<32x1xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<32x1xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<i1>, tensor<32x1xf32>
    return %2 : tensor<32x1xf32>
  }
  func.func private @tril(%arg0: tensor<32x32xi1>) -> tensor<32x32xi1> {
    %c = stablehlo.constant dense<false> : tensor<i1>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.iota dim = 0 : tensor<32x32xi32>
    %1 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<32x32xi32>
    %2 = stablehlo.add %0, %1 : tensor<32x32xi32>
    %3 = stablehlo.iota dim = 1 : tensor<32x32xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<32x32xi32>, tensor<32x32xi32>) -> tensor<32x32xi1>
    %5 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<32x32xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<32x32xi1>, tensor<32x32xi1>
    return %6 : tensor<32x32xi1>
  }
  func.func private @_where_0(%arg0: tensor<32x32xi1>, %arg1: tensor<4x32x32xf32>, %arg2: tensor<f32>) -> tensor<4x32x32xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2] : (tensor<32x32xi1>) -> tensor<4x32x32xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x32x32xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<4x32x32xi1>, tensor<4x32x32xf32>
    return %3 : tensor<4x32x32xf32>
  }
}
