"""Syntax of StableHLO's operations with a special form for their regions: ``reduce`` and ``while``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...ir.attributes import Attribute, DenseArray
from ...ir.operation import Block, Operation, Region
from ...ir.parser import Parser, Parts
from ...ir.printer import Printer
from ...ir.syntax import CustomSyntax, finished, kind_text, parse_ints, parse_types
from ...ir.types import I64, TensorType, Type, types_text


def _parse_reduce(parser: Parser, name: str) -> Parts:
    inputs: list[tuple[str, int]] = []
    starts: list[tuple[str, int]] = []
    while True:
        parser.expect("(")
        inputs.append(parser.operand_name())
        parser.expect_word("init")
        parser.expect(":")
        starts.append(parser.operand_name())
        parser.expect(")")
        if not parser.accept(","):
            break
    inner = ""
    if parser.accept_word("applies"):
        inner = parser.word("an operation")
        if inner.partition(".")[2] not in _APPLIED or not inner.startswith(("stablehlo.", "mhlo.")):
            parser.error(
                f"expected one of {', '.join(_APPLIED)} of StableHLO, got {inner}", parser.position - len(inner)
            )
    parser.expect_word("across")
    parser.expect_word("dimensions")
    parser.expect("=")
    attributes: dict[str, Attribute] = {"dimensions": DenseArray(I64, parse_ints(parser))}
    attributes |= parser.attribute_dictionary()
    operands, results = parse_types(parser, inputs + starts, "fn")
    if inner:
        region = _applied(inner, operands[0].tensor.element)
    else:
        parser.expect_word("reducer")
        firsts: list[tuple[str, Type, int]] = []
        seconds: list[tuple[str, Type, int]] = []
        while parser.at("("):
            first, second = parser.arguments()
            firsts.append(first)
            seconds.append(second)
        region = parser.region(firsts + seconds)
    return Parts(operands, results, attributes, [region])


_APPLIED: Final = ("add", "and", "maximum", "minimum", "multiply", "or", "xor")
"""Operations that the short form of a reduction may name, all of them commutative."""


def _applied(name: str, element: Type) -> Region:
    """Creates a region that applies one operation to its two arguments."""
    type = TensorType((), element)
    block = Block([type, type])
    made = block.append(Operation(name, block.arguments, [type]))
    block.append(Operation("stablehlo.return", made.results))
    return Region([block])


def _print_reduce(printer: Printer, operation: Operation) -> str:
    count = len(operation.results)
    pairs = zip(operation.operands[:count], operation.operands[count:], strict=True)
    text = ", ".join(f"({printer.value(value)} init: {printer.value(start)})" for value, start in pairs)
    block = operation.regions[0].block
    dimensions = f"across dimensions = {kind_text('ints', operation.attributes['dimensions'])}"
    if _is_applied(block, operation.operands[0].tensor.element):
        return finished(
            printer, operation, f"{text} applies {block.operations[0].name} {dimensions}", ("dimensions",), "fn"
        )
    head = finished(printer, operation, f"{text} {dimensions}", ("dimensions",), "fn")
    arguments = []
    for first, second in zip(block.arguments[:count], block.arguments[count:], strict=True):
        named = f"{printer.argument(first)}: {first.type}, {printer.argument(second)}: {second.type}"
        arguments.append(f"({named})")
    return f"{head} reducer{' '.join(arguments)} {printer.region(operation.regions[0])}"


def _is_applied(block: Block, element: Type) -> bool:
    if len(block.operations) != 2 or len(block.arguments) != 2:
        return False
    inner, last = block.operations
    return (
        inner.name.partition(".")[2] in _APPLIED
        and list(inner.operands) == block.arguments
        and not inner.attributes
        and not inner.regions
        and list(last.operands) == inner.results
        and block.arguments[0].type is inner.results[0].type is TensorType((), element)
    )


def assignments(parser: Parser) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Reads ``(%a = %b, …)``: names of arguments and of values."""
    names: list[tuple[str, int]] = []
    starts: list[tuple[str, int]] = []
    parser.expect("(")
    for _ in parser.items(")"):
        names.append(parser.operand_name())
        parser.expect("=")
        starts.append(parser.operand_name())
    return names, starts


def _parse_while(parser: Parser, name: str) -> Parts:
    names, starts = assignments(parser)
    types = parser.types() if parser.accept(":") else []
    attributes = parser.keyword_attributes()
    operands = parser.operands(starts, types)
    arguments = [(name, type, offset) for (name, offset), type in zip(names, types, strict=True)]
    parser.expect_word("cond")
    condition = parser.region(arguments)
    parser.expect_word("do")
    return Parts(operands, types, attributes, [condition, parser.region(arguments)])


def _print_while(printer: Printer, operation: Operation) -> str:
    condition, body = operation.regions
    arguments = [printer.argument(value, "iterArg") for value in condition.block.arguments]
    printer.alias(body.block.arguments, condition.block.arguments)
    pairs = ", ".join(
        f"{name} = {printer.value(value)}" for name, value in zip(arguments, operation.operands, strict=True)
    )
    types = f" : {types_text([value.type for value in operation.operands])}" if operation.operands else ""
    text = f"({pairs}){types}{printer.keyword_attributes(operation)}"
    return f"{text}\n{printer.indent}cond {printer.region(condition)} do {printer.region(body)}"


BODY_SYNTAX: Final[Mapping[str, CustomSyntax]] = {
    "reduce": CustomSyntax(_parse_reduce, _print_reduce),
    "while": CustomSyntax(_parse_while, _print_while),
}
