"""``scf``: branches and loops with results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..dialects.builder import Builder
from ..dialects.rules.requirements import OperationError
from ..ir.operation import Block, Region, Value
from ..ir.types import I1, I32, TensorType
from .conversion import Rule, Site

Values = Sequence[Value]


def _if(site: Site) -> Values:
    regions = site.operation.regions
    if not 1 <= len(regions) <= 2 or (len(regions) == 1 and site.types):
        raise OperationError("a branch for each case where there are results")
    branches = [_branch(site, region) for region in regions]
    if len(branches) == 1:
        branches.append(site.builder.region([], lambda inner, _: []))
    return site.builder.append("if", site.operands, site.types, {}, branches).results


def _branch(site: Site, region: Region) -> Region:
    """Converts a body without arguments; one without blocks has no results."""

    def run(inner: Builder, _: Values) -> Values:
        return site.conversion.body(region.blocks, [], inner) if region.blocks else []

    return site.builder.region([], run)


def _for(site: Site) -> Values:
    """Converts a loop; its counter is carried."""
    low, high, step, *starts = site.operands
    (body,) = site.operation.regions[0].blocks or [Block()]
    if len(body.arguments) != 1 + len(starts) or len({value.type for value in (low, high, step)}) != 1:
        raise OperationError(f"bounds and a step of one type, and a body that takes {1 + len(starts)} values")
    carried = [low, *starts]

    def goes_on(inner: Builder, values: Values) -> Values:
        return [inner.compare("LT", values[0], high)]

    def repeats(inner: Builder, values: Values) -> Values:
        yielded = site.conversion.inline(body, values, inner)
        return [inner.elementwise("add", values[0], step), *yielded]

    return site.builder.repeat(carried, goes_on, repeats)[1:]


def _while(site: Site) -> Values:
    """Converts a loop: the part before the condition runs once ahead of it, and then at the end of each round."""
    before, after = (region.block for region in site.operation.regions)
    if len(before.arguments) != len(site.operands) or len(after.arguments) != len(site.types):
        raise OperationError(f"regions that take {len(site.operands)} and {len(site.types)} values")
    carried = site.conversion.inline(before, site.operands, site.builder)
    if not carried or carried[0].type is not TensorType((), I1):
        raise OperationError("an scf.condition of i1")

    def goes_on(inner: Builder, values: Values) -> Values:
        return [values[0]]

    def repeats(inner: Builder, values: Values) -> Values:
        yielded = site.conversion.inline(after, values[1:], inner)
        return site.conversion.inline(before, yielded, inner)

    return site.builder.repeat(carried, goes_on, repeats)[1:]


def _index_switch(site: Site) -> Values:
    """Converts a switch; the first region is the default."""
    (index,) = site.operands
    cases = site.operation.integers("cases")
    if len(site.operation.regions) != len(cases) + 1:
        raise OperationError(f"a region for each of {len(cases)} cases, and a default")
    builder = site.builder
    chosen = builder.constant(len(cases), TensorType((), I32))
    for number, case in reversed(list(enumerate(cases))):
        chosen = builder.select(builder.compare("EQ", index, case), number, chosen)
    default, *others = site.operation.regions
    regions = [_branch(site, region) for region in (*others, default)]
    return builder.append("case", [chosen], site.types, {}, regions).results


def _execute_region(site: Site) -> Values:
    return site.conversion.body(site.operation.regions[0].blocks, [], site.builder)


SCF: Final[Mapping[str, Rule]] = {
    "execute_region": Rule(0, _execute_region, 1),
    "for": Rule(None, _for, 1),
    "if": Rule(1, _if, 2),
    "index_switch": Rule(1, _index_switch),
    "while": Rule(None, _while, 2),
}
"""Conversions of ``scf`` operations. Keys are operation names without ``scf.``."""
