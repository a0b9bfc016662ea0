"""Rewrites a program's use of devices and fences to idiomatic Python.

A module creates a fence for each operation and passes it on. Here an operation returns the fence that it signals.
Immediate operations (``alloca``, ``dealloca``, ``barrier``) have no fence; their waiters wait for the operation's own
wait fence.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Final

from ..program.ir import NULL, Constant, Function, Instruction, Program, Rodata, Value, Variable
from ..program.naming import name_variables
from ..program.simplify import count, simplify_function, substitute
from .functions import function_names
from .names import IMPORTED

FENCES: Final = 2
"""The index of a queue operation's wait fence among its operands; the signal fence follows."""

_AT_ONCE: Final = frozenset({"hal.device.queue.alloca", "hal.device.queue.barrier", "hal.device.queue.dealloca"})
_QUEUE: Final = "hal.device.queue."
_SURE_QUERIES: Final = frozenset({"hal.executable.format", "hal.device.id"})


# Names that generated code uses.
_TAKEN: Final = frozenset({*dir(builtins), *function_names(), *IMPORTED, "case", "target"})


def lift(program: Program) -> None:
    """Rewrites all functions of a program for one device."""
    for function in program.functions.values():
        _lift_devices(program, function)
        _lift_fences(function)
        simplify_function(program, function)
        _lift_joins(function)
        simplify_function(program, function)
        name_variables(function, _TAKEN)


def _is_device(value: object) -> bool:
    return isinstance(value, Variable) and value.type in ("hal.device", "hal.allocator")


def _lift_devices(program: Program, function: Function) -> None:
    """Removes operations on devices and allocators, as there is one device, which is not null."""
    replaced: dict[Variable, Value] = {}
    for block in function.blocks:
        kept = []
        for instruction in block.instructions:
            if instruction.operation.startswith("cmp.") and any(map(_is_device, instruction.operands)):
                others = [operand for operand in instruction.operands if not _is_device(operand)]
                equal = not others
                number = int(equal if instruction.operation == "cmp.eq.ref" else not equal)
                replaced[instruction.results[0]] = Constant("i", 1 if instruction.operation == "cmp.nz.ref" else number)
            elif (instruction.operation == "global.store.ref" and _is_device(instruction.operands[0])) or (
                instruction.results and all(map(_is_device, instruction.results))
            ):
                continue
            elif instruction.callee == "hal.allocator.select":
                replaced[instruction.results[1]] = Constant("I", -1)
            else:
                if instruction.callee == "hal.device.query.i64":
                    category = instruction.operands[1]
                    if isinstance(category, Rodata) and program.text(category) in _SURE_QUERIES:
                        replaced[instruction.results[0]] = Constant("i", 1)
                kept.append(instruction)
        block.instructions = kept
        for edge in block.edges:
            edge.copies = [pair for pair in edge.copies if not _is_device(pair[0])]
    substitute(function, replaced)


def _lift_fences(function: Function) -> None:
    """Makes operations return new fences; immediate operations pass on their wait fence."""
    count(function)
    for block in function.blocks:
        made: dict[Variable, Instruction] = {}
        kept: list[Instruction] = []
        for instruction in block.instructions:
            if instruction.callee == "hal.fence.create" and instruction.results[0].definitions == 1:
                made[instruction.results[0]] = instruction
            signal = instruction.operands[FENCES + 1] if _is_queue(instruction) else None
            fresh = made.pop(signal, None) if isinstance(signal, Variable) else None
            for value in instruction.values():
                if isinstance(value, Variable) and value is not signal:
                    made.pop(value, None)  # used before an operation signals it
            if fresh is not None:
                kept.remove(fresh)
            if instruction.callee in _AT_ONCE:
                kept += _at_once(instruction, fresh)
                continue
            if fresh is not None:
                instruction.results = (*fresh.results, *instruction.results)
                instruction.operands = (*instruction.operands[: FENCES + 1], NULL, *instruction.operands[FENCES + 2 :])
            kept.append(instruction)
        block.instructions = kept


def _at_once(instruction: Instruction, fresh: Instruction | None) -> Iterator[Instruction]:
    """Yields an immediate operation without its fences."""
    wait, signal = instruction.operands[FENCES : FENCES + 2]
    assert not isinstance(wait, tuple)
    if instruction.callee == "hal.device.queue.alloca":
        instruction.operands = (*instruction.operands[:FENCES], NULL, NULL, *instruction.operands[FENCES + 2 :])
        yield instruction
    if fresh is not None:
        yield Instruction("assign", (wait,), fresh.results, location=instruction.location)
    elif signal != NULL:
        operands = (*instruction.operands[:FENCES], wait, signal, Constant("I"))
        yield Instruction("call", operands, callee="hal.device.queue.barrier", location=instruction.location)
    if instruction.callee == "hal.device.queue.dealloca":
        yield Instruction("release", (instruction.operands[FENCES + 2],), location=instruction.location)


def _is_queue(instruction: Instruction) -> bool:
    return (
        isinstance(instruction.callee, str)
        and instruction.callee.startswith(_QUEUE)
        and instruction.callee != f"{_QUEUE}flush"
    )


def _lift_joins(function: Function) -> None:
    """Removes null fences from joins and waits, and joins and waits without fences."""
    for block in function.blocks:
        kept = []
        for instruction in block.instructions:
            if instruction.callee in ("hal.fence.join", "hal.fence.await"):
                fences = instruction.operands[-1]
                assert isinstance(fences, tuple)
                fences = tuple(dict.fromkeys(fence for fence in fences if fence != NULL))
                instruction.operands = (*instruction.operands[:-1], fences)
                if instruction.callee == "hal.fence.join" and len(fences) < 2:
                    value = fences[0] if fences else NULL
                    assert not isinstance(value, tuple)
                    instruction = Instruction("assign", (value,), instruction.results, location=instruction.location)
                elif not fences and not instruction.results:
                    continue
            kept.append(instruction)
        block.instructions = kept
