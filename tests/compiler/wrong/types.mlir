// A type that does not exist.
   func.func @main(%x: tensor<4xfloat32>) -> tensor<4xfloat32> {
//                              ^ there is no type float32
     return %x : tensor<4xfloat32>
   }
// -----
// A float of a width that does not exist.
   func.func @main(%x: tensor<4xf33>) -> tensor<4xf33> {
//                              ^ there is no type f33
     return %x : tensor<4xf33>
   }
// -----
// An integer of a width that no device has.
   func.func @main(%x: tensor<4xi33>) -> tensor<4xi33> {
// ^ func.func expects arguments and results of elements that buffer views have, got tensor<4xi33>; convert it
     %0 = stablehlo.add %x, %x : tensor<4xi33>
     return %0 : tensor<4xi33>
   }
// -----
// A negative length.
   func.func @main(%x: tensor<-4xf32>) -> tensor<-4xf32> {
//                            ^ expected a type, got -
     return %x : tensor<-4xf32>
   }
// -----
// A length that is no number.
   func.func @main(%x: tensor<nxf32>) -> tensor<nxf32> {
//                            ^ there is no type nxf32
     return %x : tensor<nxf32>
   }
// -----
// A tensor without an element type.
   func.func @main(%x: tensor<4>) -> tensor<4> {
//                            ^ expected a type, got 4
     return %x : tensor<4>
   }
// -----
// A tensor without a rank.
   func.func @main(%x: tensor<*xf32>) -> tensor<*xf32> {
//                            ^ unranked tensors are not known when a program is compiled: give every tensor a rank
     return %x : tensor<*xf32>
   }
// -----
// A tensor of more elements than can be counted.
   func.func @main(%x: tensor<9223372036854775807x9223372036854775807xf32>) -> tensor<4xf32> {
//                     ^ a tensor has at most 2**56 elements
     %0 = stablehlo.constant dense<0.0> : tensor<4xf32>
     return %0 : tensor<4xf32>
   }
// -----
// A length over 63 bits.
   func.func @main(%x: tensor<99999999999999999999999999999999xf32>) -> tensor<4xf32> {
//                            ^ a dimension has at most 2**63 - 1 elements
     %0 = stablehlo.constant dense<0.0> : tensor<4xf32>
     return %0 : tensor<4xf32>
   }
// -----
// A result that no memory holds.
   func.func @main(%x: tensor<f32>) -> tensor<1048576x1048576x4096xf32> {
     %0 = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> tensor<1048576x1048576x4096xf32>
//        ^ stablehlo.broadcast_in_dim: tensor<1048576x1048576x4096xf32> has 2**31 elements or words or more
     return %0 : tensor<1048576x1048576x4096xf32>
   }
// -----
// Complex numbers of integers.
   func.func @main(%x: tensor<4xcomplex<i32>>) -> tensor<4xcomplex<i32>> {
//                              ^ there are no complex numbers of i32: f32 and f64 are the types of parts
     return %x : tensor<4xcomplex<i32>>
   }
// -----
// Operands of two element types.
   func.func @main(%x: tensor<4xf32>, %y: tensor<4xi32>) -> tensor<4xf32> {
     %0 = stablehlo.add %x, %y : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
//        ^ stablehlo.add expects operands of one element type, got tensor<4xf32> and tensor<4xi32>
     return %0 : tensor<4xf32>
   }
// -----
// A value used as another type.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = stablehlo.add %x, %x : tensor<4xi32>
//                      ^ %x is of type tensor<4xf32>, it is used as tensor<4xi32>
     return %x : tensor<4xf32>
   }
// -----
// A result of another element type.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xi32> {
     %0 = "stablehlo.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi32>
//        ^ stablehlo.add expects results of types (tensor<4xf32>), got (tensor<4xi32>)
     return %0 : tensor<4xi32>
   }
// -----
// A function that returns another type than it says.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xi32> {
// ^ func.func expects returned values of types (tensor<4xi32>), got (tensor<4xf32>)
     return %x : tensor<4xf32>
   }
