"""Calls inlined, constants folded, equal operations merged, unused ones dropped."""

from __future__ import annotations

import pytest

from pumice.compiler.dialects.syntax.text import parse, to_text
from pumice.compiler.ir.operation import Operation
from pumice.compiler.ir.source import CompileError, SourceText
from pumice.compiler.passes.canonical.canonicalize import canonicalize, inlined
from pumice.compiler.passes.verification.verify import verify

A = "tensor<2x3xf32>"


def canonical(text: str, entry: str = "main") -> str:
    functions = {str(op.attributes["sym_name"]): op for op in parse(text)}
    source = SourceText(text, "x.mlir")
    verify(functions, source)
    function = inlined(functions[entry], functions, source)
    canonicalize(function.regions[0].block)
    return to_text([function])


def names(text: str) -> list[str]:
    (function,) = parse(text)
    return [op.name.partition(".")[2] for op in function.walk() if isinstance(op, Operation)][1:]


def test_what_depends_on_constants_alone_becomes_one() -> None:
    text = """
    func.func @main(%a: tensor<2xi32>) -> tensor<2xi32> {
      %0 = stablehlo.constant dense<3> : tensor<i32>
      %1 = stablehlo.constant dense<4> : tensor<i32>
      %2 = stablehlo.multiply %0, %1 : tensor<i32>
      %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<2xi32>
      %4 = stablehlo.add %a, %3 : tensor<2xi32>
      return %4 : tensor<2xi32>
    }"""
    found = canonical(text)
    assert names(found) == ["constant", "add", "return"]
    assert "dense<12>" in found


def test_equal_operations_are_merged_and_unused_ones_dropped() -> None:
    text = """
    func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.tanh %a : tensor<2xf32>
      %1 = stablehlo.tanh %a : tensor<2xf32>
      %2 = stablehlo.sine %a : tensor<2xf32>
      %3 = stablehlo.reshape %0 : (tensor<2xf32>) -> tensor<2xf32>
      %4 = stablehlo.add %3, %1 : tensor<2xf32>
      return %4 : tensor<2xf32>
    }"""
    assert names(canonical(text)) == ["tanh", "add", "return"]


def test_a_value_of_an_outer_block_is_found_in_a_body_but_not_the_other_way_round() -> None:
    text = """
    func.func @main(%a: tensor<f32>, %p: tensor<i1>) -> tensor<f32> {
      %0 = stablehlo.tanh %a : tensor<f32>
      %1 = "stablehlo.if"(%p) ({
        %2 = stablehlo.tanh %a : tensor<f32>
        %3 = stablehlo.sine %a : tensor<f32>
        %4 = stablehlo.add %2, %3 : tensor<f32>
        stablehlo.return %4 : tensor<f32>
      }, {
        stablehlo.return %0 : tensor<f32>
      }) : (tensor<i1>) -> tensor<f32>
      %5 = stablehlo.sine %a : tensor<f32>
      %6 = stablehlo.add %1, %5 : tensor<f32>
      return %6 : tensor<f32>
    }"""
    assert names(canonical(text)).count("tanh") == 1
    assert names(canonical(text)).count("sine") == 2


def test_calls_are_written_out_in_place() -> None:
    text = """
    func.func @main(%a: tensor<f32>) -> tensor<f32> {
      %0 = call @f(%a) : (tensor<f32>) -> tensor<f32>
      %1 = call @f(%0) : (tensor<f32>) -> tensor<f32>
      return %1 : tensor<f32>
    }
    func.func private @f(%x: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.tanh %x : tensor<f32>
      return %0 : tensor<f32>
    }"""
    assert names(canonical(text)) == ["tanh", "tanh", "return"]


def test_functions_that_call_each_other_in_a_circle_are_refused() -> None:
    text = """
    func.func @main() { call @f() : () -> ()
      return }
    func.func private @f() { call @g() : () -> ()
      return }
    func.func private @g() { call @f() : () -> ()
      return }"""
    with pytest.raises(CompileError, match="in a circle: f -> g -> f"):
        canonical(text)


def test_calls_that_double_at_each_level_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pumice.compiler.passes.canonical.canonicalize.MAX_OPERATIONS", 20_000)
    levels = "".join(
        f"func.func private @f{i}() {{ call @f{i + 1}() : () -> ()\ncall @f{i + 1}() : () -> ()\nreturn }}\n"
        for i in range(40)
    )
    text = f"func.func @main() {{ call @f0() : () -> ()\nreturn }}\n{levels}func.func private @f40() {{ return }}"
    with pytest.raises(CompileError, match="over 20,000 operations"):
        canonical(text)


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (
            "%0 = stablehlo.add %a, %i : ($A, tensor<i32>) -> $A",
            "operands of one element type",
        ),
        ("%0 = stablehlo.and %a, %a : $A", "elements of one of these kinds: boolean, signed, unsigned"),
        ("%0 = stablehlo.reshape %a : ($A) -> tensor<7xf32>", "as many elements in the result"),
        ("%0 = stablehlo.transpose %a, dims = [0, 0] : ($A) -> tensor<2x2xf32>", "dims to be an order of"),
        ("%0 = stablehlo.tanh %a : ($A) -> tensor<3x2xf32>", f"results of types ({A}), got"),
        ("%0 = stablehlo.slice %a [0:3, 0:1] : ($A) -> tensor<3x1xf32>", "0 <= start <= limit <= 2"),
        ("%0 = stablehlo.iota dim = 2 : $A", "iota_dimension to be different numbers from 0 to 1"),
        (
            "%0 = stablehlo.concatenate %a, %a, dim = 0 : ($A, $A) -> tensor<2x6xf32>",
            "(tensor<4x3xf32>)",
        ),
        (
            "%0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : ($A, $A) -> $A",
            "dimension 1 of",
        ),
        ("%0 = stablehlo.compare LT, %a, %i : ($A, tensor<i32>) -> tensor<2x3xi1>", "one element type"),
        ("%0 = call @gone(%a) : ($A) -> $A", "a function of this program, got @gone"),
        (
            '%0 = "stablehlo.partition"(%a) : ($A) -> $A',
            "an operation that pumice compiles",
        ),
        ('%0 = "stablehlo.tanh"() : () -> $A', "1 operands, got 0"),
        ('%0 = "stablehlo.while"(%a) : ($A) -> $A', "2 regions, got 0"),
        ('%0 = "stablehlo.scatter"(%a) : ($A) -> $A', "1 region, got 0"),
    ],
)
def test_what_an_operation_requires_is_said_with_its_place(operation: str, message: str) -> None:
    text = f"func.func @main(%a: {A}, %i: tensor<i32>) {{\n  {operation.replace('$A', A)}\n  return\n}}"
    with pytest.raises(CompileError) as caught:
        canonical(text)
    assert message in str(caught.value) and caught.value.line == 2
