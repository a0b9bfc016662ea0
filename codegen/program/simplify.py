"""Simplifies a program: folds constants, removes dead code, joins chains of blocks.

Also removes objects that initializers create and no function uses: executables and command buffers of removed exports.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from .branches import thread
from .folding import called, folded, is_pure
from .ir import Block, Constant, Edge, Function, Instruction, Operand, Program, Rodata, Value, Variable

_RECORDING: Final = "hal.command_buffer."


def simplify(program: Program, formats: Sequence[str]) -> None:
    """Simplifies all functions, then removes uncalled functions."""
    program.formats = _formats(program)
    for function in program.functions.values():
        simplify_function(program, function, formats)
    program.functions = reachable(program)


def reachable(program: Program) -> dict[int, Function]:
    """Returns exports, initializers, and the functions that they call."""
    reached = program.reached({*program.initializers, *(function.ordinal for function in program.exports.values())})
    return {ordinal: function for ordinal, function in program.functions.items() if ordinal in reached}


def simplify_function(program: Program, function: Function, formats: Sequence[str] = ()) -> None:
    """Simplifies a function until nothing changes."""
    while True:
        changed = _fold(program, function, formats)
        changed |= _fold_copies(function)
        changed |= _fold_within(function)
        changed |= _fold_branches(function)
        changed |= thread(function)
        changed |= _remove_unreachable(function)
        changed |= _remove_dead(function)
        changed |= _merge(function)
        if not changed:
            count(function)
            return


def occurrences(function: Function) -> Iterator[tuple[Variable, bool]]:
    """Yields the definitions and uses of all variables, each with whether it is a definition."""
    yield from ((variable, True) for variable in function.arguments)
    for block in function.blocks:
        for instruction in block.instructions:
            yield from ((variable, True) for variable in instruction.results)
            yield from ((value, False) for value in instruction.values() if isinstance(value, Variable))
        for edge in block.edges:
            for target, source in edge.copies:
                yield target, True
                if isinstance(source, Variable):
                    yield source, False


def count(function: Function) -> None:
    """Counts the definitions and uses of all variables."""
    listed = list(occurrences(function))
    for variable, _ in listed:
        variable.definitions = variable.uses = 0
    for variable, is_definition in listed:
        variable.definitions += is_definition
        variable.uses += not is_definition


def substitute(function: Function, replaced: dict[Variable, Value]) -> None:
    """Replaces variables by values at all their uses."""
    for variable, value in list(replaced.items()):
        while isinstance(value, Variable) and value in replaced:
            value = replaced[value]
        replaced[variable] = value
    for block in function.blocks:
        for instruction in block.instructions:
            instruction.substitute(replaced)
        for edge in block.edges:
            edge.copies = [
                (target, replaced.get(source, source) if isinstance(source, Variable) else source)
                for target, source in edge.copies
            ]


def _formats(program: Program) -> tuple[str, ...]:
    """Returns the formats that the program queries devices for."""
    formats: dict[str, None] = {}
    for function in program.functions.values():
        texts: dict[Variable, Rodata] = {}
        for instruction in function.instructions():
            if instruction.operation == "assign" and isinstance(instruction.operands[0], Rodata):
                texts[instruction.results[0]] = instruction.operands[0]
            if instruction.callee == "hal.executable.create":
                value: Operand | None = instruction.operands[-3]
                value = texts.get(value) if isinstance(value, Variable) else value
                if isinstance(value, Rodata):
                    formats[program.text(value)] = None
    return tuple(formats)


def _fold(program: Program, function: Function, formats: Sequence[str]) -> bool:
    """Replaces variables by their constants, or by the variable that they copy."""
    count(function)
    replaced: dict[Variable, Value] = {}
    for block in function.blocks:
        kept: list[Instruction] = []
        for instruction in block.instructions:
            known: tuple[Value, ...] | None = None
            if instruction.operation == "call":
                known = called(program, instruction, formats)
            elif len(instruction.results) == 1:
                value = folded(instruction)
                known = None if value is None else (value,)
                if known is None and instruction.operation == "assign":
                    source = instruction.operands[0]
                    if isinstance(source, Variable) and source.definitions == 1:
                        known = (source,)
            if known is None:
                kept.append(instruction)
                continue
            again: list[Instruction] = []
            for variable, replacement in zip(instruction.results, known, strict=True):
                if variable.definitions == 1:
                    replaced[variable] = replacement
                else:
                    again.append(Instruction("assign", (replacement,), (variable,), location=instruction.location))
            if instruction.callee == "hal.fence.await":
                instruction.results = ()
                kept.append(instruction)
            kept += again
        block.instructions = _without_passing(kept)
        for edge in block.edges:
            copies = []
            for target, source in edge.copies:
                single = not isinstance(source, Variable) or source.definitions == 1
                if target.definitions == 1 and single and source is not target:
                    replaced[target] = source
                elif source is not target:
                    copies.append((target, source))
            edge.copies = copies
    if replaced:
        substitute(function, replaced)
    return bool(replaced)


def _without_passing(instructions: list[Instruction]) -> list[Instruction]:
    """Merges instructions with a following ``assign`` that only copies their results."""
    kept: list[Instruction] = []
    for instruction in instructions:
        last = kept[-1] if kept else None
        if (
            instruction.operation == "assign"
            and last is not None
            and len(last.results) == 1
            and last.operation == "call"
        ):
            passed = last.results[0]
            if instruction.operands[0] is passed and passed.definitions == passed.uses == 1:
                last.results = instruction.results
                continue
        kept.append(instruction)
    return kept


def _fold_within(function: Function) -> bool:
    """Replaces reads of a variable by the constant that its block assigned before."""
    changed = False
    for block in function.blocks:
        known: dict[Variable, Value] = {}
        for instruction in block.instructions:
            used = {
                value: known[value] for value in instruction.values() if isinstance(value, Variable) and value in known
            }
            if used:
                instruction.substitute(used)
                changed = True
            for variable in instruction.results:
                known.pop(variable, None)
            if instruction.operation == "assign" and isinstance(instruction.operands[0], Constant):
                known[instruction.results[0]] = instruction.operands[0]
        for edge in block.edges:
            for at, (target, source) in enumerate(edge.copies):
                if isinstance(source, Variable) and source in known:
                    edge.copies[at] = (target, known[source])
                    changed = True
    return changed


def _fold_copies(function: Function) -> bool:
    """Replaces a copy by its source, if all uses follow in its block before either changes.

    ``_fold`` handles variables that never change.
    """
    count(function)
    changed = False
    for block in function.blocks:
        for at, instruction in enumerate(block.instructions):
            if instruction.operation != "assign" or not instruction.results[0].uses:
                continue
            source, copy = instruction.operands[0], instruction.results[0]
            assert not isinstance(source, tuple)
            uses = 0
            behind: list[Instruction] = []
            for later in block.instructions[at + 1 :]:
                behind.append(later)
                uses += sum(value is copy for value in later.values())
                if copy in later.results or source in later.results:
                    break
            if uses == copy.uses:
                for later in behind:
                    later.substitute({copy: source})
                copy.uses = 0
                changed = True
    return changed


def _fold_branches(function: Function) -> bool:
    changed = False
    for block in function.blocks:
        terminator = block.terminator
        if terminator.operation == "fail":
            changed |= _settle_fail(function, block)
            continue
        if terminator.operation not in ("cond_br", "br_table"):
            continue
        test = terminator.operands[0]
        edge: Edge | None = None
        if isinstance(test, Constant):
            number = int(test.number)
            if terminator.operation == "cond_br":
                edge = block.edges[0 if number else 1]
            else:
                edge = block.edges[number + 1 if 0 <= number < len(block.edges) - 1 else 0]
        elif all(other.target == block.edges[0].target and not other.copies for other in block.edges):
            edge = block.edges[0]
        if edge is not None:
            block.instructions[-1] = Instruction("br", location=terminator.location)
            block.edges = [edge]
            changed = True
    return changed


def _settle_fail(function: Function, block: Block) -> bool:
    """Replaces a failure whose status may be 0 by a branch to a certain failure."""
    terminator = block.terminator
    status = terminator.operands[0]
    if isinstance(status, Constant):
        if status.number and block.edges:
            block.edges = []
            return True
        if not status.number and block.edges:
            block.instructions[-1] = Instruction("br")
            return True
        return False
    if not block.edges:
        return False
    function.blocks.append(Block([terminator], []))
    block.instructions[-1] = Instruction("cond_br", (status,), location=terminator.location)
    block.edges = [Edge(len(function.blocks) - 1), block.edges[0]]
    return True


def _remove_unreachable(function: Function) -> bool:
    reached = function.reached()
    if len(reached) == len(function.blocks):
        return False
    numbers = {old: new for new, old in enumerate(sorted(reached))}
    function.blocks = [block for index, block in enumerate(function.blocks) if index in reached]
    for block in function.blocks:
        for edge in block.edges:
            edge.target = numbers[edge.target]
    return True


def _remove_dead(function: Function) -> bool:
    """Removes instructions and copies whose results are unused."""
    changed = False
    while True:
        count(function)
        is_changed = False
        for block in function.blocks:
            kept = [
                instruction
                for instruction in block.instructions
                if not (
                    instruction.results
                    and all(not variable.uses for variable in instruction.results)
                    and is_pure(instruction)
                )
            ]
            kept = _without_overwritten(kept)
            is_changed |= len(kept) != len(block.instructions)
            block.instructions = kept
            for edge in block.edges:
                copies = [pair for pair in edge.copies if pair[0].uses]
                is_changed |= len(copies) != len(edge.copies)
                edge.copies = copies
        if not is_changed:
            return changed
        changed = True


def _without_overwritten(instructions: list[Instruction]) -> list[Instruction]:
    """Removes pure instructions of a block whose results are overwritten before any use."""
    kept: list[Instruction] = []
    overwritten: set[Variable] = set()
    for instruction in reversed(instructions):
        if instruction.results and is_pure(instruction) and overwritten.issuperset(instruction.results):
            continue
        overwritten.update(instruction.results)
        overwritten.difference_update(value for value in instruction.values() if isinstance(value, Variable))
        kept.append(instruction)
    return kept[::-1]


def _merge(function: Function) -> bool:
    """Joins each block with its only successor, if it is the successor's only predecessor."""
    arriving = [0] * len(function.blocks)
    for block in function.blocks:
        for edge in block.edges:
            arriving[edge.target] += 1
    changed = False
    for index, block in enumerate(function.blocks):
        while len(block.edges) == 1 and block.terminator.operation == "br":
            edge = block.edges[0]
            following = function.blocks[edge.target]
            if arriving[edge.target] != 1 or edge.target in (index, 0) or len(edge.copies) > 1:
                break
            copied = [Instruction("assign", (source,), (target,)) for target, source in edge.copies]
            block.instructions = [*block.instructions[:-1], *copied, *following.instructions]
            block.edges = following.edges
            following.edges = []
            following.instructions = [Instruction("br")]
            arriving[edge.target] = 0
            changed = True
    if changed:
        _remove_unreachable(function)
    return changed


