"""Trip counts of loops, if known beforehand, and removal of values that loops carry unchanged.

``stablehlo.while`` gets an attribute: ``trip_count``, a number, or ``trip_count_operand``, the position of an operand
that holds the number as an unsigned 32-bit integer when the loop begins.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from ...dialects.builder import Builder
from ...ir.attributes import EnumAttr, IntegerAttr
from ...ir.operation import Block, Operation, Value, tensor_of
from ...ir.types import I32, I64
from .legacy import constant_integer

_SWAPPED: Final[Mapping[str, str]] = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "NE": "NE"}


def count_trips(block: Block) -> None:
    """Annotates the loops of a block and its nested blocks, in place."""
    operations, block.operations = block.operations, []
    replaced: dict[Value, Value] = {}
    for operation in operations:
        for inner in operation.walk():
            inner.operands = [replaced.get(value, value) for value in inner.operands]
        if operation.name == "stablehlo.while":
            replaced.update(_loop(operation, block))
            continue
        for region in operation.regions:
            count_trips(region.block)
        block.append(operation)


def _loop(operation: Operation, into: Block) -> dict[Value, Value]:
    """Appends a loop without the values that it carries unchanged; returns replacements of its results."""
    replacements: dict[Value, Value] = {}
    arguments: dict[Value, Value] = {}
    kept: list[int] = []
    condition, body = (region.block for region in operation.regions)
    for index, (start, following) in enumerate(zip(operation.operands, body.terminator.operands, strict=True)):
        if following is body.arguments[index]:
            arguments.update({block.arguments[index]: start for block in (condition, body)})
            replacements[operation.results[index]] = start
        else:
            kept.append(index)
    for block in (condition, body):
        for inner in (nested for outer in block.operations for nested in outer.walk()):
            inner.operands = [arguments.get(value, value) for value in inner.operands]
        block.arguments = [block.arguments[index] for index in kept]
        for position, value in enumerate(block.arguments):
            value.index = position
    body.terminator.operands = [body.terminator.operands[index] for index in kept]
    starts = [operation.operands[index] for index in kept]
    attributes = {key: value for key, value in operation.attributes.items() if not key.startswith("trip_count")}
    counter = _counter(condition, body, starts)
    trips = None if counter is None else _constant_trips(counter)
    if trips is not None:
        attributes["trip_count"] = IntegerAttr(trips, I64)
    elif counter is not None and _counts_by_one(counter):
        count = _counted(Builder(into, operation.location), counter)
        attributes["trip_count_operand"] = IntegerAttr(len(starts), I64)
        starts.append(count)
        for block in (condition, body):
            block.arguments.append(Value(count.type, block, len(block.arguments)))
        body.terminator.operands = [*body.terminator.operands, body.arguments[-1]]
    for block in (condition, body):
        count_trips(block)
    types = [value.type for value in starts]
    made = Operation(operation.name, starts, types, attributes, operation.regions, location=operation.location)
    into.append(made)
    replacements.update(zip((operation.results[index] for index in kept), made.results, strict=False))
    return replacements


class _Counter(NamedTuple):
    """A loop's counter: its start, its limit, and its step."""

    start: Value
    direction: str
    limit: Value
    step: int


def _counter(condition: Block, body: Block, starts: list[Value]) -> _Counter | None:
    test = condition.terminator.operands[0].owner
    if not isinstance(test, Operation) or test.name != "stablehlo.compare":
        return None
    direction = test.attributes["comparison_direction"]
    assert isinstance(direction, EnumAttr)
    for (counter, limit), case in (
        (test.operands, direction.case),
        (test.operands[::-1], _SWAPPED.get(direction.case)),
    ):
        if counter.owner is not condition or case not in _SWAPPED or not tensor_of(counter).scalar.is_integer:
            continue
        if limit.owner is condition or (constant_integer(limit) is None and limit.owner in condition.operations):
            continue
        step = _step(body.terminator.operands[counter.index], body.arguments[counter.index])
        if step is not None:
            return _Counter(starts[counter.index], str(case), limit, step)
    return None


def _step(value: Value, argument: Value) -> int | None:
    """Returns the constant that is added to an argument; None if the value is no such sum."""
    owner = value.owner
    if not isinstance(owner, Operation) or owner.name not in ("stablehlo.add", "stablehlo.subtract"):
        return None
    left, right = owner.operands
    if owner.name == "stablehlo.add" and right is argument:
        left, right = right, left
    number = constant_integer(right)
    if left is not argument or number is None:
        return None
    return number if owner.name == "stablehlo.add" else -number


def _constant_trips(counter: _Counter) -> int | None:
    """Returns the trip count of a loop between constants; None if the counter would wrap around."""
    start, limit = constant_integer(counter.start), constant_integer(counter.limit)
    if start is None or limit is None:
        return None
    step, direction = counter.step, counter.direction
    if direction in ("GT", "GE"):
        start, limit, step = -start, -limit, -step
    distance = limit - start + (direction in ("LE", "GE"))
    if direction == "NE":
        trips = distance // step if step and distance % step == 0 else -1
    elif distance <= 0:
        trips = 0
    else:
        trips = math.ceil(distance / step) if step > 0 else -1
    type = tensor_of(counter.start).scalar
    lowest = -(1 << type.bits - 1) if type.kind == "int" else 0
    last = (constant_integer(counter.start) or 0) + trips * counter.step
    return trips if 0 <= trips < 1 << 32 and lowest <= last < lowest + (1 << type.bits) else None


def _counts_by_one(counter: _Counter) -> bool:
    """Whether the trip count is the distance and fits a word, so that no counter wraps around before its limit."""
    is_narrow = tensor_of(counter.start).scalar.bits <= 32
    return is_narrow and (counter.direction, counter.step) in (("LT", 1), ("GT", -1))


def _counted(builder: Builder, counter: _Counter) -> Value:
    """Returns the distance from the start to the limit as an unsigned 32-bit integer; zero if the loop does not run.

    A constant limit inside the condition is duplicated.
    """
    number = constant_integer(counter.limit)
    limit = counter.limit if number is None else builder.like(counter.start, number)
    low, high = (counter.start, limit) if counter.direction == "LT" else (limit, counter.start)
    runs = builder.compare("LT", low, high)
    distance = builder.elementwise("subtract", builder.convert(high, I32), builder.convert(low, I32))
    return builder.select(runs, distance, 0)