// -----
// A function that returns fewer values than it says.
   func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
// ^ func.func expects returned values of types (tensor<4xf32>, tensor<4xf32>), got (tensor<4xf32>)
     return %x : tensor<4xf32>
   }
// -----
// The sine of an integer.
   func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> {
     %0 = stablehlo.sine %x : tensor<4xi32>
//        ^ stablehlo.sine expects elements of one of these kinds: complex, float; got i32
     return %0 : tensor<4xi32>
   }
// -----
// Bits of floats.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = stablehlo.and %x, %x : tensor<4xf32>
//        ^ stablehlo.and expects elements of one of these kinds: boolean, signed, unsigned; got f32
     return %0 : tensor<4xf32>
   }
// -----
// A predicate that is no boolean.
   func.func @main(%p: tensor<4xi32>, %x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = stablehlo.select %p, %x, %x : tensor<4xi32>, tensor<4xf32>
//        ^ stablehlo.select expects a predicate of i1, got tensor<4xi32>
     return %0 : tensor<4xf32>
   }
// -----
// An order of complex numbers.
   func.func @main(%x: tensor<4xcomplex<f32>>) -> tensor<4xi1> {
     %0 = stablehlo.compare LT, %x, %x : (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> tensor<4xi1>
//        ^ stablehlo.compare expects EQ or NE, since complex numbers have no order
     return %0 : tensor<4xi1>
   }
// -----
// Quantized elements without a scale.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = stablehlo.uniform_quantize %x : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 0.0>>
//        ^ stablehlo.uniform_quantize expects positive scales with zero points
     %1 = stablehlo.uniform_dequantize %0 : (tensor<4x!quant.uniform<i8:f32, 0.0>>) -> tensor<4xf32>
     return %1 : tensor<4xf32>
   }
// -----
// A condition that is a number.
   func.func @main(%x: tensor<f32>) -> tensor<f32> {
     %0 = "stablehlo.if"(%x) ({
//        ^ stablehlo.if expects a predicate of type tensor<i1>, got tensor<f32>
       stablehlo.return %x : tensor<f32>
     }, {
       stablehlo.return %x : tensor<f32>
     }) : (tensor<f32>) -> tensor<f32>
     return %0 : tensor<f32>
   }
// -----
// Indices that are floats.
   func.func @main(%x: tensor<4xf32>, %i: tensor<f32>) -> tensor<2xf32> {
     %0 = stablehlo.dynamic_slice %x, %i, sizes = [2] : (tensor<4xf32>, tensor<f32>) -> tensor<2xf32>
//        ^ stablehlo.dynamic_slice expects start indices that are integers of one type, got tensor<f32>
     return %0 : tensor<2xf32>
   }
// -----
// A Fourier transform of integers.
   func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> {
     %0 = stablehlo.fft %x, type = FFT, length = [4] : (tensor<4xi32>) -> tensor<4xi32>
//        ^ stablehlo.fft expects complex numbers for FFT, got tensor<4xi32>
     return %0 : tensor<4xi32>
   }
// -----
// A memref, which only the compiler's own stages have.
   func.func @main(%x: memref<4xf32>) -> memref<4xf32> {
// ^ func.func expects arguments and results that are tensors of scalars where it is public, got
     return %x : memref<4xf32>
   }
// -----
// A tuple as an argument.
   func.func @main(%x: tuple<tensor<4xf32>, tensor<4xf32>>) -> tuple<tensor<4xf32>, tensor<4xf32>> {
// ^ func.func expects arguments and results that are tensors of scalars where it is public, got
     return %x : tuple<tensor<4xf32>, tensor<4xf32>>
   }
// -----
// A type of nobody's as an argument, and no cast to a tensor.
   func.func @main(%x: !nobody.knows) -> !nobody.knows {
// ^ argument 0, !nobody.knows: expected casts to the tensor that it holds, got none
     return %x : !nobody.knows
   }
