"""Reading of operations of ``arith`` and ``math``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...ir.attributes import Attribute, IntegerAttr
from ...ir.parser import Parser, Parts
from ...ir.types import I1, I64, ShapedType, Type

Parse = Callable[[Parser, str], Parts]

CMPI: Final = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
CMPF: Final = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
)
"""Predicates of comparisons, by number."""

_FLAGS: Final = ("fastmath", "overflow")
_MARKS: Final = ("exact", "nneg")


def _flags(parser: Parser) -> dict[str, Attribute]:
    """Skips flags, which permit unused optimisations, and reads attributes up to the colon before types."""
    for word in _FLAGS:
        if parser.accept_word(word):
            parser.expect("<")
            parser.balanced(">")
    for word in _MARKS:
        parser.accept_word(word)
    return parser.attributes_before_types()


def _elementwise(parser: Parser, name: str) -> Parts:
    names = parser.operand_names()
    attributes = _flags(parser)
    types = parser.types()
    if parser.accept_word("to"):
        return Parts(parser.operands(names, types), [parser.type()], attributes, [])
    if len(types) == 2 and len(names) == 2 and name in ("math.fpowi", "math.ipowi"):
        return Parts(parser.operands(names, types), types[:1], attributes, [])
    return Parts(parser.operands(names, types[:1] * len(names)), types[:1], attributes, [])


def _extended(parser: Parser, name: str) -> Parts:
    names = parser.operand_names()
    attributes = _flags(parser)
    first, *rest = parser.types()
    return Parts(parser.operands(names, [first] * len(names)), [first, rest[0] if rest else first], attributes, [])


def _test(parser: Parser, name: str) -> Parts:
    names = parser.operand_names()
    attributes = _flags(parser)
    type = parser.type()
    return Parts(parser.operands(names, [type] * len(names)), [_condition(type)], attributes, [])


def _condition(type: Type) -> Type:
    return type.of(I1) if isinstance(type, ShapedType) else I1


def _comparison(names: Sequence[str]) -> Parse:
    def parse(parser: Parser, name: str) -> Parts:
        word = parser.word(f"a predicate, one of {', '.join(names)}")
        if word not in names:
            parser.error(f"expected a predicate, one of {', '.join(names)}, got {word}")
        parser.expect(",")
        operands = parser.operand_names()
        attributes = {"predicate": IntegerAttr(names.index(word), I64), **_flags(parser)}
        type = parser.type()
        return Parts(parser.operands(operands, [type] * len(operands)), [_condition(type)], attributes, [])

    return parse


def _select(parser: Parser, name: str) -> Parts:
    names = parser.operand_names()
    attributes = _flags(parser)
    *conditions, type = parser.types()
    condition = conditions[0] if conditions else I1
    return Parts(parser.operands(names, [condition, type, type]), [type], attributes, [])


_ARITH: Final = """
    addf addi andi bitcast ceildivsi ceildivui divf divsi divui extf extsi extui floordivsi fptosi fptoui index_cast
    index_castui maximumf maxnumf maxsi maxui minimumf minnumf minsi minui mulf muli negf ori remf remsi remui shli
    shrsi shrui sitofp subf subi truncf trunci uitofp xori
"""
_MATH: Final = """
    absf absi acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh ctlz ctpop cttz erf erfc exp exp2 expm1
    floor fma fpowi ipowi log log10 log1p log2 powf round roundeven rsqrt sin sinh sqrt tan tanh trunc
"""

ARITH_SYNTAX: Final[Mapping[str, Parse]] = {
    **{f"arith.{name}": _elementwise for name in _ARITH.split()},
    **{f"math.{name}": _elementwise for name in _MATH.split()},
    **{f"math.{name}": _test for name in ("isfinite", "isinf", "isnan", "isnormal")},
    **{f"arith.{name}": _extended for name in ("addui_extended", "mulsi_extended", "mului_extended")},
    "arith.cmpf": _comparison(CMPF),
    "arith.cmpi": _comparison(CMPI),
    "arith.select": _select,
}