def remove_unused(program: Program) -> None:
    """Removes stores of globals that are never loaded, and the instructions used only for these stores."""
    changed = True
    while changed:
        changed = False
        loaded = {
            instruction.ordinal
            for function in program.functions.values()
            for instruction in function.instructions()
            if instruction.operation == "global.load.ref"
        }
        recording = {ordinal for ordinal, function in program.functions.items() if _only_records(function)}
        for function in program.functions.values():
            changed |= _remove(function, loaded, recording)
            simplify_function(program, function)
        before = len(program.functions)
        program.functions = reachable(program)
        changed |= len(program.functions) != before


def _remove(function: Function, loaded: set[int], recording: set[int]) -> bool:
    count(function)
    changed = False
    for block in function.blocks:
        kept = [instruction for instruction in block.instructions if not _is_unused(instruction, loaded, recording)]
        changed |= len(kept) != len(block.instructions)
        block.instructions = kept
    return changed


def _is_unused(instruction: Instruction, loaded: set[int], recording: set[int]) -> bool:
    if instruction.operation == "global.store.ref":
        return instruction.ordinal not in loaded
    unused = bool(instruction.results) and not any(variable.uses for variable in instruction.results)
    return unused and (instruction.callee == "hal.executable.create" or instruction.callee in recording)


def _only_records(function: Function) -> bool:
    """Whether a function only records a command buffer."""
    made: set[Variable] = set()
    for instruction in function.instructions():
        if instruction.callee == f"{_RECORDING}create":
            made.update(instruction.results)
        elif isinstance(instruction.callee, str) and instruction.callee.startswith(_RECORDING):
            if instruction.operands[0] not in made:
                return False
        elif instruction.operation not in ("br", "cond_br", "return") and not is_pure(instruction):
            return False
    return bool(made)
