"""Syntax of dispatch regions and executables, as the walkthrough writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...ir.attributes import Attribute
from ...ir.operation import Operation
from ...ir.parser import Parser, Parts
from ...ir.printer import Printer
from ...ir.syntax import CustomSyntax, Syntax, syntax_of
from ...ir.types import Type, types_text
from .builtin import CONSTANT


def _parse_region(parser: Parser, name: str) -> Parts:
    parser.expect("[")
    operands = [parser.typed_operand()]
    parser.expect("]")
    parser.expect("(")
    arguments: list[tuple[str, Type, int]] = []
    for _ in parser.items(")"):
        argument, offset = parser.operand_name()
        parser.expect("=")
        operands.append(parser.typed_operand())
        arguments.append((argument, operands[-1].type, offset))
    parser.expect(":")
    results = parser.types_in_parentheses() if parser.at("(") else parser.types()
    return Parts(operands, results, parser.keyword_attributes(), [parser.region(arguments)])


def _print_region(printer: Printer, operation: Operation) -> str:
    workload, *values = operation.operands
    named = printer.operands(values).split(", ") if values else []
    body = operation.regions[0]
    inputs = [
        f"{printer.argument(argument)} = {value} : {argument.type}"
        for argument, value in zip(body.block.arguments, named, strict=True)
    ]
    results = [value.type for value in operation.results]
    types = types_text(results) if len(results) == 1 else f"({types_text(results)})"
    head = f"[{printer.value(workload)} : {workload.type}]({', '.join(inputs)}) : {types}"
    return f"{head}{printer.keyword_attributes(operation)} {printer.region(body)}"


def _parse_executable(parser: Parser, name: str) -> Parts:
    attributes: dict[str, Attribute] = {"sym_name": parser.symbol()}
    if parser.accept("["):
        attributes["ordinal"] = parser.attribute()
        parser.expect("]")
    parser.expect("(")
    parser.expect(")")
    attributes |= parser.keyword_attributes()
    return Parts([], [], attributes, [parser.region(is_isolated=True)])


def _print_executable(printer: Printer, operation: Operation) -> str:
    ordinal = operation.attributes.get("ordinal")
    number = f"[{getattr(ordinal, 'value', 0)}]" if ordinal is not None else ""
    attributes = printer.keyword_attributes(operation, {"sym_name", "ordinal"})
    return f"@{operation.attributes['sym_name']}{number}(){attributes} {printer.region(operation.regions[0])}"


def _parse_variant(parser: Parser, name: str) -> Parts:
    parser.expect("(")
    attributes: dict[str, Attribute] = {"target": parser.word("a target")}
    parser.expect(")")
    attributes |= parser.keyword_attributes()
    return Parts([], [], attributes, [parser.region(is_isolated=True)])


def _print_variant(printer: Printer, operation: Operation) -> str:
    attributes = printer.keyword_attributes(operation, {"target"})
    return f"({operation.attributes['target']}){attributes} {printer.region(operation.regions[0])}"


EXECUTABLES: Final[Mapping[str, Syntax | CustomSyntax]] = {
    "arith.constant": CONSTANT,
    "iree.dispatch_region": CustomSyntax(_parse_region, _print_region),
    "iree.executable": CustomSyntax(_parse_variant, _print_variant),
    "iree.load_input": syntax_of("(%:) {} :give"),
    "iree.multi_arch_executable": CustomSyntax(_parse_executable, _print_executable),
    "iree.return": syntax_of("% {} :take"),
    "iree.store_output": syntax_of("(%:) {}"),
}
