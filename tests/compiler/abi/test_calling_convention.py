"""Calling conventions: types of entry points before and after, how conventions compose, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.compiler.conventions import CONTEXT, KERNEL, converted, function_type, memrefs, replaced

from pumice.compiler.abi.calling_convention import (
    CallingConvention,
    default_convention,
    is_named,
    named_convention,
    results_to_outs_convention,
)
from pumice.compiler.abi.function_abi import Abi
from pumice.compiler.abi.type_converter import TypeConverter, parse_type
from pumice.compiler.ir.types import FunctionType, Type

PAGE = Path(__file__).parents[3] / "docs" / "calling-conventions.md"

# -- the conventions of the header, on its example ---------------------------------------------------------


def test_the_default_convention_adds_the_context() -> None:
    assert converted(default_convention()) == f"({CONTEXT}, tensor<?xf32>, tensor<?xf32>) -> tensor<?x?xf32>"


def test_the_default_convention_with_a_converter_converts_inputs_and_results() -> None:
    assert converted(default_convention(memrefs())) == f"({CONTEXT}, memref<?xf32>, memref<?xf32>) -> memref<?x?xf32>"


def test_results_to_outs_appends_results_to_the_arguments() -> None:
    convention = results_to_outs_convention(memrefs())
    assert converted(convention) == f"({CONTEXT}, memref<?xf32>, memref<?xf32>, memref<?x?xf32>) -> ()"


STEP = "(tensor<4xf32>, tensor<f32>, tensor<i64>) -> (tensor<4xf32>, tensor<f32>)"


@pytest.mark.parametrize(
    ("names", "after"),
    [
        ("default", "(C, memref<4xf32>, memref<f32>, memref<i64>) -> (memref<4xf32>, memref<f32>)"),
        ("outs", "(C, memref<4xf32>, memref<f32>, memref<i64>, memref<4xf32>, memref<f32>) -> ()"),
        ("values", "(C, memref<4xf32>, f32, i64) -> (memref<4xf32>, f32)"),
        ("buffers", "(C, !hal.buffer, !hal.buffer, !hal.buffer) -> (!hal.buffer, !hal.buffer)"),
        ("outs,values", "(C, memref<4xf32>, f32, i64, memref<4xf32>, memref<f32>) -> ()"),
        ("values,outs", "(C, memref<4xf32>, f32, i64, memref<4xf32>, memref<f32>) -> ()"),
        ("values,buffers", "(C, !hal.buffer, f32, i64) -> (!hal.buffer, f32)"),
        ("values,buffers,outs", "(C, !hal.buffer, f32, i64, !hal.buffer, memref<f32>) -> ()"),
        ("default,outs,default", "(C, memref<4xf32>, memref<f32>, memref<i64>, memref<4xf32>, memref<f32>) -> ()"),
    ],
)
def test_named_conventions_compose(names: str, after: str) -> None:
    convention = named_convention(names)
    assert converted(convention, STEP) == after.replace("C", CONTEXT, 1)
    assert convention.name == names and is_named(convention)


def test_what_a_convention_gives_can_be_given_to_another_one() -> None:
    once = default_convention()(function_type(KERNEL))
    assert once is not None
    assert default_convention(memrefs())(once) is default_convention(memrefs())(function_type(KERNEL))


def test_a_convention_of_ones_own_is_any_function() -> None:
    def swapped_for_views(type: FunctionType) -> FunctionType:
        view = parse_type("!hal.buffer_view")
        return FunctionType([parse_type(CONTEXT), *[view] * len(type.inputs)], [view] * len(type.results))

    convention = CallingConvention(swapped_for_views, "views")
    assert converted(convention) == f"({CONTEXT}, !hal.buffer_view, !hal.buffer_view) -> !hal.buffer_view"
    assert not is_named(convention)


# -- converters --------------------------------------------------------------------------------------------


def test_the_first_conversion_that_does_not_decline_decides() -> None:
    asked = []

    def declines(type: Type) -> Type | None:
        asked.append(str(type))
        return None

    types = (
        TypeConverter().add(declines).add(replaced("tensor<f32>", "f32")).add(replaced("tensor<f32>", "memref<f32>"))
    )
    assert (
        converted(default_convention(types), "(tensor<f32>) -> tensor<2xf32>") == f"({CONTEXT}, f32) -> tensor<2xf32>"
    )
    assert asked == ["tensor<f32>", "tensor<2xf32>"]


def test_conversions_are_asked_for_their_roles_only() -> None:
    types = TypeConverter().add(replaced("tensor<f32>", "f32"), roles=["argument"]).add(memrefs().conversions[0][0])
    assert converted(default_convention(types), "(tensor<f32>) -> tensor<f32>") == f"({CONTEXT}, f32) -> memref<f32>"


@pytest.mark.parametrize(
    ("argument", "result", "text", "has_abi"),
    [
        (Abi.VIEW, None, "(!my.array) -> ()", True),
        (Abi.VIEW, None, "() -> !my.array", False),
        (None, Abi.VIEW, "(!my.array) -> ()", False),
        (None, Abi.VIEW, "() -> !my.array", True),
        (Abi.BUFFER, Abi.VIEW, "(!my.array<4>) -> !my.array<8>", True),
        (Abi.VIEW, Abi.VIEW, "(!my.arrays) -> ()", False),
        (Abi.VIEW, Abi.VIEW, "(!my.array, !stablehlo.token) -> ()", False),
    ],
)
def test_a_type_has_the_abis_that_are_registered(argument: Abi, result: Abi, text: str, has_abi: bool) -> None:
    types = TypeConverter().register("!my.array", argument=argument, result=result)
    found = default_convention(types)(function_type(text))
    assert (found is not None) == has_abi


def test_out_parameters_need_an_argument_abi() -> None:
    one = TypeConverter().register("!my.array", result=Abi.VIEW)
    other = TypeConverter().register("!my.array", argument=Abi.VIEW)
    assert results_to_outs_convention(one)(function_type("() -> !my.array")) is None
    assert converted(results_to_outs_convention(other), "() -> !my.array") == f"({CONTEXT}, !my.array) -> ()"


def test_a_convention_does_not_see_what_is_registered_later() -> None:
    types = TypeConverter()
    convention = default_convention(types)
    types.register("!my.array", argument=Abi.VIEW).add(replaced("tensor<f32>", "f32"))
    assert convention(function_type("(!my.array) -> ()")) is None
    assert converted(convention, "(tensor<f32>) -> ()") == f"({CONTEXT}, tensor<f32>) -> ()"
    assert (
        converted(default_convention(types), "(tensor<f32>, !my.array) -> ()") == f"({CONTEXT}, f32, !my.array) -> ()"
    )


def test_the_table_of_types() -> None:
    """The page of users has the types that the conventions make."""
    text = PAGE.read_text(encoding="utf-8")
    (before,) = re.findall(r"\| name \| `([^`]*)` becomes", text)
    rows = re.findall(r"^\| `([a-z,]+)` \| `([^`]*)` +\|$", text, re.MULTILINE)
    assert len(rows) == 5
    for names, after in rows:
        assert str(named_convention(names)(parse_type(before))) == after  # type: ignore[arg-type]
