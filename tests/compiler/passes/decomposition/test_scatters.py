"""Scatters and selections of many updates: equal to their definitions in each of the ways to compute them."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.regions import Array, by_definition, called, function_of

import pumice
from pumice.compiler.ir.attributes import attribute_text
from pumice.compiler.ir.operation import Operation
from pumice.compiler.ir.source import SourceText
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.passes.decomposition import scatters, updates_by_place
from pumice.compiler.passes.verification.verify import verify


@pytest.fixture(params=["few", "chunks", "any order", "sorted"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Replaces every scatter, in one of four ways."""
    monkeypatch.setattr(scatters, "MAX_LOOKS", 0)
    if request.param != "few":
        monkeypatch.setattr(updates_by_place, "MAX_UPDATES", 0)
    if request.param == "chunks":
        monkeypatch.setattr(scatters, "MAX_IN_ORDER", {"cpu": (0, 0), "default": (0, 0)})
    if request.param == "sorted":
        monkeypatch.setattr(updates_by_place, "_in_any_order", lambda *given: None)
    return str(request.param)


def both(way: str, text: str, *values: Array) -> tuple[list[Array], list[Array]]:
    """Returns results by the definition, and with the scatter replaced."""
    function = function_of(text)
    verify({"main": function}, SourceText(text, "x"))
    before = by_definition(function, values)
    device = Target(family="cpu") if way == "chunks" else Target()
    scatters.replace_scatters(function.regions[0].block, device)
    verify({"main": function}, SourceText(text, "x"))
    left = [each for each in function.walk() if each.name == "stablehlo.scatter"]
    assert "stablehlo.select_and_scatter" not in names(function)
    # Only scatters of rows remain, by one key each.
    inserted = "inserted_window_dims = [1]" if way == "chunks" else "inserted_window_dims = [0]"
    found = [attribute_text(each.attributes[NUMBERS]) for each in left]
    assert all(inserted in each or "inserted_window_dims = [0]" in each for each in found)
    return before, by_definition(function, values)


NUMBERS = "scatter_dimension_numbers"


def names(function: Operation) -> set[str]:
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
@pytest.mark.parametrize("name", ["add", "minimum", "multiply", "replace", "subtract", "subtract reversed"])
def test_updates_come_in_order_wherever_they_go(way: str, place: str, name: str) -> None:
    target, indices, updates, numbers = PLACES[place]
    rng = np.random.default_rng(0)
    text = scatter(target, indices, updates, numbers, body_of(name))
    dtype = function_of(text).regions[0].block.arguments[1].tensor.scalar.dtype
    places = rng.integers(-3 if dtype.kind == "i" else 0, 9, sizes(indices)).astype(dtype)
    values = [rng.integers(0, 99, sizes(shape)).astype(np.int32) for shape in (target, updates)]
    before, after = both(way, text, values[0], places, values[1])
    np.testing.assert_array_equal(after[0], before[0])


def test_indices_far_outside_hit_nothing(way: str) -> None:
    text = scatter("7x", "4x1xi64", "4x", POINTS, body_of("add"))
    places = np.array([[-(2**63)], [2**63 - 1], [2**32], [3]])
    before, after = both(way, text, np.zeros(7, np.int32), places, np.full(4, 5, np.int32))
    np.testing.assert_array_equal(after[0], before[0])
    assert after[0].tolist() == [0, 0, 0, 5, 0, 0, 0]


@pytest.mark.parametrize("name", ["add", "subtract"])
def test_unique_updates_need_no_rounds(way: str, name: str) -> None:
    text = scatter("50x", "20x1xi32", "20x", POINTS, body_of(name), unique="true")
    places = np.random.default_rng(0).permutation(50)[:20, None].astype(np.int32)
    before, after = both(way, text, np.arange(50, dtype=np.int32), places, np.arange(20, dtype=np.int32))
    np.testing.assert_array_equal(after[0], before[0])


def test_updates_of_several_operands(way: str) -> None:
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
    before, after = both(way, text, *arguments)
    for one, other in zip(after, before, strict=True):
        np.testing.assert_array_equal(one, other)


def test_sums_of_narrow_floats_are_rounded_once(way: str) -> None:
    text = scatter("3x", "1000x1xi32", "1000x", POINTS, body_of("add", "bf16"), "bf16")
    dtype = function_of(text).regions[0].block.arguments[0].tensor.scalar.dtype
    places = np.arange(1000, dtype=np.int32)[:, None] % 2
    _, after = both(way, text, np.full(3, 12, dtype), places, np.ones(1000, dtype))
    assert after[0].astype(np.float32).tolist() == [512, 512, 12]


@pytest.mark.parametrize(
    ("size", "stride", "padding"), [((3, 2), (2, 2), "[[1, 0], [0, 0]]"), ((5, 5), (1, 1), "[[2, 2], [2, 2]]")]
)
@pytest.mark.parametrize("selects", ["GE", "LT"])
def test_what_windows_select_is_scattered_to(
    way: str, size: tuple[int, int], stride: tuple[int, int], padding: str, selects: str
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
        way, text, rng.integers(0, 5, (8, 8)).astype(np.float32), rng.integers(0, 5, shape).astype(np.float32)
    )
    # The initial value counts once however many windows select an element.
    np.testing.assert_array_equal(after[0], before[0])


