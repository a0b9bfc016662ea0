"""Programs read from text and printed as text; errors name their position."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.compiler.dialects.syntax.text import parse, to_text
from pumice.compiler.ir.attributes import DenseElements, StructAttr
from pumice.compiler.ir.operation import Operation
from pumice.compiler.ir.source import CompileError
from pumice.compiler.ir.types import TensorType

MLP = """\
module @jit_f attributes {mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x8xf32>, %arg1: tensor<8x2xf32>) -> (tensor<4xf32> {jax.result_info = "r"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : \
(tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x2xf32>
    %2 = stablehlo.maximum %0, %1 : tensor<4x2xf32>
    %3 = stablehlo.reduce(%2 init: %cst) applies stablehlo.add across dimensions = [1] : \
(tensor<4x2xf32>, tensor<f32>) -> tensor<4xf32>
    %4 = call @twice(%3) : (tensor<4xf32>) -> tensor<4xf32>
    return %4 : tensor<4xf32>
  }
  func.func private @twice(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""

LOOP = """\
func.func @main(%arg0: tensor<i32>) -> tensor<i32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg0) : tensor<i32>, tensor<i32>
  cond {
    %c_1 = stablehlo.constant dense<5> : tensor<i32>
    %1 = stablehlo.compare LT, %iterArg, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2 = stablehlo.add %iterArg_0, %iterArg_0 : tensor<i32>
    %c_2 = stablehlo.constant dense<1> : tensor<i32>
    %3 = stablehlo.add %iterArg, %c_2 : tensor<i32>
    stablehlo.return %3, %2 : tensor<i32>, tensor<i32>
  }
  return %0#1 : tensor<i32>
}
"""


def only(text: str) -> Operation:
    """Returns the first operation of a function of one operation and a return."""
    (function,) = parse(f"func.func @f(%a: tensor<2xf32>, %b: tensor<2x3xi32>) {{\n{text}\nreturn\n}}")
    return function.regions[0].block.operations[0]


def test_what_jax_prints_is_printed_as_it_was_read() -> None:
    assert to_text(parse(MLP)) == MLP


@pytest.mark.parametrize("text", [MLP, LOOP])
def test_the_generic_form_is_the_same_program(text: str) -> None:
    operations = parse(text)
    assert to_text(parse(to_text(operations, generic=True))) == to_text(operations)
    assert to_text(parse(to_text(operations))) == to_text(operations)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("dense<1.5> : tensor<2xf32>", [1.5, 1.5]),
        ("dense<[1, -1]> : tensor<2xi8>", [1, -1]),
        ("dense<[255, 128]> : tensor<2xi8>", [-1, -128]),
        ("dense<[true, false]> : tensor<2xi1>", [True, False]),
        ('dense<"0x0000803F00000040"> : tensor<2xf32>', [1.0, 2.0]),
        ('dense<"0x0001"> : tensor<2xi1>', [False, True]),
        ('dense<"0x05"> : tensor<3xi1>', [True, False, True]),
        ("dense<[18446744073709551615, 3]> : tensor<2xui64>", [2**64 - 1, 3]),
        ("dense<[0x7F800000, 0xFF800000]> : tensor<2xf32>", [np.inf, -np.inf]),
        ("dense<[(1.0, 2.0), (0.0, -0.0)]> : tensor<2xcomplex<f32>>", [1 + 2j, complex(0, -0.0)]),
        ("dense<[1., -2.]> : tensor<2xf64>", [1.0, -2.0]),
        ("dense<> : tensor<0xf32>", []),
        ("dense<[[], []]> : tensor<2x0xf32>", [[], []]),
    ],
)
def test_constants_have_their_elements(text: str, values: list[object]) -> None:
    value = only(f"%0 = stablehlo.constant {text}").attributes["value"]
    assert isinstance(value, DenseElements)
    np.testing.assert_array_equal(value.array, np.array(values, value.array.dtype).reshape(value.array.shape))
    printed = to_text([only(f"%0 = stablehlo.constant {text}")]).partition("constant ")[2]
    again = only(f"%0 = stablehlo.constant {printed}").attributes["value"]
    assert isinstance(again, DenseElements)
    assert again.array.tobytes() == value.array.tobytes()


def test_the_bits_of_a_nan_are_kept() -> None:
    value = only("%0 = stablehlo.constant dense<[0xFFC00001, 1.0]> : tensor<2xf32>").attributes["value"]
    assert isinstance(value, DenseElements)
    assert value.array.view(np.uint32)[0] == 0xFFC00001


def test_dimension_numbers_have_names() -> None:
    window = "dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2]}"
    types = "(tensor<1x4x1xf32>, tensor<1x4x1xf32>) -> tensor<1x1x1xf32>"
    text = f"func.func @f(%a: tensor<1x4x1xf32>) {{ %0 = stablehlo.convolution(%a, %a) {window} : {types}\nreturn }}"
    numbers = parse(text)[0].regions[0].block.operations[0].attributes["dimension_numbers"]
    assert isinstance(numbers, StructAttr)
    assert numbers.ints("input_spatial_dimensions") == (1,) and numbers.int("kernel_output_feature_dimension") == 2


def test_types_are_equal_if_they_are_the_same_object() -> None:
    operation = only("%0 = stablehlo.reshape %b : (tensor<2x3xi32>) -> tensor<6xi32>")
    assert operation.results[0].type is TensorType((6,), operation.tensor.element)


def test_debug_locations_follow_their_aliases() -> None:
    text = """
    #loc1 = loc("model.py":12:3)
    func.func @f(%a: tensor<2xf32> loc("a")) -> tensor<2xf32> {
      %0 = stablehlo.tanh %a : tensor<2xf32> loc(#loc2)
      return %0 : tensor<2xf32> loc(unknown)
    }
    #loc2 = loc("layer"(#loc1))
    """
    location = parse(text)[0].regions[0].block.operations[0].location.debug
    assert location is not None
    assert (location.name, location.file_name, location.line, location.column) == ("layer", "model.py", 12, 3)


def test_aliases_that_grow_without_a_bound_are_cut() -> None:
    doubling = "".join(f"#loc{i} = loc(callsite(#loc{i + 1} at #loc{i + 1}))\n" for i in range(60))
    text = f'func.func @f() {{ return loc(#loc0) }}\n{doubling}#loc60 = loc("x":1:1)\n'
    location = parse(text)[0].regions[0].block.operations[0].location.debug
    assert location is not None and len(location.text) <= 10_000


@pytest.mark.parametrize(
    ("body", "position", "message"),
    [
        ("%0 = stablehlo.add %a, %c : tensor<2xf32>", (2, 24), "%c is not defined"),
        ("%0 = stablehlo.add %a, %b : tensor<2xf32>", (2, 24), "%b is of type tensor<2x3xi32>, it is used as"),
        ("%0 = stablehlo.add %a, %a : tensor<2xf31>", (2, 38), "there is no type f31"),
        ("%0 = stablehlo.frobnicate %a : tensor<2xf32>", (2, 6), "the syntax of stablehlo.frobnicate is not known"),
        ("%0 = stablehlo.multipy %a, %a : tensor<2xf32>", (2, 6), "did you mean stablehlo.multiply?"),
        ("%0 = nodialect.add %a : tensor<2xf32>", (2, 6), "unknown operation nodialect.add"),
        ("%0 = stablehlo.iota dim 0 : tensor<2xf32>", (2, 25), "expected '='"),
        ("%a = stablehlo.tanh %a : tensor<2xf32>", (2, 1), "%a is defined twice"),
        ("%0, %1 = stablehlo.tanh %a : tensor<2xf32>", (2, 1), "has 1 results, 2 are named"),
        ("%0 = stablehlo.tanh %1 : tensor<2xf32>\n%1 = stablehlo.tanh %a : tensor<2xf32>", (2, 21), "before it is"),
        ("%0 = stablehlo.constant dense<[1, 2, 3]> : tensor<2xi32>", (2, 31), "have the shape [3], its type is"),
        ('%0 = stablehlo.constant dense<"0x00"> : tensor<2xi32>', (2, 31), "has 1 bytes, tensor<2xi32> takes 8"),
        ("%0 = stablehlo.constant dense<[1, [2]]> : tensor<2xi32>", (2, 31), "in lists of equal lengths"),
        ("%0 = stablehlo.constant dense<300> : tensor<2xi8>", (2, 31), "does not fit i8"),
        ("%0 = stablehlo.constant dense<1.5> : tensor<2xi8>", (2, 31), "a fraction is no i8"),
        ("%0 = stablehlo.constant dense<1> : tensor<?xi8>", (2, 31), "only known lengths"),
        ("%0 = stablehlo.tanh %a : tensor<99999999999999999999xf32>", (2, 33), "at most 2**63 - 1"),
        ("%0 = stablehlo.constant dense<0> : tensor<9999999999x9999999999xi8>", (2, 36), "at most 2**56 elements"),
        ('"x.y"() {a = 1, a = 2} : () -> ()', (2, 17), "the attribute a is given twice"),
        ('"x.y"() {a = #b} : () -> ()', (2, 14), "the attribute alias #b is not defined"),
        ('"x.y"()[^bb7] : () -> ()', (2, 9), "the block ^bb7 is not defined"),
        ('"x.y"() {a = "b} : () -> ()', (2, 14), "expected a quoted string"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(body: str, position: tuple[int, int], message: str) -> None:
    with pytest.raises(CompileError) as caught:
        parse(f"func.func @f(%a: tensor<2xf32>, %b: tensor<2x3xi32>) {{\n{body}\nreturn\n}}", "x.mlir")
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == position, str(caught.value)
    line, caret = str(caught.value).splitlines()[-2:]
    assert line.strip() in body and caret.strip() == "^"


@pytest.mark.parametrize("text", ["tuple<" * 5_000, '"a"() ({' * 5_000, "[" * 5_000, "(" * 5_000])
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(CompileError, match="nested more than 100 levels deep|expected"):
        parse(f'"a"() {{x = {text}' if text[0] in "t[(" else text)


@pytest.mark.parametrize("cut", range(0, len(MLP), 37))
def test_a_program_that_ends_early_is_refused(cut: int) -> None:
    text = MLP[:cut].rstrip()
    if not text:
        return
    said = "expected|missing|is not defined|unknown operation|has 1 results|there is no type"
    with pytest.raises(CompileError, match=said):
        parse(text)


def test_integers_of_lists_in_lists() -> None:
    (operation,) = parse('"a.b"() {x = [array<i64: 1, 2>, [3 : i64]], y = dense<4> : tensor<1x2xi64>} : () -> ()')
    assert operation.integers("x") == (1, 2, 3)
    assert operation.integers("y") == (4, 4)
    assert operation.integers("z", [5]) == (5,)
