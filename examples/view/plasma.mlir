module @jit_plasma attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<f32>) -> (tensor<180x320x4xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<[1.000000e+00, 1.777000e+00]> : tensor<2xf32>
    %cst_0 = stablehlo.constant dense<[0.000000e+00, 2.000000e+00, 4.000000e+00]> : tensor<3xf32>
    %0 = stablehlo.iota dim = 0 : tensor<180xi32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<180xi32>
    %2 = stablehlo.multiply %1, %0 : tensor<180xi32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %3 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<180xi32>
    %4 = stablehlo.add %3, %2 : tensor<180xi32>
    %5 = stablehlo.iota dim = 0 : tensor<320xi32>
    %c_2 = stablehlo.constant dense<1> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<320xi32>
    %7 = stablehlo.multiply %6, %5 : tensor<320xi32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %8 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<320xi32>
    %9 = stablehlo.add %8, %7 : tensor<320xi32>
    %10 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<180xi32>) -> tensor<180x320xi32>
    %11 = stablehlo.broadcast_in_dim %9, dims = [1] : (tensor<320xi32>) -> tensor<180x320xi32>
    %12 = stablehlo.broadcast_in_dim %10, dims = [1, 2] : (tensor<180x320xi32>) -> tensor<1x180x320xi32>
    %13 = stablehlo.broadcast_in_dim %11, dims = [1, 2] : (tensor<180x320xi32>) -> tensor<1x180x320xi32>
    %14 = stablehlo.concatenate %12, %13, dim = 0 : (tensor<1x180x320xi32>, tensor<1x180x320xi32>) -> tensor<2x180x320xi32>
    %15 = stablehlo.convert %14 : (tensor<2x180x320xi32>) -> tensor<2x180x320xf32>
    %cst_4 = stablehlo.constant dense<9.000000e+01> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<2x180x320xf32>
    %17 = stablehlo.divide %15, %16 : tensor<2x180x320xf32>
    %18 = stablehlo.reshape %cst : (tensor<2xf32>) -> tensor<2x1x1xf32>
    %19 = stablehlo.convert %17 : tensor<2x180x320xf32>
    %20 = stablehlo.broadcast_in_dim %18, dims = [0, 1, 2] : (tensor<2x1x1xf32>) -> tensor<2x180x320xf32>
    %21 = stablehlo.subtract %19, %20 : tensor<2x180x320xf32>
    %22 = stablehlo.slice %21 [0:1, 0:180, 0:320] : (tensor<2x180x320xf32>) -> tensor<1x180x320xf32>
    %23 = stablehlo.reshape %22 : (tensor<1x180x320xf32>) -> tensor<180x320xf32>
    %24 = stablehlo.slice %21 [1:2, 0:180, 0:320] : (tensor<2x180x320xf32>) -> tensor<1x180x320xf32>
    %25 = stablehlo.reshape %24 : (tensor<1x180x320xf32>) -> tensor<180x320xf32>
    %26 = stablehlo.sine %arg0 : tensor<f32>
    %cst_5 = stablehlo.constant dense<0.699999988> : tensor<f32>
    %27 = stablehlo.multiply %cst_5, %26 : tensor<f32>
    %28 = stablehlo.broadcast_in_dim %27, dims = [] : (tensor<f32>) -> tensor<180x320xf32>
    %29 = stablehlo.subtract %25, %28 : tensor<180x320xf32>
    %cst_6 = stablehlo.constant dense<1.300000e+00> : tensor<f32>
    %30 = stablehlo.multiply %cst_6, %arg0 : tensor<f32>
    %31 = stablehlo.cosine %30 : tensor<f32>
    %cst_7 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %32 = stablehlo.multiply %cst_7, %31 : tensor<f32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [] : (tensor<f32>) -> tensor<180x320xf32>
    %34 = stablehlo.subtract %23, %33 : tensor<180x320xf32>
    %35 = call @hypot(%29, %34) : (tensor<180x320xf32>, tensor<180x320xf32>) -> tensor<180x320xf32>
    %cst_8 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %36 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<180x320xf32>
    %37 = stablehlo.multiply %36, %35 : tensor<180x320xf32>
    %38 = stablehlo.sine %37 : tensor<180x320xf32>
    %cst_9 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %39 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<180x320xf32>
    %40 = stablehlo.multiply %39, %25 : tensor<180x320xf32>
    %41 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<180x320xf32>
    %42 = stablehlo.add %40, %41 : tensor<180x320xf32>
    %43 = stablehlo.sine %42 : tensor<180x320xf32>
    %44 = stablehlo.add %38, %43 : tensor<180x320xf32>
    %cst_10 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %45 = stablehlo.divide %arg0, %cst_10 : tensor<f32>
    %46 = stablehlo.sine %45 : tensor<f32>
    %47 = stablehlo.broadcast_in_dim %46, dims = [] : (tensor<f32>) -> tensor<180x320xf32>
    %48 = stablehlo.multiply %25, %47 : tensor<180x320xf32>
    %cst_11 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %49 = stablehlo.divide %arg0, %cst_11 : tensor<f32>
    %50 = stablehlo.cosine %49 : tensor<f32>
    %51 = stablehlo.broadcast_in_dim %50, dims = [] : (tensor<f32>) -> tensor<180x320xf32>
    %52 = stablehlo.multiply %23, %51 : tensor<180x320xf32>
    %53 = stablehlo.add %48, %52 : tensor<180x320xf32>
    %cst_12 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %54 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<180x320xf32>
    %55 = stablehlo.multiply %54, %53 : tensor<180x320xf32>
    %56 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<180x320xf32>
    %57 = stablehlo.add %55, %56 : tensor<180x320xf32>
    %58 = stablehlo.sine %57 : tensor<180x320xf32>
    %59 = stablehlo.add %44, %58 : tensor<180x320xf32>
    %60 = stablehlo.broadcast_in_dim %59, dims = [0, 1] : (tensor<180x320xf32>) -> tensor<180x320x1xf32>
    %cst_13 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %61 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<180x320x1xf32>
    %62 = stablehlo.multiply %61, %60 : tensor<180x320x1xf32>
    %63 = stablehlo.broadcast_in_dim %cst_0, dims = [2] : (tensor<3xf32>) -> tensor<1x1x3xf32>
    %64 = stablehlo.broadcast_in_dim %62, dims = [0, 1, 2] : (tensor<180x320x1xf32>) -> tensor<180x320x3xf32>
    %65 = stablehlo.broadcast_in_dim %63, dims = [0, 1, 2] : (tensor<1x1x3xf32>) -> tensor<180x320x3xf32>
    %66 = stablehlo.add %64, %65 : tensor<180x320x3xf32>
    %67 = stablehlo.cosine %66 : tensor<180x320x3xf32>
    %cst_14 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %68 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<180x320x3xf32>
    %69 = stablehlo.multiply %68, %67 : tensor<180x320x3xf32>
    %cst_15 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %70 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<180x320x3xf32>
    %71 = stablehlo.add %70, %69 : tensor<180x320x3xf32>
    %cst_16 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %72 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<180x320x1xf32>
    %73 = stablehlo.concatenate %71, %72, dim = 2 : (tensor<180x320x3xf32>, tensor<180x320x1xf32>) -> tensor<180x320x4xf32>
    return %73 : tensor<180x320x4xf32>
  }
  func.func private @hypot(%arg0: tensor<180x320xf32>, %arg1: tensor<180x320xf32>) -> tensor<180x320xf32> {
    %0 = stablehlo.abs %arg0 : tensor<180x320xf32>
    %1 = stablehlo.abs %arg1 : tensor<180x320xf32>
    %cst = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<180x320xf32>
    %3 = stablehlo.compare EQ, %0, %2, FLOAT : (tensor<180x320xf32>, tensor<180x320xf32>) -> tensor<180x320xi1>
    %cst_0 = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<180x320xf32>
    %5 = stablehlo.compare EQ, %1, %4, FLOAT : (tensor<180x320xf32>, tensor<180x320xf32>) -> tensor<180x320xi1>
    %6 = stablehlo.or %3, %5 : tensor<180x320xi1>
    %7 = stablehlo.maximum %0, %1 : tensor<180x320xf32>
    %8 = stablehlo.minimum %0, %1 : tensor<180x320xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<180x320xf32>
    %10 = stablehlo.compare EQ, %7, %9, FLOAT : (tensor<180x320xf32>, tensor<180x320xf32>) -> tensor<180x320xi1>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<180x320xf32>
    %12 = stablehlo.compare EQ, %7, %11, FLOAT : (tensor<180x320xf32>, tensor<180x320xf32>) -> tensor<180x320xi1>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<180x320xf32>
    %14 = call @_where(%12, %13, %7) : (tensor<180x320xi1>, tensor<180x320xf32>, tensor<180x320xf32>) -> tensor<180x320xf32>
    %15 = stablehlo.divide %8, %14 : tensor<180x320xf32>
    %16 = chlo.square %15 : tensor<180x320xf32> -> tensor<180x320xf32>
    %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<180x320xf32>
    %18 = stablehlo.add %17, %16 : tensor<180x320xf32>
    %19 = stablehlo.sqrt %18 : tensor<180x320xf32>
    %20 = stablehlo.multiply %7, %19 : tensor<180x320xf32>
    %21 = call @_where(%10, %7, %20) : (tensor<180x320xi1>, tensor<180x320xf32>, tensor<180x320xf32>) -> tensor<180x320xf32>
    %cst_5 = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %22 = call @_where_0(%6, %cst_5, %21) : (tensor<180x320xi1>, tensor<f32>, tensor<180x320xf32>) -> tensor<180x320xf32>
    return %22 : tensor<180x320xf32>
  }
  func.func private @_where(%arg0: tensor<180x320xi1>, %arg1: tensor<180x320xf32>, %arg2: tensor<180x320xf32>) -> tensor<180x320xf32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<180x320xi1>, tensor<180x320xf32>
    return %0 : tensor<180x320xf32>
  }
  func.func private @_where_0(%arg0: tensor<180x320xi1>, %arg1: tensor<f32>, %arg2: tensor<180x320xf32>) -> tensor<180x320xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<180x320xf32>
    %1 = stablehlo.select %arg0, %0, %arg2 : tensor<180x320xi1>, tensor<180x320xf32>
    return %1 : tensor<180x320xf32>
  }
}
