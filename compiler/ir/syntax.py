"""The custom syntax of operations, described once for reading and printing.

A syntax is a short text. ``%`` stands for operands with commas between them, ``{}`` for the attribute dictionary,
``{attributes}`` for one after the word ``attributes``, ``word=name:kind`` for an attribute written ``word = value``
(with ``?`` before it if it is optional), and a part that starts with a colon for types:

========== =====================================================================================
``:same``   one type for all operands and results, or a function type
``:fn``     a function type, or one type for all
``:each``   the type of each operand, which are those of the results too
``:arrow``  types of the operands, an arrow, types of the results
``:give``   types of the results
``:take``   types of the operands; there are no results
========== =====================================================================================

Commas stand between operands and attributes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .attributes import Attribute, DenseArray, EnumAttr, IntegerAttr, attribute_text
from .operation import Operation, Value
from .parser import Parser, Parts
from .printer import Printer
from .sizes import Dim
from .types import I64, FunctionType, Type, types_text


@dataclass(frozen=True, slots=True)
class CustomSyntax:
    """A syntax that needs code: a function that reads it after the operation's name, and one that prints it."""

    parse: Callable[[Parser, str], Parts]
    print: Callable[[Printer, Operation], str]


@dataclass(frozen=True, slots=True)
class ReadSyntax:
    """A syntax that is only read: a function that reads it after the operation's name."""

    parse: Callable[[Parser, str], Parts]


@dataclass(frozen=True, slots=True)
class _Attribute:
    word: str
    name: str
    kind: str
    is_optional: bool


class Syntax:
    """A syntax made from its description."""

    def __init__(self, description: str) -> None:
        self._attributes: list[_Attribute] = []
        self._has_operands = False
        self._keyword = ""
        self._types = ""
        for item in description.split():
            if item == "%":
                self._has_operands = True
            elif item.startswith("{"):
                self._keyword = item[1:-1]
            elif item.startswith(":"):
                self._types = item[1:]
            else:
                word, _, rest = item.partition("=")
                name, _, kind = rest.partition(":")
                self._attributes.append(_Attribute(word.lstrip("?"), name, kind, word.startswith("?")))

    def parse(self, parser: Parser, name: str) -> Parts:
        """Reads an operation after its name."""
        names = parser.operand_names() if self._has_operands else []
        attributes: dict[str, Attribute] = {}
        is_first = not names
        for attribute in self._attributes:
            start = parser.position
            if not is_first and not parser.accept(","):
                if attribute.is_optional:
                    continue
                parser.unexpected(f"', {attribute.word} = …'")
            if not parser.accept_word(attribute.word):
                if attribute.is_optional:
                    parser.position = start
                    continue
                parser.unexpected(f"'{attribute.word} = …'")
            parser.expect("=")
            attributes[attribute.name] = parse_kind(parser, attribute.kind)
            is_first = False
        if self._keyword:
            if parser.accept_word(self._keyword):
                attributes |= parser.attribute_dictionary()
        elif parser.at("{"):
            attributes |= parser.attribute_dictionary()
        operands, results = parse_types(parser, names, self._types)
        return Parts(operands, results, attributes, [])

    def print(self, printer: Printer, operation: Operation) -> str:
        """Returns the text after an operation's name."""
        items = [printer.operands(operation.operands)] if operation.operands else []
        shown = set()
        for attribute in self._attributes:
            if attribute.name in operation.attributes:
                value = operation.attributes[attribute.name]
                items.append(f"{attribute.word} = {kind_text(attribute.kind, value)}")
                shown.add(attribute.name)
        text = ", ".join(items)
        others = printer.dictionary(operation, shown)
        if others:
            text += f" {self._keyword} {others}" if self._keyword else f" {others}"
        types = types_after_colon(operation, self._types)
        return " ".join(filter(None, (text, types)))


