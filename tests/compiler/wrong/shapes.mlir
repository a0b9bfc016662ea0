// A sum of different shapes.
   func.func @main(%x: tensor<4xf32>, %y: tensor<5xf32>) -> tensor<4xf32> {
     %0 = stablehlo.add %x, %y : (tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>
//        ^ stablehlo.add expects operands of one shape, got tensor<4xf32> and tensor<5xf32>
     return %0 : tensor<4xf32>
   }
// -----
// A reshape that loses elements.
   func.func @main(%x: tensor<4x3xf32>) -> tensor<11xf32> {
     %0 = stablehlo.reshape %x : (tensor<4x3xf32>) -> tensor<11xf32>
//        ^ stablehlo.reshape expects as many elements in the result as in tensor<4x3xf32> (12), got 11
     return %0 : tensor<11xf32>
   }
// -----
// A product of matrices that do not fit.
   func.func @main(%x: tensor<4x3xf32>, %y: tensor<4x3xf32>) -> tensor<4x3xf32> {
     %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
//        ^ stablehlo.dot_general expects dimension 1 of tensor<4x3xf32> as long as dimension 0 of
     return %0 : tensor<4x3xf32>
   }
// -----
// A contraction over a dimension that is not there.
   func.func @main(%x: tensor<4x3xf32>, %y: tensor<3x4xf32>) -> tensor<4x4xf32> {
     %0 = stablehlo.dot_general %x, %y, contracting_dims = [2] x [0] : (tensor<4x3xf32>, tensor<3x4xf32>) -> tensor<4x4xf32>
//        ^ stablehlo.dot_general expects the left operand's batching and contracting dimensions to be
     return %0 : tensor<4x4xf32>
   }
// -----
// A contraction with a wrong result.
   func.func @main(%x: tensor<4x3xf32>, %y: tensor<3x5xf32>) -> tensor<5x4xf32> {
     %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<5x4xf32>
//        ^ stablehlo.dot_general expects results of types (tensor<4x5xf32>), got (tensor<5x4xf32>)
     return %0 : tensor<5x4xf32>
   }
// -----
// A broadcast to a dimension that is not there.
   func.func @main(%x: tensor<4xf32>) -> tensor<4x3xf32> {
     %0 = stablehlo.broadcast_in_dim %x, dims = [2] : (tensor<4xf32>) -> tensor<4x3xf32>
//        ^ stablehlo.broadcast_in_dim expects dims to be different numbers from 0 to 1, got [2]
     return %0 : tensor<4x3xf32>
   }
// -----
// A broadcast of three to four.
   func.func @main(%x: tensor<3xf32>) -> tensor<4xf32> {
     %0 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<3xf32>) -> tensor<4xf32>
//        ^ stablehlo.broadcast_in_dim expects dimension 0 of tensor<3xf32> to be 1 or 4, which is dimension 0
     return %0 : tensor<4xf32>
   }
// -----
// A broadcast with a negative dimension.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = stablehlo.broadcast_in_dim %x, dims = [-1] : (tensor<4xf32>) -> tensor<4xf32>
//        ^ stablehlo.broadcast_in_dim expects dims to be different numbers from 0 to 0, got [-1]
     return %0 : tensor<4xf32>
   }
// -----
// An order of dimensions with one twice.
   func.func @main(%x: tensor<4x3xf32>) -> tensor<4x4xf32> {
     %0 = stablehlo.transpose %x, dims = [0, 0] : (tensor<4x3xf32>) -> tensor<4x4xf32>
//        ^ stablehlo.transpose expects dims to be an order of 0 to 1, got [0, 0]
     return %0 : tensor<4x4xf32>
   }
// -----
// A slice beyond the end.
   func.func @main(%x: tensor<4xf32>) -> tensor<5xf32> {
     %0 = stablehlo.slice %x [0:5] : (tensor<4xf32>) -> tensor<5xf32>
//        ^ stablehlo.slice expects 0 <= start <= limit <= 4 and a stride of 1 or more, got 0:5:1
     return %0 : tensor<5xf32>
   }
// -----
// A slice with a stride of zero.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = stablehlo.slice %x [0:4:0] : (tensor<4xf32>) -> tensor<4xf32>
//        ^ stablehlo.slice expects 0 <= start <= limit <= 4 and a stride of 1 or more, got 0:4:0
     return %0 : tensor<4xf32>
   }
