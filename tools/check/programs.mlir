// Programs of `pumice check`. The lines above a function say what it is:
//
//   case AREA/TITLE    the case; $T in the title and in the function stands for each of the types
//   types T T …        element types
//   values NAME        the arguments' values, or `values %x NAME` those of one: any (every bit pattern of integers, and
//                      the least and the greatest; floats around 0), whole A B (whole numbers from A to B), nonzero,
//                      range A B (floats), special (NaN, infinities, zeros, subnormals among others), ordinals (0, 1, …)
//   strategies S S …   one case for each way to compute it; a device that would never compute it so skips the case
//   lengths N          of dimensions without one
//   numpy NAME         a function of programs.py that gives the results independently
//   atol N             the absolute tolerance against NumPy; by default the type's
//   reference no       the device `reference` takes too long
//
// Each function is called `main` and is run on the device and on the device `reference`.

// == types ==

// case types/sums and products $T
// types i8 i16 i32 i64 ui8 ui16 ui32 ui64 f16 bf16 f32 f64
// numpy sums_and_products
func.func public @main(%a: tensor<259x$T>, %b: tensor<259x$T>) -> (tensor<259x$T>, tensor<259x$T>, tensor<259x$T>) {
  %0 = stablehlo.add %a, %b : tensor<259x$T>
  %1 = stablehlo.subtract %a, %b : tensor<259x$T>
  %2 = stablehlo.multiply %a, %b : tensor<259x$T>
  return %0, %1, %2 : tensor<259x$T>, tensor<259x$T>, tensor<259x$T>
}

// case types/quotients and remainders $T
// types i8 i16 i32 i64 ui8 ui16 ui32 ui64 f16 bf16 f32 f64
// values %b nonzero
func.func public @main(%a: tensor<259x$T>, %b: tensor<259x$T>) -> (tensor<259x$T>, tensor<259x$T>) {
  %0 = stablehlo.divide %a, %b : tensor<259x$T>
  %1 = stablehlo.remainder %a, %b : tensor<259x$T>
  return %0, %1 : tensor<259x$T>, tensor<259x$T>
}

// case types/comparisons and choices $T
// types i8 i16 i32 i64 ui8 ui16 ui32 ui64 f16 bf16 f32 f64
// numpy comparisons
func.func public @main(%a: tensor<259x$T>, %b: tensor<259x$T>) -> (tensor<259xi1>, tensor<259xi1>, tensor<259x$T>, tensor<259x$T>, tensor<259x$T>) {
  %0 = stablehlo.compare LT, %a, %b : (tensor<259x$T>, tensor<259x$T>) -> tensor<259xi1>
  %1 = stablehlo.compare EQ, %a, %b : (tensor<259x$T>, tensor<259x$T>) -> tensor<259xi1>
  %2 = stablehlo.select %0, %a, %b : tensor<259xi1>, tensor<259x$T>
  %3 = stablehlo.maximum %a, %b : tensor<259x$T>
  %4 = stablehlo.minimum %a, %b : tensor<259x$T>
  return %0, %1, %2, %3, %4 : tensor<259xi1>, tensor<259xi1>, tensor<259x$T>, tensor<259x$T>, tensor<259x$T>
}

// case types/signs $T
// types i8 i16 i32 i64 f16 bf16 f32 f64
// numpy signs
func.func public @main(%a: tensor<259x$T>) -> (tensor<259x$T>, tensor<259x$T>, tensor<259x$T>) {
  %0 = stablehlo.abs %a : tensor<259x$T>
  %1 = stablehlo.negate %a : tensor<259x$T>
  %2 = stablehlo.sign %a : tensor<259x$T>
  return %0, %1, %2 : tensor<259x$T>, tensor<259x$T>, tensor<259x$T>
}

// case types/bits $T
// types i8 i16 i32 i64 ui8 ui16 ui32 ui64
// numpy bits
func.func public @main(%a: tensor<259x$T>, %b: tensor<259x$T>) -> (tensor<259x$T>, tensor<259x$T>, tensor<259x$T>, tensor<259x$T>) {
  %0 = stablehlo.and %a, %b : tensor<259x$T>
  %1 = stablehlo.or %a, %b : tensor<259x$T>
  %2 = stablehlo.xor %a, %b : tensor<259x$T>
  %3 = stablehlo.not %a : tensor<259x$T>
  return %0, %1, %2, %3 : tensor<259x$T>, tensor<259x$T>, tensor<259x$T>, tensor<259x$T>
}

