"""Reading of operations of ``tensor`` and ``shape``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from ...ir.attributes import Attribute, DenseArray, DenseElements, IntegerAttr
from ...ir.parser import Parser, Parts
from ...ir.syntax import typed_parts
from ...ir.types import I64, INDEX, ShapedType, TensorType, Type
from .scf import parse_yield

Parse = Callable[[Parser, str], Parts]
Names = list[tuple[str, int]]

_DYNAMIC: Final = -(1 << 63)


def _extract(parser: Parser, name: str) -> Parts:
    names = [parser.operand_name()]
    indices = parser.enclosed_names("[]")
    attributes = parser.attributes_before_types()
    type = parser.type()
    operands = parser.operands([*names, *indices], [type, *[INDEX] * len(indices)])
    return Parts(operands, [_element(parser, type)], attributes, [])


def _element(parser: Parser, type: Type) -> Type:
    if not isinstance(type, ShapedType):
        parser.error(f"expected a tensor, got {type}")
    return type.element


def _insert(parser: Parser, name: str) -> Parts:
    names = [parser.operand_name()]
    parser.expect_word("into")
    names.append(parser.operand_name())
    indices = parser.enclosed_names("[]")
    attributes = parser.attributes_before_types()
    type = parser.type()
    types = [_element(parser, type), type, *[INDEX] * len(indices)]
    return Parts(parser.operands([*names, *indices], types), [type], attributes, [])


def _of_elements(parser: Parser, name: str) -> Parts:
    """Reads ``from_elements`` and ``splat``: operands of the result's element type, and lengths in brackets."""
    names = parser.operand_names()
    sizes = parser.enclosed_names("[]") if parser.at("[") else []
    attributes = parser.attributes_before_types()
    type = parser.type()
    types = [_element(parser, type)] * len(names) + [INDEX] * len(sizes)
    return Parts(parser.operands([*names, *sizes], types), [type], attributes, [])


def _empty(parser: Parser, name: str) -> Parts:
    names = parser.enclosed_names()
    attributes = parser.attributes_before_types()
    return Parts(parser.operands(names, [INDEX] * len(names)), [parser.type()], attributes, [])


def _dim(parser: Parser, name: str) -> Parts:
    names = parser.operand_names()
    attributes = parser.attributes_before_types()
    types = parser.types()
    types = types if len(types) == len(names) else [*types, *[INDEX] * (len(names) - len(types))]
    return Parts(parser.operands(names, types), [INDEX], attributes, [])


def _rank(parser: Parser, name: str) -> Parts:
    names = [parser.operand_name()]
    attributes = parser.attributes_before_types()
    return Parts(parser.operands(names, [parser.type()]), [INDEX], attributes, [])


def _cast(parser: Parser, name: str) -> Parts:
    names = [parser.operand_name()]
    attributes = parser.attributes_before_types()
    type = parser.type()
    parser.expect_word("to")
    return Parts(parser.operands(names, [type]), [parser.type()], attributes, [])


def _regrouped(parser: Parser, name: str) -> Parts:
    """Reads ``expand_shape`` and ``collapse_shape``; their groups of dimensions also follow from the types."""
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
    """Reads ``[0, %n, 2]``: operands, and numbers with a mark for each operand."""
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


def _ranges(parser: Parser, attributes: dict[str, Attribute]) -> Names:
    operands: Names = []
    for kind in ("offsets", "sizes", "strides"):
        names, attributes[f"static_{kind}"] = _numbers(parser)
        operands += names
    return operands


def _extract_slice(parser: Parser, name: str) -> Parts:
    names = [parser.operand_name()]
    attributes: dict[str, Attribute] = {}
    numbers = _ranges(parser, attributes)
    attributes |= parser.attributes_before_types()
    type = parser.type()
    parser.expect_word("to")
    operands = parser.operands([*names, *numbers], [type, *[INDEX] * len(numbers)])
    return Parts(operands, [parser.type()], attributes, [])


def _insert_slice(parser: Parser, name: str) -> Parts:
    names = [parser.operand_name()]
    parser.expect_word("into")
    names.append(parser.operand_name())
    attributes: dict[str, Attribute] = {}
    numbers = _ranges(parser, attributes)
    attributes |= parser.attributes_before_types()
    source = parser.type()
    parser.expect_word("into")
    target = parser.type()
    operands = parser.operands([*names, *numbers], [source, target, *[INDEX] * len(numbers)])
    return Parts(operands, [target], attributes, [])


def _concat(parser: Parser, name: str) -> Parts:
    parser.expect_word("dim")
    parser.expect("(")
    attributes: dict[str, Attribute] = {"dim": IntegerAttr(parser.integer(), I64)}
    parser.expect(")")
    return typed_parts(parser, parser.operand_names(), attributes, "fn")


def _reshape(parser: Parser, name: str) -> Parts:
    return typed_parts(parser, [parser.operand_name(), *parser.enclosed_names()], {}, "fn")


def _pad(parser: Parser, name: str) -> Parts:
    names = [parser.operand_name()]
    parser.accept_word("nofold")
    attributes: dict[str, Attribute] = {}
    sizes: Names = []
    for side in ("low", "high"):
        parser.expect_word(side)
        operand_names, attributes[f"static_{side}"] = _numbers(parser)
        sizes += operand_names
    region = parser.region()
    attributes |= parser.attributes_before_types()
    type = parser.type()
    parser.expect_word("to")
    operands = parser.operands([*names, *sizes], [type, *[INDEX] * len(sizes)])
    return Parts(operands, [parser.type()], attributes, [region])


def _generate(parser: Parser, name: str) -> Parts:
    names = parser.operand_names()
    region = parser.region()
    attributes = parser.attributes_before_types()
    return Parts(parser.operands(names, [INDEX] * len(names)), [parser.type()], attributes, [region])


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
    "shape.broadcast": _arrow,
    "shape.const_shape": _const_shape,
    "shape.get_extent": _arrow,
    "shape.num_elements": _arrow,
    "shape.shape_of": _arrow,
    "shape.to_extent_tensor": _arrow,
    "tensor.bitcast": _cast,
    "tensor.cast": _cast,
    "tensor.collapse_shape": _regrouped,
    "tensor.concat": _concat,
    "tensor.dim": _dim,
    "tensor.empty": _empty,
    "tensor.expand_shape": _regrouped,
    "tensor.extract": _extract,
    "tensor.extract_slice": _extract_slice,
    "tensor.from_elements": _of_elements,
    "tensor.generate": _generate,
    "tensor.insert": _insert,
    "tensor.insert_slice": _insert_slice,
    "tensor.pad": _pad,
    "tensor.rank": _rank,
    "tensor.reshape": _reshape,
    "tensor.splat": _of_elements,
    "tensor.yield": parse_yield,
}
