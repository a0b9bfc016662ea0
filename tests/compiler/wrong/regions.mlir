// A function without a return.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
// ^ func.func expects func.return at the end of each region
     %0 = stablehlo.add %x, %x : tensor<4xf32>
   }
// -----
// An empty function.
   func.func @main() -> tensor<4xf32> {
// ^ func.func expects func.return at the end of each region
   }
// -----
// Operations after the return.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
// ^ func.func expects func.return at the end of each region
     return %x : tensor<4xf32>
     %0 = stablehlo.add %x, %x : tensor<4xf32>
   }
// -----
// Two returns.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     return %x : tensor<4xf32>
//   ^ func.return expects to be the last operation of its block
     return %x : tensor<4xf32>
   }
// -----
// The return of a function at the end of a region.
   func.func @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.if"(%p) ({
//        ^ stablehlo.if expects stablehlo.return at the end of each region
       func.return %x : tensor<4xf32>
     }, {
       stablehlo.return %x : tensor<4xf32>
     }) : (tensor<i1>) -> tensor<4xf32>
     return %0 : tensor<4xf32>
   }
// -----
// A region without a return.
   func.func @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.if"(%p) ({
//        ^ stablehlo.if expects stablehlo.return at the end of each region
       %1 = stablehlo.add %x, %x : tensor<4xf32>
     }, {
       stablehlo.return %x : tensor<4xf32>
     }) : (tensor<i1>) -> tensor<4xf32>
     return %0 : tensor<4xf32>
   }
// -----
// An empty region.
   func.func @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.if"(%p) ({
//        ^ stablehlo.if expects stablehlo.return at the end of each region
     }, {
       stablehlo.return %x : tensor<4xf32>
     }) : (tensor<i1>) -> tensor<4xf32>
     return %0 : tensor<4xf32>
   }
// -----
// A choice with one branch.
   func.func @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.if"(%p) ({
//        ^ stablehlo.if expects 2 regions, got 1
       stablehlo.return %x : tensor<4xf32>
     }) : (tensor<i1>) -> tensor<4xf32>
     return %0 : tensor<4xf32>
   }
// -----
// A choice with three branches.
   func.func @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.if"(%p) ({
//        ^ stablehlo.if expects 2 regions, got 3
       stablehlo.return %x : tensor<4xf32>
     }, {
       stablehlo.return %x : tensor<4xf32>
     }, {
       stablehlo.return %x : tensor<4xf32>
     }) : (tensor<i1>) -> tensor<4xf32>
     return %0 : tensor<4xf32>
   }
// -----
// Branches of different types.
   func.func @main(%p: tensor<i1>, %x: tensor<4xf32>, %y: tensor<5xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.if"(%p) ({
//        ^ stablehlo.if expects a second branch that gives values of types (tensor<4xf32>), got (tensor<5xf32>)
       stablehlo.return %x : tensor<4xf32>
     }, {
       stablehlo.return %y : tensor<5xf32>
     }) : (tensor<i1>) -> tensor<4xf32>
     return %0 : tensor<4xf32>
   }
// -----
// A branch with an argument.
   func.func @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.if"(%p) ({
//        ^ stablehlo.if expects branches without arguments
     ^bb0(%a: tensor<4xf32>):
       stablehlo.return %a : tensor<4xf32>
     }, {
       stablehlo.return %x : tensor<4xf32>
     }) : (tensor<i1>) -> tensor<4xf32>
     return %0 : tensor<4xf32>
   }
// -----
// A case without branches.
   func.func @main(%i: tensor<i32>) -> tensor<4xf32> {
     %0 = "stablehlo.case"(%i) : (tensor<i32>) -> tensor<4xf32>
//        ^ stablehlo.case expects at least one branch
     return %0 : tensor<4xf32>
   }
// -----
// A loop without regions.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.while"(%x) : (tensor<4xf32>) -> tensor<4xf32>
//        ^ stablehlo.while expects 2 regions, got 0
     return %0 : tensor<4xf32>
   }
// -----
// A loop whose condition is no boolean.
   func.func @main(%x: tensor<f32>) -> tensor<f32> {
     %0 = stablehlo.while(%a = %x) : tensor<f32>
//        ^ stablehlo.while expects a condition that gives tensor<i1>, got (tensor<f32>)
     cond {
       stablehlo.return %a : tensor<f32>
     } do {
       stablehlo.return %a : tensor<f32>
     }
     return %0 : tensor<f32>
   }
// -----
// A loop whose body gives less than it takes.
   func.func @main(%x: tensor<f32>, %c: tensor<i1>) -> tensor<f32> {
     %0 = stablehlo.while(%a = %x) : tensor<f32>
//        ^ stablehlo.while expects a body that gives values of types (tensor<f32>), got ()
     cond {
       stablehlo.return %c : tensor<i1>
     } do {
       stablehlo.return
     }
     return %0 : tensor<f32>
   }
