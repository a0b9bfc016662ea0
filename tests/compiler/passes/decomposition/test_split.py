"""Loops in parts: equal to the whole by definition, and correct at sizes where one loop would not be."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.regions import Array, by_definition, called, function_of, region_of
from support.profiles import PROFILE_NAMES, recorded_profile

import pumice
from pumice.compiler.ir.attributes import type_shape
from pumice.compiler.ir.operation import Operation
from pumice.compiler.ir.source import SourceText
from pumice.compiler.kernels.scalars.device_target import target_of
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.passes.decomposition import split, staged_reductions
from pumice.compiler.passes.verification.verify import verify
from pumice.compiler.pipeline import compile_text
from pumice.compiler.strategies.choice import compile_region


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets limits that small programs reach."""
    monkeypatch.setattr(staged_reductions, "MAX_ALONE", 8)
    monkeypatch.setattr(staged_reductions, "RUN", 4)
    monkeypatch.setattr(split, "MAX_PRODUCTS", 8)
    monkeypatch.setattr(staged_reductions, "MAX_WINDOW_WORK", 0)
    monkeypatch.setattr(staged_reductions, "fills_device", lambda operation: False)
    monkeypatch.setattr(staged_reductions, "is_enough", lambda rows: rows.length <= 4)
    monkeypatch.setattr(staged_reductions, "ROW", 4)


def parts(text: str, *values: Array) -> tuple[list[Array], list[Array], Operation]:
    """Returns results before and after splitting, and the function then."""
    function = function_of(text)
    verify({"main": function}, SourceText(text, "x"))
    before = by_definition(function, values)
    split.split_loops(function.regions[0].block, Target())
    verify({"main": function}, SourceText(text, "x"))
    return before, by_definition(function, values), function


def count(function: Operation, name: str) -> int:
    return sum(operation.name == f"stablehlo.{name}" for operation in function.walk())


def reduction(operation: str, type: str, shape: tuple[int, ...], axes: tuple[int, ...], start: str) -> str:
    """A program that reduces some dimensions."""
    before = "x".join([*map(str, shape), type])
    after = "x".join([*(str(length) for axis, length in enumerate(shape) if axis not in axes), type])
    return f"""func.func @main(%x: tensor<{before}>) -> tensor<{after}> {{
      %c = stablehlo.constant dense<{start}> : tensor<{type}>
      %0 = stablehlo.reduce(%x init: %c) applies stablehlo.{operation} across dimensions = [{", ".join(map(str, axes))}]
        : (tensor<{before}>, tensor<{type}>) -> tensor<{after}>
      return %0 : tensor<{after}>
    }}"""


