"""Values that leave loops, for a driver that loses them where its invocations leave at different times.

Drivers for CPUs run invocations together, as lanes of vectors, until the last one has left a loop. A lane's values at
its exit are safe in phis, which a driver writes for active lanes alone. Later iterations overwrite every other value of
the loop, and there a load gives inactive lanes nothing. So a value is lost that is used after the loop and is neither a
phi of the loop's header nor a phi of several exits: in ``do`` loops, and where a single ``break`` follows an
assignment. Seen in Mesa 22.3 (llvmpipe) and in SwiftShader of Chromium 156, whose optimizers first replace variables by
values. Source: ``SpirvEmitter::EmitLoop`` in SwiftShader's src/Pipeline/SpirvShaderControlFlow.cpp.

The repair gives each such loop one more exit, at its head, which is never taken; the driver does not know that. So what
leaves the loop passes a phi of two exits: the driver writes it for variables, the repair for values of the module.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from ..binary.grammar import LAYOUTS, Op, opcodes_of, operand_kinds
from ..binary.words import encode
from ..instrument.blocks import Block, Flow, Loop
from ..instrument.editor import Editor, Words, opcode_of
from ..reflection.reflection_types import ShaderModuleReflection
from .opaque import Hider, can_hide

_PURE: Final = frozenset(opcodes_of("Arithmetic", "Bit", "Relational_and_Logical", "Conversion", "Composite"))
_NEUTRAL: Final = Op.numbers("Label Phi Line NoLine LoopMerge Branch BranchConditional")
_READS: Final = Op.numbers("Load AccessChain InBoundsAccessChain ExtInst")  # what they give is used in the loop only
_SCALARS: Final = Op.numbers("TypeBool TypeInt TypeFloat")
_GROUPS: Final = Op.numbers("TypeVector TypeMatrix TypeArray")
# Instructions whose results no phi can choose; another one after the loop gives the same.
_REPEATABLE: Final = Op.numbers("AccessChain InBoundsAccessChain CopyObject Image SampledImage Load")


def with_kept_loop_values(code: bytes, reflection: ShaderModuleReflection) -> bytes:
    """Returns a valid module whose loops lose no values; the same bytes if all end at their heads."""
    editor = Editor(code)
    if not can_hide(editor):
        return code
    changed = False
    # Each exit has a condition of its own: where a loop has not ended, also in functions that it calls, a driver takes
    # its condition for known.
    numbers = itertools.count()
    for body in editor.functions:
        if any(opcode_of(instruction) == Op.LoopMerge for instruction in body):
            function = _Function(editor, body)
            loops = [loop for loop in reversed(function.flow.loops) if function.loses_values(loop)]
            if loops:
                hider = Hider(editor)
                for loop in loops:
                    function.open(loop, hider.never(next(numbers)))
                body[:] = hider.started(function.flow.code())
                changed = True
    return editor.code() if changed else code


class _Function:
    """A function with loops; inner loops are changed before outer ones."""

    def __init__(self, editor: Editor, body: list[Words]) -> None:
        self._editor = editor
        self.flow = Flow.of(body)
        self._blocks = self.flow.blocks
        self._scan()

    def _scan(self) -> None:
        self._made: dict[int, tuple[int, Words]] = {}
        self._used: dict[int, set[int]] = {}
        for label, block in self._blocks.items():
            for instruction in block.code:
                if _has_result(instruction):
                    self._made[instruction[2]] = label, instruction
                for at, where in _uses(instruction, label):
                    self._used.setdefault(instruction[at], set()).add(where)

    # -- which loops -----------------------------------------------------------------------------------

    def loses_values(self, loop: Loop) -> bool:
        """Whether a loop may lose values and can be changed."""
        ends = [item for item in self._blocks[loop.merge].code if opcode_of(item) == Op.Phi]
        return (
            not self._ends_at_head(loop)
            and all(self._is_plain(phi[1]) for phi in ends)
            and all(map(self._can_pass, self._leaving(loop)))
        )

    def _ends_at_head(self, loop: Loop) -> bool:
        """Whether each iteration may leave before it stores, and only phis of the header are used after."""
        label = loop.header
        passed: set[int] = set()
        while label in loop.blocks and label not in passed:
            passed.add(label)
            block = self._blocks[label]
            if not all(opcode_of(item) in _NEUTRAL or self._is_steady(item) for item in block.code):
                return False
            if loop.merge in block.targets:
                is_settled = not self._changes(block.code[-1][1], loop)  # while (true) leaves elsewhere
                return not is_settled and passed.isdisjoint(self._made[value][0] for value in self._leaving(loop))
            if len(block.targets) != 1:
                return False
            label = block.targets[0]
        return False

    def _changes(self, condition: int, loop: Loop) -> bool:
        """Whether a condition depends on a phi of the header, or a variable that the loop stores to."""
        pending, passed = [condition], {condition}
        while pending:
            label, instruction = self._made.get(pending.pop(), (0, ()))
            if label not in loop.blocks:
                continue
            if opcode_of(instruction) == Op.Phi:
                return True
            if opcode_of(instruction) == Op.Load:
                stores = (
                    item for label in loop.blocks for item in self._blocks[label].code if opcode_of(item) == Op.Store
                )
                if any(item[1] == instruction[3] for item in stores):
                    return True
            more = {instruction[at] for at, _ in _uses(instruction, 0)} - passed
            passed |= more
            pending += more
        return False

    @staticmethod
    def _is_steady(instruction: Words) -> bool:
        opcode = opcode_of(instruction)
        return opcode in _PURE or opcode in _READS

    def _leaving(self, loop: Loop) -> Iterator[int]:
        """Yields the values of a loop that are used after it, without the header's phis."""
        for value, (label, instruction) in self._made.items():
            is_of_header = opcode_of(instruction) == Op.Phi and label == loop.header
            if label in loop.blocks and not is_of_header and not self._used.get(value, set()) <= loop.blocks:
                yield value

    def _can_pass(self, value: int) -> bool:
        if value not in self._made:
            return True
        instruction = self._made[value][1]
        if self._is_plain(instruction[1]) or opcode_of(instruction) == Op.Variable:
            return True
        return opcode_of(instruction) in _REPEATABLE and all(
            self._can_pass(instruction[at]) for at, _ in _uses(instruction, 0)
        )

    def _is_plain(self, type_id: int) -> bool:
        """Whether a phi can have a type, and a null is one of its values."""
        words = self._editor.defs[type_id]
        opcode = opcode_of(words)
        if opcode == Op.TypeStruct:
            return all(map(self._is_plain, words[2:]))
        return opcode in _SCALARS or (opcode in _GROUPS and self._is_plain(words[2]))

    # -- one loop --------------------------------------------------------------------------------------

    def open(self, loop: Loop, never: int) -> None:
        """Gives a loop an exit at its head that is taken if ``never`` is true."""
        merge = self._blocks[loop.merge]
        sources = [label for label in self._blocks if loop.merge in self._blocks[label].targets]
        names: dict[int, int] = {}
        phis: list[Words] = []
        copies: list[Words] = []
        for value in list(self._leaving(loop)):
            self._pass(value, loop, sources, names, phis, copies)
        for label, block in self._blocks.items():
            block.code[:] = [_renamed(item, label, loop.blocks, names) for item in block.code]
        merge.code[1:1] = phis
        first = merge.first
        merge.code[first:first] = copies
        self._split(loop, never)
        self._scan()

    def _pass(
        self,
        value: int,
        loop: Loop,
        sources: list[int],
        names: dict[int, int],
        phis: list[Words],
        copies: list[Words],
    ) -> None:
        """Writes the value's phi at the end of its loop, or the same instruction with the phis of its operands."""
        label, instruction = self._made.get(value, (0, ()))
        is_of_header = bool(instruction) and opcode_of(instruction) == Op.Phi and label == loop.header
        if value in names or label not in loop.blocks or is_of_header:
            return
        if self._is_plain(instruction[1]):
            names[value] = self._editor.fresh()
            pairs = [word for source in sources for word in (value, source)]
            phis.append(encode(Op.Phi, instruction[1], names[value], *pairs))
            return
        words = list(instruction)
        for at, _ in _uses(instruction, 0):
            self._pass(words[at], loop, sources, names, phis, copies)
            words[at] = names.get(words[at], words[at])
        names[value] = words[2] = self._editor.fresh()
        copies.append(tuple(words))

    def _split(self, loop: Loop, never: int) -> None:
        """Has the header end in the new exit; the rest of it becomes a block of its own."""
        header, merge = self._blocks[loop.header], self._blocks[loop.merge]
        at = next(at for at, item in enumerate(header.code) if opcode_of(item) == Op.LoopMerge)
        after, latch, *control = header.code[at][1:]
        rest = Block(self._editor.fresh(), [], header.targets)
        rest.code = [encode(Op.Label, rest.label), *header.code[header.first : at]]
        terminator = header.code[-1]
        unreached: list[Words] = []
        if opcode_of(terminator) == Op.Switch or (
            len(set(header.targets)) == 2 and not {after, latch} & {*header.targets}
        ):
            end = self._editor.fresh()
            rest.code.append(encode(Op.SelectionMerge, end, 0))
            unreached = [encode(Op.Label, end), encode(Op.Unreachable)]
        rest.code.append(terminator)
        for target in dict.fromkeys(header.targets):
            block = self._blocks[target]
            block.code[:] = [_from_another(item, header.label, rest.label) for item in block.code]
        header.code[header.first :] = [
            encode(Op.LoopMerge, after, rest.label if latch == header.label else latch, *control),
            encode(Op.BranchConditional, never, after, rest.label),
        ]
        header.targets = (after, rest.label)
        for index, item in enumerate(merge.code):
            if opcode_of(item) == Op.Phi:
                merge.code[index] = encode(Op.Phi, *item[1:], self._editor.null(item[1]), header.label)
        blocks: dict[int, Block] = {}
        for label, block in self._blocks.items():
            blocks[label] = block
            if block is header:
                blocks[rest.label] = rest
                if unreached:
                    blocks[unreached[0][1]] = Block(unreached[0][1], unreached)
        self.flow.blocks = self._blocks = blocks
        for other in self.flow.loops:
            if loop.header in other.blocks:
                other.blocks |= {rest.label}


