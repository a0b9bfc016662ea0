"""Places where a function's code may be entered besides its start, and the registers that it then begins with.

Entry n is the place behind instruction n - 1. Translated code is entered behind calls that suspended and where machine
code left, machine code at the headers of loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ..bytecode.isa import CALLS
from .analysis import FunctionAnalysis
from .basic_block import Block


class Warmth(NamedTuple):
    """What translated code counts, so that machine code takes over when it was much.

    Attributes:
        turns: for back edges, pairs of blocks, the instructions of a turn of the loop.
        start: the instructions that a call of the function stands for; 0 where calls are not counted.
    """

    turns: Mapping[tuple[int, int], int]
    start: int = 0


COLD_FUNCTION: Final = Warmth({})


class Loops:
    """The loops of a function.

    Attributes:
        bodies: for each back edge, a pair of blocks, the blocks of its loop. Each cycle has a back edge.
        headers: the blocks that back edges lead to.
        reachable: the blocks that control can get to.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        back_edges, self.reachable = _search(blocks)
        predecessors: dict[int, list[int]] = {}
        for index in self.reachable:
            for edge in blocks[index].edges:
                predecessors.setdefault(edge.target, []).append(index)
        self.bodies = {(source, header): _body(predecessors, source, header) for source, header in sorted(back_edges)}
        self.headers = frozenset(header for _, header in self.bodies)


def _search(blocks: Sequence[Block]) -> tuple[set[tuple[int, int]], frozenset[int]]:
    """Edges to a block that is being visited in a depth-first search, and all blocks that are visited."""
    state = [0] * len(blocks)  # 1: being visited; 2: done
    found: set[tuple[int, int]] = set()
    state[0] = 1
    stack = [(0, iter(blocks[0].edges))]
    while stack:
        index, edges = stack[-1]
        edge = next(edges, None)
        if edge is None:
            state[index] = 2
            stack.pop()
        elif state[edge.target] == 1:
            found.add((index, edge.target))
        elif not state[edge.target]:
            state[edge.target] = 1
            stack.append((edge.target, iter(blocks[edge.target].edges)))
    return found, frozenset(index for index, one in enumerate(state) if one)


def _body(predecessors: dict[int, list[int]], source: int, header: int) -> frozenset[int]:
    """The blocks that lead to ``source`` without the header, and the header."""
    body = {header}
    pending = [source]
    while pending:
        block = pending.pop()
        if block not in body:
            body.add(block)
            pending += predecessors.get(block, ())
    return frozenset(body)


def names_at(analysis: FunctionAnalysis, entry: int) -> tuple[str, ...]:
    """The registers that a frame holds that continues at an entry, in the order of ``Frame.registers``.

    They are live behind instruction ``entry - 1``, except what that one, a call, still gets from its callee.
    """
    block = analysis.block_of(entry - 1)
    live = analysis.live_after(block)[entry - 1 - block.start]
    operands = analysis.operands[entry - 1]
    if analysis.instructions[entry - 1].operation.mnemonic in CALLS:
        live &= ~(analysis.mask(operands.writes) | analysis.mask(("r", one) for one in operands.moves))
        entry -= 1
    types = None if analysis.register_types is None else analysis.types_before(block, entry)
    names: list[str] = []
    for register in _bits(live):
        if register >= analysis.ref_shift:
            names.append(f"r{register - analysis.ref_shift}")
        elif types is None:
            names.append(f"s{register}")
        else:
            kind = types.get(register, "?")
            if kind not in "JG?" and (kind, register) not in analysis.constants:
                names.append(f"{kind}{register}")
    return tuple(names)


def _bits(mask: int) -> Iterable[int]:
    while mask:
        bit = mask & -mask
        mask ^= bit
        yield bit.bit_length() - 1
