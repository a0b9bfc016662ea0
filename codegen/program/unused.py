"""Removes objects that initializers create and no function uses: executables and command buffers of removed exports."""

from __future__ import annotations

from typing import Final

from .folding import is_pure
from .ir import Function, Instruction, Program, Variable
from .simplify import count, reachable, simplify_function

_RECORDING: Final = "hal.command_buffer."


def remove_unused(program: Program) -> None:
    """Removes stores of globals that nothing loads, and the instructions that only these used."""
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
    """Whether a function only records a command buffer of its own."""
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
