"""``cf``: blocks that branch to each other, as one loop over the number of the next block.

The entry block runs ahead of the loop. The loop carries the number, the arguments of all other blocks, values that one
block defines and another uses, and the results; its body is a case for each block. Loops among the blocks need no
analysis of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ..dialects.builder import Builder
from ..dialects.rules.requirements import OperationError
from ..ir.attributes import Attribute
from ..ir.operation import Block, Operation, Value
from ..ir.types import I1, I32, TensorType, Type
from .conversion import Rule, Site, tensor_type

Values = Sequence[Value]
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
        blocks: the first is the entry.
        arguments: of the entry.
        results: types of what is returned.
        builder: appends the loop.
        inline: appends a block's operations, but for the last; returns that one's operands.
        values: replacements of values; grows.
    """
    entry, *others = blocks
    numbers = {block: number for number, block in enumerate(others)}
    shared = _shared(others)
    slots = [value for block in others for value in block.arguments] + shared
    types = [_slot_type(value) for value in slots]
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
            following = _branch(inner, last, taken, numbers, kept)
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

            def one(each: Builder, _: Values, block: Block = block) -> Values:
                at = dict(zip(slots, state[1:], strict=False))
                values.update(at)
                return run(block, [at[argument] for argument in block.arguments], state[1:], each)

            regions.append(inner.region([], one))
        return inner.append("case", [state[0]], carried_types, {}, regions).results

    return list(builder.repeat(carried, goes_on, step)[1 + len(slots) :])


def _branch(
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
    """As ``_branch``; the default is the first successor."""
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
    """Sets a block's arguments, under a condition if there is one: a block that is not next keeps its own."""
    if [value.type for value in passed] != [tensor_type(value.type) for value in target.arguments]:
        raise OperationError("a block's arguments of the types that it takes")
    for argument, value in zip(target.arguments, passed, strict=True):
        kept[argument] = value if condition is None else builder.select(condition, value, kept[argument])


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


def _slot_type(value: Value) -> TensorType:
    return _result_type(tensor_type(value.type))


def _result_type(type: Type) -> TensorType:
    converted = tensor_type(type)
    if not isinstance(converted, TensorType) or not all(isinstance(length, int) for length in converted.shape):
        raise OperationError(f"numbers and tensors of known shape between blocks, got {converted}")
    return converted
