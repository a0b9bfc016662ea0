"""The formation of dispatch regions, and the text of programs with them."""

from __future__ import annotations

import pytest

from pumice.compiler.dialects.syntax.text import parse, to_text
from pumice.compiler.ir.operation import Operation
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.passes.canonical.canonicalize import canonicalize
from pumice.compiler.passes.dispatch.regions import form_regions
from pumice.compiler.pipeline import compile_text

SIMPLE_MUL = """\
func.func @simple_mul(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant dense<[4, 1, 1]> : tensor<3xi32>
  %0 = iree.dispatch_region[%c : tensor<3xi32>](%arg2 = %arg0 : tensor<4xf32>, %arg3 = %arg1 : tensor<4xf32>) : \
tensor<4xf32> attributes {bytes = 48 : i64, flops = 4 : i64} {
    %1 = stablehlo.multiply %arg2, %arg3 : tensor<4xf32>
    iree.return %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
"""


SHORT = {
    "$DOT": "(tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>",
    "$ROWS": "(tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>",
    "$ALL": "(tensor<4xf32>, tensor<f32>) -> tensor<f32>",
}


def formed(body: str, arguments: str = "%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %v: tensor<8xf32>") -> Operation:
    """Forms the regions of a function, and reads its text again."""
    for short, types in SHORT.items():
        body = body.replace(short, types)
    results = body.rpartition(" : ")[2]
    (function,) = parse(f"func.func @main({arguments}) -> ({results}) {{ {body} }}")
    block = function.regions[0].block
    canonicalize(block)
    form_regions(block)
    assert to_text(parse(to_text([function]))) == to_text([function])
    return function


def regions(function: Operation) -> list[list[str]]:
    """Names of the operations of each region, without the return."""
    found = [op for op in function.walk() if op.name == "iree.dispatch_region"]
    return [[op.name.partition(".")[2] for op in region.regions[0].block.operations[:-1]] for region in found]


def test_the_walkthroughs_multiplication_is_one_region() -> None:
    body = "%0 = stablehlo.multiply %x, %y : tensor<4xf32>\nreturn %0 : tensor<4xf32>"
    function = formed(body, "%x: tensor<4xf32>, %y: tensor<4xf32>")
    assert to_text([function]).replace("@main", "@simple_mul") == SIMPLE_MUL


def test_a_chain_of_element_wise_operations_is_one_region() -> None:
    body = """
    %0 = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
    %1 = stablehlo.add %a, %0 : tensor<4x8xf32>
    %2 = stablehlo.tanh %1 : tensor<4x8xf32>
    %3 = stablehlo.multiply %2, %2 : tensor<4x8xf32>
    return %3 : tensor<4x8xf32>"""
    assert regions(formed(body)) == [["broadcast_in_dim", "add", "tanh", "multiply"]]


def test_a_contraction_takes_what_follows_it_element_by_element() -> None:
    body = """
    %c = stablehlo.constant dense<0.0> : tensor<4x4xf32>
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : $DOT
    %1 = stablehlo.maximum %0, %c : tensor<4x4xf32>
    return %1 : tensor<4x4xf32>"""
    function = formed(body)
    assert regions(function) == [["dot_general", "constant", "maximum"]]
    (region,) = (op for op in function.walk() if op.name == "iree.dispatch_region")
    assert region.integer("flops") == 2 * 4 * 4 * 8 + 16
    assert region.integer("bytes") == 4 * (32 + 32 + 16)


def test_a_reduction_takes_its_producers_but_two_reductions_are_two_regions() -> None:
    body = """
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.exponential %a : tensor<4x8xf32>
    %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [1] : $ROWS
    %2 = stablehlo.reduce(%1 init: %c) applies stablehlo.add across dimensions = [0] : $ALL
    return %2 : tensor<f32>"""
    assert [names[-1] for names in regions(formed(body))] == ["reduce", "reduce"]
    assert "exponential" in regions(formed(body))[0]


def test_what_is_costly_is_not_computed_again_for_each_row_of_a_contraction() -> None:
    body = """
    %0 = stablehlo.tanh %a : tensor<4x8xf32>
    %1 = stablehlo.dot_general %0, %b, contracting_dims = [1] x [0] : $DOT
    return %1 : tensor<4x4xf32>"""
    assert regions(formed(body)) == [["tanh"], ["dot_general"]]


def test_a_value_of_two_regions_is_computed_once() -> None:
    body = """
    %0 = stablehlo.tanh %a : tensor<4x8xf32>
    %1 = stablehlo.negate %0 : tensor<4x8xf32>
    %2 = stablehlo.transpose %0, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
    return %1, %2 : tensor<4x8xf32>, tensor<8x4xf32>"""
    assert regions(formed(body)) == [["tanh"], ["negate"], ["transpose"]]


