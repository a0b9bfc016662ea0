"""Variables that a loop increments."""

from __future__ import annotations

from typing import Final

from .ir import Constant, Function, Instruction, Value, Variable

_LESS: Final = ("cmp.lt.i32.s", "cmp.lt.i32.u", "cmp.lt.i64.s", "cmp.lt.i64.u")


def find_counters(function: Function) -> dict[Variable, Value]:
    """Finds variables that start at a constant and are incremented only while they are less than a bound.

    Their increments never overflow, and they are never negative.
    """
    definitions: dict[Variable, list[tuple[int, object]]] = {}
    for index, block in enumerate(function.blocks):
        for instruction in block.instructions:
            for variable in instruction.results:
                definitions.setdefault(variable, []).append((index, instruction))
        for edge in block.edges:
            for target, source in edge.copies:
                definitions.setdefault(target, []).append((index, source))
    counters: dict[Variable, Value] = {}
    for variable, places in definitions.items():
        if variable.kind not in "iI" or variable in function.arguments:
            continue
        steps = [at for at, how in places if _is_step(variable, how)]
        starts = [how for _, how in places if _is_start(how)]
        if len(steps) != 1 or len(steps) + len(starts) != len(places):
            continue
        bound = _guard_of(function, variable, steps[0])
        if bound is not None:
            counters[variable] = bound
    return counters


def _is_step(variable: Variable, how: object) -> bool:
    if not isinstance(how, Instruction) or not how.operation.startswith("add."):
        return False
    first, second = how.operands
    return first is variable and isinstance(second, Constant) and second.number == 1


def _is_start(how: object) -> bool:
    if isinstance(how, Instruction) and how.operation == "assign":
        how = how.operands[0]
    return isinstance(how, Constant) and how.number >= 0


def _guard_of(function: Function, variable: Variable, at: int) -> Value | None:
    """Returns the upper bound of a variable that holds on every path to a block, or ``None``."""
    for block in function.blocks:
        if block.terminator.operation != "cond_br":
            continue
        test = block.terminator.operands[0]
        for instruction in block.instructions:
            if (
                instruction.operation in _LESS
                and instruction.results[0] is test
                and instruction.operands[0] is variable
            ):
                bound = instruction.operands[1]
                if not isinstance(bound, tuple) and at not in function.reached(skipped=block.edges[0]):
                    return bound
    return None
