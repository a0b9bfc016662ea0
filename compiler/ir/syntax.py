"""The custom syntax of operations, described once for reading and printing.

A syntax is a short text. ``%`` stands for operands separated by commas, ``(%)`` for operands in parentheses, and
``(%:)`` for operands in parentheses with their types. ``word=name:kind`` is an attribute written ``word = value``,
``=name:kind`` only its value, and ``[=name:kind]`` its value in brackets; ``?`` precedes an optional attribute. ``{}``
is the attribute dictionary, ``{attributes}`` a dictionary after the word ``attributes``. A part that starts with a
colon stands for types:

========== =====================================================================================
``:same``   one type for all operands and results, or a function type
``:fn``     a function type, or one type for all
``:call``   a function type, also if one type would do
``:select`` the types of the first operand and of the result, or a function type
``:parts``  the type of the result: of complex numbers whose parts the operands are
``:tuple``  the type of the result: a tuple of the operands
``:each``   the type of each operand, which are those of the results too
``:arrow``  types of the operands, an arrow, types of the results
``:give``   types of the results
``:take``   types of the operands; there are no results
========== =====================================================================================

Commas stand between operands and attributes, but not before brackets.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from .attributes import Attribute, DenseArray, EnumAttr, IntegerAttr, SymbolRef, attribute_text
from .operation import Operation, Value
from .parser import Parser, Parts
from .printer import Printer
from .sizes import Dim
from .types import I32, I64, FunctionType, ShapedType, TupleType, Type, types_text


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
class _Item:
    """Operands, or an attribute with a name; ``bracket`` is the opening bracket before it."""

    bracket: str
    word: str
    name: str
    kind: str
    is_optional: bool


_CLOSING: Final = {"(": ")", "[": "]"}


class Syntax:
    """A syntax built from its description."""

    def __init__(self, description: str) -> None:
        self._items: list[_Item] = []
        self._keyword = ""
        self._types = ""
        for item in description.split():
            if item.startswith("{"):
                self._keyword = item[1:-1]
            elif item.startswith(":"):
                self._types = item[1:]
            else:
                bracket = item[0] if item[0] in _CLOSING else ""
                word, _, rest = item.strip("?([])%:").partition("=")
                name, _, kind = rest.partition(":")
                kind = kind or item.strip("()%")
                self._items.append(_Item(bracket, word, name, kind, item.startswith("?")))

    def parse(self, parser: Parser, name: str) -> Parts:
        """Reads an operation after its name."""
        names: list[tuple[str, int]] = []
        values: list[Value] = []
        attributes: dict[str, Attribute] = {}
        is_first = True
        for item in self._items:
            start = parser.position
            if item.bracket:
                parser.expect(item.bracket)
            elif not is_first and not parser.accept(","):
                if item.is_optional:
                    continue
                parser.unexpected(f"', {item.word} = …'" if item.word else "','")
            if item.kind == ":":
                values.append(parser.typed_operand())
                while parser.accept(","):
                    values.append(parser.typed_operand())
            elif not item.name:
                names = parser.operand_names()
                is_first = not names
            else:
                if item.word and not parser.accept_word(item.word):
                    if item.is_optional:
                        parser.position = start
                        continue
                    parser.unexpected(f"'{item.word} = …'")
                if item.word:
                    parser.expect("=")
                attributes[item.name] = parse_kind(parser, item.kind)
                is_first = False
            if item.bracket:
                parser.expect(_CLOSING[item.bracket])
        if self._keyword:
            if parser.accept_word(self._keyword):
                attributes |= parser.attribute_dictionary()
        elif parser.at("{"):
            attributes |= parser.attribute_dictionary()
        operands, results = parse_types(parser, names, self._types) if self._types else ((), ())
        return Parts([*values, *operands], results, attributes, [])

    def print(self, printer: Printer, operation: Operation) -> str:
        """Returns the text after an operation's name."""
        text = ""
        shown = set()
        for item in self._items:
            if item.name and item.name not in operation.attributes:
                continue
            if item.name:
                value = kind_text(item.kind, operation.attributes[item.name])
                shown.add(item.name)
            elif item.kind == ":":
                value = ", ".join(f"{printer.value(operand)} : {operand.type}" for operand in operation.operands)
            else:
                value = printer.operands(operation.operands)
            if item.bracket:
                text += f"{item.bracket}{value}{_CLOSING[item.bracket]}"
            elif value:
                text += (", " if text else "") + (f"{item.word} = {value}" if item.word else value)
        others = printer.dictionary(operation, shown)
        keyword = self._keyword if others else ""
        types = types_after_colon(operation, self._types) if self._types else ""
        return " ".join(filter(None, (text, keyword, others, types)))