// case types/shifts and counts of bits $T
// types i8 i16 i32 i64 ui8 ui16 ui32 ui64
// values %b whole 0 70
func.func public @main(%a: tensor<259x$T>, %b: tensor<259x$T>) -> (tensor<259x$T>, tensor<259x$T>, tensor<259x$T>, tensor<259x$T>, tensor<259x$T>) {
  %0 = stablehlo.shift_left %a, %b : tensor<259x$T>
  %1 = stablehlo.shift_right_logical %a, %b : tensor<259x$T>
  %2 = stablehlo.shift_right_arithmetic %a, %b : tensor<259x$T>
  %3 = stablehlo.popcnt %a : tensor<259x$T>
  %4 = stablehlo.count_leading_zeros %a : tensor<259x$T>
  return %0, %1, %2, %3, %4 : tensor<259x$T>, tensor<259x$T>, tensor<259x$T>, tensor<259x$T>, tensor<259x$T>
}

// case types/conversions from $T
// types i8 i16 i32 i64 ui8 ui16 ui32 ui64 f16 bf16 f32
// values whole -100 100
func.func public @main(%a: tensor<259x$T>) -> (tensor<259xf32>, tensor<259xi64>, tensor<259xi32>, tensor<259xi16>, tensor<259xf16>, tensor<259xbf16>, tensor<259xi1>) {
  %0 = stablehlo.convert %a : (tensor<259x$T>) -> tensor<259xf32>
  %1 = stablehlo.convert %a : (tensor<259x$T>) -> tensor<259xi64>
  %2 = stablehlo.convert %a : (tensor<259x$T>) -> tensor<259xi32>
  %3 = stablehlo.convert %a : (tensor<259x$T>) -> tensor<259xi16>
  %4 = stablehlo.convert %a : (tensor<259x$T>) -> tensor<259xf16>
  %5 = stablehlo.convert %a : (tensor<259x$T>) -> tensor<259xbf16>
  %6 = stablehlo.convert %a : (tensor<259x$T>) -> tensor<259xi1>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<259xf32>, tensor<259xi64>, tensor<259xi32>, tensor<259xi16>, tensor<259xf16>, tensor<259xbf16>, tensor<259xi1>
}

// case types/64-bit integers from $T, divided
// types i8 i16 i32
func.func public @main(%a: tensor<259x$T>) -> (tensor<259xi64>, tensor<259xi64>, tensor<259xi1>, tensor<259xf32>) {
  %two = stablehlo.constant dense<2> : tensor<259xi64>
  %zero = stablehlo.constant dense<0> : tensor<259xi64>
  %0 = stablehlo.convert %a : (tensor<259x$T>) -> tensor<259xi64>
  %1 = stablehlo.divide %0, %two : tensor<259xi64>
  %2 = stablehlo.abs %0 : tensor<259xi64>
  %3 = stablehlo.compare LT, %0, %zero : (tensor<259xi64>, tensor<259xi64>) -> tensor<259xi1>
  %4 = stablehlo.convert %1 : (tensor<259xi64>) -> tensor<259xf32>
  return %1, %2, %3, %4 : tensor<259xi64>, tensor<259xi64>, tensor<259xi1>, tensor<259xf32>
}

// case types/narrow floats $T
// types f8E5M2 f8E4M3FN
func.func public @main(%a: tensor<259xf32>, %b: tensor<259x$T>) -> (tensor<259x$T>, tensor<259xf32>, tensor<259x$T>) {
  %0 = stablehlo.convert %a : (tensor<259xf32>) -> tensor<259x$T>
  %1 = stablehlo.convert %b : (tensor<259x$T>) -> tensor<259xf32>
  %2 = stablehlo.add %0, %b : tensor<259x$T>
  return %0, %1, %2 : tensor<259x$T>, tensor<259xf32>, tensor<259x$T>
}

// case types/complex numbers
func.func public @main(%a: tensor<259xf32>, %b: tensor<259xf32>) -> (tensor<259xf32>, tensor<259xf32>) {
  %0 = stablehlo.complex %a, %b : tensor<259xcomplex<f32>>
  %1 = stablehlo.multiply %0, %0 : tensor<259xcomplex<f32>>
  %2 = stablehlo.real %1 : (tensor<259xcomplex<f32>>) -> tensor<259xf32>
  %3 = stablehlo.imag %1 : (tensor<259xcomplex<f32>>) -> tensor<259xf32>
  return %2, %3 : tensor<259xf32>, tensor<259xf32>
}

