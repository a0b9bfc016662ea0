"""Syntax of CHLO's operations, and of Shardy's, which have no effect on one device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...ir.attributes import Attribute, DenseArray, IntegerAttr, RawAttr
from ...ir.operation import Operation
from ...ir.parser import Parser, Parts
from ...ir.printer import Printer
from ...ir.syntax import CustomSyntax, Syntax, finished, parse_types, syntax_of, typed_parts
from ...ir.types import I32, I64, FunctionType
from .builtin import CONSTANT

_ELEMENTWISE: Final = """
    acos acosh asin asinh atan atanh bessel_i1e conj constant_like cosh digamma erf erf_inv erfc is_inf
    is_neg_inf is_pos_inf lgamma mulhi next_after polygamma sinh square tan zeta broadcast_add broadcast_and
    broadcast_atan2 broadcast_compare broadcast_complex broadcast_divide broadcast_maximum broadcast_minimum
    broadcast_multiply broadcast_next_after broadcast_or broadcast_polygamma broadcast_power broadcast_remainder
    broadcast_select broadcast_shift_left broadcast_shift_right_arithmetic broadcast_shift_right_logical
    broadcast_subtract broadcast_xor broadcast_zeta
"""


def _parse_top_k(parser: Parser, name: str) -> Parts:
    parser.expect("(")
    names = [parser.operand_name()]
    parser.expect(",")
    parser.expect_word("k")
    parser.expect("=")
    attributes: dict[str, Attribute] = {"k": IntegerAttr(parser.integer(), I64)}
    while parser.accept(","):
        key = parser.word("is_stable or largest")
        if key not in ("is_stable", "largest"):
            parser.error(f"expected is_stable or largest, got {key}")
        parser.expect("=")
        attributes[key] = parser.word("true or false") == "true"
    parser.expect(")")
    return typed_parts(parser, names, attributes, "arrow")


def _print_top_k(printer: Printer, operation: Operation) -> str:
    text = f"({printer.operands(operation.operands)}, k = {operation.integer('k')}"
    if "is_stable" in operation.attributes:
        text += f", is_stable = {printer.attribute(operation, 'is_stable')}"
    return finished(printer, operation, text + ")", ("k", "is_stable"), "arrow")


def _parse_scan(parser: Parser, name: str) -> Parts:
    inputs = parser.enclosed_names()
    parser.expect_word("inits")
    inits = parser.enclosed_names()
    parser.expect_word("dimension")
    parser.expect("=")
    attributes: dict[str, Attribute] = {"dimension": IntegerAttr(parser.integer(), I64)}
    attributes |= parser.keyword_attributes()
    region = parser.region(is_isolated=True)
    operands, results = parse_types(parser, [*inputs, *inits], "fn")
    attributes["operandSegmentSizes"] = DenseArray(I32, (len(inputs), len(inits)))
    attributes["resultSegmentSizes"] = DenseArray(I32, (len(results) - len(inits), len(inits)))
    return Parts(operands, results, attributes, [region])


def _print_scan(printer: Printer, operation: Operation) -> str:
    count, _ = operation.integers("operandSegmentSizes")
    shown = ("dimension", "operandSegmentSizes", "resultSegmentSizes")
    attributes = printer.keyword_attributes(operation, shown)
    inputs, inits = printer.operands(operation.operands[:count]), printer.operands(operation.operands[count:])
    head = f"({inputs}) inits ({inits}) dimension={operation.integer('dimension')}{attributes}"
    types = FunctionType([value.type for value in operation.operands], [value.type for value in operation.results])
    return f"{head} {printer.region(operation.regions[0], always_labelled=True)} : {types}"


def _parse_sharding(parser: Parser, name: str) -> Parts:
    names = [parser.operand_name()]
    parser.expect("<")
    attributes: dict[str, Attribute] = {"sharding": RawAttr(f"#sdy.sharding<{parser.balanced('>')}>")}
    operands, results = parse_types(parser, names, "same")
    return Parts(operands, results, attributes, [])


def _print_sharding(printer: Printer, operation: Operation) -> str:
    sharding = printer.attribute(operation, "sharding").removeprefix("#sdy.sharding")
    return f"{printer.operands(operation.operands)} {sharding} : {operation.results[0].type}"


def _parse_mesh(parser: Parser, name: str) -> Parts:
    symbol = parser.symbol()
    parser.expect("=")
    parser.expect("<")
    attributes: dict[str, Attribute] = {"sym_name": symbol, "mesh": RawAttr(f"<{parser.balanced('>')}>")}
    return Parts([], [], attributes | parser.attribute_dictionary(), [])


def _print_mesh(printer: Printer, operation: Operation) -> str:
    others = printer.dictionary(operation, {"sym_name", "mesh"})
    text = f"@{operation.attributes['sym_name']} = {printer.attribute(operation, 'mesh')}"
    return f"{text} {others}" if others else text


_MHLO_ELEMENTWISE: Final = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "copy", "cosh", "erf", "erf_inv", "erfc", "sinh"),
    "square",
)

MHLO: Final[Mapping[str, Syntax | CustomSyntax]] = {
    **{f"mhlo.{name}": syntax_of("% {} :same") for name in _MHLO_ELEMENTWISE},
    "mhlo.add_dependency": syntax_of("% {} :fn"),
    "mhlo.topk": CustomSyntax(_parse_top_k, _print_top_k),
}
"""Operations that StableHLO does not have."""

CHLO: Final[Mapping[str, Syntax | CustomSyntax]] = {
    **{f"chlo.{name}": syntax_of("% {} :arrow") for name in _ELEMENTWISE.split()},
    "chlo.constant": CONSTANT,
    "chlo.scan": CustomSyntax(_parse_scan, _print_scan),
    "chlo.top_k": CustomSyntax(_parse_top_k, _print_top_k),
    "sdy.mesh": CustomSyntax(_parse_mesh, _print_mesh),
    "sdy.sharding_constraint": CustomSyntax(_parse_sharding, _print_sharding),
}
