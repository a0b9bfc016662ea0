"""Lengths that depend on the call: inference from arguments, requirements on calls, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.dynamic import specialised

from pumice.compiler.analysis.reference_program import ProgramWriter
from pumice.compiler.ir.attributes import DenseArray
from pumice.compiler.ir.operation import Operation
from pumice.compiler.ir.source import CompileError
from pumice.compiler.ir.types import FunctionType
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.pipeline import compile_text
from pumice.hal_reference.operations import evaluate
from pumice.hal_reference.program import Array


def canonical(text: str) -> Operation:
    return compile_text(text, "x.mlir", Target(), until="canonical").program.functions["main"]


def function(arguments: str, body: str, results: str) -> str:
    return f"func.func @main({arguments}) -> ({results}) {{ {body} }}"


def run(text: str, lengths: dict[str, int], *arguments: Array) -> list[Array]:
    made = specialised(canonical(text), lengths)
    return evaluate(ProgramWriter({"main": made}).function("main"), arguments)


def types(text: str) -> str:
    type = canonical(text).attributes["function_type"]
    assert isinstance(type, FunctionType)
    return str(type)


def requires(text: str) -> list[str]:
    listed = canonical(text).attributes.get("requires", ())
    assert isinstance(listed, tuple)
    pairs = [pair for pair in listed if isinstance(pair, tuple)]
    return [str(size.values[0]) for size, _ in pairs if isinstance(size, DenseArray)]


def refused(text: str) -> str:
    with pytest.raises(CompileError) as caught:
        canonical(text)
    return str(caught.value)


SHAPE = """
    %d = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    %k = stablehlo.constant dense<3> : tensor<i32>
    %n = stablehlo.multiply %d, %k : tensor<i32>
    %s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>"""


def test_shapes_computed_from_a_dimension_become_sizes() -> None:
    body = f"""{SHAPE}
    %0 = stablehlo.dynamic_reshape %x, %s : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<?xf32>
    %1 = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
    %2 = stablehlo.add %0, %1 : tensor<?xf32>
    %3 = stablehlo.concatenate %2, %0, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    return %3, %n : tensor<?xf32>, tensor<i32>"""
    text = function("%x: tensor<?x3xf32>", body, "tensor<?xf32>, tensor<i32>")
    assert types(text) == "(tensor<(d0)x3xf32>) -> (tensor<(6*d0)xf32>, tensor<i32>)"
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    joined, count = run(text, {"d0": 5}, x)
    flat = x.reshape(-1)
    np.testing.assert_array_equal(joined, np.concatenate([flat + np.arange(15, dtype=np.float32), flat]))
    assert count == 15


def test_lengths_that_have_to_agree_are_one_symbol() -> None:
    body = "%0 = stablehlo.add %x, %y : tensor<?xf32> return %0 : tensor<?xf32>"
    text = function("%x: tensor<?xf32>, %y: tensor<?xf32>", body, "tensor<?xf32>")
    assert types(text) == "(tensor<(d0)xf32>, tensor<(d0)xf32>) -> tensor<(d0)xf32>"


def test_lengths_that_nothing_relates_are_two() -> None:
    body = """%0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    return %0 : tensor<?xf32>"""
    text = function("%x: tensor<?xf32>, %y: tensor<?xf32>", body, "tensor<?xf32>")
    assert types(text) == "(tensor<(d0)xf32>, tensor<(d1)xf32>) -> tensor<(d0+d1)xf32>"


def test_a_declared_length_is_an_equation() -> None:
    body = """%0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>"""
    text = function("%x: tensor<?xf32>, %y: tensor<?xf32>", body, "tensor<8xf32>")
    assert types(text) == "(tensor<(d0)xf32>, tensor<(-d0+8)xf32>) -> tensor<8xf32>"


def test_an_assertion_of_equal_shapes_says_what_a_symbol_is() -> None:
    body = """
    %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %1 = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %k = stablehlo.constant dense<2> : tensor<i32>
    %2 = stablehlo.multiply %0, %k : tensor<i32>
    %3 = stablehlo.compare EQ, %1, %2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%3, %1) {error_message = "no"} : (tensor<i1>, tensor<i32>) -> ()
    %4 = stablehlo.compare GE, %0, %k, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%4) {error_message = "too few"} : (tensor<i1>) -> ()
    %5 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    return %5 : tensor<?xf32>"""
    text = function("%x: tensor<?xf32>, %y: tensor<?xf32>", body, "tensor<?xf32>")
    assert types(text) == "(tensor<(d0)xf32>, tensor<(2*d0)xf32>) -> tensor<(3*d0)xf32>"
    assert requires(text) == ["(d0-2)"]


def test_slices_and_pads_require_what_they_take_for_granted() -> None:
    body = """
    %d = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %s = stablehlo.reshape %d : (tensor<i32>) -> tensor<1xi32>
    %one = stablehlo.constant dense<1> : tensor<1xi32>
    %two = stablehlo.constant dense<2> : tensor<1xi32>
    %e = stablehlo.subtract %s, %one : tensor<1xi32>
    %0 = stablehlo.real_dynamic_slice %x, %two, %e, %one
      : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.dynamic_pad %0, %zero, %one, %two, %one
      : (tensor<?xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
    return %1 : tensor<?xf32>"""
    text = function("%x: tensor<?xf32>", body, "tensor<?xf32>")
    assert types(text) == "(tensor<(d0)xf32>) -> tensor<(2*d0-4)xf32>"
    assert "(d0-3)" in requires(text)
    (found,) = run(text, {"d0": 6}, np.arange(1, 7, dtype=np.float32))
    np.testing.assert_array_equal(found, [0, 3, 0, 4, 0, 5, 0, 0])


def test_the_mean_divides_by_the_dimension_of_the_call() -> None:
    body = """
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0]
      : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
    %d = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %1 = stablehlo.convert %d : (tensor<i32>) -> tensor<f32>
    %2 = stablehlo.divide %0, %1 : tensor<f32>
    return %2 : tensor<f32>"""
    text = function("%x: tensor<?xf32>", body, "tensor<f32>")
    x = np.arange(9, dtype=np.float32)
    np.testing.assert_allclose(run(text, {"d0": 9}, x)[0], 4)


def test_bounds_are_what_a_call_has_to_keep() -> None:
    bounds = "#stablehlo.bounds<5, ?>"
    body = f"""
    %0 = stablehlo.reshape %x : (tensor<?x2xf32, {bounds}>) -> tensor<2x?xf32, #stablehlo.bounds<?, 5>>
    return %0 : tensor<2x?xf32, #stablehlo.bounds<?, 5>>"""
    text = function(f"%x: tensor<?x2xf32, {bounds}>", body, "tensor<2x?xf32, #stablehlo.bounds<?, 5>>")
    assert types(text) == "(tensor<(d0)x2xf32>) -> tensor<2x(d0)xf32>"
    assert requires(text) == ["(-d0+5)"]