// == functions ==

// case functions/NaN, infinities and zeros $T
// types f16 bf16 f32 f64
// values special
func.func public @main(%a: tensor<400x$T>, %b: tensor<400x$T>) -> (tensor<400x$T>, tensor<400x$T>, tensor<400x$T>, tensor<400x$T>, tensor<400xi1>, tensor<400xi1>, tensor<400xi1>) {
  %0 = stablehlo.add %a, %b : tensor<400x$T>
  %1 = stablehlo.multiply %a, %b : tensor<400x$T>
  %2 = stablehlo.maximum %a, %b : tensor<400x$T>
  %3 = stablehlo.minimum %a, %b : tensor<400x$T>
  %4 = stablehlo.compare LT, %a, %b : (tensor<400x$T>, tensor<400x$T>) -> tensor<400xi1>
  %5 = stablehlo.compare NE, %a, %b : (tensor<400x$T>, tensor<400x$T>) -> tensor<400xi1>
  %6 = stablehlo.is_finite %a : (tensor<400x$T>) -> tensor<400xi1>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<400x$T>, tensor<400x$T>, tensor<400x$T>, tensor<400x$T>, tensor<400xi1>, tensor<400xi1>, tensor<400xi1>
}

// case functions/operations with a constant zero $T
// types f16 f32 f64
// values special
func.func public @main(%a: tensor<400x$T>) -> (tensor<400x$T>, tensor<400x$T>, tensor<400x$T>, tensor<400x$T>) {
  %zero = stablehlo.constant dense<0.0> : tensor<400x$T>
  %0 = stablehlo.divide %a, %zero : tensor<400x$T>
  %1 = stablehlo.divide %zero, %a : tensor<400x$T>
  %2 = stablehlo.multiply %a, %zero : tensor<400x$T>
  %3 = stablehlo.subtract %a, %a : tensor<400x$T>
  return %0, %1, %2, %3 : tensor<400x$T>, tensor<400x$T>, tensor<400x$T>, tensor<400x$T>
}

// case functions/rounding $T
// types f16 bf16 f32 f64
// values range -50 50
// numpy rounding
func.func public @main(%a: tensor<259x$T>) -> (tensor<259x$T>, tensor<259x$T>, tensor<259x$T>) {
  %0 = stablehlo.floor %a : tensor<259x$T>
  %1 = stablehlo.ceil %a : tensor<259x$T>
  %2 = stablehlo.round_nearest_even %a : tensor<259x$T>
  return %0, %1, %2 : tensor<259x$T>, tensor<259x$T>, tensor<259x$T>
}

// case functions/powers and logarithms $T
// types f16 bf16 f32 f64
// values range 0.1 9
// numpy powers
func.func public @main(%a: tensor<259x$T>) -> (tensor<259x$T>, tensor<259x$T>, tensor<259x$T>, tensor<259x$T>) {
  %0 = stablehlo.exponential %a : tensor<259x$T>
  %1 = stablehlo.log %a : tensor<259x$T>
  %2 = stablehlo.exponential_minus_one %a : tensor<259x$T>
  %3 = stablehlo.log_plus_one %a : tensor<259x$T>
  return %0, %1, %2, %3 : tensor<259x$T>, tensor<259x$T>, tensor<259x$T>, tensor<259x$T>
}

// case functions/roots $T
// types f16 bf16 f32 f64
// values range 0.1 60
// numpy roots
func.func public @main(%a: tensor<259x$T>) -> (tensor<259x$T>, tensor<259x$T>, tensor<259x$T>) {
  %0 = stablehlo.sqrt %a : tensor<259x$T>
  %1 = stablehlo.rsqrt %a : tensor<259x$T>
  %2 = stablehlo.cbrt %a : tensor<259x$T>
  return %0, %1, %2 : tensor<259x$T>, tensor<259x$T>, tensor<259x$T>
}

// case functions/sines and cosines $T
// types f16 bf16 f32 f64
// values range -7 7
func.func public @main(%a: tensor<259x$T>) -> (tensor<259x$T>, tensor<259x$T>, tensor<259x$T>, tensor<259x$T>) {
  %0 = stablehlo.sine %a : tensor<259x$T>
  %1 = stablehlo.cosine %a : tensor<259x$T>
  %2 = stablehlo.tanh %a : tensor<259x$T>
  %3 = stablehlo.logistic %a : tensor<259x$T>
  return %0, %1, %2, %3 : tensor<259x$T>, tensor<259x$T>, tensor<259x$T>, tensor<259x$T>
}