def parse_types(parser: Parser, names: Sequence[tuple[str, int]], form: str) -> tuple[list[Value], Sequence[Type]]:
    """Reads the colon and the types of an operation; returns the operands as values, and the types of the results."""
    if form in ("take", "each") and not names and not parser.at(":"):
        return [], []
    parser.expect(":")
    if form in ("same", "fn", "call", "select", "parts") and parser.at("("):
        type = parser.function_type()
        return parser.operands(names, type.inputs), type.results
    if form in ("parts", "tuple"):
        result = parser.type()
        return parser.operands(names, _part_types(parser, result, form, len(names))), [result]
    if form == "give":
        return [], parser.types()
    types = parser.types_in_parentheses() if form == "arrow" and parser.at("(") else parser.types()
    if form == "arrow":
        parser.expect("->")
        results = parser.types_in_parentheses() if parser.at("(") else parser.types()
        return parser.operands(names, types * len(names) if len(types) == 1 else types), results
    if form == "select":
        if len(types) != 2:
            parser.error(f"expected the type of the predicate and that of the result, got {len(types)} types")
        return parser.operands(names, [*types, types[1]]), types[1:]
    if form in ("same", "fn", "call"):
        if len(types) != 1:
            parser.error(f"expected one type for all operands and results, or a function type, got {len(types)} types")
        return parser.operands(names, types * len(names)), types
    return parser.operands(names, types), [] if form == "take" else types


def _part_types(parser: Parser, result: Type, form: str, count: int) -> Sequence[Type]:
    if form == "tuple":
        if not isinstance(result, TupleType):
            parser.error(f"expected a tuple type, got {result}")
        return result.elements
    if not isinstance(result, ShapedType) or result.scalar.kind != "complex":
        parser.error(f"expected a tensor of complex numbers, got {result}")
    return [result.of(result.scalar.part)] * count


def typed_parts(
    parser: Parser, names: Sequence[tuple[str, int]], attributes: Mapping[str, Attribute], form: str
) -> Parts:
    """Reads the attribute dictionary, which extends ``attributes``, and the types at an operation's end."""
    attributes = {**attributes, **parser.attribute_dictionary()}
    operands, results = parse_types(parser, names, form)
    return Parts(operands, results, attributes, [])


def types_after_colon(operation: Operation, form: str) -> str:
    """Returns the colon and the types of an operation as text."""
    operands = [value.type for value in operation.operands]
    results = [value.type for value in operation.results]
    if form in ("give", "parts", "tuple"):
        return f": {types_text(results)}"
    if form in ("take", "each"):
        return f": {types_text(operands)}" if operands else ""
    if form == "arrow":
        result_text = types_text(results) if len(results) == 1 else f"({types_text(results)})"
        taken = types_text(operands) if len(operands) == 1 else f"({types_text(operands)})"
        return f": {taken} -> {result_text}"
    if form == "select" and operands[1] is results[0]:
        return f": {operands[0]}, {results[0]}"
    if form != "call" and len(results) == 1 and all(type is results[0] for type in operands):
        return f": {results[0]}"
    return f": {FunctionType(operands, results)}"


def parse_kind(parser: Parser, kind: str) -> Attribute:
    """Reads an attribute's value in the short form of its kind."""
    if kind == "ints":
        return DenseArray(I64, parse_ints(parser))
    if kind in ("i32", "i64"):
        return IntegerAttr(parser.integer(), I32 if kind == "i32" else I64)
    if kind == "bool":
        return parser.word("true or false") == "true"
    if kind == "string":
        return parser.string()
    if kind == "symbol":
        return parser.symbol()
    if kind == "ref":
        return SymbolRef(parser.symbol())
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
    if kind == "symbol":
        return attribute_text(SymbolRef(str(value)))
    if isinstance(value, tuple) and kind.startswith("enums."):
        return f"[{', '.join(item.case for item in value if isinstance(item, EnumAttr))}]"
    return attribute_text(value)


@functools.cache
def syntax_of(description: str) -> Syntax:
    """Returns the syntax of a description."""
    return Syntax(description)


def finished(printer: Printer, operation: Operation, text: str, shown: Sequence[str], types: str) -> str:
    """Returns the text of an operation: its specific part, its other attributes, and its types."""
    others = printer.dictionary(operation, shown)
    return " ".join(filter(None, (text, others, types_after_colon(operation, types))))