@pytest.mark.vulkan
def test_updates_by_the_thousands(opened: pumice.Device) -> None:
    count = 20_000
    rng = np.random.default_rng(0)
    places, values = rng.integers(-9, 3000, (count, 1)).astype(np.int32), rng.integers(0, 99, count).astype(np.int32)
    text = scatter("3000x", f"{count}x1xi32", f"{count}x", POINTS, body_of("add"))
    (found,) = called(opened, text, np.ones(3000, np.int32), places, values, target=Target())
    inside = places[:, 0] >= 0
    np.testing.assert_array_equal(found, 1 + np.bincount(places[inside, 0], values[inside], 3000).astype("i4"))


@pytest.mark.vulkan
def test_sums_of_floats_are_the_same_in_every_order(opened: pumice.Device) -> None:
    count = 20_000
    rng = np.random.default_rng(0)
    places = rng.integers(0, 300, (count, 1)).astype(np.int32)
    values = (rng.standard_normal(count) * np.exp(9 * rng.standard_normal(count))).astype(np.float32)
    values[:6], places[:6, 0] = [np.inf, np.inf, -np.inf, np.inf, -np.inf, np.nan], [301, 7, 8, 9, 9, 10]
    before = rng.standard_normal(300).astype(np.float32)
    text = scatter("300x", f"{count}x1xi32", f"{count}x", POINTS, body_of("add", "f32"), "f32")
    order = rng.permutation(count)
    (found,), (again,) = (
        called(opened, text, before, places[each], values[each], target=Target()) for each in (np.arange(count), order)
    )
    np.testing.assert_array_equal(found.view(np.uint32), again.view(np.uint32))
    wanted = before.astype(np.float64)
    inside = places[:, 0] < 300
    with np.errstate(invalid="ignore"):
        np.add.at(wanted, places[inside, 0], values[inside].astype(np.float64))
    largest = np.zeros(300)
    np.maximum.at(largest, places[inside, 0], np.abs(values[inside]))
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(np.isfinite(found), finite)
    np.testing.assert_array_equal(found[7:11], [np.inf, -np.inf, np.nan, np.nan])
    # Two roundings of floats, and what is shifted out of 64 bits.
    found, wanted, before, largest = (each[finite] for each in (found, wanted, before, largest))
    error = 2**-24 * (np.abs(wanted) + np.abs(wanted - before)) + largest * 2.0**-30
    assert (np.abs(found - wanted) <= error).all()


@pytest.mark.vulkan
@pytest.mark.parametrize(("name", "type"), [("replace", "f32"), ("maximum", "f16"), ("minimum", "f32"), ("add", "i64")])
def test_the_device_does_as_the_definition(opened: pumice.Device, name: str, type: str) -> None:
    rng = np.random.default_rng(0)
    text = scatter("300x2x", "9000x1xi32", "9000x2x", f"update_window_dims = [1], {POINTS}", body_of(name, type), type)
    function = function_of(text)
    dtype = function.regions[0].block.arguments[0].tensor.scalar.dtype
    places = rng.integers(-9, 310, (9000, 1)).astype(np.int32)
    before, values = ((rng.standard_normal((each, 2)) * 2**9).astype(dtype) for each in (300, 9000))
    if dtype.kind == "f":
        values[:3, 0] = np.nan
    (found,) = called(opened, text, before, places, values, target=Target())
    np.testing.assert_array_equal(found, by_definition(function, (before, places, values))[0])


@pytest.mark.vulkan
@pytest.mark.parametrize("type", ["f32", "i64"])
def test_long_rows_are_updated_in_order(opened: pumice.Device, type: str) -> None:
    rng = np.random.default_rng(0)
    body = body_of("subtract reversed", type)
    text = scatter("3x90x16x", "2000x3x1xi32", "2000x3x12x", PLACES["batches"][3], body, type)
    function = function_of(text)
    dtype = function.regions[0].block.arguments[0].tensor.scalar.dtype
    places = rng.integers(-9, 99, (2000, 3, 1)).astype(np.int32)
    before, values = (rng.integers(0, 99, each).astype(dtype) for each in ((3, 90, 16), (2000, 3, 12)))
    (found,) = called(opened, text, before, places, values)
    np.testing.assert_array_equal(found, by_definition(function, (before, places, values))[0])


@pytest.mark.vulkan
def test_long_windows_that_overlap_are_not_taken_by_rows(opened: pumice.Device) -> None:
    rng = np.random.default_rng(0)
    numbers = "update_window_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
    text = scatter("300x", "60x1xi32", "60x128x", numbers, body_of("subtract reversed"))
    places = rng.integers(-9, 200, (60, 1)).astype(np.int32)
    before, values = (rng.integers(0, 99, each).astype(np.int32) for each in (300, (60, 128)))
    (found,) = called(opened, text, before, places, values)
    np.testing.assert_array_equal(found, by_definition(function_of(text), (before, places, values))[0])
