// A value that is not defined.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = stablehlo.add %x, %y : tensor<4xf32>
//                          ^ %y is not defined
     return %0 : tensor<4xf32>
   }
// -----
// A value defined twice.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = stablehlo.add %x, %x : tensor<4xf32>
     %0 = stablehlo.add %x, %x : tensor<4xf32>
//   ^ %0 is defined twice
     return %0 : tensor<4xf32>
   }
// -----
// A value named as an argument is.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %x = stablehlo.add %x, %x : tensor<4xf32>
//   ^ %x is defined twice
     return %x : tensor<4xf32>
   }
// -----
// An argument twice.
   func.func @main(%x: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
//                                    ^ %x is defined twice
     return %x : tensor<4xf32>
   }
// -----
// A value used before it is defined.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = stablehlo.add %1, %x : tensor<4xf32>
//                      ^ %1 is used before it is defined
     %1 = stablehlo.add %x, %x : tensor<4xf32>
     return %0 : tensor<4xf32>
   }
// -----
// Values that need each other: a cyclic graph.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = stablehlo.add %1, %x : tensor<4xf32>
//                      ^ %1 is used before it is defined
     %1 = stablehlo.add %0, %x : tensor<4xf32>
     return %1 : tensor<4xf32>
   }
// -----
// A value that needs itself.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = stablehlo.add %0, %x : tensor<4xf32>
//                      ^ %0 is used before it is defined
     return %0 : tensor<4xf32>
   }
// -----
// A value of a region used outside.
   func.func @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.if"(%p) ({
       %1 = stablehlo.add %x, %x : tensor<4xf32>
       stablehlo.return %1 : tensor<4xf32>
     }, {
       stablehlo.return %x : tensor<4xf32>
     }) : (tensor<i1>) -> tensor<4xf32>
     return %1 : tensor<4xf32>
//          ^ %1 is not defined
   }
// -----
// A value of one branch used in the other.
   func.func @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.if"(%p) ({
       %1 = stablehlo.add %x, %x : tensor<4xf32>
       stablehlo.return %1 : tensor<4xf32>
     }, {
       stablehlo.return %1 : tensor<4xf32>
//                      ^ %1 is not defined
     }) : (tensor<i1>) -> tensor<4xf32>
     return %0 : tensor<4xf32>
   }
// -----
// A region that uses the result of its own operation.
   func.func @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.if"(%p) ({
       stablehlo.return %0 : tensor<4xf32>
//                      ^ %0 is used before it is defined
     }, {
       stablehlo.return %x : tensor<4xf32>
     }) : (tensor<i1>) -> tensor<4xf32>
     return %0 : tensor<4xf32>
   }
// -----
// A value of another function.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = stablehlo.add %x, %x : tensor<4xf32>
     return %0 : tensor<4xf32>
   }
   func.func @other() -> tensor<4xf32> {
     return %0 : tensor<4xf32>
//          ^ %0 is not defined
   }
// -----
// A third result of two.
   func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
     %0:2 = stablehlo.optimization_barrier %x, %x : tensor<4x4xf32>, tensor<4x4xf32>
     return %0#2 : tensor<4x4xf32>
//          ^ %0#2 is not defined
   }
// -----
// A function that is not there.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = call @helper(%x) : (tensor<4xf32>) -> tensor<4xf32>
//        ^ func.call expects a function of this program, got @helper
     return %0 : tensor<4xf32>
   }
// -----
// A function defined twice.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     return %x : tensor<4xf32>
   }
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
// ^ the function @main is defined twice
     return %x : tensor<4xf32>
   }
// -----
// A function that calls itself.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = call @main(%x) : (tensor<4xf32>) -> tensor<4xf32>
//        ^ functions call each other in a circle: main -> main
     return %0 : tensor<4xf32>
   }
// -----
// Functions that call each other.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = call @a(%x) : (tensor<4xf32>) -> tensor<4xf32>
     return %0 : tensor<4xf32>
   }
   func.func private @a(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = call @b(%x) : (tensor<4xf32>) -> tensor<4xf32>
     return %0 : tensor<4xf32>
   }
   func.func private @b(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = call @a(%x) : (tensor<4xf32>) -> tensor<4xf32>
//        ^ functions call each other in a circle: a -> b -> a
     return %0 : tensor<4xf32>
   }