def _has_result(instruction: Words) -> bool:
    layout = LAYOUTS.get(opcode_of(instruction))
    return layout is not None and layout.operands[:2] == ("IdResultType", "IdResult")


def _uses(instruction: Words, label: int) -> Iterator[tuple[int, int]]:
    """Yields the operands of an instruction as (index, label of the block that has to have the value)."""
    if opcode_of(instruction) == Op.Phi:
        for at in range(3, len(instruction), 2):
            yield at, instruction[at + 1]
        return
    for at, kind in operand_kinds(instruction, 0, len(instruction)):
        if kind == "IdRef":
            yield at, label


def _renamed(instruction: Words, label: int, loop: frozenset[int], names: dict[int, int]) -> Words:
    """Returns an instruction with the values' names after a loop where it is after it."""
    if names.keys().isdisjoint(instruction[1:]):
        return instruction
    words = list(instruction)
    for at, where in _uses(instruction, label):
        if where not in loop:
            words[at] = names.get(words[at], words[at])
    return tuple(words)


def _from_another(instruction: Words, old: int, new: int) -> Words:
    """Returns a phi with another parent; other instructions unchanged."""
    if opcode_of(instruction) != Op.Phi:
        return instruction
    words = list(instruction)
    words[4::2] = [new if parent == old else parent for parent in words[4::2]]
    return tuple(words)
