"""``scf``, ``cf`` and ``check``: branches, loops, and expectations about values.

Blocks that branch to each other (``cf``) become one loop over the next block's number. The entry block runs before the
loop. The loop carries this number, the arguments of all other blocks, the values that one block defines and another
uses, and the results; its body is a case for each block. Loops among the blocks need no analysis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ..dialects.builder import Builder, Values
from ..dialects.rules.requirements import OperationError
from ..ir.attributes import Attribute, DenseElements
from ..ir.operation import Block, Operation, Region, Value
from ..ir.types import I1, I32, TensorType, Type
from .conversion import Handler, Rule, Site, same_types, tensor_type

Inline = Callable[[Block, Sequence[Value], Builder], list[Value]]

_DONE: Final = -1
_STATE: Final = TensorType((), I32)


def _assert(site: Site) -> Values:
    attributes: dict[str, Attribute] = {"call_target_name": "check.expect_all_true", "has_side_effect": True}
    site.builder.append("custom_call", site.operands, [], attributes)
    return []


CF: Final[Mapping[str, Rule]] = {"assert": Rule(1, _assert)}
"""Conversions of ``cf`` operations other than branches, which end blocks. Keys are names without ``cf.``."""


def structured(
    blocks: Sequence[Block],
    arguments: Values,
    results: Sequence[Type],
    builder: Builder,
    inline: Inline,
    values: dict[Value, Value],
) -> list[Value]:
    """Appends blocks that branch to each other; returns the operands of their return.

    Args:
        blocks: the first is the entry; all may run, and values are computed before their uses.
        arguments: the arguments of the entry block.
        results: the types of the returned values.
        builder: the builder that appends the loop.
        inline: a function that appends a block's operations except the last, and returns the last operation's operands.
        values: the replacements of values; new ones are added.
    """
    entry, *others = blocks
    numbers = {block: number for number, block in enumerate(others)}
    shared = _shared(others)
    slots = [value for block in others for value in block.arguments] + shared
    types = [_result_type(value.type) for value in slots]
    start = [builder.constant(0, type) for type in [*types, *map(_result_type, results)]]

    def run(block: Block, passed: Values, state: Values, inner: Builder) -> list[Value]:
        """Runs a block; returns the next block's number, the slots and the results after it."""
        taken = inline(block, passed, inner)
        kept = dict(zip(slots, state, strict=False))
        kept |= {
            slot: values[slot] for slot in shared if isinstance(slot.owner, Operation) and slot.owner.parent is block
        }
        results_now = list(state[len(slots) :])
        last = block.terminator
        if not last.successors:
            results_now = taken
            following = inner.constant(_DONE, _STATE)
        else:
            following = _next_block(inner, last, taken, numbers, kept)
        return [following, *(kept[slot] for slot in slots), *results_now]

    carried = run(entry, arguments, start, builder)
    if not others:
        return carried[1:]
    carried_types = [value.type for value in carried]

    def goes_on(inner: Builder, state: Values) -> Values:
        return [inner.compare("GE", state[0], 0)]

    def step(inner: Builder, state: Values) -> Values:
        regions = []
        for block in others:

            def run_block(arm: Builder, _: Values, block: Block = block) -> Values:
                at = dict(zip(slots, state[1:], strict=False))
                values.update(at)
                return run(block, [at[argument] for argument in block.arguments], state[1:], arm)

            regions.append(inner.region([], run_block))
        return inner.append("case", [state[0]], carried_types, {}, regions).results

    return list(builder.repeat(carried, goes_on, step)[1 + len(slots) :])


def _next_block(
    builder: Builder, last: Operation, taken: Values, numbers: Mapping[Block, int], kept: dict[Value, Value]
) -> Value:
    """Returns the number of the block that a terminator chooses; sets that block's arguments."""
    if any(target not in numbers for target in last.successors):
        raise OperationError("branches to other blocks than the entry")
    segments = last.integers("operandSegmentSizes", last.integers("operand_segments"))
    if last.name == "cf.br":
        (target,) = last.successors
        _give(builder, target, taken, kept, None)
        return builder.constant(numbers[target], _STATE)
    if last.name == "cf.switch":
        return _switch(builder, last, taken, numbers, kept)
    if last.name != "cf.cond_br" or len(last.successors) != 2 or len(segments) != 3:
        raise OperationError("cf.br, cf.cond_br, cf.switch or a return at a block's end")
    condition, *rest = taken
    yes, no = last.successors
    passed = rest[: segments[1]], rest[segments[1] :]
    _give(builder, no, passed[1], kept, builder.elementwise("not", condition))
    _give(builder, yes, passed[0], kept, condition)
    return builder.select(condition, builder.constant(numbers[yes], _STATE), numbers[no])


def _switch(
    builder: Builder, last: Operation, taken: Values, numbers: Mapping[Block, int], kept: dict[Value, Value]
) -> Value:
    """Does the same as ``_next_block`` for a switch; its first successor is the default."""
    flag, *rest = taken
    cases = last.integers("case_values")
    segments = last.integers("case_operand_segments", (0,) * len(cases))
    default, *targets = last.successors
    if len(targets) != len(cases) or len(segments) != len(cases) or sum(segments) > len(rest):
        raise OperationError(f"a block for each of {len(cases)} cases, and a default")
    position = len(rest) - sum(segments)
    matches = [builder.compare("EQ", flag, case) for case in cases]
    none = builder.constant(True, TensorType((), I1))
    for match in matches:
        none = builder.elementwise("and", none, builder.elementwise("not", match))
    _give(builder, default, rest[:position], kept, none)
    chosen = builder.constant(numbers[default], _STATE)
    parts = []
    for count in segments:
        parts.append(rest[position : position + count])
        position += count
    for match, target, part in reversed(list(zip(matches, targets, parts, strict=True))):
        _give(builder, target, part, kept, match)
        chosen = builder.select(match, builder.constant(numbers[target], _STATE), chosen)
    return chosen