def test_a_dimension_is_cut_to_a_size() -> None:
    body = """
    %d = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %0 = stablehlo.set_dimension_size %y, %d, dim = 0
      : (tensor<8xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<8>>
    %1 = stablehlo.add %x, %0 : (tensor<?xf32>, tensor<?xf32, #stablehlo.bounds<8>>) -> tensor<?xf32>
    return %1 : tensor<?xf32>"""
    text = function("%x: tensor<?xf32>, %y: tensor<8xf32>", body, "tensor<?xf32>")
    assert requires(text) == ["(-d0+8)"]
    y = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(run(text, {"d0": 3}, np.ones(3, np.float32), y)[0], [1, 2, 3])


def test_a_declared_shape_stands_for_operands_that_are_not_known() -> None:
    body = """
    %0 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1] : (tensor<4xf32>, tensor<2xi64>) -> tensor<3x4xf32>
    return %0 : tensor<3x4xf32>"""
    text = function("%x: tensor<4xf32>, %s: tensor<2xi64>", body, "tensor<3x4xf32>")
    assert types(text) == "(tensor<4xf32>, tensor<2xi64>) -> tensor<3x4xf32>"


def test_shapes_of_other_dialects_are_followed() -> None:
    body = """
    %zero = arith.constant 0 : index
    %n = tensor.dim %x, %zero : tensor<?x3xf32>
    %w = arith.index_cast %n : index to i32
    %s = shape.shape_of %x : tensor<?x3xf32> -> tensor<2xindex>
    %0 = stablehlo.dynamic_iota %s, dim = 0 : (tensor<2xindex>) -> tensor<?x3xf32>
    %1 = stablehlo.add %0, %x : tensor<?x3xf32>
    %2 = tensor.from_elements %w : tensor<1xi32>
    return %1, %2 : tensor<?x3xf32>, tensor<1xi32>"""
    text = function("%x: tensor<?x3xf32>", body, "tensor<?x3xf32>, tensor<1xi32>")
    assert types(text) == "(tensor<(d0)x3xf32>) -> (tensor<(d0)x3xf32>, tensor<1xi32>)"
    found, count = run(text, {"d0": 4}, np.zeros((4, 3), np.float32))
    np.testing.assert_array_equal(found[:, 0], [0, 1, 2, 3])
    assert count.tolist() == [4]


