"""Branches whose outcome is known from their predecessor, as in loops over the single device, which run once."""

from __future__ import annotations

from .counters import find_counters
from .folding import folded
from .ir import Block, Constant, Edge, Function, Instruction, Value, Variable


def thread(function: Function) -> bool:
    """Redirects branches past blocks that only test a variable of known value; returns whether anything changed."""
    changed = _run_once(function)
    # A loop with a changing variable keeps its test at its head.
    others = {
        variable
        for instruction in function.instructions()
        for variable in instruction.results
        if not (instruction.operation == "assign" and isinstance(instruction.operands[0], Constant))
    }
    for index, block in enumerate(function.blocks):
        if block.terminator.operation != "br" or block.edges[0].copies:
            continue
        known = {variable: value for variable, value in _constants(block).items() if variable not in others}
        header = function.blocks[block.edges[0].target]
        if block.edges[0].target == index or header.terminator.operation != "cond_br" or not known:
            continue
        test = _tested(function, header, known)
        if test is not None:
            chosen = header.edges[0 if test else 1]
            block.edges = [Edge(chosen.target, list(chosen.copies))]
            changed = True
    return changed


def _run_once(function: Function) -> bool:
    """Replaces the step of a counter that starts one below its bound by the bound; returns whether anything changed."""
    changed = False
    for variable, bound in find_counters(function).items():
        defining = [definition for definition in function.instructions() if variable in definition.results]
        starts = [definition.operands[0] for definition in defining if definition.operation == "assign"]
        steps = [definition for definition in defining if definition.operation.startswith("add.")]
        if not isinstance(bound, Constant) or len(starts) + len(steps) != variable.definitions:
            continue
        if all(isinstance(start, Constant) and start.number + 1 == bound.number for start in starts):
            for definition in steps:
                definition.operation, definition.operands = "assign", (bound,)
                changed = True
    return changed


def _constants(block: Block) -> dict[Variable, Value]:
    """Returns the variables that a block sets to constants."""
    known: dict[Variable, Value] = {}
    for instruction in block.instructions:
        for variable in instruction.results:
            known.pop(variable, None)
        if instruction.operation == "assign" and isinstance(instruction.operands[0], Constant):
            known[instruction.results[0]] = instruction.operands[0]
    return known


def _tested(function: Function, header: Block, known: dict[Variable, Value]) -> bool | None:
    """Returns the outcome of a block that is only a test; ``None`` if it does more or the outcome is unknown."""
    inside = {variable for instruction in header.instructions for variable in instruction.results}
    for block in function.blocks:
        if block is not header and any(
            value in inside for instruction in block.instructions for value in instruction.values()
        ):
            return None
        if any(source in inside for edge in block.edges for _, source in edge.copies):
            return None
    values = dict(known)
    for instruction in header.instructions[:-1]:
        if len(instruction.results) != 1 or not instruction.operation.startswith("cmp."):
            return None
        copy = Instruction(instruction.operation, instruction.operands, instruction.results)
        copy.substitute(values)
        constant = folded(copy)
        if not isinstance(constant, Constant):
            return None
        values[instruction.results[0]] = constant
    test = header.terminator.operands[0]
    answer = values.get(test) if isinstance(test, Variable) else None
    return bool(answer.number) if isinstance(answer, Constant) else None