def parse_types(parser: Parser, names: Sequence[tuple[str, int]], form: str) -> tuple[list[Value], Sequence[Type]]:
    """Reads the colon and the types of an operation; returns the operands as values, and the types of the results."""
    if form in ("take", "each") and not names and not parser.at(":"):
        return [], []
    parser.expect(":")
    if form in ("same", "fn") and parser.at("("):
        type = parser.function_type()
        return parser.operands(names, type.inputs), type.results
    if form == "give":
        return [], parser.types()
    types = parser.types_in_parentheses() if form == "arrow" and parser.at("(") else parser.types()
    if form == "arrow":
        parser.expect("->")
        results = parser.types_in_parentheses() if parser.at("(") else parser.types()
        return parser.operands(names, types * len(names) if len(types) == 1 else types), results
    if form in ("same", "fn"):
        if len(types) != 1:
            parser.error(f"expected one type for all operands and results, or a function type, got {len(types)} types")
        return parser.operands(names, types * len(names)), types
    return parser.operands(names, types), [] if form == "take" else types


def typed_parts(
    parser: Parser, names: Sequence[tuple[str, int]], attributes: Mapping[str, Attribute], form: str
) -> Parts:
    """Reads the attribute dictionary and the types at an operation's end; the dictionary extends ``attributes``."""
    attributes = {**attributes, **parser.attribute_dictionary()}
    operands, results = parse_types(parser, names, form)
    return Parts(operands, results, attributes, [])


def types_after_colon(operation: Operation, form: str) -> str:
    """Returns the colon and the types of an operation as text."""
    operands = [value.type for value in operation.operands]
    results = [value.type for value in operation.results]
    if form == "give":
        return f": {types_text(results)}"
    if form in ("take", "each"):
        return f": {types_text(operands)}" if operands else ""
    if form == "arrow":
        result_text = types_text(results) if len(results) == 1 else f"({types_text(results)})"
        taken = types_text(operands) if len(operands) == 1 else f"({types_text(operands)})"
        return f": {taken} -> {result_text}"
    if len(results) == 1 and all(type is results[0] for type in operands):
        return f": {results[0]}"
    return f": {FunctionType(operands, results)}"


def parse_kind(parser: Parser, kind: str) -> Attribute:
    """Reads an attribute's value in the short form of its kind."""
    if kind == "ints":
        return DenseArray(I64, parse_ints(parser))
    if kind == "i64":
        return IntegerAttr(parser.integer(), I64)
    if kind == "bool":
        return parser.word("true or false") == "true"
    if kind == "string":
        return parser.string()
    if kind.startswith("enums."):
        parser.expect("[")
        return tuple([EnumAttr("stablehlo", kind[6:], parser.word("a name")) for _ in parser.items("]")])
    if kind.startswith("enum."):
        return EnumAttr("stablehlo", kind[5:], parser.word("a name"))
    return parser.attribute()


def parse_ints(parser: Parser) -> tuple[Dim, ...]:
    """Reads ``[0, (d0+1)]``."""
    parser.expect("[")
    return tuple([parser.length() for _ in parser.items("]")])


def kind_text(kind: str, value: Attribute) -> str:
    """Returns an attribute in the short form of its kind."""
    if isinstance(value, DenseArray):
        return f"[{', '.join(map(str, value.values))}]"
    if isinstance(value, IntegerAttr):
        return str(value.value)
    if isinstance(value, EnumAttr):
        return value.case
    if isinstance(value, tuple) and kind.startswith("enums."):
        return f"[{', '.join(item.case for item in value if isinstance(item, EnumAttr))}]"
    return attribute_text(value)


@functools.cache
def syntax_of(description: str) -> Syntax:
    """Returns the syntax of a description."""
    return Syntax(description)


def finished(printer: Printer, operation: Operation, text: str, shown: Sequence[str], types: str) -> str:
    """Returns the text of an operation: its particular part, its other attributes, and its types."""
    others = printer.dictionary(operation, shown)
    return " ".join(filter(None, (text, others, types_after_colon(operation, types))))