@pytest.mark.parametrize("length", [0, 1, 2, 3, 7, 16, 33])
def test_a_sort_of_any_length_is_stable(length: int) -> None:
    body = """
    %d = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xi32>) -> tensor<i32>
    %s = stablehlo.reshape %d : (tensor<i32>) -> tensor<1xi32>
    %i = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
    %0:2 = "stablehlo.sort"(%x, %i) ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %e: tensor<i32>):
      %1 = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }) {dimension = 0 : i64, is_stable = true} : (tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
    return %0#0, %0#1 : tensor<?xi32>, tensor<?xi32>"""
    text = function("%x: tensor<?xi32>", body, "tensor<?xi32>, tensor<?xi32>")
    x = np.random.default_rng(length).integers(0, 5, length).astype(np.int32)
    ordered, places = run(text, {"d0": length}, x)
    np.testing.assert_array_equal(ordered, np.sort(x))
    np.testing.assert_array_equal(places, np.argsort(x, stable=True))


def test_a_size_computed_from_data_is_refused() -> None:
    body = """%s = stablehlo.slice %n [1:2] : (tensor<2xi32>) -> tensor<1xi32>
    %0 = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
    return %0 : tensor<?xf32>"""
    message = refused(function("%n: tensor<2xi32>", body, "tensor<?xf32>"))
    assert "x.mlir:2" in message and "stablehlo.dynamic_iota expects a shape that is a polynomial" in message


def values(text: str) -> list[str]:
    listed = canonical(text).attributes.get("values", ())
    assert isinstance(listed, tuple)
    return [" ".join(map(str, pair.values)) for pair in listed if isinstance(pair, DenseArray)]


IOTA = """%s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %0 = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>"""


def test_an_integer_argument_is_a_length_where_one_is_needed() -> None:
    body = f"{IOTA} return %0, %k : tensor<?xi32>, tensor<i32>"
    text = function("%k: tensor<i32>, %n: tensor<i32>", body, "tensor<?xi32>, tensor<i32>")
    assert types(text) == "(tensor<i32>, tensor<i32>) -> (tensor<(d1)xi32>, tensor<i32>)"
    assert values(text) == ["1 (d1)"]


