"""Syntax of modules, functions and control flow between blocks: ``builtin``, ``func`` and ``cf``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...ir.attributes import Attribute, DenseArray, dictionary_text, symbol_text
from ...ir.operation import Operation, Value
from ...ir.parser import Parser, Parts
from ...ir.printer import Printer
from ...ir.syntax import CustomSyntax, Syntax, parse_types, syntax_of
from ...ir.types import I32, FunctionType, Type

_VISIBILITIES: Final = ("public", "private", "nested")


def _parse_module(parser: Parser, name: str) -> Parts:
    attributes: dict[str, Attribute] = {}
    if parser.at("@"):
        attributes["sym_name"] = parser.symbol()
    attributes |= parser.keyword_attributes()
    return Parts([], [], attributes, [parser.region(is_isolated=True)])


def _print_module(printer: Printer, operation: Operation) -> str:
    name = operation.attributes.get("sym_name")
    text = symbol_text(name) + " " if isinstance(name, str) else ""
    others = printer.dictionary(operation, {"sym_name"})
    body = printer.scope(lambda: printer.region(operation.regions[0]))
    return f"{text}attributes {others} {body}" if others else text + body


def _parse_function(parser: Parser, name: str) -> Parts:
    attributes: dict[str, Attribute] = {}
    for visibility in _VISIBILITIES:
        if parser.accept_word(visibility):
            attributes["sym_visibility"] = visibility
    attributes["sym_name"] = parser.symbol()
    arguments, types, argument_attributes = _arguments(parser)
    results: list[Type] = []
    result_attributes: list[dict[str, Attribute]] = []
    if parser.accept("->"):
        if parser.accept("("):
            for _ in parser.items(")"):
                results.append(parser.type())
                result_attributes.append(parser.attribute_dictionary())
        else:
            results.append(parser.type())
    attributes["function_type"] = FunctionType(types, results)
    if any(argument_attributes):
        attributes["arg_attrs"] = tuple(argument_attributes)
    if any(result_attributes):
        attributes["res_attrs"] = tuple(result_attributes)
    attributes |= parser.keyword_attributes()
    regions = [parser.region(arguments, is_isolated=True)] if parser.at("{") else []
    if not regions and any(name for name, _, _ in arguments):
        parser.unexpected("the function's body")
    return Parts([], [], attributes, regions)


def _arguments(parser: Parser) -> tuple[list[tuple[str, Type, int]], list[Type], list[dict[str, Attribute]]]:
    """Reads arguments with names (a definition) or only types (a declaration)."""
    parser.expect("(")
    arguments: list[tuple[str, Type, int]] = []
    types: list[Type] = []
    attributes: list[dict[str, Attribute]] = []
    for _ in parser.items(")"):
        name, offset = "", parser.here()
        if parser.at("%"):
            name, offset = parser.operand_name()
            parser.expect(":")
        types.append(parser.type())
        attributes.append(parser.attribute_dictionary())
        parser.trailing_location()
        arguments.append((name, types[-1], offset))
    return arguments, types, attributes


def _function_text(printer: Printer, operation: Operation) -> str:
    attributes = operation.attributes
    type, name = attributes["function_type"], attributes["sym_name"]
    assert isinstance(type, FunctionType) and isinstance(name, str)
    visibility = attributes.get("sym_visibility")
    text = f"{visibility} " if isinstance(visibility, str) else ""
    arguments: Sequence[Value] = operation.regions[0].blocks[0].arguments if operation.regions else ()
    inputs = []
    for index, input in enumerate(type.inputs):
        item = f"{printer.argument(arguments[index])}: {input}" if operation.regions else str(input)
        inputs.append(item + _extra(attributes.get("arg_attrs"), index))
    text += f"{symbol_text(name)}({', '.join(inputs)})"
    results = [f"{result}{_extra(attributes.get('res_attrs'), index)}" for index, result in enumerate(type.results)]
    if len(results) == 1 and not attributes.get("res_attrs"):
        text += f" -> {results[0]}"
    elif results:
        text += f" -> ({', '.join(results)})"
    shown = {"sym_name", "sym_visibility", "function_type", "arg_attrs", "res_attrs"}
    text += printer.keyword_attributes(operation, shown)
    return f"{text} {printer.region(operation.regions[0])}" if operation.regions else text


def _extra(attributes: Attribute, index: int) -> str:
    item = attributes[index] if isinstance(attributes, tuple) else None
    return f" {dictionary_text(item)}" if isinstance(item, Mapping) and item else ""


def _parse_constant(parser: Parser, name: str) -> Parts:
    attributes = parser.attribute_dictionary()
    value = parser.attribute()
    type = getattr(value, "type", None)
    if isinstance(value, bool):
        type = parser.type() if parser.accept(":") else None
    if not isinstance(type, Type):
        parser.unexpected("a constant with a type")
    return Parts([], [type], {"value": value, **attributes}, [])


def _print_constant(printer: Printer, operation: Operation) -> str:
    others = printer.dictionary(operation, {"value"})
    return f"{others + ' ' if others else ''}{printer.attribute(operation, 'value')}"


CONSTANT: Final = CustomSyntax(_parse_constant, _print_constant)


def _parse_branch(parser: Parser, name: str) -> Parts:
    targets = [] if name == "cf.br" else [parser.operand_name()]
    condition = [parser.value_of(*target) for target in targets]
    operands = list(condition)
    successors, counts = [], [len(condition)]
    while True:
        if condition and not parser.accept(","):
            parser.unexpected("', ^block'")
        successors.append(parser.successor())
        count = 0
        if parser.accept("("):
            names = parser.operand_names()
            values, _ = parse_types(parser, names, "take")
            parser.expect(")")
            operands.extend(values)
            count = len(values)
        counts.append(count)
        if not condition or len(successors) == 2:
            break
    parser.branch_to(successors)
    attributes: dict[str, Attribute] = {
        **parser.attribute_dictionary(),
        "operand_segments": DenseArray(I32, tuple(counts)),
    }
    return Parts(operands, [], attributes, [])


def _print_branch(printer: Printer, operation: Operation) -> str:
    counts = operation.integers("operand_segments")
    position = counts[0]
    items = [printer.operands(operation.operands[:position])] if position else []
    for block, count in zip(operation.successors, counts[1:], strict=True):
        passed = operation.operands[position : position + count]
        position += count
        types = ", ".join(str(value.type) for value in passed)
        items.append(printer.label(block) + (f"({printer.operands(passed)} : {types})" if passed else ""))
    others = printer.dictionary(operation, {"operand_segments"})
    return ", ".join(items) + (f" {others}" if others else "")


BRANCH: Final = CustomSyntax(_parse_branch, _print_branch)

BUILTIN: Final[Mapping[str, Syntax | CustomSyntax]] = {
    "builtin.module": CustomSyntax(_parse_module, _print_module),
    "func.func": CustomSyntax(
        _parse_function, lambda printer, operation: printer.scope(lambda: _function_text(printer, operation))
    ),
    "func.call": syntax_of("=callee:ref (%) {} :call"),
    "func.return": syntax_of("% {} :take"),
    "cf.br": BRANCH,
    "cf.cond_br": BRANCH,
}
