"""Results of operations and calls that are known before a program runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ...vm.translation.expressions import Literal
from ...vm.translation.operations import OPERATIONS
from ...vm.types import float_numerics, numerics
from .ir import Constant, Instruction, Program, Rodata, Value

_NAMES: Final = {
    **{name: getattr(float_numerics, name) for name in dir(float_numerics) if not name.startswith("_")},
    **{name: getattr(numerics, name) for name in dir(numerics) if not name.startswith("_")},
}
_WRAP: Final = {32: numerics.wrap32, 64: numerics.wrap64}


def is_pure(instruction: Instruction) -> bool:
    """Whether an instruction may be removed if its results are unused."""
    operation = instruction.operation
    if operation == "call":
        return instruction.callee in _PURE_CALLS
    known = OPERATIONS.get(operation)
    if known is not None:
        return known.pure or (operation[:4] in ("div.", "rem.") and _divides(instruction))
    return operation in ("assign", "select.ref") or operation.startswith(("global.load.", "switch."))


def _divides(instruction: Instruction) -> bool:
    divisor = instruction.operands[1]
    return isinstance(divisor, Constant) and divisor.number != 0


_PURE_CALLS: Final = frozenset(
    {
        "hal.allocator.select",
        "hal.device.allocator",
        "hal.devices.count",
        "hal.devices.get",
        "hal.device.query.i64",
        "hal.executable.lookup.function",
        "hal.fence.create",
        "hal.fence.join",
    }
)


def folded(instruction: Instruction) -> Value | None:
    """Returns the value of an operation's only result, if it is known."""
    if instruction.operation == "assign":
        operand = instruction.operands[0]
        return operand if isinstance(operand, Constant | Rodata) else None
    if instruction.operation.startswith("select."):
        test, yes, no = instruction.operands[:3]
        if isinstance(test, Constant):
            chosen = yes if test.number else no
            return chosen if isinstance(chosen, Constant | Rodata) else None
        return None
    if instruction.operation in ("cmp.nz.ref", "cmp.eq.ref", "cmp.ne.ref"):
        return _compared(instruction)
    expression = OPERATIONS.get(instruction.operation)
    if expression is None or len(instruction.results) != 1:
        return None
    operands = instruction.operands
    if instruction.operation in ("and.i32", "and.i64", "mul.i32", "mul.i64"):
        for term in operands:
            if isinstance(term, Constant) and term.number == 0:
                return term
    numbers = [term for term in operands if isinstance(term, Constant) and term.kind != "r"]
    if not operands or len(numbers) != len(operands):
        return None
    try:
        # The translator defines the operations.
        text = expression.build(*[Literal(constant.number) for constant in numbers]).python()
        number = eval(text, {}, dict(_NAMES))
    except Exception:  # fails at run time too
        return None
    kind = instruction.results[0].kind
    if kind in "iI":
        bits = 32 if kind == "i" else 64
        return Constant(kind, _WRAP[bits](int(number)))
    value = numerics.round_f32(number) if kind == "f" else float(number)
    return Constant(kind, value) if math.isfinite(value) else None


def _compared(instruction: Instruction) -> Constant | None:
    operands = instruction.operands
    known = [isinstance(operand, Constant) for operand in operands]
    if instruction.operation == "cmp.nz.ref":
        if known[0]:
            return Constant("i", 0)
        return Constant("i", 1) if isinstance(operands[0], Rodata) else None
    if all(known) or operands[0] is operands[1]:
        return Constant("i", int(instruction.operation == "cmp.eq.ref"))
    return None


def called(program: Program, instruction: Instruction, formats: Sequence[str]) -> tuple[Value, ...] | None:
    """Returns the results of a call, if known: queries of the single device, and waits, which raise on failure."""
    if instruction.callee == "hal.devices.count":
        return (Constant("i", 1),)
    if instruction.callee == "hal.fence.await" and instruction.results:
        timeout = instruction.operands[0]
        if isinstance(timeout, Constant) and timeout.number == -1:
            return (Constant("i", 0),)
    if instruction.callee == "hal.device.query.i64" and formats:
        _, category, key = instruction.operands
        if isinstance(category, Rodata) and isinstance(key, Rodata):
            answer = _answer(program.text(category), program.text(key), formats)
            if answer is not None:
                return Constant("i", 1), Constant("I", answer)
    return None


def _answer(category: str, key: str, formats: Sequence[str]) -> int | None:
    if category == "hal.executable.format":
        return int(key in formats)
    if category == "hal.device.id":
        kinds = {"vulkan" if format.startswith("vulkan") else format.partition("-")[0] for format in formats}
        return int(bool(kinds & {key.rstrip("*")}) or key == "*")
    return None