// case functions/two arguments $T
// types f16 f32 f64
// values range 0.2 4
func.func public @main(%a: tensor<259x$T>, %b: tensor<259x$T>) -> (tensor<259x$T>, tensor<259x$T>) {
  %0 = stablehlo.power %a, %b : tensor<259x$T>
  %1 = stablehlo.atan2 %a, %b : tensor<259x$T>
  return %0, %1 : tensor<259x$T>, tensor<259x$T>
}

// == products ==

// case products/128 x 128 $T
// types f32 f16 bf16 i32 f64
// values whole -4 4
// numpy matmul
func.func public @main(%a: tensor<128x128x$T>, %b: tensor<128x128x$T>) -> tensor<128x128x$T> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<128x128x$T>, tensor<128x128x$T>) -> tensor<128x128x$T>
  return %0 : tensor<128x128x$T>
}

// case products/256 x 256 f32
// values whole -4 4
// strategies contraction_tile workgroup_tile
// numpy matmul
func.func public @main(%a: tensor<256x256xf32>, %b: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  return %0 : tensor<256x256xf32>
}

// case products/256 x 256 f16
// values whole -2 2
// strategies contraction_tile workgroup_tile cooperative_tile
// numpy matmul
func.func public @main(%a: tensor<256x256xf16>, %b: tensor<256x256xf16>) -> tensor<256x256xf16> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<256x256xf16>, tensor<256x256xf16>) -> tensor<256x256xf16>
  return %0 : tensor<256x256xf16>
}

// case products/256 x 256 f16 to f32
// values whole -4 4
// strategies contraction_tile workgroup_tile cooperative_tile
// numpy matmul32
func.func public @main(%a: tensor<256x256xf16>, %b: tensor<256x256xf16>) -> tensor<256x256xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<256x256xf16>, tensor<256x256xf16>) -> tensor<256x256xf32>
  return %0 : tensor<256x256xf32>
}

// case products/256 x 256 bytes to i32
// strategies contraction_tile workgroup_tile cooperative_tile
// numpy matmul_integers
func.func public @main(%a: tensor<256x256xi8>, %b: tensor<256x256xi8>) -> tensor<256x256xi32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<256x256xi8>, tensor<256x256xi8>) -> tensor<256x256xi32>
  return %0 : tensor<256x256xi32>
}

// case products/odd sizes $T
// types f32 f16 i32
// values whole -4 4
// numpy matmul
func.func public @main(%a: tensor<37x53x$T>, %b: tensor<53x41x$T>) -> tensor<37x41x$T> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<37x53x$T>, tensor<53x41x$T>) -> tensor<37x41x$T>
  return %0 : tensor<37x41x$T>
}

// case products/matrix and vector
// values whole -4 4
// strategies contraction_tile elements
// numpy matmul
func.func public @main(%a: tensor<64x1024xf32>, %b: tensor<1024xf32>) -> tensor<64xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x1024xf32>, tensor<1024xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// case products/batches
// values whole -4 4
// numpy matmul
func.func public @main(%a: tensor<6x40x24xf32>, %b: tensor<6x24x32xf32>) -> tensor<6x40x32xf32> {
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<6x40x24xf32>, tensor<6x24x32xf32>) -> tensor<6x40x32xf32>
  return %0 : tensor<6x40x32xf32>
}

// case products/transposed factor with an epilogue
// values whole -4 4
// numpy layer
func.func public @main(%a: tensor<64x96xf32>, %b: tensor<48x96xf32>, %c: tensor<48xf32>) -> tensor<64x48xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1] : (tensor<64x96xf32>, tensor<48x96xf32>) -> tensor<64x48xf32>
  %1 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<48xf32>) -> tensor<64x48xf32>
  %2 = stablehlo.add %0, %1 : tensor<64x48xf32>
  %3 = stablehlo.constant dense<0.0> : tensor<64x48xf32>
  %4 = stablehlo.maximum %2, %3 : tensor<64x48xf32>
  return %4 : tensor<64x48xf32>
}

// case products/convolution $T
// types f32 f16
// values whole -3 3
func.func public @main(%a: tensor<2x17x19x8x$T>, %b: tensor<3x3x8x16x$T>) -> tensor<2x17x19x16x$T> {
  %0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x17x19x8x$T>, tensor<3x3x8x16x$T>) -> tensor<2x17x19x16x$T>
  return %0 : tensor<2x17x19x16x$T>
}

