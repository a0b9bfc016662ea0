"""Reading of operations of ``check``, in StableHLO's form and in IREE's, and of the constants in IREE's tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ...ir.attributes import Attribute, DenseElements, FloatAttr, IntegerAttr
from ...ir.parser import Parser, Parts
from ...ir.types import F64, I64, Type

Parse = Callable[[Parser, str], Parts]


def _expect(parser: Parser, name: str) -> Parts:
    in_parentheses = parser.accept("(")
    names = parser.operand_names()
    attributes: dict[str, Attribute] = {}
    while parser.accept(","):
        attributes |= _option(parser)
    if in_parentheses:
        parser.expect(")")
        while parser.accept(","):
            attributes |= _option(parser)
    attributes |= parser.attribute_dictionary()
    types: list[Type] = []
    if parser.accept(":"):
        types = list(parser.function_type().inputs) if parser.at("(") else parser.types()
    value = attributes.get("value")
    if not types and isinstance(value, DenseElements):
        types = [value.type]
    return Parts(parser.operands(names, types * len(names) if len(types) == 1 else types), [], attributes, [])


def _option(parser: Parser) -> dict[str, Attribute]:
    """Reads a constant, or a named number: ``tolerance = 0.1``, ``max_ulp_difference = 3``, ``atol 0.5``."""
    for word in ("tolerance", "atol", "rtol"):
        if parser.accept_word(word):
            parser.accept("=")
            return {word: FloatAttr(parser.decimal(), F64)}
    for word in ("max_ulp_difference", "min_ulp_difference"):
        if parser.accept_word(word):
            parser.expect("=")
            return {word: IntegerAttr(parser.integer(), I64)}
    return {"value": parser.attribute()}


def _unfoldable(parser: Parser, name: str) -> Parts:
    attributes = parser.attribute_dictionary()
    value = parser.attribute()
    if not isinstance(value, DenseElements):
        parser.unexpected("a constant such as dense<0> : tensor<4xi32>")
    return Parts([], [value.type], {"value": value, **attributes}, [])


EXPECTATIONS: Final = ("expect_all_true", "expect_almost_eq", "expect_close", "expect_eq")

CHECK_SYNTAX: Final[Mapping[str, Parse]] = {
    **{f"check.{name}": _expect for name in EXPECTATIONS},
    "util.unfoldable_constant": _unfoldable,
    **{f"check.{name}_const": _expect for name in ("expect_almost_eq", "expect_eq")},
}
