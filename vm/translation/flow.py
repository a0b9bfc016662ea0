"""The edges of a function as its variants see them: no edges after suspending calls and certain failures.

``Warmth`` lists the work that translated code counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from .analysis import FunctionAnalysis
from .basic_block import Block, Edge
from .expressions import ZERO

_MAX_SMALL: Final = 6  # instructions
_MAX_COPIED: Final = 8000  # instructions


class Warmth(NamedTuple):
    """The work that translated code counts, to decide when machine code takes over.

    Attributes:
        turns: the instructions of an iteration by back edge, a pair of blocks.
        start: the number of instructions counted for a call of the function; 0 if calls are not counted.
    """

    turns: Mapping[tuple[int, int], int]
    start: int = 0


COLD_FUNCTION: Final = Warmth({})


class Flow:
    """The edges of a function's blocks, as its variants see them."""

    def __init__(self, analysis: FunctionAnalysis) -> None:
        self.cuts: dict[int, list[int]] = {}  # for each block with calls that suspend, their instructions' indices
        self.failing: set[int] = set()  # blocks that end in a certain failure
        self.edges: list[Sequence[Edge]] = []  # the edges of each block; none if it fails, or a call suspends first
        sizes: dict[int, int] = {}
        for block in analysis.blocks:
            cuts = [index for index in range(block.start, block.end) if analysis.suspends(analysis.instructions[index])]
            if cuts:
                self.cuts[block.index] = cuts
            if analysis.register_types is not None and _fails(analysis, block):
                self.failing.add(block.index)
            self.edges.append(() if cuts or block.index in self.failing else block.edges)
            if not self.edges[-1]:
                sizes[block.index] = (cuts[0] + 1 if cuts else block.end) - block.start
        entries: dict[int, int] = dict.fromkeys(sizes, 0)
        for edges in self.edges:
            for edge in edges:
                if edge.target in entries:
                    entries[edge.target] += 1
        # Short nodes without edges, which are copied into each branch to them.
        self.small_ends: frozenset[int] = frozenset(
            index + 1 for index, size in sizes.items() if index and size <= _MAX_SMALL
        )
        # All nodes without edges, if their copies are not too long in total. Nesting the rest of the function after
        # each branch to a shared end would lengthen the source more than the copies.
        budget = max(_MAX_COPIED, 2 * len(analysis.instructions))
        ends: list[int] = []
        for index, size in sorted(sizes.items(), key=lambda item: item[1] * entries[item[0]]):
            budget -= size * max(0, entries[index] - 1)
            if budget >= 0 and index:
                ends.append(index + 1)
        self.ends: frozenset[int] = frozenset(ends)


def _fails(analysis: FunctionAnalysis, block: Block) -> bool:
    """Whether a block ends in a failure with a status known not to be OK."""
    terminator = analysis.instructions[block.end - 1]
    if terminator.operation.mnemonic != "fail":
        return False
    register = analysis.operands[block.end - 1].reads[0][1]
    if ("i", register) in analysis.constants:
        return analysis.constants["i", register] != ZERO
    status: object = 0
    for index in range(block.start, block.end):
        for kind, number in analysis.operands[index].writes:
            if number == register or (kind in "IF" and number + 1 == register):
                instruction = analysis.instructions[index]
                status = instruction.values[0] if instruction.operation.mnemonic == "const.i32" else 0
    return status != 0