// -----
// A slice that goes backwards.
   func.func @main(%x: tensor<4xf32>) -> tensor<2xf32> {
     %0 = stablehlo.slice %x [3:1] : (tensor<4xf32>) -> tensor<2xf32>
//        ^ stablehlo.slice expects 0 <= start <= limit <= 4 and a stride of 1 or more, got 3:1:1
     return %0 : tensor<2xf32>
   }
// -----
// Padding that removes more than there is.
   func.func @main(%x: tensor<4xf32>, %z: tensor<f32>) -> tensor<0xf32> {
     %0 = stablehlo.pad %x, %z, low = [-3], high = [-3], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<0xf32>
//        ^ stablehlo.pad expects padding that leaves dimension 0 0 or more elements, got -2
     return %0 : tensor<0xf32>
   }
// -----
// Padding inside of a negative size.
   func.func @main(%x: tensor<4xf32>, %z: tensor<f32>) -> tensor<1xf32> {
     %0 = stablehlo.pad %x, %z, low = [0], high = [0], interior = [-1] : (tensor<4xf32>, tensor<f32>) -> tensor<1xf32>
//        ^ stablehlo.pad expects interior padding of 0 or more, got -1
     return %0 : tensor<1xf32>
   }
// -----
// Pieces of different widths joined.
   func.func @main(%x: tensor<4x3xf32>, %y: tensor<4x2xf32>) -> tensor<8x3xf32> {
     %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<4x3xf32>, tensor<4x2xf32>) -> tensor<8x3xf32>
//        ^ stablehlo.concatenate expects equal lengths but along 0, got tensor<4x3xf32> and tensor<4x2xf32>
     return %0 : tensor<8x3xf32>
   }
// -----
// Nothing joined.
   func.func @main() -> tensor<0xf32> {
     %0 = "stablehlo.concatenate"() {dimension = 0 : i64} : () -> tensor<0xf32>
//        ^ stablehlo.concatenate expects at least one operand
     return %0 : tensor<0xf32>
   }
// -----
// A count along a dimension that is not there.
   func.func @main() -> tensor<4xi32> {
     %0 = stablehlo.iota dim = 1 : tensor<4xi32>
//        ^ stablehlo.iota expects iota_dimension to be different numbers from 0 to 0, got [1]
     return %0 : tensor<4xi32>
   }
// -----
// A reduction over a dimension that is not there.
   func.func @main(%x: tensor<4xf32>, %z: tensor<f32>) -> tensor<4xf32> {
     %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
//        ^ stablehlo.reduce expects dimensions to be different numbers from 0 to 0, got [1]
     return %0 : tensor<4xf32>
   }
// -----
// A reduction from a vector.
   func.func @main(%x: tensor<4xf32>, %z: tensor<4xf32>) -> tensor<f32> {
     %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
//        ^ stablehlo.reduce expects initial values without dimensions, got tensor<4xf32>
     return %0 : tensor<f32>
   }
// -----
// A window of size zero.
   func.func @main(%x: tensor<4xf32>, %z: tensor<f32>) -> tensor<5xf32> {
     %0 = "stablehlo.reduce_window"(%x, %z) ({
//        ^ stablehlo.reduce_window expects a window of 1 or more elements along each of 1 dimensions, got [0]
     ^bb0(%a: tensor<f32>, %b: tensor<f32>):
       %1 = stablehlo.add %a, %b : tensor<f32>
       stablehlo.return %1 : tensor<f32>
     }) {window_dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<5xf32>
     return %0 : tensor<5xf32>
   }
// -----
// A convolution whose channels do not fit.
   func.func @main(%x: tensor<1x8x8x3xf32>, %k: tensor<3x3x4x5xf32>) -> tensor<1x6x6x5xf32> {
     %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x3xf32>, tensor<3x3x4x5xf32>) -> tensor<1x6x6x5xf32>
//        ^ stablehlo.convolution expects 1 groups of 4 input features, got 3 features
     return %0 : tensor<1x6x6x5xf32>
   }