// -----
// A call with an argument too many.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = call @a(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
//        ^ func.call expects arguments of types (tensor<4xf32>), got (tensor<4xf32>, tensor<4xf32>)
     return %0 : tensor<4xf32>
   }
   func.func private @a(%x: tensor<4xf32>) -> tensor<4xf32> {
     return %x : tensor<4xf32>
   }
// -----
// A call that expects another result.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xi32> {
     %0 = call @a(%x) : (tensor<4xf32>) -> tensor<4xi32>
//        ^ func.call expects results of types (tensor<4xf32>), got (tensor<4xi32>)
     return %0 : tensor<4xi32>
   }
   func.func private @a(%x: tensor<4xf32>) -> tensor<4xf32> {
     return %x : tensor<4xf32>
   }
// -----
// A call of a function without a body.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = call @a(%x) : (tensor<4xf32>) -> tensor<4xf32>
//        ^ func.call calls @a, which has no body
     return %0 : tensor<4xf32>
   }
   func.func private @a(tensor<4xf32>) -> tensor<4xf32>
// -----
// 1:1: the program has no public function with a body
// Only private functions.
   func.func private @a(%x: tensor<4xf32>) -> tensor<4xf32> {
     return %x : tensor<4xf32>
   }
// -----
// An operation that does not exist.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = stablehlo.frobnicate %x : tensor<4xf32>
//        ^ the syntax of stablehlo.frobnicate is not known; print the program in the generic form:
     return %0 : tensor<4xf32>
   }
// -----
// An operation that does not exist, in the generic form.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.frobnicate"(%x) : (tensor<4xf32>) -> tensor<4xf32>
//        ^ stablehlo.frobnicate expects an operation that pumice compiles, got stablehlo.frobnicate
     return %0 : tensor<4xf32>
   }
// -----
// A dialect that does not exist.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "acme.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
//        ^ acme.add expects a dialect that compiles, one of chlo, stablehlo and func, got acme
     return %0 : tensor<4xf32>
   }
// -----
// A dialect without its name.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = add %x, %x : tensor<4xf32>
//        ^ unknown operation add
     return %0 : tensor<4xf32>
   }
// -----
// An operation of linalg.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "linalg.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
//        ^ linalg.exp expects a dialect that compiles, one of chlo, stablehlo and func, got linalg
     return %0 : tensor<4xf32>
   }
// -----
// An operation of several devices.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.collective_permute"(%x) {source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
//        ^ stablehlo.collective_permute expects a program of one process
     return %0 : tensor<4xf32>
   }
// -----
// A custom call that nobody here knows.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = stablehlo.custom_call @cudnn_attention(%x) : (tensor<4xf32>) -> tensor<4xf32>
//        ^ stablehlo.custom_call expects a call that is a check
     return %0 : tensor<4xf32>
   }
// -----
// An operation of the operating system.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = stablehlo.custom_call @system(%x) {backend_config = "rm -rf /"} : (tensor<4xf32>) -> tensor<4xf32>
//        ^ stablehlo.custom_call expects a call that is a check
     return %0 : tensor<4xf32>
   }
// -----
// CHLO that does not exist.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "chlo.erfinv"(%x) : (tensor<4xf32>) -> tensor<4xf32>
//        ^ chlo.erfinv expects an operation that pumice compiles, such as chlo.erf_inv, got chlo.erfinv
     return %0 : tensor<4xf32>
   }
// -----
// A value of a block that nobody branches to.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     cf.br ^end
   ^dead:
     %y = stablehlo.add %x, %x : tensor<4xf32>
     cf.br ^end
   ^end:
     return %y : tensor<4xf32>
//   ^ func.return uses %y, which not every path to it computes
   }
// -----
// A value that only one of two paths computes.
   func.func @main(%p: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
     cf.cond_br %p, ^one, ^end
   ^one:
     %y = stablehlo.add %x, %x : tensor<4xf32>
     cf.br ^end
   ^end:
     return %y : tensor<4xf32>
//   ^ func.return uses %y, which not every path to it computes
   }
// -----
// An argument of a block that comes later.
   func.func @main(%p: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
     cf.br ^end(%y : tensor<4xf32>)
//   ^ cf.br uses %y, which not every path to it computes
   ^end(%y: tensor<4xf32>):
     return %y : tensor<4xf32>
   }
