"""Declarations: the texts that compilers write, and texts that say nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.vm.bytecode.calling_convention import CallingConvention
from pumice.vm.bytecode.declaration import DECLARATION_KEY, ValueKind, declaration_of, parse_declaration
from pumice.vm.bytecode.module_def import Signature

ELEMENT_TYPES = [
    *("i1", "i4", "i8", "i16", "i32", "i64", "si8", "ui16", "index", "f16", "bf16", "tf32", "f32", "f64"),
    *("f8E5M2", "f8E4M3", "f8E4M3FN", "f8E5M2FNUZ", "f8E4M3FNUZ", "f8E4M3B11FNUZ", "f8E3M4", "f8E8M0FNU"),
    *("f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "complex<f32>", "complex<f64>", "complex<i32>"),
]


def _value(text: str) -> object:
    declaration = parse_declaration(f"sync func @f(%input0: {text}) -> ()")
    assert declaration is not None
    (value,) = declaration.arguments
    assert value.type_text == text.partition(" {")[0]
    return value


@pytest.mark.parametrize("element_type", ELEMENT_TYPES)
def test_every_element_type(element_type: str) -> None:
    scalar = _value(element_type)
    assert (scalar.kind, scalar.element_type, scalar.shape) == (ValueKind.SCALAR, element_type, None)
    for shape, text in [((), ""), ((4,), "4x"), ((None, 0, 12), "?x0x12x")]:
        tensor = _value(f"tensor<{text}{element_type}>")
        assert (tensor.kind, tensor.element_type, tensor.shape) == (ValueKind.TENSOR, element_type, shape)
        assert tensor.encoding is None


@pytest.mark.parametrize(
    ("text", "element_type", "shape", "encoding"),
    [
        ("tensor<*xf32>", "f32", None, None),
        ("tensor<4x?xf32, #iree_encoding.testing<>>", "f32", (4, None), "#iree_encoding.testing<>"),
        (
            "tensor<4xi8, #enc<maps = [affine_map<(d0) -> (d0)>]>>",
            "i8",
            (4,),
            "#enc<maps = [affine_map<(d0) -> (d0)>]>",
        ),
        ("tensor<2x!quant.uniform<i8:f32, 2.0>>", "!quant.uniform<i8:f32, 2.0>", (2,), None),
        ("tensor<9223372036854775807xi8>", "i8", (2**63 - 1,), None),
    ],
)
def test_tensors_with_more_to_say(
    text: str, element_type: str, shape: tuple[int | None, ...] | None, encoding: str | None
) -> None:
    value = _value(text)
    assert (value.kind, value.element_type, value.shape, value.encoding) == (
        ValueKind.TENSOR,
        element_type,
        shape,
        encoding,
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("!hal.buffer_view", ValueKind.REF),
        ("!hal.fence", ValueKind.REF),
        ("!vm.list<?>", ValueKind.REF),
        ("!util.list<!util.variant>", ValueKind.REF),
        ("tuple<i32, tensor<2xf32>>", ValueKind.OTHER),
        ("vector<4xf32>", ValueKind.OTHER),
        ("(i32) -> i32", ValueKind.OTHER),
        ("none", ValueKind.OTHER),
        ("tensor<>", ValueKind.OTHER),
        ("tensor<4>", ValueKind.OTHER),
        ("tensor<99999999999999999999xf32>", ValueKind.OTHER),
    ],
)
def test_other_types_are_kept_as_text(text: str, kind: ValueKind) -> None:
    value = _value(text)
    assert (value.kind, value.element_type, value.shape) == (kind, None, None)


def test_names_attributes_and_both_models() -> None:
    # The forms of IREE's compiler/src/iree/compiler/Bindings/Native/Transforms/test/wrap_entry_points.mlir, release
    # 3.13.
    text = (
        "async func @a.b$c(%lhs: tensor<?x8xf32> {iree.abi.encoding = tensor<?x8xi32>}, "
        '%input1: !hal.buffer {iree.abi.output = 1 : index, note = "x, } -> \\22"}, %two words: i32) '
        "-> (%output0: tensor<?x8xf32> {iree.abi.affinity = #hal.device.promise<@dev_b>, flag = unit}, %sum: f32)"
    )
    declaration = parse_declaration(text)
    assert declaration is not None
    assert (declaration.name, declaration.is_async, declaration.text) == ("a.b$c", True, text)
    assert [value.name for value in declaration.arguments] == ["lhs", "input1", "two words"]
    assert [value.name for value in declaration.results] == ["output0", "sum"]
    assert declaration.arguments[0].attributes == {"iree.abi.encoding": "tensor<?x8xi32>"}
    assert declaration.arguments[1].attributes == {"iree.abi.output": "1 : index", "note": '"x, } -> \\22"'}
    assert declaration.arguments[2].attributes == {}
    assert declaration.results[0].attributes == {"iree.abi.affinity": "#hal.device.promise<@dev_b>", "flag": "unit"}
    assert declaration.format() == (
        "async a.b$c(lhs: tensor<?x8xf32>, input1: !hal.buffer, two words: i32) -> (output0: tensor<?x8xf32>, sum: f32)"
    )


def test_empty_lists() -> None:
    declaration = parse_declaration("sync func @main() -> ()")
    assert declaration is not None
    assert (declaration.arguments, declaration.results, declaration.is_async) == ((), (), False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "some.python.thing(types_are_overrated)",
        "func @f() -> ()",
        "sync func @() -> ()",
        "sync func @f",
        "sync func @f(",
        "sync func @f()",
        "sync func @f() -> (",
        "sync func @f() -> () tail",
        "sync func @f(%x) -> ()",
        "sync func @f(x: i32) -> ()",
        "sync func @f(%x: ) -> ()",
        "sync func @f(%x: i32,) -> ()",
        "sync func @f(%x: i32, , %y: i32) -> ()",
        "sync func @f(%x: tensor<4xf32) -> ()",
        "sync func @f(%x: i32 {a = 1) -> ()",
        "sync func @f(%x: i32 {}) -> ()",
        "sync func @f(%x: i32 {a = 1} b) -> ()",
        "sync func @f(%x: " + "<" * 100_000 + ") -> ()",
        "sync func @f(" + "%x: i32, " * 200_000 + "%x: i32) -> ()",
    ],
)
def test_other_texts_say_nothing(text: str) -> None:
    assert parse_declaration(text) is None


@given(st.text('sync func @f(%x:tensor<4?>{},)-> "\\', max_size=40))
def test_any_text_is_parsed_or_not(text: str) -> None:
    parse_declaration("sync func @f(" + text)
    parse_declaration(f"sync func @f(%x: {text}) -> ()")


@pytest.mark.parametrize(
    ("text", "convention", "fits"),
    [
        ("sync func @f(%a: tensor<4xf32>, %b: i1) -> (%c: !hal.fence)", "0ri_r", True),
        ("sync func @f(%a: tensor<4xf32>, %b: i1) -> (%c: !hal.fence)", "0rI_r", False),
        ("sync func @f(%a: tensor<4xf32>) -> ()", "0r_v", True),
        ("sync func @f(%a: tensor<4xf32>) -> ()", "0rr_v", False),
        ("sync func @f(%a: tensor<4xf32>) -> ()", "0r_r", False),
        ("async func @f(%a: tensor<4xf32>) -> (%b: tensor<f32>)", "0rrr_r", True),
        ("async func @f(%a: tensor<4xf32>) -> (%b: tensor<f32>)", "0r_r", False),
        ("async func @f() -> ()", "0rr_v", True),
        ("async func @f() -> ()", "0_v", False),
        ("sync func @f(%a: i64, %b: index, %c: f32, %d: f64, %e: bf16, %f: si8) -> ()", "0IIfFii_v", True),
        ("sync func @f(%a: i64, %b: index, %c: f32, %d: f64, %e: f8E4M3FN, %f: ui32) -> ()", "0IIffii_v", True),
        ("sync func @f(%a: f32) -> ()", "0i_v", False),
        ("sync func @f(%a: i32) -> ()", "0CiD_v", False),
        ("sync func @f(%a: tuple<i32>) -> ()", "0r_v", True),
    ],
)
def test_whether_a_declaration_fits(text: str, convention: str, fits: bool) -> None:
    declaration = parse_declaration(text)
    assert declaration is not None
    assert declaration.fits(CallingConvention.parse(convention)) is fits


def test_the_declaration_of_a_signature() -> None:
    text = "sync func @f() -> ()"
    assert declaration_of(Signature("0v_v", {DECLARATION_KEY: text})) == parse_declaration(text)
    assert declaration_of(Signature("0v_v", {DECLARATION_KEY: "anything"})) is None
    assert declaration_of(Signature("0v_v")) is None
