"""Executables apart from the sequence that dispatches them."""

from __future__ import annotations

from pumice.compiler.dialects.syntax.text import parse, to_text
from pumice.compiler.ir.operation import Operation
from pumice.compiler.passes.canonical.canonicalize import canonicalize
from pumice.compiler.passes.dispatch.outline import outline
from pumice.compiler.passes.dispatch.regions import form_regions


def outlined(text: str) -> list[Operation]:
    (function,) = parse(text)
    canonicalize(function.regions[0].block)
    form_regions(function.regions[0].block)
    found = outline(function)
    assert to_text(parse(to_text(found))) == to_text(found)
    return found


SIMPLE_MUL = """\
iree.multi_arch_executable @simple_mul_ex_dispatch_0() {
  iree.executable(Unspecified) {
    module {
      func.func @simple_mul_rgn_dispatch_0(%arg0: memref<4xf32>, %arg1: memref<4xf32>, %arg2: memref<4xf32>) \
attributes {iree.executable.export, iree.executable.in_place = array<i64: 0, 1>} {
        %0 = iree.load_input(%arg0 : memref<4xf32>) : tensor<4xf32>
        %1 = iree.load_input(%arg1 : memref<4xf32>) : tensor<4xf32>
        %2 = stablehlo.multiply %0, %1 : tensor<4xf32>
        iree.store_output(%2 : tensor<4xf32>, %arg2 : memref<4xf32>)
        iree.return
      }
    }
  }
}
func.func @simple_mul(%arg0: memref<4xf32>, %arg1: memref<4xf32>) -> memref<4xf32> {
  %c = arith.constant dense<[4, 1, 1]> : tensor<3xi32>
  %0 = "iree_hl_seq.alloc_heap"() : () -> memref<4xf32>
  iree_hl_seq.dispatch simple_mul_ex_dispatch_0::simple_mul_rgn_dispatch_0[%c : tensor<3xi32>](%arg0, %arg1, %0) \
{bytes = 48 : i64, flops = 4 : i64, in_place = array<i64: 0, 1>} : (memref<4xf32>, memref<4xf32>, memref<4xf32>) -> ()
  iree_hl_seq.return %0 : memref<4xf32>
}
"""


def test_the_walkthroughs_multiplication_is_an_executable_and_a_dispatch() -> None:
    text = """
    func.func @simple_mul(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.multiply %arg0, %arg1 : tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    assert to_text(outlined(text)) == SIMPLE_MUL


def test_regions_with_the_same_body_share_an_executable() -> None:
    text = """
    func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %0 = stablehlo.tanh %a : tensor<4xf32>
      %1 = stablehlo.tanh %b : tensor<4xf32>
      return %0, %1 : tensor<4xf32>, tensor<4xf32>
    }"""
    executable, function = outlined(text)
    entries = [op.attributes["entry"] for op in function.walk() if op.name == "iree_hl_seq.dispatch"]
    assert executable.name == "iree.multi_arch_executable"
    assert len(entries) == 2 and entries[0] == entries[1]


def test_a_loops_body_is_a_sequence_of_its_own() -> None:
    text = """
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.while(%v = %x) : tensor<4xf32>
      cond {
        %c = stablehlo.constant dense<10.0> : tensor<f32>
        %1 = stablehlo.reduce(%v init: %c) applies stablehlo.maximum across dimensions = [0] : \
(tensor<4xf32>, tensor<f32>) -> tensor<f32>
        %2 = stablehlo.compare LE, %1, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %2 : tensor<i1>
      } do {
        %3 = stablehlo.add %v, %v : tensor<4xf32>
        stablehlo.return %3 : tensor<4xf32>
      }
      return %0 : tensor<4xf32>
    }"""
    *executables, function = outlined(text)
    (loop,) = (op for op in function.walk() if op.name == "stablehlo.while")
    names = [[op.name for op in region.block.operations] for region in loop.regions]
    assert all("iree_hl_seq.dispatch" in each for each in names)
    assert len(executables) == 2