// -----
// A loop whose body changes a shape.
   func.func @main(%x: tensor<f32>, %y: tensor<4xf32>, %c: tensor<i1>) -> tensor<f32> {
     %0 = stablehlo.while(%a = %x) : tensor<f32>
//        ^ stablehlo.while expects a body that gives values of types (tensor<f32>), got (tensor<4xf32>)
     cond {
       stablehlo.return %c : tensor<i1>
     } do {
       stablehlo.return %y : tensor<4xf32>
     }
     return %0 : tensor<f32>
   }
// -----
// A loop with a start too few.
   func.func @main(%x: tensor<f32>) -> tensor<f32> {
     %0:2 = stablehlo.while(%a = %x) : tensor<f32>, tensor<f32>
//                               ^ 1 operands are given with 2 types
     cond {
       %c = stablehlo.constant dense<false> : tensor<i1>
       stablehlo.return %c : tensor<i1>
     } do {
       stablehlo.return %a : tensor<f32>
     }
     return %0#0 : tensor<f32>
   }
// -----
// A reduction without a body.
   func.func @main(%x: tensor<4xf32>, %z: tensor<f32>) -> tensor<f32> {
     %0 = "stablehlo.reduce"(%x, %z) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
//        ^ stablehlo.reduce expects 1 region, got 0
     return %0 : tensor<f32>
   }
// -----
// A reduction whose body takes one value.
   func.func @main(%x: tensor<4xf32>, %z: tensor<f32>) -> tensor<f32> {
     %0 = "stablehlo.reduce"(%x, %z) ({
//        ^ stablehlo.reduce expects a region of 2 arguments that gives 1 values, got 1 and 1
     ^bb0(%a: tensor<f32>):
       stablehlo.return %a : tensor<f32>
     }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
     return %0 : tensor<f32>
   }
// -----
// A reduction whose body takes integers.
   func.func @main(%x: tensor<4xf32>, %z: tensor<f32>) -> tensor<f32> {
     %0 = "stablehlo.reduce"(%x, %z) ({
//        ^ stablehlo.reduce expects a region that takes (tensor<f32>, tensor<f32>), got (tensor<i32>,
     ^bb0(%a: tensor<i32>, %b: tensor<i32>):
       stablehlo.return %z : tensor<f32>
     }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
     return %0 : tensor<f32>
   }
// -----
// A scatter whose body takes three values.
   func.func @main(%x: tensor<4xf32>, %i: tensor<2x1xi32>, %u: tensor<2xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.scatter"(%x, %i, %u) ({
//        ^ stablehlo.scatter expects a region of 2 arguments that gives 1 values, got 3 and 1
     ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>):
       stablehlo.return %b : tensor<f32>
     }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<4xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<4xf32>
     return %0 : tensor<4xf32>
   }
// -----
// A sort whose body compares nothing.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.sort"(%x) ({
//        ^ stablehlo.sort expects a comparison that takes two elements of each operand and gives tensor<i1>
     ^bb0(%a: tensor<f32>, %b: tensor<f32>):
       stablehlo.return %a : tensor<f32>
     }) {dimension = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
     return %0 : tensor<4xf32>
   }
// -----
// An addition with a region.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.add"(%x, %x) ({
//        ^ stablehlo.add expects 0 regions, got 1
       stablehlo.return %x : tensor<4xf32>
     }) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
     return %0 : tensor<4xf32>
   }
// -----
// A block that is not defined.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     "cf.br"()[^nowhere] : () -> ()
//             ^ the block ^nowhere is not defined
   }
// -----
// A block defined twice.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     "cf.br"()[^a] : () -> ()
   ^a:
     return %x : tensor<4xf32>
   ^a:
// ^ the block ^a is defined twice
     return %x : tensor<4xf32>
   }
// -----
// A region of two blocks.
   func.func @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.if"(%p) ({
//        ^ stablehlo.if expects regions of one block, got one of 2
       stablehlo.return %x : tensor<4xf32>
     ^other:
       stablehlo.return %x : tensor<4xf32>
     }, {
       stablehlo.return %x : tensor<4xf32>
     }) : (tensor<i1>) -> tensor<4xf32>
     return %0 : tensor<4xf32>
   }
// -----
// A function in a function.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     func.func @inner(%y: tensor<4xf32>) -> tensor<4xf32> {
//   ^ func.func expects to stand in a module, not in a function
       return %y : tensor<4xf32>
     }
     return %x : tensor<4xf32>
   }
