"""The control flow of functions under edit: blocks, loops and calls."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import field
from typing import Final

from ...base.lazy_dataclass import dataclass
from ..binary.grammar import Op
from .editor import Words, opcode_of

_RETURNS: Final = (Op.Return, Op.ReturnValue)
_SKIPPED_AT_START: Final = (Op.Label, Op.Phi, Op.Line, Op.NoLine)


@dataclass(slots=True)
class Block:
    """A block: from its OpLabel to the next one, or to the end of the function."""

    label: int
    code: list[Words]
    targets: tuple[int, ...] = ()

    @property
    def first(self) -> int:
        """Index of the first instruction past its label and phis."""
        return next(i for i, instruction in enumerate(self.code) if opcode_of(instruction) not in _SKIPPED_AT_START)

    @property
    def returns(self) -> bool:
        """Whether it ends in a return."""
        return any(opcode_of(instruction) in _RETURNS for instruction in self.code)

    @property
    def is_unreachable(self) -> bool:
        """Whether it only says that it is not reached."""
        return opcode_of(self.code[self.first]) == Op.Unreachable


@dataclass(slots=True)
class Loop:
    """A structured loop.

    Attributes:
        header, merge, latch: the labels of its header, merge block and continue target.
        blocks: the labels of its blocks, without the merge block.
        is_outermost: whether no other loop of the function encloses it.
    """

    header: int
    merge: int
    latch: int
    blocks: frozenset[int]
    is_outermost: bool = True


@dataclass(slots=True)
class Flow:
    """The blocks of a function, in order, and its loops.

    Attributes:
        id: the function's id.
        head: the instructions before the first block.
        blocks: the blocks by label.
        loops: the loops, outer ones before those within them.
    """

    id: int
    head: list[Words]
    blocks: dict[int, Block]
    loops: list[Loop] = field(default_factory=list)

    @classmethod
    def of(cls, function: list[Words]) -> Flow:
        head: list[Words] = []
        blocks: dict[int, Block] = {}
        block: Block | None = None
        merges: list[tuple[int, int, int]] = []
        ends: list[tuple[Block, int, Words]] = []
        for instruction in function:
            opcode = opcode_of(instruction)
            if opcode == Op.Label:
                block = blocks[instruction[1]] = Block(instruction[1], [])
            if block is None:
                head.append(instruction)
                continue
            block.code.append(instruction)
            if opcode == Op.LoopMerge:
                merges.append((block.label, instruction[1], instruction[2]))
            elif opcode in (Op.Branch, Op.BranchConditional, Op.Switch):
                ends.append((block, opcode, instruction))
        for block, opcode, instruction in ends:
            block.targets = _targets(opcode, instruction, blocks)
        flow = cls(head[0][2], head, blocks)
        for header, merge, latch in merges:
            flow.loops.append(Loop(header, merge, latch, flow._within(header, merge)))
        flow.loops.sort(key=lambda loop: -len(loop.blocks))
        for index, loop in enumerate(flow.loops):
            loop.is_outermost = not any(loop.header in outer.blocks for outer in flow.loops[:index])
        return flow

    def _within(self, header: int, merge: int) -> frozenset[int]:
        labels, pending = {header}, [header]
        while pending:
            for target in self.blocks[pending.pop()].targets:
                if target not in labels and target != merge and target in self.blocks:
                    labels.add(target)
                    pending.append(target)
        return frozenset(labels)

    def calls(self) -> Iterator[tuple[int, int]]:
        """Yields (label of the block, called function) of each call."""
        for block in self.blocks.values():
            for instruction in block.code:
                if opcode_of(instruction) == Op.FunctionCall:
                    yield block.label, instruction[3]

    def code(self) -> list[Words]:
        """Returns the function's instructions."""
        return [*self.head, *(instruction for block in self.blocks.values() for instruction in block.code)]


def _targets(opcode: int, instruction: Words, labels: Container[int]) -> tuple[int, ...]:
    if opcode == Op.Branch:
        return instruction[1:2]
    if opcode == Op.BranchConditional:
        return instruction[2:4]
    pairs = instruction[4::2]  # a literal of 64 bits takes two words
    return (instruction[2], *(pairs if all(label in labels for label in pairs) else instruction[5::3]))
