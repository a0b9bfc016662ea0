// A constant with too few elements.
   func.func @main() -> tensor<4xf32> {
     %0 = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<4xf32>
//                                 ^ the constant's elements have the shape [3], its type is tensor<4xf32>
     return %0 : tensor<4xf32>
   }
// -----
// A constant with too many elements.
   func.func @main() -> tensor<2xf32> {
     %0 = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<2xf32>
//                                 ^ the constant's elements have the shape [3], its type is tensor<2xf32>
     return %0 : tensor<2xf32>
   }
// -----
// A constant of another shape.
   func.func @main() -> tensor<4x2xf32> {
     %0 = stablehlo.constant dense<[[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]]> : tensor<4x2xf32>
//                                 ^ the constant's elements have the shape [2, 4], its type is tensor<4x2xf32>
     return %0 : tensor<4x2xf32>
   }
// -----
// A constant with rows of different lengths.
   func.func @main() -> tensor<2x2xf32> {
     %0 = stablehlo.constant dense<[[1.0, 2.0], [3.0]]> : tensor<2x2xf32>
//                                 ^ expected elements of f32 in lists of equal lengths
     return %0 : tensor<2x2xf32>
   }
// -----
// A constant that says it has a gigabyte.
   func.func @main() -> tensor<268435456xf32> {
     %0 = stablehlo.constant dense<"0x0000803F00000040"> : tensor<268435456xf32>
//                                 ^ the constant has 8 bytes, tensor<268435456xf32> takes 1073741824
     return %0 : tensor<268435456xf32>
   }
// -----
// A constant with more bytes than its type.
   func.func @main() -> tensor<2xf32> {
     %0 = stablehlo.constant dense<"0x0000803F000000400000803F"> : tensor<2xf32>
//                                 ^ the constant has 12 bytes, tensor<2xf32> takes 8
     return %0 : tensor<2xf32>
   }
// -----
// Hexadecimal with a letter that is none.
   func.func @main() -> tensor<2xf32> {
     %0 = stablehlo.constant dense<"0x0000803F0000004G"> : tensor<2xf32>
//                                 ^ expected numbers, or hexadecimal digits in quotes such as "0x0000803F"
     return %0 : tensor<2xf32>
   }
// -----
// Hexadecimal with half a byte.
   func.func @main() -> tensor<2xf32> {
     %0 = stablehlo.constant dense<"0x0000803F0000004"> : tensor<2xf32>
//                                 ^ the constant has 15 hexadecimal digits, two make a byte
     return %0 : tensor<2xf32>
   }
// -----
// Hexadecimal that does not end.
   func.func @main() -> tensor<2xf32> {
     %0 = stablehlo.constant dense<"0x0000803F
     return %0 : tensor<2xf32>
   }
// ^ expected '>', got }
// -----
// A constant with words.
   func.func @main() -> tensor<2xf32> {
     %0 = stablehlo.constant dense<[one, two]> : tensor<2xf32>
//                                 ^ expected numbers, true or false, in nested lists with commas between them
     return %0 : tensor<2xf32>
   }
// -----
// A fraction as an integer.
   func.func @main() -> tensor<2xi32> {
     %0 = stablehlo.constant dense<[1, 2.5]> : tensor<2xi32>
//                                 ^ expected elements of i32: a fraction is no i32
     return %0 : tensor<2xi32>
   }
// -----
// A number too large for its type.
   func.func @main() -> tensor<2xi8> {
     %0 = stablehlo.constant dense<[1, 256]> : tensor<2xi8>
//                                 ^ an element does not fit i8
     return %0 : tensor<2xi8>
   }
// -----
// A negative number without a sign bit.
   func.func @main() -> tensor<2xui8> {
     %0 = stablehlo.constant dense<[1, -1]> : tensor<2xui8>
//                                 ^ an element does not fit ui8
     return %0 : tensor<2xui8>
   }
// -----
// A boolean that is neither.
   func.func @main() -> tensor<2xi1> {
     %0 = stablehlo.constant dense<[true, 7]> : tensor<2xi1>
//                                 ^ expected elements of i1: booleans are true or false
     return %0 : tensor<2xi1>
   }
// -----
// Data that is elsewhere.
   func.func @main() -> tensor<2xf32> {
     %0 = stablehlo.constant dense_resource<weights> : tensor<2xf32>
//                           ^ the data of dense_resource is outside of the function: print the program with dense constants
     return %0 : tensor<2xf32>
   }
// -----
// A constant of another type than it gives.
   func.func @main() -> tensor<4xf32> {
     %0 = "stablehlo.constant"() {value = dense<1.0> : tensor<3xf32>} : () -> tensor<4xf32>
//        ^ stablehlo.constant expects results of types (tensor<3xf32>), got (tensor<4xf32>)
     return %0 : tensor<4xf32>
   }
// -----
// A constant without a value.
   func.func @main() -> tensor<4xf32> {
     %0 = "stablehlo.constant"() : () -> tensor<4xf32>
//        ^ stablehlo.constant expects a value such as dense<0> : tensor<i32>
     return %0 : tensor<4xf32>
   }
// -----
// A comparison that does not exist.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xi1> {
     %0 = stablehlo.compare ABOUT, %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
//        ^ stablehlo.compare expects comparison_direction to be EQ, NE, LT, LE, GT or GE
     return %0 : tensor<4xi1>
   }
// -----
// A comparison without a direction.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xi1> {
     %0 = "stablehlo.compare"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