def test_an_integer_argument_is_the_length_that_its_value_has_to_be() -> None:
    body = f"{IOTA} %1 = stablehlo.add %x, %0 : tensor<?xi32> return %1 : tensor<?xi32>"
    text = function("%n: tensor<i32>, %x: tensor<?xi32>", body, "tensor<?xi32>")
    assert types(text) == "(tensor<i32>, tensor<(d0)xi32>) -> tensor<(d0)xi32>"
    assert values(text) == ["0 (d0)"]
    fixed = text.replace("%x: tensor<?xi32>", "%x: tensor<6xi32>").replace("add %x", "add %y")
    fixed = fixed.replace("%1 =", "%y = stablehlo.abs %x : (tensor<6xi32>) -> tensor<?xi32> %1 =")
    assert types(fixed) == "(tensor<i32>, tensor<6xi32>) -> tensor<6xi32>"
    assert values(fixed) == ["0 6"]


@pytest.mark.parametrize("wrong", ["0, (d0)", "7, (d0)", "1"])
def test_a_stage_file_that_says_wrong_values_is_refused_with_its_place(wrong: str) -> None:
    body = f"{IOTA} return %0 : tensor<?xi32>"
    program = compile_text(
        function("%x: tensor<4xf32>, %n: tensor<i32>", body, "tensor<?xi32>"), "x.mlir", Target(), until="canonical"
    ).program
    text = program.text()
    assert "array<i64: 1, (d1)>" in text
    with pytest.raises(CompileError, match="x.mlir:[0-9]+:[0-9]+: func.func expects pairs of an argument"):
        compile_text(text.replace("array<i64: 1, (d1)>", f"array<i64: {wrong}>"), "x.mlir", Target(), from_="canonical")


def test_an_argument_that_is_an_index_is_no_length() -> None:
    """It may be negative."""
    body = """
    %a = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>
    %s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %e = stablehlo.add %a, %s : tensor<1xi32>
    %one = stablehlo.constant dense<1> : tensor<1xi32>
    %0 = stablehlo.real_dynamic_slice %x, %a, %e, %one
      : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
    return %0 : tensor<?xf32>"""
    text = function("%i: tensor<i32>, %n: tensor<i32>, %x: tensor<?xf32>", body, "tensor<?xf32>")
    assert types(text) == "(tensor<i32>, tensor<i32>, tensor<(d0)xf32>) -> tensor<(d2)xf32>"
    assert values(text) == ["1 (d2)"] and "(d0-d2)" in requires(text)


def test_elements_whose_number_is_a_product_are_counted_by_the_call() -> None:
    body = """%0 = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
    %1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %3 = stablehlo.dynamic_reshape %x, %2 : (tensor<?x?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
    return %3 : tensor<?x?xf32>"""
    text = function("%m: tensor<i32>, %n: tensor<i32>, %x: tensor<?x?xf32>", body, "tensor<?x?xf32>")
    assert types(text) == "(tensor<i32>, tensor<i32>, tensor<(d0)x(d1)xf32>) -> tensor<(d2)x(d3)xf32>"
    assert requires(text) == ["(d0*d1-d2*d3)", "(-d0*d1+d2*d3)"]
    # A product that is a length is an equation.
    alone = text.replace("tensor<?x?xf32>, tensor<2xi32>", "tensor<4x?xf32>, tensor<2xi32>")
    alone = alone.replace("%x: tensor<?x?xf32>", "%x: tensor<4x?xf32>").replace("reshape %n", "reshape %k")
    alone = alone.replace("{", "{ %k = stablehlo.constant dense<2> : tensor<i32>", 1)
    assert types(alone) == "(tensor<i32>, tensor<i32>, tensor<4x(d0)xf32>) -> tensor<(2*d0)x2xf32>"


def test_a_slice_with_a_stride_takes_a_quotient() -> None:
    body = """
    %z = stablehlo.constant dense<0> : tensor<1xi32>
    %two = stablehlo.constant dense<2> : tensor<1xi32>
    %d = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %s = stablehlo.reshape %d : (tensor<i32>) -> tensor<1xi32>
    %0 = stablehlo.real_dynamic_slice %x, %z, %s, %two
      : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
    return %0 : tensor<?xf32>"""
    text = function("%x: tensor<?xf32>", body, "tensor<?xf32>")
    assert types(text) == "(tensor<(d0)xf32>) -> tensor<([d0+1]/2)xf32>"
    for length in (0, 1, 6, 7):
        x = np.arange(length, dtype=np.float32)
        np.testing.assert_array_equal(run(text, {"d0": length}, x)[0], x[::2])


