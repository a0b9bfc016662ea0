"""Syntax of StableHLO's contractions: ``dot_general`` and ``convolution``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...ir.attributes import Attribute, DenseArray, IntegerAttr, StructAttr, attribute_text, convolution_text
from ...ir.convolution import convolution_sides
from ...ir.operation import Operation
from ...ir.parser import Parser, Parts
from ...ir.printer import Printer
from ...ir.syntax import CustomSyntax, finished, kind_text, parse_ints, parse_kind, typed_parts
from ...ir.types import I1, I64

_DOT: Final = "stablehlo.dot"


def _parse_dot_general(parser: Parser, name: str) -> Parts:
    names = parser.operand_names()
    fields: dict[str, object] = {}
    attributes: dict[str, Attribute] = {}
    while parser.accept(","):
        key = parser.word("batching_dims, contracting_dims, precision or algorithm")
        parser.expect("=")
        if key in ("batching_dims", "contracting_dims"):
            kind = key.removesuffix("_dims")
            fields[f"lhs_{kind}_dimensions"] = parse_ints(parser)
            parser.expect("x")
            fields[f"rhs_{kind}_dimensions"] = parse_ints(parser)
        elif key == "precision":
            attributes["precision_config"] = parse_kind(parser, "enums.precision")
        elif key == "algorithm":
            attributes["algorithm"] = parser.struct("stablehlo.dot_algorithm")
        else:
            parser.error(f"expected batching_dims, contracting_dims, precision or algorithm, got {key}")
    lists = {f"{side}_{kind}_dimensions": () for kind in ("batching", "contracting") for side in ("lhs", "rhs")}
    attributes = {"dot_dimension_numbers": StructAttr(_DOT, lists | fields), **attributes}
    return typed_parts(parser, names, attributes, "fn")


def _print_dot_general(printer: Printer, operation: Operation) -> str:
    numbers = operation.attributes["dot_dimension_numbers"]
    assert isinstance(numbers, StructAttr)
    items = [printer.operands(operation.operands)]
    for kind in ("batching", "contracting"):
        sides = [list(numbers.ints(f"{side}_{kind}_dimensions")) for side in ("lhs", "rhs")]
        if sides[0] or sides[1] or kind == "contracting":
            items.append(f"{kind}_dims = {sides[0]} x {sides[1]}")
    if "precision_config" in operation.attributes:
        items.append(f"precision = {kind_text('enums.precision', operation.attributes['precision_config'])}")
    if "algorithm" in operation.attributes:
        items.append(f"algorithm = {str(operation.attributes['algorithm']).removeprefix('#stablehlo.dot_algorithm')}")
    shown = ("dot_dimension_numbers", "precision_config", "algorithm")
    return finished(printer, operation, ", ".join(items), shown, "fn")


_WINDOW: Final = {
    "stride": "window_strides",
    "pad": "padding",
    "lhs_dilate": "lhs_dilation",
    "rhs_dilate": "rhs_dilation",
    "reverse": "window_reversal",
}


def _parse_convolution(parser: Parser, name: str) -> Parts:
    names = parser.enclosed_names()
    parser.expect_word("dim_numbers")
    parser.expect("=")
    attributes: dict[str, Attribute] = {"dimension_numbers": convolution_sides(parser, "stablehlo.conv")}
    parser.expect(",")
    parser.expect_word("window")
    parser.expect("=")
    parser.expect("{")
    for _ in parser.items("}"):
        key = parser.word("a field of the window")
        parser.expect("=")
        if key not in _WINDOW:
            parser.error(f"expected one of {', '.join(_WINDOW)}, got {key}")
        value = parser.attribute()
        attributes[_WINDOW[key]] = _pairs(value) if key == "pad" else _array(value)
    return typed_parts(parser, names, attributes, "fn")


def _array(value: Attribute) -> Attribute:
    items = value if isinstance(value, tuple) else ()
    if items and all(isinstance(item, bool) for item in items):
        return DenseArray(I1, tuple(bool(item) for item in items))
    return DenseArray(I64, tuple(item.value for item in items if isinstance(item, IntegerAttr)))


def _pairs(value: Attribute) -> Attribute:
    return tuple(_array(item) for item in value) if isinstance(value, tuple) else value


def _print_convolution(printer: Printer, operation: Operation) -> str:
    numbers = operation.attributes["dimension_numbers"]
    assert isinstance(numbers, StructAttr)
    window = []
    for key, name in _WINDOW.items():
        value = operation.attributes.get(name)
        if value is not None:
            window.append(f"{key} = {_window_text(value)}")
    text = f"({printer.operands(operation.operands)}) dim_numbers = {convolution_text(numbers.fields)}"
    shown = ("dimension_numbers", *_WINDOW.values())
    return finished(printer, operation, f"{text}, window = {{{', '.join(window)}}}", shown, "fn")


def _window_text(value: Attribute) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_window_text, value))}]"
    if isinstance(value, DenseArray):
        return f"[{', '.join(str(item).lower() for item in value.values)}]"
    array = getattr(value, "array", None)
    return attribute_text(value) if array is None else str(array.tolist())


CONTRACTION_SYNTAX: Final[Mapping[str, CustomSyntax]] = {
    "convolution": CustomSyntax(_parse_convolution, _print_convolution),
    "dot_general": CustomSyntax(_parse_dot_general, _print_dot_general),
}
