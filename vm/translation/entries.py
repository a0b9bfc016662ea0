"""Entries: places where a function's code may start, and the registers that are live there.

Entry n is the place behind instruction n - 1. Translated code is entered behind calls that suspended and where machine
code left, machine code at the headers of loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from .basic_block import Block


class Warmth(NamedTuple):
    """The work that translated code counts, so that machine code takes over when it is hot.

    Attributes:
        turns: the instructions of an iteration, for each back edge as a pair of blocks.
        start: the instructions that a call of the function counts as; 0 if calls are not counted.
    """

    turns: Mapping[tuple[int, int], int]
    start: int = 0


COLD_FUNCTION: Final = Warmth({})


class Loops:
    """The loops of a function.

    Attributes:
        bodies: the blocks of the loop of each back edge, which is a pair of blocks. Each cycle has a back edge.
        headers: the targets of back edges.
        reachable: the blocks that control can reach.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.reachable: frozenset[int]
        back_edges, self.reachable = _search(blocks)
        predecessors: dict[int, list[int]] = {}
        for index in self.reachable:
            for edge in blocks[index].edges:
                predecessors.setdefault(edge.target, []).append(index)
        self.bodies: dict[tuple[int, int], frozenset[int]] = {
            (source, header): _body(predecessors, source, header) for source, header in sorted(back_edges)
        }
        self.headers: frozenset[int] = frozenset(header for _, header in self.bodies)


def _search(blocks: Sequence[Block]) -> tuple[set[tuple[int, int]], frozenset[int]]:
    """Returns the back edges of a depth-first search, and all blocks that it visits."""
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
    """Returns the header, and the blocks from which control reaches ``source`` without it."""
    body = {header}
    pending = [source]
    while pending:
        block = pending.pop()
        if block not in body:
            body.add(block)
            pending += predecessors.get(block, ())
    return frozenset(body)