def test_a_size_divided_with_a_rest_twice_is_refused() -> None:
    body = """
    %z = stablehlo.constant dense<0> : tensor<1xi32>
    %two = stablehlo.constant dense<2> : tensor<1xi32>
    %d = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %s = stablehlo.reshape %d : (tensor<i32>) -> tensor<1xi32>
    %0 = stablehlo.real_dynamic_slice %x, %z, %s, %two
      : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
    %e = stablehlo.get_dimension_size %0, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %t = stablehlo.reshape %e : (tensor<i32>) -> tensor<1xi32>
    %1 = stablehlo.real_dynamic_slice %0, %z, %t, %two
      : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
    return %1 : tensor<?xf32>"""
    message = refused(function("%x: tensor<?xf32>", body, "tensor<?xf32>"))
    assert "a stride of which the range's length ([d0+1]/2) is a multiple" in message and "reshape to" in message


def test_a_loop_that_grows_what_it_carries_is_refused() -> None:
    body = """
    %c = stablehlo.constant dense<true> : tensor<i1>
    %0:2 = stablehlo.while(%i = %c, %v = %x) : tensor<i1>, tensor<?xf32>
    cond {
      stablehlo.return %i : tensor<i1>
    } do {
      %1 = stablehlo.concatenate %v, %v, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      stablehlo.return %i, %1 : tensor<i1>, tensor<?xf32>
    }
    return %0#1 : tensor<?xf32>"""
    message = refused(function("%x: tensor<?xf32>", body, "tensor<?xf32>"))
    assert "tensor<(d0)xf32>), got (tensor<i1>, tensor<(2*d0)xf32>)" in message


def test_lengths_that_grow_without_bound_are_refused() -> None:
    body = ""
    for number in range(40):
        value, after = f"%v{number}" if number else "%x", f"%v{number + 1}"
        body += f"""
    %a{number} = stablehlo.dot_general {value}, {value}, contracting_dims = [] x []
      : (tensor<?xf32>, tensor<?xf32>) -> tensor<?x?xf32>
    %d{number} = stablehlo.get_dimension_size {value}, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %m{number} = stablehlo.multiply %d{number}, %d{number} : tensor<i32>
    %s{number} = stablehlo.reshape %m{number} : (tensor<i32>) -> tensor<1xi32>
    {after} = stablehlo.dynamic_reshape %a{number}, %s{number} : (tensor<?x?xf32>, tensor<1xi32>) -> tensor<?xf32>"""
    message = refused(function("%x: tensor<?xf32>", f"{body} return %v40 : tensor<?xf32>", "tensor<?xf32>"))
    assert "at most 256 terms of at most 16 symbols" in message


def test_an_assertion_about_known_lengths_is_settled() -> None:
    body = """
    %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<4xf32>) -> tensor<i32>
    %k = stablehlo.constant dense<4> : tensor<i32>
    %1 = stablehlo.compare EQ, %0, %k, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%1) {error_message = "four"} : (tensor<i1>) -> ()
    return %x : tensor<4xf32>"""
    text = function("%x: tensor<4xf32>", body, "tensor<4xf32>")
    assert [each.name for each in canonical(text).walk()] == ["func.func", "func.return"]
    assert "a condition that can hold: four" in refused(text.replace("dense<4>", "dense<5>"))


def test_what_no_call_can_fulfil_is_refused() -> None:
    body = """
    %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %k = stablehlo.constant dense<-1> : tensor<i32>
    %1 = stablehlo.compare LE, %0, %k, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%1) {error_message = "never"} : (tensor<i1>) -> ()
    return %x : tensor<?xf32>"""
    assert "a condition that can hold: never" in refused(function("%x: tensor<?xf32>", body, "tensor<?xf32>"))
