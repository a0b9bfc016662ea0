"""Determines the functions that become machine code, and the layout of their registers in memory.

A function's frame is an array of 8-byte words: word 0 is the entry to continue at, followed by its results and a *home*
for each variable. A callee's frame follows directly, so that callers write the arguments into it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from ..bytecode.decoder import Instruction
from ..bytecode.isa import CALLS, MOVE_BIT
from ..translation.analysis import FunctionAnalysis
from ..translation.basic_block import Block
from ..translation.control_flow import Graph
from .operations import TEMPLATES

MAX_INSTRUCTIONS: Final = 2000  # of a function and all its callees
MAX_SWITCH: Final = 64  # values that a switch.* selects from
MAX_TYPES: Final = 62  # reference types that the functions of one unit check
MAX_BYTES: Final = 1 << 31  # of globals

_OTHERS: Final = frozenset(
    {
        *("block", "br", "cond_br", "br_table", "return", "fail", "call", "call.yieldable"),
        *("discard.refs", "assign.ref", "cast.any.ref", "select.ref"),
        *("const.ref.zero", "const.ref.rodata", "global.load.ref"),
        *(f"switch.{kind}" for kind in ("i32", "i64", "f32", "f64")),
        *(f"const.{kind}{zero}" for kind in ("i32", "i64", "f32", "f64") for zero in ("", ".zero")),
        *(
            f"global.{access}.{kind}"
            for access in ("load", "store", "load.indirect", "store.indirect")
            for kind in ("i32", "i64", "f32", "f64")
        ),
    }
)


def callee_of(instruction: Instruction) -> int | None:
    """Returns the ordinal of the function that an instruction calls, for an import with its bit."""
    if instruction.operation.mnemonic not in CALLS:
        return None
    return cast(int, instruction.values[0])


def is_known(instruction: Instruction) -> bool:
    """Whether machine code supports an instruction; callees are not checked."""
    mnemonic = instruction.operation.mnemonic
    if mnemonic not in TEMPLATES and mnemonic not in _OTHERS:
        return False
    if mnemonic.startswith("switch."):
        return len(cast("tuple[int, ...]", instruction.values[2])) <= MAX_SWITCH
    # Moving the reference out of the global would have to write the global.
    return mnemonic != "global.load.ref" or not cast(int, instruction.values[-1]) & MOVE_BIT


class Loops:
    """The loops of a function.

    Attributes:
        bodies: the blocks of the loop of each back edge, which is a pair of blocks. Each cycle has a back edge.
        headers: the targets of back edges.
        reachable: the blocks that control can reach.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        graph = Graph(lambda index: [edge.target for edge in blocks[index].edges])
        self.reachable: frozenset[int] = frozenset(graph.order)
        self.bodies: dict[tuple[int, int], frozenset[int]] = {
            (source, header): _body(graph.predecessors, source, header)
            for header in sorted(graph.order)
            for source in graph.predecessors[header]
            if graph.is_back_edge(source, header)
        }
        self.headers: frozenset[int] = frozenset(header for _, header in self.bodies)


def _body(predecessors: dict[int, list[int]], source: int, header: int) -> frozenset[int]:
    """Returns the blocks of a loop: the header, and the blocks that reach ``source`` without passing the header."""
    body = {header}
    pending = [source]
    while pending:
        block = pending.pop()
        if block not in body:
            body.add(block)
            pending += predecessors.get(block, ())
    return frozenset(body)


class Layout:
    """The frame of one function, and the edges at which machine code checks its fuel.

    Attributes:
        lock: the lock to hold while the analysis is used, as it caches its last result.
        homes: the word of each variable, by name.
        size: the size in words.
        loops: the loops at whose headers code may begin.
        cost: the rough cost of executing each instruction once, in additions.
    """

    def __init__(self, analysis: FunctionAnalysis) -> None:
        self.analysis = analysis
        self.lock: threading.Lock = threading.Lock()
        self.homes: dict[str, int] = {}
        self._homes_at: dict[int, tuple[tuple[str, int], ...]] = {}
        self.size: int = 1 + len(analysis.function.signature.results)
        # A function that reads slots as types other than were written has no variables, and gets no machine code.
        self.is_typed: bool = analysis.register_types is not None
        if self.is_typed:
            for operands in analysis.operands:
                self._place(operands.reads)
                self._place(operands.writes)
            self._place(analysis.arguments)
            for block in analysis.blocks:
                self._place_edges(block)
        self.loops: Loops = Loops(analysis.blocks)
        self._costs = [
            sum(_cost(analysis.instructions[index]) for index in range(block.start, block.end))
            for block in analysis.blocks
        ]
        self.cost: int = sum(self._costs)

    def homes_at(self, entry: int) -> tuple[tuple[str, int], ...]:
        """Returns the types and words of the registers in a frame that continues at an entry.

        For entry 0 the arguments.
        """
        homes = self._homes_at.get(entry)
        if homes is None:
            names: Iterable[str] = [f"{kind}{number}" for kind, number in self.analysis.arguments]
            if entry:
                with self.lock:
                    names = self.analysis.names_at(entry)
            homes = self._homes_at[entry] = tuple([(name[0], self.homes[name]) for name in names])
        return homes

    def _place(self, variables: Iterable[tuple[str, int]]) -> None:
        for kind, number in variables:
            if self.homes.setdefault(f"{kind}{number}", self.size) == self.size:
                self.size += 1

    def _place_edges(self, block: Block) -> None:
        types: Mapping[int, str] | None = None
        for edge in block.edges:
            if edge.refs:
                self._place([("r", to) for to in edge.refs])
                self._place([("r", origin) for origin in edge.refs.values() if origin is not None])
            if not edge.values:
                continue
            if types is None:
                types = self.analysis.types_before(block, block.end)
            for to, source in edge.values.items():
                kind = types.get(source, "?")
                if kind not in "JG?":
                    self._place([(kind, to), (kind, source)])

    def loop_cost(self, source: int, header: int) -> int:
        """Returns the rough cost of a loop's most expensive iteration, in additions."""
        return sum(self._costs[block] for block in self.loops.bodies[source, header])


def _cost(instruction: Instruction) -> int:
    template = TEMPLATES.get(instruction.operation.mnemonic)
    if template is not None:
        return template.cost
    return 16 if instruction.operation.mnemonic.startswith(("call", "global.")) else 1