// case products/strided and grouped convolution
// values whole -3 3
func.func public @main(%a: tensor<1x20x20x8xf32>, %b: tensor<3x3x1x8xf32>) -> tensor<1x9x9x8xf32> {
  %0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 0], [0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 8 : i64} : (tensor<1x20x20x8xf32>, tensor<3x3x1x8xf32>) -> tensor<1x9x9x8xf32>
  return %0 : tensor<1x9x9x8xf32>
}

// == rows ==

// case rows/sums of rows $T
// types f32 f16 i32 i64
// values whole -4 4
// numpy sum_rows
func.func public @main(%a: tensor<65x1000x$T>) -> tensor<65x$T> {
  %z = stablehlo.constant dense<0> : tensor<$T>
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (tensor<65x1000x$T>, tensor<$T>) -> tensor<65x$T>
  return %0 : tensor<65x$T>
}

// case rows/sums of long rows
// values whole -4 4
// strategies rows elements
// numpy sum_rows
func.func public @main(%a: tensor<16x8192xf32>) -> tensor<16xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (tensor<16x8192xf32>, tensor<f32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// case rows/sums of columns
// values whole -4 4
// numpy sum_columns
func.func public @main(%a: tensor<1024x72xf32>) -> tensor<72xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<1024x72xf32>, tensor<f32>) -> tensor<72xf32>
  return %0 : tensor<72xf32>
}

// case rows/sum of a million
// values whole -4 4
// numpy sum_all
func.func public @main(%a: tensor<1048583xf32>) -> tensor<f32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<1048583xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// case rows/maxima $T
// types i8 ui16 i64 f32
// numpy max_rows
func.func public @main(%a: tensor<33x500x$T>, %z: tensor<$T>) -> tensor<33x$T> {
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.maximum across dimensions = [1] : (tensor<33x500x$T>, tensor<$T>) -> tensor<33x$T>
  return %0 : tensor<33x$T>
}

// case rows/places of maxima
// values whole -50 50
// numpy argmax
func.func public @main(%a: tensor<33x500xf32>) -> tensor<33xi32> {
  %i = stablehlo.iota dim = 1 : tensor<33x500xi32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.reduce(%a init: %low), (%i init: %zero) across dimensions = [1] : (tensor<33x500xf32>, tensor<33x500xi32>, tensor<f32>, tensor<i32>) -> (tensor<33xf32>, tensor<33xi32>)
   reducer(%x: tensor<f32>, %y: tensor<f32>) (%p: tensor<i32>, %q: tensor<i32>) {
    %1 = stablehlo.compare GT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = stablehlo.compare EQ, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %3 = stablehlo.minimum %p, %q : tensor<i32>
    %4 = stablehlo.select %1, %p, %q : tensor<i1>, tensor<i32>
    %5 = stablehlo.select %2, %3, %4 : tensor<i1>, tensor<i32>
    %6 = stablehlo.maximum %x, %y : tensor<f32>
    stablehlo.return %6, %5 : tensor<f32>, tensor<i32>
  }
  return %0#1 : tensor<33xi32>
}

// case rows/softmax
// values range -5 5
// strategies rows elements
// numpy softmax
func.func public @main(%a: tensor<48x640xf32>) -> tensor<48x640xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<48x640xf32>, tensor<f32>) -> tensor<48xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<48xf32>) -> tensor<48x640xf32>
  %2 = stablehlo.subtract %a, %1 : tensor<48x640xf32>
  %3 = stablehlo.exponential %2 : tensor<48x640xf32>
  %4 = stablehlo.reduce(%3 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<48x640xf32>, tensor<f32>) -> tensor<48xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<48xf32>) -> tensor<48x640xf32>
  %6 = stablehlo.divide %3, %5 : tensor<48x640xf32>
  return %6 : tensor<48x640xf32>
}

// case rows/running sums $T
// reference no
// types f32 i32 i64
// values whole -4 4
// strategies row_scans look_back_scans
// numpy running_sums
func.func public @main(%a: tensor<2x8208x$T>) -> tensor<2x8208x$T> {
  %z = stablehlo.constant dense<0> : tensor<$T>
  %0 = "stablehlo.reduce_window"(%a, %z) ({
  ^bb0(%x: tensor<$T>, %y: tensor<$T>):
    %1 = stablehlo.add %x, %y : tensor<$T>
    stablehlo.return %1 : tensor<$T>
  }) {window_dimensions = array<i64: 1, 8208>, padding = dense<[[0, 0], [8207, 0]]> : tensor<2x2xi64>} : (tensor<2x8208x$T>, tensor<$T>) -> tensor<2x8208x$T>
  return %0 : tensor<2x8208x$T>
}

