"""Reading of operations of ``tensor`` and ``shape``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from ...ir.attributes import Attribute, DenseArray, DenseElements, IntegerAttr
from ...ir.operation import Region
from ...ir.parser import Parser, Parts
from ...ir.syntax import typed_parts
from ...ir.types import I64, INDEX, ShapedType, TensorType, Type
from .scf import parse_yield

Parse = Callable[[Parser, str], Parts]
Names = list[tuple[str, int]]

_DYNAMIC: Final = -(1 << 63)


_FORMS: Final = {
    "bitcast": "%T : to R",
    "cast": "%T : to R",
    "empty": "(I) : T",
    "extract": "%T [I] : E",
    "extract_slice": "%T #offsets #sizes #strides : to R",
    "from_elements": "E : T",
    "generate": "I {} : T",
    "insert": "%E into %T [I] : T",
    "insert_slice": "%T into %R #offsets #sizes #strides : into R",
    "pad": "%T ?nofold low #low high #high {} : to R",
    "rank": "%T : I",
    "splat": "E ?[I] : T",
}
"""Operands, and after the colon the type of the result.

``%T`` is an operand of type T; ``T`` any number of them. T is the type after the colon, E its element type, R the type
after the word that ends the form, and I the index type. ``#name`` stands for numbers and indices, whose numbers become
the attribute ``static_name``, and ``{}`` for a region. A question mark precedes optional parts.
"""


def _parse_form(form: str, parser: Parser, name: str) -> Parts:
    operands: list[tuple[str, tuple[str, int]]] = []
    attributes: dict[str, Attribute] = {}
    regions: list[Region] = []
    items, _, typing = form.partition(" : ")
    for item in items.split():
        names: Names = []
        kind = item.strip("?%()[]")
        if item.startswith("%"):
            names = [parser.operand_name()]
        elif item.startswith("#"):
            kind = "I"
            names, attributes[f"static_{item[1:]}"] = _numbers(parser)
        elif kind not in ("E", "I"):
            if item == "{}":
                regions.append(parser.region())
            elif not parser.accept_word(kind) and item == kind:
                parser.unexpected(repr(kind))
        elif item == kind:
            names = parser.operand_names()
        elif not item.startswith("?") or parser.at(item[1]):
            names = parser.enclosed_names(item[-3] + item[-1])
        operands += [(kind, operand) for operand in names]
    attributes |= parser.attributes_before_types()
    types: dict[str, Type] = {"T": parser.type(), "I": INDEX}
    word, _, result = typing.rpartition(" ")
    if word:
        parser.expect_word(word)
        types[result] = parser.type()
    if result == "E" or any(kind == "E" for kind, _ in operands):
        if not isinstance(types["T"], ShapedType):
            parser.error(f"expected a tensor, got {types['T']}")
        types["E"] = types["T"].element
    values = parser.operands([operand for _, operand in operands], [types[kind] for kind, _ in operands])
    return Parts(values, [types[result]], attributes, regions)


def _dim(parser: Parser, name: str) -> Parts:
    names = parser.operand_names()
    attributes = parser.attributes_before_types()
    types = parser.types()
    types = types if len(types) == len(names) else [*types, *[INDEX] * (len(names) - len(types))]
    return Parts(parser.operands(names, types), [INDEX], attributes, [])


def _regrouped(parser: Parser, name: str) -> Parts:
    """Reads ``expand_shape`` and ``collapse_shape``; the groups of dimensions may be inferred from the types."""
    names = [parser.operand_name()]
    groups = parser.attribute()
    sizes: Names = []
    attributes: dict[str, Attribute] = {"reassociation": groups}
    if parser.accept_word("output_shape"):
        sizes, attributes["static_output_shape"] = _numbers(parser)
    attributes |= parser.attributes_before_types()
    types = [parser.type(), *[INDEX] * len(sizes)]
    parser.expect_word("into")
    return Parts(parser.operands([*names, *sizes], types), [parser.type()], attributes, [])


def _numbers(parser: Parser) -> tuple[Names, DenseArray]:
    """Reads ``[0, %n, 2]``: the operands, and the numbers with a mark in place of each operand."""
    parser.expect("[")
    names: Names = []
    numbers: list[int] = []
    for _ in parser.items("]"):
        if parser.at("%"):
            names.append(parser.operand_name())
            numbers.append(_DYNAMIC)
        else:
            numbers.append(parser.integer())
    return names, DenseArray(I64, tuple(numbers))


def _concat(parser: Parser, name: str) -> Parts:
    parser.expect_word("dim")
    parser.expect("(")
    attributes: dict[str, Attribute] = {"dim": IntegerAttr(parser.integer(), I64)}
    parser.expect(")")
    return typed_parts(parser, parser.operand_names(), attributes, "fn")


def _reshape(parser: Parser, name: str) -> Parts:
    return typed_parts(parser, [parser.operand_name(), *parser.enclosed_names()], {}, "fn")


def _arrow(parser: Parser, name: str) -> Parts:
    """Reads operands of ``shape``, with the types of both sides of an arrow."""
    return typed_parts(parser, parser.operand_names(), {}, "arrow")


def _const_shape(parser: Parser, name: str) -> Parts:
    _, numbers = _numbers(parser)
    attributes = parser.attributes_before_types()
    type = TensorType((len(numbers.values),), INDEX)
    value = DenseElements.of(np.array(numbers.values, np.int64), type)
    return Parts([], [parser.type()], {"shape": value, **attributes}, [])


TENSOR_SYNTAX: Final[Mapping[str, Parse]] = {
    **{f"tensor.{name}": functools.partial(_parse_form, form) for name, form in _FORMS.items()},
    "shape.broadcast": _arrow,
    "shape.const_shape": _const_shape,
    "shape.get_extent": _arrow,
    "shape.num_elements": _arrow,
    "shape.shape_of": _arrow,
    "shape.to_extent_tensor": _arrow,
    "tensor.collapse_shape": _regrouped,
    "tensor.concat": _concat,
    "tensor.dim": _dim,
    "tensor.expand_shape": _regrouped,
    "tensor.reshape": _reshape,
    "tensor.yield": parse_yield,
}