def _give(builder: Builder, target: Block, passed: Values, kept: dict[Value, Value], condition: Value | None) -> None:
    """Sets a block's arguments, if the optional condition holds: a block that is not next keeps its arguments."""
    if [value.type for value in passed] != [tensor_type(value.type) for value in target.arguments]:
        raise OperationError("a block's arguments of the types that it takes")
    for argument, value in zip(target.arguments, passed, strict=True):
        kept[argument] = value if condition is None else builder.select(condition, value, kept[argument])


def reachable(entry: Block) -> list[Block]:
    """Returns the blocks that may run, in textual order, without unreachable blocks."""
    visited = {entry}
    pending = [entry]
    while pending:
        block = pending.pop()
        after = set(block.terminator.successors) - visited if block.operations else set()
        visited |= after
        pending.extend(after)
    return [block for block in (entry.parent.blocks if entry.parent is not None else [entry]) if block in visited]


def use_before_definition(blocks: Sequence[Block]) -> tuple[Operation, Value] | None:
    """Returns a use of a value that some path to it does not compute, or None; all blocks must be reachable."""
    numbers = {block: number for number, block in enumerate(blocks)}
    before: list[list[int]] = [[] for _ in blocks]
    for block, number in numbers.items():
        for after in block.terminator.successors if block.operations else ():
            before[numbers[after]].append(number)
    # The blocks on every path to a block, as bits: initially all, then those on every path to its predecessors.
    everything = (1 << len(blocks)) - 1
    on_every_path = [1, *[everything] * (len(blocks) - 1)]
    is_changed = True
    while is_changed:
        is_changed = False
        for number in range(1, len(blocks)):
            bits = everything
            for predecessor in before[number]:
                bits &= on_every_path[predecessor]
            bits |= 1 << number
            is_changed |= bits != on_every_path[number]
            on_every_path[number] = bits
    region = blocks[0].parent
    for block, number in numbers.items():
        computed = set(block.arguments)
        for operation in block.operations:
            for value in (value for inner in operation.walk() for value in inner.operands):
                home = value.owner if isinstance(value.owner, Block) else value.owner.parent
                if home is None or home.parent is not region:
                    continue
                is_before = home in numbers and on_every_path[number] >> numbers[home] & 1
                if value not in computed if home is block else not is_before:
                    return operation, value
            computed.update(operation.results)
    return None


def _shared(blocks: Sequence[Block]) -> list[Value]:
    """Returns values that one of these blocks defines and another uses."""
    home = {value: block for block in blocks for operation in block.operations for value in operation.results}
    shared: dict[Value, None] = {}
    for block in blocks:
        for operation in block.operations:
            for inner in operation.walk():
                for value in inner.operands:
                    if value in home and home[value] is not block:
                        shared[value] = None
    return list(shared)


def _result_type(type: Type) -> TensorType:
    converted = tensor_type(type)
    if not isinstance(converted, TensorType) or not all(isinstance(length, int) for length in converted.shape):
        raise OperationError(f"numbers and tensors of known shape between blocks, got {converted}")
    return converted


def _if(site: Site) -> Values:
    regions = site.operation.regions
    if not 1 <= len(regions) <= 2 or (len(regions) == 1 and site.types):
        raise OperationError("a branch for each case where there are results")
    branches = [_branch(site, region) for region in regions]
    if len(branches) == 1:
        branches.append(site.builder.region([], lambda inner, _: []))
    return site.builder.append("if", site.operands, site.types, {}, branches).results


def _branch(site: Site, region: Region) -> Region:
    """Converts a body without arguments; a body without blocks has no results."""

    def run(inner: Builder, _: Values) -> Values:
        return site.conversion.body(region.blocks, [], inner) if region.blocks else []

    return site.builder.region([], run)


def _for(site: Site) -> Values:
    """Converts a loop; the carried values include its counter."""
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
    """Converts a loop: the part before the condition runs once before it, and then at the end of each iteration."""
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


_KEPT: Final = ("atol", "rtol", "tolerance", "max_ulp_difference", "min_ulp_difference")


def _expect(name: str) -> Handler:
    def handler(site: Site) -> Values:
        operands = list(site.operands)
        value = site.operation.attributes.get("value")
        if isinstance(value, DenseElements):
            operands.append(site.builder.append("constant", (), [value.type], {"value": value}).result)
        same_types(site)
        if len(operands) != (1 if name == "expect_all_true" else 2) or operands[-1].type is not operands[0].type:
            raise OperationError("a value and its expected value, of the same type")
        attributes: dict[str, Attribute] = {"call_target_name": f"check.{name}", "has_side_effect": True}
        attributes |= {key: site.operation.attributes[key] for key in _KEPT if key in site.operation.attributes}
        site.builder.append("custom_call", operands, [], attributes)
        return []

    return handler


CHECK: Final[Mapping[str, Rule]] = {
    "expect_all_true": Rule(1, _expect("expect_all_true")),
    "expect_almost_eq": Rule(2, _expect("expect_almost_eq")),
    "expect_almost_eq_const": Rule(1, _expect("expect_almost_eq")),
    "expect_close": Rule(2, _expect("expect_close")),
    "expect_eq": Rule(2, _expect("expect_eq")),
    "expect_eq_const": Rule(1, _expect("expect_eq")),
}
"""Conversions of ``check`` operations. Keys are operation names without ``check.``."""