// case rows/running sums of columns
// values whole -4 4
// strategies column_scans
// numpy running_sums_of_columns
func.func public @main(%a: tensor<300x48xf32>) -> tensor<300x48xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %z) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %1 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {window_dimensions = array<i64: 300, 1>, padding = dense<[[299, 0], [0, 0]]> : tensor<2x2xi64>} : (tensor<300x48xf32>, tensor<f32>) -> tensor<300x48xf32>
  return %0 : tensor<300x48xf32>
}

// case rows/windows
// values whole -9 9
func.func public @main(%a: tensor<2x32x32x8xf32>) -> tensor<2x16x16x8xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %low) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %1 = stablehlo.maximum %x, %y : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>} : (tensor<2x32x32x8xf32>, tensor<f32>) -> tensor<2x16x16x8xf32>
  return %0 : tensor<2x16x16x8xf32>
}

// case rows/Fourier transform
// values whole -4 4
// strategies fourier_rows
// numpy fourier
// atol 1e-3
func.func public @main(%a: tensor<4x256xf32>) -> (tensor<4x256xf32>, tensor<4x256xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<4x256xf32>
  %0 = stablehlo.complex %a, %z : tensor<4x256xcomplex<f32>>
  %1 = stablehlo.fft %0, type = FFT, length = [256] : (tensor<4x256xcomplex<f32>>) -> tensor<4x256xcomplex<f32>>
  %2 = stablehlo.real %1 : (tensor<4x256xcomplex<f32>>) -> tensor<4x256xf32>
  %3 = stablehlo.imag %1 : (tensor<4x256xcomplex<f32>>) -> tensor<4x256xf32>
  return %2, %3 : tensor<4x256xf32>, tensor<4x256xf32>
}

// == sorts ==

// case sorts/rows of $T
// types i8 ui32 i64 f16 f32 f64
// numpy sort
func.func public @main(%a: tensor<3x1000x$T>) -> tensor<3x1000x$T> {
  %0 = "stablehlo.sort"(%a) ({
  ^bb0(%x: tensor<$T>, %y: tensor<$T>):
    %1 = stablehlo.compare LT, %x, %y : (tensor<$T>, tensor<$T>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) {dimension = 1 : i64, is_stable = true} : (tensor<3x1000x$T>) -> tensor<3x1000x$T>
  return %0 : tensor<3x1000x$T>
}

// case sorts/a long row
// reference no
// values whole -30000 30000
// strategies merge_sort digit_sort
// numpy sort
func.func public @main(%a: tensor<131072xi32>) -> tensor<131072xi32> {
  %0 = "stablehlo.sort"(%a) ({
  ^bb0(%x: tensor<i32>, %y: tensor<i32>):
    %1 = stablehlo.compare LT, %x, %y, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) {dimension = 0 : i64, is_stable = true} : (tensor<131072xi32>) -> tensor<131072xi32>
  return %0 : tensor<131072xi32>
}

// case sorts/keys with values, falling
// values %k whole -20 20
// values %v ordinals
// numpy sort_pairs
func.func public @main(%k: tensor<5000xf32>, %v: tensor<5000xi32>) -> (tensor<5000xf32>, tensor<5000xi32>) {
  %0:2 = "stablehlo.sort"(%k, %v) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>, %p: tensor<i32>, %q: tensor<i32>):
    %1 = stablehlo.compare GT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) {dimension = 0 : i64, is_stable = true} : (tensor<5000xf32>, tensor<5000xi32>) -> (tensor<5000xf32>, tensor<5000xi32>)
  return %0#0, %0#1 : tensor<5000xf32>, tensor<5000xi32>
}

// == movement ==

// case movement/transpose $T
// types f32 i8 i64
// strategies transpose_tile shared_transpose elements
// numpy transpose
func.func public @main(%a: tensor<260x516x$T>) -> tensor<516x260x$T> {
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<260x516x$T>) -> tensor<516x260x$T>
  return %0 : tensor<516x260x$T>
}

