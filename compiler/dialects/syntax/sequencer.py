"""Syntax of the two sequencer dialects, as the walkthrough writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...ir.attributes import Attribute, DenseArray, DenseElements, SymbolRef
from ...ir.operation import Operation, Value
from ...ir.parser import Parser, Parts
from ...ir.printer import Printer
from ...ir.syntax import CustomSyntax, Syntax, syntax_of
from ...ir.types import MemRefType, types_text


def _parse_dispatch(parser: Parser, name: str) -> Parts:
    executable = parser.word("an executable")
    parser.expect("::")
    entry = SymbolRef(f"{executable}::@{parser.word('an entry point')}")
    parser.expect("[")
    attributes: dict[str, Attribute] = {"entry": entry}
    workload: list[Value] = []
    if name.startswith("iree_ll_seq."):
        attributes["workload"] = parser.attribute()
    else:
        workload = [parser.typed_operand()]
    parser.expect("]")
    names = parser.enclosed_names()
    attributes |= parser.attributes_before_types()
    type = parser.function_type()
    return Parts([*workload, *parser.operands(names, type.inputs)], type.results, attributes, [])


def _print_dispatch(printer: Printer, operation: Operation) -> str:
    entry = operation.attributes["entry"]
    assert isinstance(entry, SymbolRef)
    workload = operation.attributes.get("workload")
    rest = list(operation.operands)
    if isinstance(workload, DenseElements | DenseArray):
        shown = str(workload)
    else:
        first = rest.pop(0)
        shown = f"{printer.value(first)} : {first.type}"
    others = printer.dictionary(operation, {"entry", "workload"})
    types = types_text([value.type for value in rest])
    target = entry.name.replace("::@", "::")
    extra = f" {others}" if others else ""
    return f"{target}[{shown}]({printer.operands(rest)}){extra} : ({types}) -> ()"


def _parse_constant(parser: Parser, name: str) -> Parts:
    value = parser.attribute()
    if not isinstance(value, DenseElements):
        parser.unexpected("a constant such as dense<0> : tensor<4xi32>")
    type = MemRefType(value.type.shape, value.type.element)
    return Parts([], [type], {"value": value, **parser.attribute_dictionary()}, [])


def _print_constant(printer: Printer, operation: Operation) -> str:
    others = printer.dictionary(operation, {"value"})
    return " ".join(filter(None, (printer.attribute(operation, "value"), others)))


def _parse_loop(parser: Parser, name: str) -> Parts:
    operands = [parser.typed_operand()]
    attributes = parser.keyword_attributes()
    parser.expect_word("condition")
    regions = [parser.region(())]
    parser.expect_word("do")
    regions.append(parser.region(()))
    return Parts(operands, [], attributes, regions)


def _parse_repeat(parser: Parser, name: str) -> Parts:
    operands = [] if parser.at("{") else [parser.typed_operand()]
    attributes = {} if operands else parser.attribute_dictionary()
    return Parts(operands, [], attributes, [parser.region(())])


def _print_repeat(printer: Printer, operation: Operation) -> str:
    trips = _print_flag(printer, operation) if operation.operands else printer.dictionary(operation)
    return f"{trips} {printer.region(operation.regions[0])}"


def _print_flag(printer: Printer, operation: Operation) -> str:
    (value,) = operation.operands
    return f"{printer.value(value)} : {value.type}"


def _print_loop(printer: Printer, operation: Operation) -> str:
    condition, body = (printer.region(region) for region in operation.regions)
    attributes = printer.keyword_attributes(operation)
    return f"{_print_flag(printer, operation)}{attributes} condition {condition} do {body}"


def _parse_branch(parser: Parser, name: str) -> Parts:
    operands = [parser.typed_operand()]
    regions = [parser.region(())]
    while parser.accept(","):
        regions.append(parser.region(()))
    return Parts(operands, [], {}, regions)


def _print_branch(printer: Printer, operation: Operation) -> str:
    return f"{_print_flag(printer, operation)} {', '.join(printer.region(region) for region in operation.regions)}"


_CONSTANT: Final = CustomSyntax(_parse_constant, _print_constant)
_DISPATCH: Final = CustomSyntax(_parse_dispatch, _print_dispatch)
_RETURN: Final = syntax_of("% {} :take")

SEQUENCER: Final[Mapping[str, Syntax | CustomSyntax]] = {
    "iree_hl_seq.constant": _CONSTANT,
    "iree_hl_seq.dispatch": _DISPATCH,
    "iree_hl_seq.return": _RETURN,
    "iree_ll_seq.alloc_arena": syntax_of("peak_before=peak_before:i64 lower_bound=lower_bound:i64 {} :give"),
    "iree_ll_seq.barrier": _RETURN,
    "iree_ll_seq.branch": CustomSyntax(_parse_branch, _print_branch),
    "iree_ll_seq.constant": _CONSTANT,
    "iree_ll_seq.copy": syntax_of("% {} :take"),
    "iree_ll_seq.dispatch": _DISPATCH,
    "iree_ll_seq.loop": CustomSyntax(_parse_loop, _print_loop),
    "iree_ll_seq.repeat": CustomSyntax(_parse_repeat, _print_repeat),
    "iree_ll_seq.return": _RETURN,
    "iree_ll_seq.static_dispatch": _DISPATCH,
    "iree_ll_seq.subview": syntax_of("% ?offset=offset:i64 ?slot=slot:i64 lifetime=lifetime:ints {} :arrow"),
    "iree_ll_seq.view": syntax_of("% {} :arrow"),
    "iree_ll_seq.workgroup_counts": syntax_of("{} :give"),
}
