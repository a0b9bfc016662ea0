"""Reading of operations of ``scf`` and ``cf``, except for branches between two blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ...ir.attributes import Attribute, DenseArray
from ...ir.operation import Operation, Region, Value
from ...ir.parser import Parser, Parts
from ...ir.types import I1, I32, I64, INDEX, Type
from .hlo_bodies import assignments

Parse = Callable[[Parser, str], Parts]

_ENDS: Final = frozenset({"scf.yield", "scf.condition", "cf.br", "cf.cond_br", "cf.switch"})


def _results(parser: Parser) -> list[Type]:
    if not parser.accept("->"):
        return []
    return parser.types_in_parentheses() if parser.at("(") else parser.types()


def parse_yield(parser: Parser, name: str) -> Parts:
    """Reads operands and their types, or neither."""
    names = parser.operand_names()
    attributes = parser.attribute_dictionary()
    types = parser.types() if parser.accept(":") else []
    return Parts(parser.operands(names, types), [], attributes, [])


def _condition(parser: Parser, name: str) -> Parts:
    parser.expect("(")
    condition = parser.operand_name()
    parser.expect(")")
    names = parser.operand_names()
    attributes = parser.attribute_dictionary()
    types = parser.types() if parser.accept(":") else []
    return Parts(parser.operands([condition, *names], [I1, *types]), [], attributes, [])


def _ended(region: Region) -> Region:
    """Appends the implicit empty yield to a body."""
    for block in region.blocks:
        if not block.operations or block.terminator.name not in _ENDS:
            block.append(Operation("scf.yield"))
    return region


def _if(parser: Parser, name: str) -> Parts:
    condition = parser.operand_name()
    results = _results(parser)
    regions = [_ended(parser.region())]
    if parser.accept_word("else"):
        regions.append(_ended(parser.region()))
    attributes = parser.attribute_dictionary()
    return Parts(parser.operands([condition], [I1]), results, attributes, regions)


def _for(parser: Parser, name: str) -> Parts:
    parser.accept_word("unsigned")
    counter = parser.operand_name()
    parser.expect("=")
    bounds = [parser.operand_name()]
    parser.expect_word("to")
    bounds.append(parser.operand_name())
    parser.expect_word("step")
    bounds.append(parser.operand_name())
    names, starts = assignments(parser) if parser.accept_word("iter_args") else ([], [])
    results = _results(parser)
    type: Type = parser.type() if parser.accept(":") else INDEX
    if len(results) != len(names):
        parser.error(f"{len(names)} values are carried, and {len(results)} types are given")
    arguments = [(counter[0], type, counter[1])]
    arguments += [(argument, carried, offset) for (argument, offset), carried in zip(names, results, strict=True)]
    operands: list[Value] = parser.operands([*bounds, *starts], [type, type, type, *results])
    region = _ended(parser.region(arguments))
    return Parts(operands, results, parser.attribute_dictionary(), [region])


def _while(parser: Parser, name: str) -> Parts:
    names, starts = assignments(parser) if parser.at("(") else ([], [])
    parser.expect(":")
    type = parser.function_type()
    if len(names) != len(type.inputs):
        parser.error(f"{len(names)} values are carried, and {len(type.inputs)} types are given")
    operands = parser.operands(starts, type.inputs)
    arguments = [(argument, carried, offset) for (argument, offset), carried in zip(names, type.inputs, strict=True)]
    before = parser.region(arguments)
    parser.expect_word("do")
    after = _ended(parser.region())
    return Parts(operands, type.results, parser.keyword_attributes(), [before, after])


def _index_switch(parser: Parser, name: str) -> Parts:
    index = parser.operand_name()
    attributes: dict[str, Attribute] = parser.attribute_dictionary()
    results = _results(parser)
    cases: list[int] = []
    regions: list[Region] = []
    while parser.accept_word("case"):
        cases.append(parser.integer())
        regions.append(_ended(parser.region()))
    parser.expect_word("default")
    default = _ended(parser.region())
    attributes["cases"] = DenseArray(I64, tuple(cases))
    return Parts(parser.operands([index], [INDEX]), results, attributes, [default, *regions])


def _execute_region(parser: Parser, name: str) -> Parts:
    results = _results(parser)
    region = parser.region()
    return Parts([], results, parser.attribute_dictionary(), [region])


def _assert(parser: Parser, name: str) -> Parts:
    names = [parser.operand_name()]
    parser.expect(",")
    attributes: dict[str, Attribute] = {"msg": parser.string()}
    return Parts(parser.operands(names, [I1]), [], attributes | parser.attribute_dictionary(), [])


def _switch(parser: Parser, name: str) -> Parts:
    operands = [parser.typed_operand()]
    parser.expect(",")
    parser.expect("[")
    values: list[int] = []
    counts: list[int] = []
    successors = []
    for _ in parser.items("]"):
        if not parser.accept_word("default"):
            values.append(parser.integer())
        parser.expect(":")
        successors.append(parser.successor())
        passed: list[Value] = []
        if parser.accept("("):
            names = parser.operand_names()
            parser.expect(":")
            passed = parser.operands(names, parser.types())
            parser.expect(")")
        operands += passed
        counts.append(len(passed))
    attributes: dict[str, Attribute] = {
        **parser.attribute_dictionary(),
        "case_operand_segments": DenseArray(I32, tuple(counts[1:])),
        "case_values": DenseArray(I32, tuple(values)),
    }
    parser.branch_to(successors)
    return Parts(operands, [], attributes, [])


SCF_SYNTAX: Final[Mapping[str, Parse]] = {
    "cf.assert": _assert,
    "cf.switch": _switch,
    "scf.condition": _condition,
    "scf.execute_region": _execute_region,
    "scf.for": _for,
    "scf.if": _if,
    "scf.index_switch": _index_switch,
    "scf.while": _while,
    "scf.yield": parse_yield,
}