// case movement/slices, padding and reversal
func.func public @main(%a: tensor<30x31xf32>) -> (tensor<10x12xf32>, tensor<63x35xf32>, tensor<30x31xf32>, tensor<60x31xf32>) {
  %z = stablehlo.constant dense<7.0> : tensor<f32>
  %0 = stablehlo.slice %a [2:22:2, 3:27:2] : (tensor<30x31xf32>) -> tensor<10x12xf32>
  %1 = stablehlo.pad %a, %z, low = [1, 2], high = [3, 2], interior = [1, 0] : (tensor<30x31xf32>, tensor<f32>) -> tensor<63x35xf32>
  %2 = stablehlo.reverse %a, dims = [0, 1] : tensor<30x31xf32>
  %3 = stablehlo.concatenate %a, %2, dim = 0 : (tensor<30x31xf32>, tensor<30x31xf32>) -> tensor<60x31xf32>
  return %0, %1, %2, %3 : tensor<10x12xf32>, tensor<63x35xf32>, tensor<30x31xf32>, tensor<60x31xf32>
}

// case movement/bytes at odd places
func.func public @main(%a: tensor<4099xi8>) -> (tensor<1357xi8>, tensor<4102xi8>) {
  %z = stablehlo.constant dense<3> : tensor<i8>
  %0 = stablehlo.slice %a [5:4076:3] : (tensor<4099xi8>) -> tensor<1357xi8>
  %1 = stablehlo.pad %a, %z, low = [3], high = [0], interior = [0] : (tensor<4099xi8>, tensor<i8>) -> tensor<4102xi8>
  return %0, %1 : tensor<1357xi8>, tensor<4102xi8>
}

// case movement/rows gathered $T
// types f32 i8
// values %i whole 0 99
// numpy gather
func.func public @main(%a: tensor<100x33x$T>, %i: tensor<70x1xi32>) -> tensor<70x33x$T> {
  %0 = "stablehlo.gather"(%a, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 33>, indices_are_sorted = false} : (tensor<100x33x$T>, tensor<70x1xi32>) -> tensor<70x33x$T>
  return %0 : tensor<70x33x$T>
}

// case movement/rows added by index $T
// types i32 f32
// values %i whole 0 40
// values %a whole -9 9
// values %u whole -9 9
// numpy scatter_add
func.func public @main(%a: tensor<41x16x$T>, %i: tensor<500x1xi32>, %u: tensor<500x16x$T>) -> tensor<41x16x$T> {
  %0 = "stablehlo.scatter"(%a, %i, %u) ({
  ^bb0(%x: tensor<$T>, %y: tensor<$T>):
    %1 = stablehlo.add %x, %y : tensor<$T>
    stablehlo.return %1 : tensor<$T>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<41x16x$T>, tensor<500x1xi32>, tensor<500x16x$T>) -> tensor<41x16x$T>
  return %0 : tensor<41x16x$T>
}

// case movement/rows replaced by index
// values %i ordinals
func.func public @main(%a: tensor<600x8xf32>, %i: tensor<500x1xi32>, %u: tensor<500x8xf32>) -> tensor<600x8xf32> {
  %0 = "stablehlo.scatter"(%a, %i, %u) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %y : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = true} : (tensor<600x8xf32>, tensor<500x1xi32>, tensor<500x8xf32>) -> tensor<600x8xf32>
  return %0 : tensor<600x8xf32>
}

// case movement/slices at indices of the call
// values %i whole 0 20
func.func public @main(%a: tensor<40x40xf32>, %i: tensor<i32>, %u: tensor<4x5xf32>) -> (tensor<7x9xf32>, tensor<40x40xf32>) {
  %0 = stablehlo.dynamic_slice %a, %i, %i, sizes = [7, 9] : (tensor<40x40xf32>, tensor<i32>, tensor<i32>) -> tensor<7x9xf32>
  %1 = stablehlo.dynamic_update_slice %a, %u, %i, %i : (tensor<40x40xf32>, tensor<4x5xf32>, tensor<i32>, tensor<i32>) -> tensor<40x40xf32>
  return %0, %1 : tensor<7x9xf32>, tensor<40x40xf32>
}

// case movement/numbers and broadcasts
func.func public @main(%a: tensor<33xf32>) -> (tensor<20x33xf32>, tensor<20x33xi64>, tensor<33x20xf16>) {
  %0 = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<33xf32>) -> tensor<20x33xf32>
  %1 = stablehlo.iota dim = 1 : tensor<20x33xi64>
  %2 = stablehlo.iota dim = 0 : tensor<33x20xf16>
  return %0, %1, %2 : tensor<20x33xf32>, tensor<20x33xi64>, tensor<33x20xf16>
}

