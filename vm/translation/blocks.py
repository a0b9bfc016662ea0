"""Writes the nodes of a function's graph: a block's instructions, its terminator, and its branches.

Node 0 of the graph is the start of the variant; node n + 1 is block n. The target of a branch is written inside it
(*inline*) or is a *label* after the statement; tree.py decides which, and writes the jump to a label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from ..bytecode.decoder import Instruction
from .analysis import FunctionAnalysis
from .basic_block import Block, Edge, Variable
from .call_writer import CallWriter
from .control_flow import Graph
from .expressions import (
    NONE,
    ZERO,
    Attribute,
    Comparison,
    Display,
    Expression,
    Literal,
    Logical,
    Name,
    call,
    negated,
)
from .flow import COLD_FUNCTION, Flow, Warmth
from .ranges import Range
from .tree import Exits, TreeWriter
from .values import PendingValue

_MAX_ARMS: Final = 6  # arms of a table that is tested case by case; longer tables are searched


class NodeWriter(CallWriter, TreeWriter):
    """Writes nodes of the variant that starts at ``entry``: blocks with their terminators.

    Branches back to loop headers count iterations, and sometimes check whether machine code is ready.
    """

    bounds: dict[str, Range]
    indent: int

    def __init__(self, analysis: FunctionAnalysis, flow: Flow, entry: int, warmth: Warmth = COLD_FUNCTION) -> None:
        CallWriter.__init__(self, analysis)
        self._turns = {
            edge: warmth.turns[block.index, edge.target]
            for block in analysis.blocks
            for edge in block.edges
            if (block.index, edge.target) in warmth.turns
        }
        self.counts: bool = False
        self.entry = entry
        self.flow = flow
        self._root: Block | None = None
        self._root_edges: Sequence[Edge] = [Edge(0)]
        if entry:
            block = analysis.block_of(entry - 1)
            self._root_edges = block.edges  # the edges of a yield or a yieldable call
            if entry < block.end:
                self._root = block
                if self._cut(block, entry) is not None or block.index in flow.failing:
                    self._root_edges = []
        TreeWriter.__init__(self, Graph(self._successors))
        self._guesses: dict[int, list[str]] = {}  # for each header the names that are guessed to stay non-negative
        self.refuted: set[tuple[int, str]] = set()  # wrong guesses; if there are any, the source is wrong

    def _successors(self, node: int) -> Sequence[int]:
        return [edge.target + 1 for edge in (self.flow.edges[node - 1] if node else self._root_edges)]

    def _cut(self, block: Block, start: int) -> int | None:
        """Returns the first call from ``start`` on that always suspends."""
        return next((index for index in self.flow.cuts.get(block.index, ()) if index >= start), None)

    # -- nodes ---------------------------------------------------------------------------------------

    def node(self, node: int, exits: Exits, outside: Exits | None = None) -> int | None:
        """Writes a node; returns the node to continue with at the same level, if there is one."""
        if node == 0:
            self._enter()
            if self._root is None:
                return self._leave(self._root_edges[0], exits)
            block, start = self._root, self.entry
        else:
            block = self.analysis.blocks[node - 1]
            start = block.start
        cut = self._cut(block, start)
        end = block.end if cut is None else cut + 1
        self.begin(block, start, end)
        for index in range(start, end - 1):
            mnemonic = self.analysis.instructions[index].operation.mnemonic
            if mnemonic.startswith("call"):
                self.call(index)
            elif mnemonic != "block":
                self.operation(index)
        if cut is not None:
            self.call(cut)
            return None
        terminator = self.analysis.instructions[block.end - 1]
        self.pc = terminator.pc
        if not self.raw:
            self.state = self.analysis.types_before(block, block.end)
        return self._terminate(node, block, terminator, exits, outside)

    def _enter(self) -> None:
        """Writes the start of the variant: assigns the results of the preceding call."""
        if self.entry == 0:
            return
        index = self.entry - 1
        self.pc = self.analysis.instructions[index].pc
        block = self.analysis.block_of(index)
        writes = self.analysis.operands[index].writes
        if not self.raw:
            self.state = self.analysis.types_before(block, self.entry)
        if self.analysis.instructions[index].operation.mnemonic.startswith("call"):
            self.results(Name("a"), writes)

    def _arm(self, edge: Edge, exits: Exits, test: Expression | None = None, *, holds: bool = True) -> None:
        """Writes the copies of a branch and its target, as a suite."""
        saved = (self.state, self.pending, self._readers, self.local_constants, self.uses, dict(self.bounds), self.pc)
        count = len(self.lines)
        self.indent += 1
        if test is not None:
            self.learn(test, holds=holds)
        following = self._leave(edge, exits)
        if following is not None:
            self.write_inline(following, exits)
        if len(self.lines) == count:
            self.line("pass")
        self.indent -= 1
        self.local_constants: dict[str, Expression]
        self.pc: int
        self.pending: dict[str, PendingValue]
        self.state: Mapping[int, str]
        self.uses: dict[int, int]
        self.state, self.pending, self._readers, self.local_constants, self.uses, self.bounds, self.pc = saved

    def _leave(self, edge: Edge, exits: Exits) -> int | None:
        """Writes an edge's copies and jump; returns its target if the target must be written here."""
        self.copy(edge)
        target = edge.target + 1
        is_inline = self._is_inline(target)
        if edge in self._turns:
            self._count(edge, is_first=is_inline)
        if is_inline:
            return target
        self._jump(target, exits)
        return None

    def _count(self, edge: Edge, *, is_first: bool) -> None:
        """Counts an iteration of a loop, and continues it in machine code when it is hot."""
        entry = self.analysis.blocks[edge.target].start + 1
        names = self.analysis.names_at(entry)
        self.read_names.update(names)
        registers = Display(tuple(map(Name, names)))
        if is_first:
            self.ask_tier(entry, Literal(self._turns[edge]), registers)
            return
        self.counts = True
        self.line(f"n += {self._turns[edge]}")
        with self.suite(f"if n > {self.bound('limit').name}:"):
            self.ask_tier(entry, Name("n"), registers)
            self.line("n = 0")

    # -- terminators ---------------------------------------------------------------------------------

    def _terminate(
        self,
        node: int,
        block: Block,
        terminator: Instruction,
        exits: Exits,
        outside: Exits | None,
    ) -> int | None:
        mnemonic = terminator.operation.mnemonic
        index = block.end - 1
        reads = self.analysis.operands[index].reads
        edges = block.edges
        if mnemonic == "cond_br":
            test = self._settled(block, reads[0])
            if (
                outside is not None
                and edges[0].target != edges[1].target
                and self.lines[-1].endswith("while True:")
                and self._while(node, test, edges, exits, outside)
            ):
                return None
            return self._branch(test, edges[0], edges[1], exits)
        if mnemonic == "br_table":
            return self._table(self._settled(block, reads[0]), edges, exits)
        if mnemonic == "return":
            texts = [value.python() for value in self.passed(index)]
            self.line(f"return {', '.join(texts) or None}")
            return None
        if mnemonic == "fail":
            return self._fail(block, terminator, exits)
        if mnemonic == "yield":
            self.settle(block)
            self.suspend(index, "YIELD")
            return None
        if mnemonic.startswith("call"):
            self.call(index)
            self.settle(block)
            return self._leave(edges[0], exits)
        if mnemonic == "break":
            self._break(block, None)
        elif mnemonic == "cond_break":
            self._break(block, reads[0])
        keep: set[str] = set()
        if not self.raw:
            keep = {f"{self.state.get(source)}{source}" for source in edges[0].values.values()}
        self.settle(block, keep & self.pending.keys())
        return self._leave(edges[0], exits)

    def _settled(self, block: Block, variable: Variable) -> Expression:
        """Returns the condition at a block's end; stores pending values that are live after it."""
        test = self.condition(variable).tree
        self.settle(block)
        return test

    def _branch(self, test: Expression, yes: Edge, no: Edge, exits: Exits) -> int | None:
        yes_falls, no_falls = self._falls(yes.target + 1, exits), self._falls(no.target + 1, exits)
        if yes_falls and not no_falls:
            test, yes, no = negated(test), no, yes
            yes_falls, no_falls = no_falls, yes_falls
        self.line(f"if {test.python()}:")
        self._arm(yes, exits, test)
        if not yes_falls:
            self.learn(test, holds=False)
            return self._leave(no, exits)
        self.line("else:")
        self._arm(no, exits, test, holds=False)
        return None

    def _while(
        self,
        header: int,
        test: Expression,
        edges: Sequence[Edge],
        exits: Exits,
        outside: Exits,
    ) -> bool:
        """Turns the ``while True:`` on the last line into ``while condition:`` if the header is only a test."""
        loops = self.graph.loops
        inside = [header in loops[edge.target + 1] for edge in edges]
        if inside[0] == inside[1]:
            return False
        stay, leave = (edges[0], edges[1]) if inside[0] else (edges[1], edges[0])
        if not inside[0]:
            test = negated(test)
        self.indent -= 1
        self.lines.pop()
        self.pcs.pop()
        self.line(f"while {test.python()}:")
        self._arm(stay, exits, test)
        count = len(self.lines)
        self.line("else:")
        self._arm(leave, outside, test, holds=False)
        if self.lines[count + 1].lstrip() == "pass":
            del self.lines[count:], self.pcs[count:]
        self.indent += 1
        return True

    def _table(self, test: Expression, edges: Sequence[Edge], exits: Exits) -> int | None:
        default, *cases = edges
        if not cases:
            return self._leave(default, exits)
        # Adjacent cases with the same target are tested together.
        spans: list[tuple[int, int, Edge]] = []
        for position, edge in enumerate(cases):
            last = spans[-1][2] if spans else None
            if last is not None and last.target == edge.target and last.operands == edge.operands:
                spans[-1] = (spans[-1][0], position + 1, edge)
            else:
                spans.append((position, position + 1, edge))
        self.line(f"k = {PendingValue(test).as_number().tree.python()}")
        if len(spans) <= _MAX_ARMS:
            for position, (first, end, edge) in enumerate(spans):
                text = f"k == {first}" if end == first + 1 else f"{first} <= k < {end}"
                self.line(f"{'elif' if position else 'if'} {text}:")
                self._arm(edge, exits)
            self.line("else:")
            self._arm(default, exits)
            return None
        with self.suite(f"if 0 <= k < {len(cases)}:"):
            self._table_search(spans, exits)
        self.line("else:")
        self._arm(default, exits)
        return None

    def _table_search(self, spans: Sequence[tuple[int, int, Edge]], exits: Exits) -> None:
        middle = len(spans) // 2
        for header, half in ((f"if k < {spans[middle][0]}:", spans[:middle]), ("else:", spans[middle:])):
            self.line(header)
            if len(half) == 1:
                self._arm(half[0][2], exits)
            else:
                self.indent += 1
                self._table_search(half, exits)
                self.indent -= 1

    def _fail(self, block: Block, terminator: Instruction, exits: Exits) -> int | None:
        message = Literal(cast(str, terminator.values[1]))
        status = self.operand(self.analysis.operands[block.end - 1].reads[0])
        failure = f"raise {call('failure', status, message).python()}"
        if block.index in self.flow.failing:
            self.line(failure)
            return None
        self.settle(block)
        with self.suite(f"if {status.python()}:"):
            self.line(failure)
        if not block.edges:
            self.line(f"raise {call('failure', ZERO, message).python()}")
            return None
        return self._leave(block.edges[0], exits)

    def _break(self, block: Block, condition: Variable | None) -> None:
        self.settle(block)
        hook = Attribute(self.bound("hooks"), "break_")
        pairs = [f"{name!r}: {value.python()}" for name, value in self.held_values(block.end - 1).items()]
        test: Expression = Comparison("is not", hook, NONE)
        if condition is not None:
            test = Logical("and", test, self.operand(condition))
        with self.suite(f"if {test.python()}:"):
            self.line(f"{hook.python()}({self.analysis.function.name!r}, {self.pc}, {{{', '.join(pairs)}}})")
