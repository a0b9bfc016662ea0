"""Scatters and selections by sorting: equal to their definitions, and right where there are many updates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from support.regions import Array, by_definition, function_of

import pumice
from pumice.compiler.ir.operation import Operation
from pumice.compiler.ir.source import SourceText
from pumice.compiler.passes.decomposition import scatters
from pumice.compiler.passes.verification.verify import verify


@pytest.fixture
def sorting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every scatter goes by sorting."""
    for name in ("MAX_UPDATES", "MAX_WORK", "_FEW"):
        monkeypatch.setattr(scatters, name, 0)


def both(text: str, *values: Array) -> tuple[list[Array], list[Array]]:
    """Results by the definition, and with the scatter replaced."""
    function = function_of(text)
    verify({"main": function}, SourceText(text, "x"))
    before = by_definition(function, values)
    scatters.sort_scatters(function.regions[0].block)
    verify({"main": function}, SourceText(text, "x"))
    assert not names(function) & {"stablehlo.scatter", "stablehlo.select_and_scatter"}
    return before, by_definition(function, values)


def names(function: Operation) -> set[str]:
    """Of all operations."""
    return {operation.name for operation in function.walk()}


def scatter(
    target: str, indices: str, updates: str, numbers: str, body: str, type: str = "i32", unique: str = "false"
) -> str:
    """A program of one scatter; shapes are written with a trailing x."""
    return f"""func.func @main(%x: tensor<{target}{type}>, %i: tensor<{indices}>, %u: tensor<{updates}{type}>)
        -> tensor<{target}{type}> {{
      %0 = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>,
        unique_indices = {unique}}}> ({{
        ^bb0(%a: tensor<{type}>, %b: tensor<{type}>):
          {body}
      }}) : (tensor<{target}{type}>, tensor<{indices}>, tensor<{updates}{type}>) -> tensor<{target}{type}>
      return %0 : tensor<{target}{type}>
    }}"""


def body_of(name: str, type: str = "i32") -> str:
    """A body of one operation, with the operands in either order."""
    first, _, second = ("%b", "", "%a") if name.endswith("reversed") else ("%a", "", "%b")
    operation = name.removesuffix(" reversed")
    if operation == "replace":
        return f"stablehlo.return %b : tensor<{type}>"
    return f"%1 = stablehlo.{operation} {first}, {second} : tensor<{type}>\nstablehlo.return %1 : tensor<{type}>"


POINTS = "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
PLACES = {
    "points": ("7x", "40x1xi32", "40x", POINTS),
    "rows": ("7x3x", "40x1xi64", "40x3x", f"update_window_dims = [1], {POINTS}"),
    "parts of rows": ("7x5x", "40x1xi8", "40x3x", f"update_window_dims = [1], {POINTS}"),
    "columns": (
        "3x7x",
        "40xui32",
        "3x40x",
        "update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], "
        "index_vector_dim = 1",
    ),
    "windows that overlap": (
        "9x7x",
        "5x4x2xi32",
        "5x3x4x2x",
        "update_window_dims = [1, 3], scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 2",
    ),
    "batches": (
        "2x7x3x",
        "20x2x1xi32",
        "20x2x3x",
        "update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], "
        "scatter_indices_batching_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 2",
    ),
}


def sizes(text: str) -> tuple[int, ...]:
    """The shape in ``4x3xf32`` or ``4x3x``."""
    return tuple(int(part) for part in text.split("x") if part.isdigit())


@pytest.mark.parametrize("place", list(PLACES))
@pytest.mark.parametrize("name", ["add", "minimum", "replace", "subtract", "subtract reversed"])
def test_updates_come_in_order_wherever_they_go(sorting: None, place: str, name: str) -> None:
    target, indices, updates, numbers = PLACES[place]
    rng = np.random.default_rng(0)
    text = scatter(target, indices, updates, numbers, body_of(name))
    dtype = function_of(text).regions[0].block.arguments[1].tensor.scalar.dtype
    places = rng.integers(-3 if dtype.kind == "i" else 0, 9, sizes(indices)).astype(dtype)
    values = [rng.integers(0, 99, sizes(shape)).astype(np.int32) for shape in (target, updates)]
    before, after = both(text, values[0], places, values[1])
    np.testing.assert_array_equal(after[0], before[0])


def test_indices_far_outside_hit_nothing(sorting: None) -> None:
    text = scatter("7x", "4x1xi64", "4x", POINTS, body_of("add"))
    places = np.array([[-(2**63)], [2**63 - 1], [2**32], [3]])
    before, after = both(text, np.zeros(7, np.int32), places, np.full(4, 5, np.int32))
    np.testing.assert_array_equal(after[0], before[0])
    assert after[0].tolist() == [0, 0, 0, 5, 0, 0, 0]


@pytest.mark.parametrize("name", ["add", "subtract"])
def test_unique_updates_need_no_rounds(sorting: None, name: str) -> None:
    text = scatter("50x", "20x1xi32", "20x", POINTS, body_of(name), unique="true")
    places = np.random.default_rng(0).permutation(50)[:20, None].astype(np.int32)
    before, after = both(text, np.arange(50, dtype=np.int32), places, np.arange(20, dtype=np.int32))
    np.testing.assert_array_equal(after[0], before[0])