def test_what_is_read_wider_than_it_is_stored_is_widened_by_each_reader() -> None:
    body = """
    %0 = stablehlo.convert %h : (tensor<4x8xf16>) -> tensor<4x8xf32>
    %1 = stablehlo.negate %0 : tensor<4x8xf32>
    %2 = stablehlo.transpose %0, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
    return %1, %2 : tensor<4x8xf32>, tensor<8x4xf32>"""
    assert regions(formed(body, "%h: tensor<4x8xf16>")) == [["convert", "negate"], ["convert", "transpose"]]
    narrower = body.replace("f16", "x16").replace("f32", "f16").replace("x16", "f32")
    assert regions(formed(narrower, "%h: tensor<4x8xf32>")) == [["convert"], ["negate"], ["transpose"]]


def test_no_math_is_left_outside_of_loops_and_regions() -> None:
    body = """
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%i = %c, %x = %v) : tensor<i32>, tensor<8xf32>
    cond {
      %n = stablehlo.constant dense<5> : tensor<i32>
      %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %i, %one : tensor<i32>
      %3 = stablehlo.tanh %x : tensor<8xf32>
      stablehlo.return %2, %3 : tensor<i32>, tensor<8xf32>
    }
    return %0#1 : tensor<8xf32>"""
    function = formed(body)
    assert [names[-1] for names in regions(function)] == ["compare", "add", "tanh"]
    inside = {op for region in function.walk() if region.name == "iree.dispatch_region" for op in region.walk()}
    outside = {op.name for op in function.walk() if op not in inside}
    sequencer = {"func.func", "func.return", "stablehlo.while", "stablehlo.return"}
    assert outside <= {*sequencer, "arith.constant", "stablehlo.constant"}


@pytest.mark.parametrize("count", [20, 300])
def test_a_region_has_a_bounded_number_of_operations_and_bindings(count: int) -> None:
    arguments = ", ".join(f"%a{i}: tensor<4xf32>" for i in range(count))
    lines = ["%v0 = stablehlo.add %a0, %a0 : tensor<4xf32>"]
    lines += [f"%v{i} = stablehlo.add %v{i - 1}, %a{i} : tensor<4xf32>" for i in range(1, count)]
    function = formed("\n".join([*lines, f"return %v{count - 1} : tensor<4xf32>"]), arguments)
    found = [op for op in function.walk() if op.name == "iree.dispatch_region"]
    assert all(len(op.operands) - 1 + len(op.results) <= 12 for op in found)
    assert sum(map(len, regions(function))) == count and len(found) <= count // 8


def chain(operation: str, type: str, arity: int, length: int) -> str:
    """A program that applies an operation repeatedly."""
    tensor = f"tensor<64x{type}>"
    lines = []
    for number in range(length):
        operands = [f"%{number - 1}" if number else "%x", *["%x"] * (arity - 1)]
        types = ", ".join([tensor] * arity)
        lines.append(f'%{number} = "stablehlo.{operation}"({", ".join(operands)}) : ({types}) -> {tensor}')
    body = "\n".join(lines)
    return f"func.func @main(%x: {tensor}) -> {tensor} {{\n{body}\nreturn %{length - 1} : {tensor}\n}}"


def pads(length: int) -> str:
    """A program that pads a tensor repeatedly: each pad is a branch within the next."""
    lines = [
        f"%{number} = stablehlo.pad {f'%{number - 1}' if number else '%x'}, %p, low = [1], high = [0], interior = [0]"
        f" : (tensor<{4 + number}xf32>, tensor<f32>) -> tensor<{5 + number}xf32>"
        for number in range(length)
    ]
    given = f"tensor<{4 + length}xf32>"
    body = "\n".join(lines)
    return (
        f"func.func @main(%x: tensor<4xf32>, %p: tensor<f32>) -> {given} {{\n{body}\nreturn %{length - 1} : {given}\n}}"
    )


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "text",
    [
        chain("power", "f64", 2, 190),
        chain("atan2", "complex<f64>", 2, 90),
        chain("power", "f8E4M3FN", 2, 190),
        chain("remainder", "f64", 2, 190),
        chain("divide", "i64", 2, 190),
        chain("logistic", "complex<f32>", 1, 90),
        chain("add", "i8", 2, 600),
        pads(120),
    ],
    ids=["power", "atan2", "narrow", "remainder", "divide", "complex", "add", "pads"],
)
def test_no_chain_is_too_much_for_a_kernel(text: str) -> None:
    compile_text(text, "x", Target(), until="targets")


@pytest.mark.parametrize(("operation", "type"), [("remainder", "f64"), ("power", "i32"), ("remainder", "f8E4M3FN")])
def test_no_body_that_loops_is_looped_over_for_long(operation: str, type: str) -> None:
    text = f"""func.func @main(%x: tensor<2000x{type}>, %s: tensor<{type}>) -> tensor<{type}> {{
      %0 = "stablehlo.reduce"(%x, %s) <{{dimensions = array<i64: 0>}}> ({{
        ^bb0(%a: tensor<{type}>, %b: tensor<{type}>):
          %1 = stablehlo.{operation} %a, %b : tensor<{type}>
          stablehlo.return %1 : tensor<{type}>
      }}) : (tensor<2000x{type}>, tensor<{type}>) -> tensor<{type}>
      return %0 : tensor<{type}>
    }}"""
    compile_text(text, "x", Target(), until="targets")
