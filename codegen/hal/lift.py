"""Rewrites a program's use of devices and fences to idiomatic Python.

A module creates a fence for each operation and passes it on. Here an operation returns the fence that it signals.
Operations that take no time (``alloca``, ``dealloca``, ``barrier``) have none; their waiters wait for the operation's
own wait fence.
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
"""The index of a queue operation's wait fence among its operands; the signal fence is next."""

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
    """Removes operations on devices and allocators: there is one device, which is not null."""
    replaced: dict[Variable, Value] = {}
    for block in function.blocks:
        kept = []
        for one in block.instructions:
            if one.operation.startswith("cmp.") and any(map(_is_device, one.operands)):
                others = [operand for operand in one.operands if not _is_device(operand)]
                equal = not others
                number = int(equal if one.operation == "cmp.eq.ref" else not equal)
                replaced[one.results[0]] = Constant("i", 1 if one.operation == "cmp.nz.ref" else number)
            elif (one.operation == "global.store.ref" and _is_device(one.operands[0])) or (
                one.results and all(map(_is_device, one.results))
            ):
                continue
            elif one.callee == "hal.allocator.select":
                replaced[one.results[1]] = Constant("I", -1)
            else:
                if one.callee == "hal.device.query.i64":
                    category = one.operands[1]
                    if isinstance(category, Rodata) and program.text(category) in _SURE_QUERIES:
                        replaced[one.results[0]] = Constant("i", 1)
                kept.append(one)
        block.instructions = kept
        for edge in block.edges:
            edge.copies = [pair for pair in edge.copies if not _is_device(pair[0])]
    substitute(function, replaced)


def _lift_fences(function: Function) -> None:
    """Makes operations return new fences; operations that take no time pass on their wait fence."""
    count(function)
    for block in function.blocks:
        made: dict[Variable, Instruction] = {}
        kept: list[Instruction] = []
        for one in block.instructions:
            if one.callee == "hal.fence.create" and one.results[0].definitions == 1:
                made[one.results[0]] = one
            signal = one.operands[FENCES + 1] if _is_queue(one) else None
            fresh = made.pop(signal, None) if isinstance(signal, Variable) else None
            for value in one.values():
                if isinstance(value, Variable) and value is not signal:
                    made.pop(value, None)  # used before an operation signals it
            if fresh is not None:
                kept.remove(fresh)
            if one.callee in _AT_ONCE:
                kept += _at_once(one, fresh)
                continue
            if fresh is not None:
                one.results = (*fresh.results, *one.results)
                one.operands = (*one.operands[: FENCES + 1], NULL, *one.operands[FENCES + 2 :])
            kept.append(one)
        block.instructions = kept


def _at_once(one: Instruction, fresh: Instruction | None) -> Iterator[Instruction]:
    """Yields an operation that takes no time, without its fences."""
    wait, signal = one.operands[FENCES : FENCES + 2]
    assert not isinstance(wait, tuple)
    if one.callee == "hal.device.queue.alloca":
        one.operands = (*one.operands[:FENCES], NULL, NULL, *one.operands[FENCES + 2 :])
        yield one
    if fresh is not None:
        yield Instruction("assign", (wait,), fresh.results, location=one.location)
    elif signal != NULL:
        operands = (*one.operands[:FENCES], wait, signal, Constant("I"))
        yield Instruction("call", operands, callee="hal.device.queue.barrier", location=one.location)
    if one.callee == "hal.device.queue.dealloca":
        yield Instruction("release", (one.operands[FENCES + 2],), location=one.location)


def _is_queue(one: Instruction) -> bool:
    return isinstance(one.callee, str) and one.callee.startswith(_QUEUE) and one.callee != f"{_QUEUE}flush"


def _lift_joins(function: Function) -> None:
    """Removes null fences from joins and waits, and joins and waits without fences."""
    for block in function.blocks:
        kept = []
        for one in block.instructions:
            if one.callee in ("hal.fence.join", "hal.fence.await"):
                fences = one.operands[-1]
                assert isinstance(fences, tuple)
                fences = tuple(dict.fromkeys(fence for fence in fences if fence != NULL))
                one.operands = (*one.operands[:-1], fences)
                if one.callee == "hal.fence.join" and len(fences) < 2:
                    value = fences[0] if fences else NULL
                    assert not isinstance(value, tuple)
                    one = Instruction("assign", (value,), one.results, location=one.location)
                elif not fences and not one.results:
                    continue
            kept.append(one)
        block.instructions = kept