def test_updates_of_several_operands(sorting: None) -> None:
    text = f"""func.func @main(%x: tensor<6xi32>, %y: tensor<6xf32>, %i: tensor<30x1xi32>, %u: tensor<30xi32>,
        %v: tensor<30xf32>) -> (tensor<6xi32>, tensor<6xf32>) {{
      %0:2 = "stablehlo.scatter"(%x, %y, %i, %u, %v) <{{scatter_dimension_numbers = #stablehlo.scatter<{POINTS}>}}> ({{
        ^bb0(%a: tensor<i32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<f32>):
          %1 = stablehlo.subtract %c, %a : tensor<i32>
          %2 = stablehlo.subtract %d, %b : tensor<f32>
          stablehlo.return %1, %2 : tensor<i32>, tensor<f32>
      }}) : (tensor<6xi32>, tensor<6xf32>, tensor<30x1xi32>, tensor<30xi32>, tensor<30xf32>)
        -> (tensor<6xi32>, tensor<6xf32>)
      return %0#0, %0#1 : tensor<6xi32>, tensor<6xf32>
    }}"""
    rng = np.random.default_rng(0)
    whole, places = rng.integers(0, 9, 6), rng.integers(0, 6, (30, 1)).astype(np.int32)
    given = rng.integers(0, 9, 30)
    arguments = [whole.astype("i4"), whole.astype("f4"), places, given.astype("i4"), given.astype("f4")]
    before, after = both(text, *arguments)
    for one, other in zip(after, before, strict=True):
        np.testing.assert_array_equal(one, other)


def test_sums_of_narrow_floats_are_rounded_once(sorting: None) -> None:
    text = scatter("3x", "1000x1xi32", "1000x", POINTS, body_of("add", "bf16"), "bf16")
    dtype = function_of(text).regions[0].block.arguments[0].tensor.scalar.dtype
    places = np.arange(1000, dtype=np.int32)[:, None] % 2
    _, after = both(text, np.full(3, 12, dtype), places, np.ones(1000, dtype))
    assert after[0].astype(np.float32).tolist() == [512, 512, 12]


@pytest.mark.parametrize(
    ("size", "stride", "padding"), [((3, 2), (2, 2), "[[1, 0], [0, 0]]"), ((5, 5), (1, 1), "[[2, 2], [2, 2]]")]
)
@pytest.mark.parametrize("selects", ["GE", "LT"])
def test_what_windows_select_is_scattered_to(
    sorting: None, size: tuple[int, int], stride: tuple[int, int], padding: str, selects: str
) -> None:
    pads = np.array([[1, 0], [0, 0]] if "1, 0" in padding else [[2, 2], [2, 2]])
    shape = [(8 + low + high - k) // step + 1 for k, step, (low, high) in zip(size, stride, pads, strict=True)]
    result = "x".join(map(str, shape))
    text = f"""func.func @main(%x: tensor<8x8xf32>, %s: tensor<{result}xf32>) -> tensor<8x8xf32> {{
      %c = stablehlo.constant dense<2.0> : tensor<f32>
      %0 = "stablehlo.select_and_scatter"(%x, %s, %c) <{{window_dimensions = array<i64: {size[0]}, {size[1]}>,
        window_strides = array<i64: {stride[0]}, {stride[1]}>, padding = dense<{padding}> : tensor<2x2xi64>}}> ({{
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %1 = stablehlo.compare {selects}, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %1 : tensor<i1>
      }}, {{
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %1 = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %1 : tensor<f32>
      }}) : (tensor<8x8xf32>, tensor<{result}xf32>, tensor<f32>) -> tensor<8x8xf32>
      return %0 : tensor<8x8xf32>
    }}"""
    rng = np.random.default_rng(0)
    before, after = both(
        text, rng.integers(0, 5, (8, 8)).astype(np.float32), rng.integers(0, 5, shape).astype(np.float32)
    )
    # The initial value counts once however many windows select an element.
    np.testing.assert_array_equal(after[0], before[0])


@pytest.fixture
def opened() -> Iterator[pumice.Device]:
    with pumice.open_device() as device:
        yield device


@pytest.mark.vulkan
def test_updates_by_the_thousands(opened: pumice.Device) -> None:
    count = 20_000
    rng = np.random.default_rng(0)
    places, values = rng.integers(-9, 3000, (count, 1)).astype(np.int32), rng.integers(0, 99, count).astype(np.int32)
    text = scatter("3000x", f"{count}x1xi32", f"{count}x", POINTS, body_of("add"))
    with pumice.Session(device=opened) as session:
        session.load(pumice.compile(text))
        found = session.call("module.main", np.ones(3000, np.int32), places, values)
    inside = places[:, 0] >= 0
    np.testing.assert_array_equal(found.numpy(), 1 + np.bincount(places[inside, 0], values[inside], 3000).astype("i4"))
