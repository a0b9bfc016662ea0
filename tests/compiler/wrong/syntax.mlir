// A value without its percent sign.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = stablehlo.add x, %x : tensor<4xf32>
//                      ^ expected ':', got x
     return %0 : tensor<4xf32>
   }
// -----
// A missing operand.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = stablehlo.add %x : tensor<4xf32>
//        ^ stablehlo.add expects 2 operands, got 1
     return %0 : tensor<4xf32>
   }
// -----
// A missing colon before the type.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = stablehlo.add %x, %x tensor<4xf32>
//                             ^ expected ':', got tensor
     return %0 : tensor<4xf32>
   }
// -----
// No type at all.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = stablehlo.add %x, %x :
     return %0 : tensor<4xf32>
//   ^ there is no type return
   }
// -----
// 5:1: expected an operation or '}', got the end of the text
// A function that does not end.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     return %x : tensor<4xf32>
// -----
// A bracket that nothing opened.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     return %x : tensor<4xf32>
   }
   }
// ^ expected an operation, got }
// -----
// A result without a name.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     % = stablehlo.add %x, %x : tensor<4xf32>
//   ^ expected an operation, got %
     return %x : tensor<4xf32>
   }
// -----
// A function without a name.
   func.func (%x: tensor<4xf32>) -> tensor<4xf32> {
//           ^ expected a symbol such as @main, got (
     return %x : tensor<4xf32>
   }
// -----
// An argument without a type.
   func.func @main(%x) -> tensor<4xf32> {
//                   ^ expected ':', got )
     return %x : tensor<4xf32>
   }
// -----
// A string that does not end.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.add(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
//   ^ expected an operation, got %0
     return %0 : tensor<4xf32>
   }
// -----
// The generic form with a missing parenthesis.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.add"(%x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
//                               ^ expected ')', got :
     return %0 : tensor<4xf32>
   }
// -----
// The generic form without a function type.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.add"(%x, %x) : tensor<4xf32>
//                                  ^ expected '(', got tensor
     return %0 : tensor<4xf32>
   }
// -----
// More operands than types.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = "stablehlo.add"(%x, %x) : (tensor<4xf32>) -> tensor<4xf32>
//                        ^ 2 operands are given with 1 types
     return %0 : tensor<4xf32>
   }
// -----
// More names than results.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0, %1 = stablehlo.add %x, %x : tensor<4xf32>
//   ^ stablehlo.add has 1 results, 2 are named
     return %0 : tensor<4xf32>
   }
// -----
// Fewer names than results.
   func.func @main(%x: tensor<4xf32>, %i: tensor<i32>) -> tensor<4xf32> {
     %0:3 = stablehlo.while(%a = %x, %b = %i) : tensor<4xf32>, tensor<i32>
//   ^ stablehlo.while has 2 results, 3 are named
     cond {
       %c = stablehlo.constant dense<false> : tensor<i1>
       stablehlo.return %c : tensor<i1>
     } do {
       stablehlo.return %a, %b : tensor<4xf32>, tensor<i32>
     }
     return %0#0 : tensor<4xf32>
   }
// -----
// Text that is no program.
   Lorem ipsum dolor sit amet.
// ^ unknown operation Lorem
// -----
// Another language.
   import jax
// ^ unknown operation import
   print(jax.jit(lambda x: x).lower(1.0).as_text())
// -----
// A comment that was meant to be C's.
   /* a program */
// ^ expected an operation, got /
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     return %x : tensor<4xf32>
   }
// -----
// An attribute without a value.
   func.func @main() -> tensor<4xi32> {
     %0 = "stablehlo.iota"() {iota_dimension = } : () -> tensor<4xi32>
//                                             ^ expected an attribute, got }
     return %0 : tensor<4xi32>
   }
// -----
// An attribute given twice.
   func.func @main() -> tensor<4xi32> {
     %0 = "stablehlo.iota"() {iota_dimension = 0 : i64, iota_dimension = 0 : i64} : () -> tensor<4xi32>
//                                                      ^ the attribute iota_dimension is given twice
     return %0 : tensor<4xi32>
   }
// -----
// A debug location that does not end.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = stablehlo.add %x, %x : tensor<4xf32> loc("a.py":1:2
     return %0 : tensor<4xf32>
   }
// ^ expected ')', got }
// -----
// An attribute's alias that is not defined.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {a = #nothing} {
//                                                                     ^ the attribute alias #nothing is not defined
     return %x : tensor<4xf32>
   }
// -----
// An attribute's alias that stands for itself.
   #a = [#b]
//      ^ nested more than 100 levels deep
   #b = [#a]
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {a = #a} {
     return %x : tensor<4xf32>
   }
// -----
// A type's alias that is not defined.
   func.func @main(%x: !vector) -> !vector {
//                      ^ the type alias !vector is not defined
     return %x : !vector
   }
// -----
// A type's alias that stands for itself.
   !a = tuple<!a>
//             ^ the type alias !a is not defined
   func.func @main(%x: !a) -> !a {
     return %x : !a
   }
// -----
// Brackets of different kinds.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = stablehlo.constant dense<[1.0, 2.0)> : tensor<2xf32>
//                                          ^ expected '>', got )
     return %x : tensor<4xf32>
   }
// -----
// A module in a module.
   module @a {
     module @b {
//   ^ expected functions in a module, got builtin.module
       func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
         return %x : tensor<4xf32>
       }
     }
   }
// -----
// Two modules.
   module @a {
// ^ expected functions in a module, got builtin.module
   }
   module @b {
   }
// -----
// 1:1: the program has no public function with a body
// A module without functions.
   module @empty {
   }
// -----
// Words after an operation.
   func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
     %0 = stablehlo.add %x, %x : tensor<4xf32> and so on
//                                             ^ unknown operation and
     return %0 : tensor<4xf32>
   }