// -----
// A convolution with a stride of zero.
   func.func @main(%x: tensor<1x8x8x3xf32>, %k: tensor<3x3x3x5xf32>) -> tensor<1x6x6x5xf32> {
     %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [0, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x3xf32>, tensor<3x3x3x5xf32>) -> tensor<1x6x6x5xf32>
//        ^ stablehlo.convolution expects window_strides with a number of 1 or more for each of 2 dimensions,
     return %0 : tensor<1x6x6x5xf32>
   }
// -----
// A convolution with letters that are none.
   func.func @main(%x: tensor<1x8x8x3xf32>, %k: tensor<3x3x3x5xf32>) -> tensor<1x6x6x5xf32> {
     %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, q]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x3xf32>, tensor<3x3x3x5xf32>) -> tensor<1x6x6x5xf32>
//                                                     ^ expected the dimensions b, f and 0, 1, … in some order
     return %0 : tensor<1x6x6x5xf32>
   }
// -----
// A gather with slices larger than the operand.
   func.func @main(%x: tensor<4x3xf32>, %i: tensor<2x1xi32>) -> tensor<2x5xf32> {
     %0 = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 5>} : (tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x5xf32>
//        ^ stablehlo.gather expects a slice size for each dimension of tensor<4x3xf32>, and none larger, got
     return %0 : tensor<2x5xf32>
   }
// -----
// A scatter whose updates do not fit.
   func.func @main(%x: tensor<4xf32>, %i: tensor<2x1xi32>, %u: tensor<3xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.scatter"(%x, %i, %u) ({
//        ^ stablehlo.scatter expects updates whose other dimensions are those of the indices tensor<2x1xi32>,
     ^bb0(%a: tensor<f32>, %b: tensor<f32>):
       stablehlo.return %b : tensor<f32>
     }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<4xf32>, tensor<2x1xi32>, tensor<3xf32>) -> tensor<4xf32>
     return %0 : tensor<4xf32>
   }
// -----
// A sort along a dimension that is not there.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.sort"(%x) ({
//        ^ stablehlo.sort expects dimension to be different numbers from 0 to 0, got [3]
     ^bb0(%a: tensor<f32>, %b: tensor<f32>):
       %1 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
       stablehlo.return %1 : tensor<i1>
     }) {dimension = 3 : i64} : (tensor<4xf32>) -> tensor<4xf32>
     return %0 : tensor<4xf32>
   }
// -----
// The factors of a matrix that is not square.
   func.func @main(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
     %0 = stablehlo.cholesky %x, lower = true : tensor<4x3xf32>
//        ^ stablehlo.cholesky expects square matrices, got tensor<4x3xf32>
     return %0 : tensor<4x3xf32>
   }
// -----
// A slice larger than what it is taken from.
   func.func @main(%x: tensor<4xf32>, %i: tensor<i32>) -> tensor<5xf32> {
     %0 = stablehlo.dynamic_slice %x, %i, sizes = [5] : (tensor<4xf32>, tensor<i32>) -> tensor<5xf32>
//        ^ stablehlo.dynamic_slice expects a size for each dimension of tensor<4xf32>, and none larger, got [5]
     return %0 : tensor<5xf32>
   }
// -----
// A length that is not known where it has to be.
   func.func @main(%x: tensor<4xf32>) -> tensor<?xf32> {
     %c = stablehlo.constant dense<0.0> : tensor<?xf32>
//                                 ^ a constant's type has only known lengths, got tensor<?xf32>
     return %c : tensor<?xf32>
   }
// -----
// A length that is computed from data.
   func.func @main(%n: tensor<1xi32>) -> tensor<?xf32> {
     %0 = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
//        ^ stablehlo.dynamic_iota expects a shape that is a polynomial in the lengths of arguments' dimensions
     return %0 : tensor<?xf32>
   }
// -----
// Bits that do not come out even.
   func.func @main(%x: tensor<3xi8>) -> tensor<i32> {
     %0 = stablehlo.bitcast_convert %x : (tensor<3xi8>) -> tensor<i32>
//        ^ stablehlo.bitcast_convert expects a last dimension of 4 elements to be put together, got
     return %0 : tensor<i32>
   }
// -----
// A gather of elements from slices without any.
   func.func @main(%x: tensor<4x3xf32>, %i: tensor<2x1xi32>) -> tensor<2x3xf32> {
     %0 = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 0, 3>} : (tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
//        ^ stablehlo.gather expects an element in each slice, since the result has elements, got sizes [0, 3]
     return %0 : tensor<2x3xf32>
   }
