"""Sorts in registers and by merging, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.regions import called

import pumice
from pumice.compiler.ir.source import CompileError


def program(types: list[str], axis: int, body: str, blocks: str = "") -> str:
    """Returns a sort of operands of these types."""
    names = ", ".join(f"%x{number}" for number in range(len(types)))
    whole = ", ".join(f"tensor<{type}>" for type in types)
    elements = [type.rpartition("x")[2] for type in types for _ in range(2)]
    arguments = ", ".join(f"%a{number}: tensor<{element}>" for number, element in enumerate(elements))
    inputs = ", ".join(f"%x{number}: tensor<{type}>" for number, type in enumerate(types))
    results = f"%0:{len(types)}" if len(types) > 1 else "%0"
    actual = ", ".join(f"%0#{number}" for number in range(len(types))) if len(types) > 1 else "%0"
    return f"""func.func @main({inputs}) -> ({whole}) {{
      {results} = "stablehlo.sort"({names}) <{{dimension = {axis} : i64{blocks}}}> ({{
      ^bb0({arguments}):
        {body}
        stablehlo.return %p : tensor<i1>
      }}) : ({whole}) -> ({whole})
      return {actual} : {whole}
    }}"""


def compared(direction: str, element: str, at: int = 0, name: str = "%p") -> str:
    """Returns a comparison of two elements of an operand."""
    type = f"tensor<{element}>"
    first, second = f"%a{2 * at}", f"%a{2 * at + 1}"
    return f"{name} = stablehlo.compare {direction}, {first}, {second} : ({type}, {type}) -> tensor<i1>"


@pytest.mark.sample(3)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "axis", "element"),
    [
        ((2,), 0, "i32"),
        ((8,), 0, "ui8"),
        ((9,), 0, "f16"),
        ((1000,), 0, "i64"),
        ((3, 70, 5), 1, "f16"),
        ((50, 3), 0, "i32"),
    ],
)
def test_equal_elements_stay_in_order(gpu: pumice.Device, shape: tuple[int, ...], axis: int, element: str) -> None:
    dtype = {"i32": "i4", "f16": "f2", "ui8": "u1", "i64": "i8"}[element]
    dims = "x".join(map(str, shape))
    keys = np.random.default_rng(0).integers(0, 99, shape).astype(dtype)
    places = np.arange(keys.size, dtype=np.int32).reshape(shape)
    text = program([f"{dims}x{element}", f"{dims}xi32"], axis, compared("GT", element))
    actual = called(gpu, text, keys, places)
    order = np.argsort(-keys.astype(np.int64), axis, kind="stable")
    np.testing.assert_array_equal(actual[0], np.take_along_axis(keys, order, axis))
    np.testing.assert_array_equal(actual[1], np.take_along_axis(places, order, axis))


@pytest.mark.slow
@pytest.mark.features("shaderFloat64")
def test_any_comparison_of_several_operands(gpu: pumice.Device) -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 20, 3000).astype(np.int8), rng.standard_normal(3000)
    body = f"""{compared("LT", "i8", 0, "%q")}
        {compared("EQ", "i8", 0, "%r")}
        {compared("GT", "f64", 1, "%s")}
        %t = stablehlo.and %r, %s : tensor<i1>
        %p = stablehlo.or %q, %t : tensor<i1>"""
    actual = called(gpu, program(["3000xi8", "3000xf64"], 0, body), first, second)
    order = np.lexsort((-second, first))
    np.testing.assert_array_equal(actual[0], first[order])
    np.testing.assert_array_equal(actual[1], second[order])


@pytest.mark.slow
def test_operands_beyond_the_bindings_of_a_kernel_are_gathered(gpu: pumice.Device) -> None:
    keys = np.random.default_rng(0).integers(0, 9, (3, 40)).astype(np.int32)
    others = [np.arange(120, dtype=np.float32).reshape(3, 40) + number for number in range(7)]
    types = ["3x40xf32"] * 3 + ["3x40xi32"] + ["3x40xf32"] * 4
    actual = called(gpu, program(types, 1, compared("LT", "i32", 3)), *others[:3], keys, *others[3:])
    order = np.argsort(keys, 1, kind="stable")
    for left, inputs in zip(actual, [*others[:3], keys, *others[3:]], strict=True):
        np.testing.assert_array_equal(left, np.take_along_axis(inputs, order, 1))


@pytest.mark.parametrize("attribute", ["block = 0", "runs = -1"])
def test_blocks_have_elements(attribute: str) -> None:
    text = program(["40xi32"], 0, compared("LT", "i32"), f", {attribute} : i64")
    with pytest.raises(CompileError, match="blocks and runs of at least one element"):
        pumice.compile(text)


@pytest.mark.slow
@pytest.mark.parametrize("attributes", [", block = 8 : i64", ", block = 12 : i64, runs = 4 : i64"])
def test_a_program_s_sort_is_whole_whatever_it_says(gpu: pumice.Device, attributes: str) -> None:
    """Checks that only the compiler's own stages sort in parts; this one would have left eights in order."""
    x = np.random.default_rng(3).random(64, np.float32)
    text = program(["64xf32"], 0, compared("LT", "f32"), attributes)
    np.testing.assert_array_equal(called(gpu, text, x)[0], np.sort(x))


@pytest.mark.slow
def test_a_million_elements_stay_below_the_limit_of_loops(gpu: pumice.Device) -> None:
    keys = np.random.default_rng(0).standard_normal(1 << 20).astype(np.float32)
    (actual,) = called(gpu, program(["1048576xf32"], 0, compared("LT", "f32")), keys)
    np.testing.assert_array_equal(actual, np.sort(keys))
