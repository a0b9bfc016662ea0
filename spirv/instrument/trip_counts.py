"""Upper bounds of loops' trip counts that follow from constants."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from ..binary.grammar import Op, operand_kinds
from .blocks import Flow, Loop
from .editor import Editor, Words, opcode_of

UNKNOWN: Final = math.inf

_COMPARISONS: Final = {
    Op.SLessThan: "<",
    Op.ULessThan: "<",
    Op.SLessThanEqual: "<=",
    Op.ULessThanEqual: "<=",
    Op.SGreaterThan: ">",
    Op.UGreaterThan: ">",
    Op.SGreaterThanEqual: ">=",
    Op.UGreaterThanEqual: ">=",
    Op.INotEqual: "!=",
}
_MIRRORED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}


class TripCounts:
    """The largest total number of iterations of the loops of a module's functions."""

    def __init__(self, editor: Editor, flows: Mapping[int, Flow]) -> None:
        self._editor = editor
        self._flows = flows
        self._totals: dict[int, float] = {}
        self._instructions: dict[int, dict[int, Words]] = {}

    def of_function(self, number: int) -> float:
        """Returns the iterations of all loops in a call of a function, with its calls; ``UNKNOWN`` if unbounded."""
        if number not in self._flows:
            return 0
        if number not in self._totals:
            self._totals[number] = UNKNOWN  # for recursion, which shaders do not have
            flow = self._flows[number]
            self._totals[number] = self._within(flow, frozenset(flow.blocks), None)
        return self._totals[number]

    def _within(self, flow: Flow, blocks: frozenset[int], outer: Loop | None) -> float:
        """Returns the iterations while some blocks run once, in loops directly within them and calls outside loops."""
        total = 0.0
        inner = [nested for nested in flow.loops if nested is not outer and nested.header in blocks]
        right_within = [
            nested
            for nested in inner
            if not any(nested.header in other.blocks for other in inner if other is not nested)
        ]
        for loop in right_within:
            total += (self._passes(flow, loop) + 1) * (1 + self._within(flow, loop.blocks, loop))
        in_loops = frozenset().union(*(loop.blocks for loop in right_within))
        for label, callee in flow.calls():
            if label in blocks and label not in in_loops:
                total += self.of_function(callee)
        return total

    def _passes(self, flow: Flow, loop: Loop) -> float:
        """Returns the iterations of a loop, by the lowest bound of the exits that every iteration tests."""
        asked = [loop.header]
        while len(targets := flow.blocks[asked[-1]].targets) == 1 and targets[0] in loop.blocks - {*asked}:
            asked.append(targets[0])
        return min(self._until(flow, loop, label) for label in {*asked, loop.latch} & loop.blocks)

    def _until(self, flow: Flow, loop: Loop, label: int) -> float:
        end = next(
            (candidate for candidate in flow.blocks[label].code if opcode_of(candidate) == Op.BranchConditional), None
        )
        if end is None or end[3] != loop.merge or end[2] == loop.merge:
            return UNKNOWN  # the loop continues while the condition holds
        made = self._made(flow)
        comparison = made.get(end[1], (0,))
        is_carried = opcode_of(comparison) == Op.Phi and comparison in flow.blocks[loop.header].code
        if is_carried:  # the head tests a value that the body computed at its end
            pairs = zip(comparison[3::2], comparison[4::2], strict=True)
            computed = {value for value, parent in pairs if parent in loop.blocks}
            if label != loop.header or len(computed) != 1:
                return UNKNOWN
            comparison, label = made.get(computed.pop(), (0,)), loop.latch
        sign = _COMPARISONS.get(opcode_of(comparison), "")
        if not sign:
            return UNKNOWN
        left, right = comparison[3:5]
        if self._constant(left) is not None:
            left, right, sign = right, left, _MIRRORED[sign]
        bound = self._constant(right)
        counter = made.get(left, (0,))
        is_next = opcode_of(counter) == Op.IAdd  # a phi's next value, tested at the end
        if is_next:
            counter = made.get(counter[3], (0,))
        is_phi = opcode_of(counter) == Op.Phi and counter in flow.blocks[loop.header].code
        is_variable = opcode_of(counter) == Op.Load and not is_next and label != loop.latch
        if bound is None or not (is_phi or is_variable):
            return UNKNOWN
        starts, steps = (self._phi if is_phi else self._variable)(flow, loop, counter)
        if not starts or len(steps) != 1 or None in starts or None in steps:
            return UNKNOWN
        step = next(iter(steps))
        assert step is not None
        if is_next and self._step(flow, left, counter[2]) != step:
            return UNKNOWN
        ahead = step if is_next else 0
        is_signed = Op.name(opcode_of(comparison)).startswith("S")
        counts = [
            _count(candidate + ahead, bound, step, sign, is_signed=is_signed)
            for candidate in starts
            if candidate is not None
        ]
        return max(counts) + is_next + is_carried

    def _made(self, flow: Flow) -> dict[int, Words]:
        """Returns the instructions of a function that compute counters, by result."""
        if flow.id not in self._instructions:
            code = [instruction for block in flow.blocks.values() for instruction in block.code]
            wanted = (Op.IAdd, Op.ISub, Op.Load, Op.Phi, *_COMPARISONS)
            self._instructions[flow.id] = {
                instruction[2]: instruction for instruction in code if opcode_of(instruction) in wanted
            }
        return self._instructions[flow.id]

    def _phi(self, flow: Flow, loop: Loop, phi: Words) -> tuple[set[int | None], set[int | None]]:
        """Returns the constants that a counter starts at and that are added to it; ``None`` stands for other values."""
        starts: set[int | None] = set()
        steps: set[int | None] = set()
        for value, parent in zip(phi[3::2], phi[4::2], strict=True):
            if parent in loop.blocks:
                steps.add(self._step(flow, value, phi[2]))
            else:
                starts.add(self._constant(value))
        return starts, steps

    def _variable(self, flow: Flow, loop: Loop, load: Words) -> tuple[set[int | None], set[int | None]]:
        """Returns the trips of a loop whose counter is a variable of the function, only loaded and stored."""
        variable = load[3]
        starts: set[int | None] = set()
        steps: set[int | None] = set()
        for label, block in flow.blocks.items():
            for instruction in block.code:
                opcode = opcode_of(instruction)
                if opcode == Op.Store and instruction[1] == variable:
                    if label not in loop.blocks:
                        starts.add(self._constant(instruction[2]))
                    else:
                        steps.add(self._step(flow, instruction[2], variable) if label == loop.latch else None)
                elif opcode not in (Op.Load, Op.Variable, Op.ExtInst) and any(
                    kind == "IdRef" and instruction[at] == variable
                    for at, kind in operand_kinds(instruction, 0, len(instruction))
                ):
                    return set(), set()
        return starts, steps

    def _step(self, flow: Flow, value: int, counter: int) -> int | None:
        made = self._made(flow)
        addition = made.get(value, (0,))
        if opcode_of(addition) not in (Op.IAdd, Op.ISub):
            return None
        operand = made.get(addition[3], (0,))
        is_counter = addition[3] == counter or (opcode_of(operand) == Op.Load and operand[3] == counter)
        step = self._constant(addition[4])
        if not is_counter or step is None:
            return None
        return step if opcode_of(addition) == Op.IAdd else -step

    def _constant(self, number: int) -> int | None:
        definition = self._editor.defs.get(number, (0,))
        if opcode_of(definition) != Op.Constant or len(definition) != 4:
            return None
        kind = self._editor.defs[definition[1]]
        if opcode_of(kind) != Op.TypeInt:
            return None
        value = definition[3]
        return value - (1 << 32) if value >> 31 and kind[3] else value


def _count(start: int, bound: int, step: int, sign: str, *, is_signed: bool) -> float:
    """Returns the iterations of a loop that continues while its counter compares to a bound; UNKNOWN if it wraps."""
    offset = 1 << 31 if is_signed else 0
    start, bound = (((value + offset) & 0xFFFFFFFF) - offset for value in (start, bound))
    step = ((step + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
    if sign == "!=":
        distance, step_size = bound - start, step
        passes = distance // step_size if step_size and distance % step_size == 0 else -1
        if passes < 0:
            return UNKNOWN
    elif sign in ("<", "<=") and step > 0:
        passes = max(0, -(-(bound + (sign == "<=") - start) // step))
    elif sign in (">", ">=") and step < 0:
        passes = max(0, -(-(start - bound + (sign == ">=")) // -step))
    else:
        return UNKNOWN
    return passes if -offset <= start + passes * step < (1 << 32) - offset else UNKNOWN