// == control ==

// case control/a loop that the device ends
// values %n whole 27 27
// numpy collatz
func.func public @main(%n: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %0:2 = stablehlo.while(%v = %n, %k = %zero) : tensor<i32>, tensor<i32>
  cond {
    %1 = stablehlo.compare NE, %v, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %r = stablehlo.remainder %v, %two : tensor<i32>
    %even = stablehlo.compare EQ, %r, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %w = "stablehlo.if"(%even) ({
      %h = stablehlo.divide %v, %two : tensor<i32>
      stablehlo.return %h : tensor<i32>
    }, {
      %m = stablehlo.multiply %v, %three : tensor<i32>
      %a = stablehlo.add %m, %one : tensor<i32>
      stablehlo.return %a : tensor<i32>
    }) : (tensor<i1>) -> tensor<i32>
    %kk = stablehlo.add %k, %one : tensor<i32>
    stablehlo.return %w, %kk : tensor<i32>, tensor<i32>
  }
  return %0#0, %0#1 : tensor<i32>, tensor<i32>
}

// case control/a loop over arrays that reads back
// values %x range 1 2
func.func public @main(%x: tensor<300xf32>) -> (tensor<300xf32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %limit = stablehlo.constant dense<1.0e6> : tensor<f32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0:2 = stablehlo.while(%v = %x, %k = %zero) : tensor<300xf32>, tensor<i32>
  cond {
    %1 = stablehlo.reduce(%v init: %z) applies stablehlo.maximum across dimensions = [0] : (tensor<300xf32>, tensor<f32>) -> tensor<f32>
    %2 = stablehlo.compare LT, %1, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %1 = stablehlo.add %v, %v : tensor<300xf32>
    %2 = stablehlo.add %k, %one : tensor<i32>
    stablehlo.return %1, %2 : tensor<300xf32>, tensor<i32>
  }
  return %0#0, %0#1 : tensor<300xf32>, tensor<i32>
}

// case control/two hundred steps
// values %x whole -2 2
func.func public @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %many = stablehlo.constant dense<200> : tensor<i32>
  %0:2 = stablehlo.while(%v = %x, %k = %zero) : tensor<64x64xf32>, tensor<i32>
  cond {
    %1 = stablehlo.compare LT, %k, %many : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.transpose %v, dims = [1, 0] : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %2 = stablehlo.subtract %1, %v : tensor<64x64xf32>
    %3 = stablehlo.constant dense<3.0> : tensor<64x64xf32>
    %4 = stablehlo.remainder %2, %3 : tensor<64x64xf32>
    %5 = stablehlo.add %k, %one : tensor<i32>
    stablehlo.return %4, %5 : tensor<64x64xf32>, tensor<i32>
  }
  return %0#0 : tensor<64x64xf32>
}

// case control/one of three branches
// values %n whole 1 1
func.func public @main(%n: tensor<i32>, %x: tensor<50xf32>) -> tensor<50xf32> {
  %0 = "stablehlo.case"(%n) ({
    stablehlo.return %x : tensor<50xf32>
  }, {
    %1 = stablehlo.negate %x : tensor<50xf32>
    stablehlo.return %1 : tensor<50xf32>
  }, {
    %1 = stablehlo.add %x, %x : tensor<50xf32>
    stablehlo.return %1 : tensor<50xf32>
  }) : (tensor<i32>) -> tensor<50xf32>
  return %0 : tensor<50xf32>
}

// case control/lengths known at the call
// lengths 77
// values whole -4 4
func.func public @main(%a: tensor<?x24xf32>, %b: tensor<24x16xf32>) -> tensor<?x16xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<?x24xf32>, tensor<24x16xf32>) -> tensor<?x16xf32>
  %1 = stablehlo.tanh %0 : tensor<?x16xf32>
  return %1 : tensor<?x16xf32>
}

// case control/calls of functions
func.func private @half(%x: tensor<90xf32>) -> tensor<90xf32> {
  %0 = stablehlo.constant dense<0.5> : tensor<90xf32>
  %1 = stablehlo.multiply %x, %0 : tensor<90xf32>
  return %1 : tensor<90xf32>
}
func.func public @main(%x: tensor<90xf32>) -> tensor<90xf32> {
  %0 = func.call @half(%x) : (tensor<90xf32>) -> tensor<90xf32>
  %1 = func.call @half(%0) : (tensor<90xf32>) -> tensor<90xf32>
  return %1 : tensor<90xf32>
}