@pytest.mark.parametrize(
    ("shape", "axes"), [((50,), (0,)), ((3, 9, 5), (0, 2)), ((2, 33), (1,)), ((7, 2, 3), (0, 1, 2))]
)
@pytest.mark.parametrize(
    ("operation", "type", "start"),
    [
        ("add", "i32", "7"),
        ("multiply", "ui8", "3"),
        ("maximum", "i16", "-100"),
        ("minimum", "ui32", "9"),
        ("and", "i8", "-2"),
        ("or", "i1", "false"),
        ("xor", "ui16", "5"),
        ("maximum", "f32", "0.5"),
        ("minimum", "bf16", "0.5"),
    ],
)
def test_reductions_in_stages(
    short: None, operation: str, type: str, start: str, shape: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    text = reduction(operation, type, shape, axes, start)
    dtype = function_of(text).regions[0].block.arguments[0].tensor.scalar.dtype
    value = np.random.default_rng(0).integers(0, 2 if type == "i1" else 100, shape).astype(dtype)
    before, after, function = parts(text, value)
    assert count(function, "reduce") > 1
    np.testing.assert_array_equal(after[0], before[0])


def test_initial_values_count_once_and_narrow_floats_are_summed_in_f32(short: None) -> None:
    value = np.ones((1000,), np.float32)
    text = reduction("add", "bf16", (1000,), (0,), "24.0")
    before, after, _ = parts(text, value.astype(function_of(text).regions[0].block.arguments[0].tensor.scalar.dtype))
    assert float(after[0]) == float(before[0]) == 1024


def test_a_body_of_several_operands_keeps_the_order_of_elements(short: None) -> None:
    text = """func.func @main(%x: tensor<37xf32>, %i: tensor<37xi32>) -> (tensor<f32>, tensor<i32>) {
      %c = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %z = stablehlo.constant dense<0> : tensor<i32>
      %0:2 = stablehlo.reduce(%x init: %c), (%i init: %z) across dimensions = [0]
          : (tensor<37xf32>, tensor<37xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
       reducer(%a: tensor<f32>, %b: tensor<f32>) (%m: tensor<i32>, %n: tensor<i32>) {
        %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %2 = stablehlo.select %1, %a, %b : tensor<i1>, tensor<f32>
        %3 = stablehlo.select %1, %m, %n : tensor<i1>, tensor<i32>
        stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
      }
      return %0#0, %0#1 : tensor<f32>, tensor<i32>
    }"""
    value = np.random.default_rng(0).integers(0, 4, 37).astype(np.float32)
    _, after, function = parts(text, value, np.arange(37, dtype=np.int32))
    assert count(function, "reduce") > 1
    assert int(after[1]) == int(np.argmax(value))


@pytest.mark.parametrize("type", ["i32", "f32", "complex<f64>", "i8", "bf16"])
def test_contractions_are_sums_of_partial_ones(short: None, type: str) -> None:
    text = f"""func.func @main(%x: tensor<2x3x7x5x{type}>, %y: tensor<5x2x4x7x{type}>) -> tensor<2x3x4x{type}> {{
      %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [1], contracting_dims = [2, 3] x [3, 0]
        : (tensor<2x3x7x5x{type}>, tensor<5x2x4x7x{type}>) -> tensor<2x3x4x{type}>
      return %0 : tensor<2x3x4x{type}>
    }}"""
    rng = np.random.default_rng(0)
    dtype = function_of(text).regions[0].block.arguments[0].tensor.scalar.dtype
    values = [rng.integers(-3, 4, shape).astype(dtype) for shape in ((2, 3, 7, 5), (5, 2, 4, 7))]
    before, after, function = parts(text, *values)
    assert count(function, "reduce") >= 1
    np.testing.assert_array_equal(after[0], before[0])


@pytest.mark.parametrize(
    ("left", "right", "to"),
    [
        ("f32", "f32", "f32"),
        ("i8", "i8", "i32"),
        ("i1", "i1", "i1"),
        ("complex<f32>", "complex<f32>", "complex<f32>"),
        ("bf16", "bf16", "f32"),
        ("f16", "f16", "f16"),
        ("f32", "f32", "f16"),
    ],
)
@pytest.mark.parametrize(
    ("shapes", "numbers"),
    [
        (("5", "7", "5x7"), "contracting_dims = [] x []"),
        (("5x2", "3x2x4", "2x5x3x4"), "batching_dims = [1] x [1], contracting_dims = [] x []"),
        (("2x3", "3x2", "3x2"), "batching_dims = [1, 0] x [0, 1], contracting_dims = [] x []"),
        (("", "3", "3"), "contracting_dims = [] x []"),
        (("0", "3", "0x3"), "contracting_dims = [] x []"),
    ],
)
def test_an_outer_product_is_an_elementwise_one(
    left: str, right: str, to: str, shapes: tuple[str, str, str], numbers: str
) -> None:
    types = [f"{shape}{'x' if shape else ''}{type}" for shape, type in zip(shapes, (left, right, to), strict=True)]
    text = f"""func.func @main(%x: tensor<{types[0]}>, %y: tensor<{types[1]}>) -> tensor<{types[2]}> {{
      %0 = stablehlo.dot_general %x, %y, {numbers} : (tensor<{types[0]}>, tensor<{types[1]}>) -> tensor<{types[2]}>
      return %0 : tensor<{types[2]}>
    }}"""
    arguments = [value.tensor for value in function_of(text).regions[0].block.arguments]
    rng = np.random.default_rng(0)
    values = [rng.integers(-5, 6, type_shape(type)).astype(type.scalar.dtype) for type in arguments]
    before, after, function = parts(text, *values)
    assert not count(function, "dot_general")
    np.testing.assert_array_equal(after[0], before[0])


@pytest.mark.sample(8)
@pytest.mark.parametrize("profile", PROFILE_NAMES)
def test_outer_products_of_any_size_compile(profile: str) -> None:
    """Also from a stage past the one that makes them elementwise."""
    for left, right in ((4096, 512), (1, 9), (200, 200)):
        text = f"""func.func @main(%x: tensor<{left}xf32>, %y: tensor<{right}xf32>) -> tensor<{left}x{right}xf32> {{
          %0 = stablehlo.dot_general %x, %y, contracting_dims = [] x []
            : (tensor<{left}xf32>, tensor<{right}xf32>) -> tensor<{left}x{right}xf32>
          return %0 : tensor<{left}x{right}xf32>
        }}"""
        target = target_of(recorded_profile(profile))
        assert b"dispatch" in compile_text(text, "x.mlir", target).module
        assert compile_region(region_of(text, target)).code


@pytest.mark.parametrize("reverse", ["0, 0", "1, 0", "1, 1"])
@pytest.mark.parametrize(("groups", "batches"), [(1, 1), (2, 1), (1, 2)])
def test_convolutions_are_loops_over_parts(short: None, groups: int, batches: int, reverse: str) -> None:
    flags = ", ".join("true" if each == "1" else "false" for each in reverse.split(", "))
    features = 10 // groups
    shape = f"{2 // batches}x6x6x4"
    text = f"""func.func @main(%x: tensor<2x11x9x10xf32>, %w: tensor<5x3x{features}x4xf32>) -> tensor<{shape}xf32> {{
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {{stride = [2, 3], pad = [[1, 3], [-1, 6]], lhs_dilate = [1, 2], rhs_dilate = [1, 2],
          reverse = [{flags}]}} {{batch_group_count = {batches} : i64, feature_group_count = {groups} : i64}}
        : (tensor<2x11x9x10xf32>, tensor<5x3x{features}x4xf32>) -> tensor<{shape}xf32>
      return %0 : tensor<{shape}xf32>
    }}"""
    rng = np.random.default_rng(0)
    values = [rng.integers(-3, 4, each).astype(np.float32) for each in ((2, 11, 9, 10), (5, 3, features, 4))]
    before, after, function = parts(text, *values)
    assert count(function, "while") > 1
    np.testing.assert_array_equal(after[0], before[0])


def test_a_convolution_of_any_number_of_taps_is_a_small_module() -> None:
    text = """func.func public @main(%x: tensor<1x4x4x1xf32>, %w: tensor<30000x30000x1x1xf32>) -> tensor<1x1x1x1xf32> {
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {pad = [[29996, 0], [29996, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : (tensor<1x4x4x1xf32>, tensor<30000x30000x1x1xf32>) -> tensor<1x1x1x1xf32>
      return %0 : tensor<1x1x1x1xf32>
    }"""
    assert len(pumice.compile(text)) < 100_000


@pytest.mark.parametrize(
    ("sizes", "strides", "dilations", "base"),
    [((9, 1), (1, 1), (1, 1), (1, 1)), ((3, 4), (2, 3), (1, 2), (2, 1)), ((11, 7), (1, 1), (1, 1), (1, 2))],
)
@pytest.mark.parametrize("operation", ["add", "maximum"])
def test_windows_are_made_of_those_of_powers_of_two(
    short: None,
    operation: str,
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    base: tuple[int, ...],
) -> None:
    padding = ((8, 0), (3, 2))
    lengths = [
        ((13 - 1) * gap + 1 + sum(pads) - ((size - 1) * dilation + 1)) // stride + 1
        for size, stride, dilation, gap, pads in zip(sizes, strides, dilations, base, padding, strict=True)
    ]
    shape = "x".join(map(str, lengths))

    def listed(values: tuple[int, ...]) -> str:
        return ", ".join(map(str, values))

    text = f"""func.func @main(%x: tensor<13x13xi32>) -> tensor<{shape}xi32> {{
      %c = stablehlo.constant dense<2> : tensor<i32>
      %0 = "stablehlo.reduce_window"(%x, %c) <{{window_dimensions = array<i64: {listed(sizes)}>,
        window_strides = array<i64: {listed(strides)}>, window_dilations = array<i64: {listed(dilations)}>,
        base_dilations = array<i64: {listed(base)}>, padding = dense<[[8, 0], [3, 2]]> : tensor<2x2xi64>}}> ({{
        ^bb0(%a: tensor<i32>, %b: tensor<i32>):
          %1 = stablehlo.{operation} %a, %b : tensor<i32>
          stablehlo.return %1 : tensor<i32>
      }}) : (tensor<13x13xi32>, tensor<i32>) -> tensor<{shape}xi32>
      return %0 : tensor<{shape}xi32>
    }}"""
    before, after, function = parts(text, np.random.default_rng(0).integers(-9, 9, (13, 13)).astype(np.int32))
    assert count(function, "reduce_window") == 0
    np.testing.assert_array_equal(after[0], before[0])


LARGE = """
func.func @main(%x: tensor<3000000xf32>, %y: tensor<3000000xf32>)
    -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<3000000xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<3000000xf32>, tensor<f32>) -> tensor<f32>
  %1 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [0]
    : (tensor<3000000xf32>, tensor<f32>) -> tensor<f32>
  %2 = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0]
    : (tensor<3000000xf32>, tensor<3000000xf32>) -> tensor<f32>
  %3 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 3000000>,
    padding = dense<[[2999999, 0]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %4 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %4 : tensor<f32>
  }) : (tensor<3000000xf32>, tensor<f32>) -> tensor<3000000xf32>
  return %0, %1, %2, %3 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<3000000xf32>
}"""


@pytest.mark.vulkan
def test_millions_of_elements(opened: pumice.Device) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.random(3_000_000, np.float32) for _ in range(2))
    total, most, product, sums = called(opened, LARGE, x, y, target=Target())
    exact = x.astype(np.float64)
    np.testing.assert_allclose(total, exact.sum(), 2e-7)
    assert float(most) == x.max()
    np.testing.assert_allclose(product, exact @ y, 2e-7)
    np.testing.assert_allclose(sums, exact.cumsum(), 5e-7)


@pytest.mark.parametrize(("rows", "length", "parts"), [(1, 8192, 8), (1, 8190, 7), (300, 8192, 0), (1, 900, 0)])
def test_sums_of_few_elements_are_divided_among_invocations(rows: int, length: int, parts: int) -> None:
    """Until the device is busy or parts get too small; parts are equal where they can be."""
    left, right, result = f"{rows}x{length}xf32", f"{length}x{rows}xf32", f"{rows}x{rows}xf32"
    text = f"""func.func @main(%x: tensor<{left}>, %y: tensor<{right}>) -> tensor<{result}> {{
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
        : (tensor<{left}>, tensor<{right}>) -> tensor<{result}>
      return %0 : tensor<{result}>
    }}"""
    function = function_of(text)
    split.split_loops(function.regions[0].block, Target())
    (product,) = [each for each in function.walk() if each.name == "stablehlo.dot_general"]
    assert product.results[0].tensor.shape == ((parts, rows, rows) if parts else (rows, rows))
    assert parts == 0 or all(max(value.tensor.shape) == length // parts for value in product.operands)
