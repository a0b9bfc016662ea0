"""Writes a function's control flow as ``if`` and ``while``, or as a loop over block numbers if Python cannot express
it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...vm.translation.control_flow import Graph, UnstructuredError
from ...vm.translation.expressions import Expression, Name
from ...vm.translation.tree import Exits, TreeWriter
from ..program.counters import find_counters
from ..program.ir import Block, Edge, Function, Value, Variable
from .expressions import Term
from .lines import CONTINUE, RETURN, Node, Raise, Suite, leaves
from .module import Module
from .statements import StatementWriter


def write_body(module: Module, function: Function) -> list[Node]:
    """Returns the statements of a function, without a last ``return``."""
    counters = find_counters(function)
    try:
        writer = _StructureWriter(module, function, counters)
        writer.write()
    except UnstructuredError:
        writer = _StructureWriter(module, function, counters)
        writer.write_numbered()
    return writer.body[:-1] if writer.body[-1:] == [RETURN] else writer.body


class _StructureWriter(StatementWriter, TreeWriter):
    """Writes one function. Node n of the graph is block n."""

    variable = "target"
    max_indent = 15

    def __init__(self, module: Module, function: Function, counters: dict[Variable, Value]) -> None:
        StatementWriter.__init__(self, module, function, counters)
        TreeWriter.__init__(self, Graph(lambda node: [edge.target for edge in function.blocks[node].edges]))

    def write(self) -> None:
        """Writes the function with statements; may raise UnstructuredError."""
        ends = frozenset(
            node
            for node in self.graph.order
            if node and not self.graph.successors[node] and len(self.function.blocks[node].instructions) == 1
        )
        self.write_tree(ends)

    # -- blocks --------------------------------------------------------------------------------------

    def node(self, node: int, exits: Exits, outside: Exits | None = None) -> int | None:
        """Writes a block; returns the block to continue with at the same level, or ``None``."""
        block = self.function.blocks[node]
        count = len(self.open[-1])
        self.block(block)
        terminator = block.terminator
        match terminator.operation:
            case "cond_br":
                test = self._test(block)
                is_test = len(self.open[-1]) == count and block.edges[0].target != block.edges[1].target
                if is_test and outside is not None and self._while(node, test, block.edges, exits, outside):
                    return None
                return self._branch(test, block.edges[0], block.edges[1], exits)
            case "br_table":
                return self._table(self._test(block), block.edges, exits)
            case "return":
                self._return(block)
            case "fail":
                status = self.term_of(self._value(terminator, 0)).number()
                self.flush()
                self.locate(terminator.location)
                self.open[-1].append(Raise(status, terminator.text))
            case _:
                self.flush([source for _, source in block.edges[0].copies])
                return self._leave(block.edges[0], exits)
        return None

    def _test(self, block: Block) -> Term:
        test = self.term_of(self._value(block.terminator, 0))
        self.flush()
        return test

    def _return(self, block: Block) -> None:
        values = block.terminator.operands
        trees = [self.term_of(value).number() for value in values if not isinstance(value, tuple)]
        self.flush()
        if len(trees) == 1:
            self.statement("return ", trees[0])
        elif trees:
            self.line(f"return {', '.join(tree.python() for tree in trees)}")
        elif self.indent or self._placement is None:
            self.open[-1].append(RETURN)

    def _leave(self, edge: Edge, exits: Exits) -> int | None:
        self.copy(edge)
        if self._is_inline(edge.target):
            return edge.target
        self._jump(edge.target, exits)
        return None

    def _arm(self, edge: Edge, exits: Exits, header: str, test: Expression | None = None) -> None:
        """Writes a branch's copies and its target as a suite."""
        saved = self._location
        with self.suite(header, test):
            self._follow(edge, exits)
        self._location = saved

    def _follow(self, edge: Edge, exits: Exits) -> None:
        """Writes a branch's copies and its target."""
        following = self._leave(edge, exits)
        if following is not None:
            self.write_inline(following, exits)

    def _does_nothing(self, edge: Edge, exits: Exits) -> bool:
        """Whether a branch falls through without a statement."""
        return (
            self._placement is not None
            and not edge.copies
            and not self._is_inline(edge.target)
            and edge.target in exits.labels
            and not self._is_numbered(edge.target, exits.labels)
        )

    def _branch(self, test: Term, yes: Edge, no: Edge, exits: Exits) -> int | None:
        condition = test.tree
        yes_falls, no_falls = self._falls(yes.target, exits), self._falls(no.target, exits)
        if (yes_falls and not no_falls) or (self._does_nothing(yes, exits) and not self._does_nothing(no, exits)):
            condition, yes, no = test.opposite(), no, yes
            yes_falls, no_falls = no_falls, yes_falls
        self._arm(yes, exits, "if ", condition)
        if not yes_falls:
            return self._leave(no, exits)
        if not self._does_nothing(no, exits):
            self._arm(no, exits, "else:")
        return None

    def _while(self, header: int, test: Term, edges: Sequence[Edge], exits: Exits, outside: Exits) -> bool:
        """Turns the open ``while True:`` into a loop with a condition, if the header is only a test."""
        loops = self.graph.loops
        inside = [header in loops[edge.target] for edge in edges]
        if inside[0] == inside[1]:
            return False
        stay, leave = (edges[0], edges[1]) if inside[0] else (edges[1], edges[0])
        body, around = self.open.pop(), self.open[-1]
        self.indent -= 1
        around.pop()
        self._arm(stay, exits, "while ", test.tree if inside[0] else test.opposite())
        loop = around[-1]
        assert isinstance(loop, Suite)
        if loop.body[-1] == CONTINUE:
            loop.body.pop()
        if not leaves(loop.body):
            self._follow(leave, outside)
        elif not self._does_nothing(leave, outside):
            self._arm(leave, outside, "else:")
        self.open.append(body)
        self.indent += 1
        return True

    def _table(self, test: Term, edges: Sequence[Edge], exits: Exits) -> int | None:
        default, *cases = edges
        if not cases:
            return self._leave(default, exits)
        name = test.tree.name if isinstance(test.tree, Name) else "case"
        if name == "case":
            self.statement("case = ", test.number())
        for position, edge in enumerate(cases):
            self._arm(edge, exits, f"{'elif' if position else 'if'} {name} == {position}:")
        self._arm(default, exits, "else:")
        return None

    # -- without structure ---------------------------------------------------------------------------

    def write_numbered(self) -> None:
        """Writes the function as a loop over block numbers."""
        self.line("target = 0")
        with self.suite("while True:"):
            for position, node in enumerate(sorted(self.graph.order)):
                with self.suite(f"{'elif' if position else 'if'} target == {node}:"):
                    self._location = None
                    self.node(node, Exits())