//        ^ stablehlo.compare expects comparison_direction to be EQ, NE, LT, LE, GT or GE
     return %0 : tensor<4xi1>
   }
// -----
// A sort by a name.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.sort"(%x) ({
//        ^ stablehlo.sort expects the attribute dimension with an integer, got first
     ^bb0(%a: tensor<f32>, %b: tensor<f32>):
       %1 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
       stablehlo.return %1 : tensor<i1>
     }) {dimension = "first"} : (tensor<4xf32>) -> tensor<4xf32>
     return %0 : tensor<4xf32>
   }
// -----
// A transposition by words.
   func.func @main(%x: tensor<4x3xf32>) -> tensor<3x4xf32> {
     %0 = "stablehlo.transpose"(%x) {permutation = "1, 0"} : (tensor<4x3xf32>) -> tensor<3x4xf32>
//        ^ stablehlo.transpose expects the attribute permutation with a list of integers
     return %0 : tensor<3x4xf32>
   }
// -----
// A transposition by fractions.
   func.func @main(%x: tensor<4x3xf32>) -> tensor<3x4xf32> {
     %0 = "stablehlo.transpose"(%x) {permutation = array<f32: 1.0, 0.5>} : (tensor<4x3xf32>) -> tensor<3x4xf32>
//        ^ stablehlo.transpose expects the attribute permutation with a list of integers
     return %0 : tensor<3x4xf32>
   }
// -----
// A transposition without an order.
   func.func @main(%x: tensor<4x3xf32>) -> tensor<3x4xf32> {
     %0 = "stablehlo.transpose"(%x) : (tensor<4x3xf32>) -> tensor<3x4xf32>
//        ^ stablehlo.transpose expects the attribute permutation with a list of integers
     return %0 : tensor<3x4xf32>
   }
// -----
// A product without dimension numbers.
   func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
     %0 = "stablehlo.dot_general"(%x, %x) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
//        ^ stablehlo.dot_general expects the attribute dot_dimension_numbers
     return %0 : tensor<4x4xf32>
   }
// -----
// Precision that does not exist.
   func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
     %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0], precision = [GOOD, GOOD] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
//        ^ stablehlo.dot_general expects precision_config with DEFAULT, HIGH, HIGHEST for each of two operands
     return %0 : tensor<4x4xf32>
   }
// -----
// A Fourier transform of a kind that does not exist.
   func.func @main(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
     %0 = stablehlo.fft %x, type = DCT, length = [4] : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
//        ^ stablehlo.fft expects fft_type to be FFT, IFFT, RFFT or IRFFT
     return %0 : tensor<4xcomplex<f32>>
   }
// -----
// Fewer bits than none.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = stablehlo.reduce_precision %x, format = e0m7 : tensor<4xf32>
//        ^ stablehlo.reduce_precision expects at least 1 exponent bit and 0 mantissa bits
     return %0 : tensor<4xf32>
   }
// -----
// Random bits of an algorithm that does not exist.
   func.func @main(%s: tensor<2xui64>) -> tensor<4xui32> {
     %0:2 = stablehlo.rng_bit_generator %s, algorithm = DICE : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
//          ^ stablehlo.rng_bit_generator expects rng_algorithm to be one of DEFAULT, THREE_FRY, PHILOX, got
     return %0#1 : tensor<4xui32>
   }
// -----
// Random bits from a state of the wrong size.
   func.func @main(%s: tensor<5xui64>) -> tensor<4xui32> {
     %0:2 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<5xui64>) -> (tensor<5xui64>, tensor<4xui32>)
//          ^ stablehlo.rng_bit_generator expects a state of 2 64-bit integers for THREE_FRY, got tensor<5xui64>
     return %0#1 : tensor<4xui32>
   }
// -----
// A transposed solution of a kind that does not exist.
   func.func @main(%a: tensor<3x3xf32>, %b: tensor<3x1xf32>) -> tensor<3x1xf32> {
     %0 = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose SIDEWAYS>} : (tensor<3x3xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
//        ^ stablehlo.triangular_solve expects transpose_a to be one of NO_TRANSPOSE, TRANSPOSE, ADJOINT, got
     return %0 : tensor<3x1xf32>
   }
// -----
// The best of more than there are.
   func.func @main(%x: tensor<4xf32>) -> tensor<5xf32> {
     %0:2 = chlo.top_k(%x, k = 5) : tensor<4xf32> -> (tensor<5xf32>, tensor<5xi32>)
//          ^ chlo.top_k expects k from 0 to the last dimension of tensor<4xf32>, got 5
     return %0#0 : tensor<5xf32>
   }
// -----
// A number in a list that its type does not have.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.reverse"(%x) {dimensions = array<i64: 1e400>} : (tensor<4xf32>) -> tensor<4xf32>
//                                                         ^ 1e400 is no i64
     return %0 : tensor<4xf32>
   }
// -----
// A number in a list that is too large for its type.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.reverse"(%x) {dimensions = array<i8: 300>} : (tensor<4xf32>) -> tensor<4xf32>
//                                                        ^ the number does not fit i8
     return %0 : tensor<4xf32>
   }
// -----
// A list of something that is no number.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.reverse"(%x) {dimensions = array<none: 0>} : (tensor<4xf32>) -> tensor<4xf32>
//                                                    ^ an array has integers, booleans or floating-point numbers, not none
     return %0 : tensor<4xf32>
   }
