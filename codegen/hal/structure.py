"""Writes a function's control flow with ``if`` and ``while``; as a loop over block numbers where Python has no words.

Where branches meet is a *label*, written behind the statement that they leave; if a statement may leave for several
labels, ``target`` says for which (Ramsey, Beyond Relooper, 2022, as the VM's translator does it).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ...vm.translation.control_flow import Graph, Placement, UnstructuredError
from ..program.counters import find_counters
from ..program.ir import Block, Edge, Function, Value, Variable
from .expressions import Text
from .module import Module
from .operands import quoted
from .statements import StatementWriter

_MAX_INDENT: Final = 15


class _Place(NamedTuple):
    """Where control goes from a place in the text."""

    labels: tuple[int, ...] = ()  # by falling off the end of the statement, in order
    header: int = -1  # by ``continue``
    behind: tuple[int, ...] = ()  # by ``break``, in order


def write_body(module: Module, function: Function) -> list[str]:
    """The statements of a function, without indentation."""
    counters = find_counters(function)
    try:
        writer = _StructureWriter(module, function, counters)
        writer.write()
    except UnstructuredError:
        writer = _StructureWriter(module, function, counters)
        writer.write_numbered()
    return writer.lines


class _StructureWriter(StatementWriter):
    """Writes one function. Node n of the graph is block n."""

    def __init__(self, module: Module, function: Function, counters: dict[Variable, Value]) -> None:
        super().__init__(module, function, counters)
        self.graph = Graph(lambda node: [edge.target for edge in function.blocks[node].edges])
        self._placement: Placement | None = None
        self._entered: set[int] = set()
        self._guarded: set[int] = set()

    def write(self) -> None:
        """Writes the function with statements; may raise UnstructuredError."""
        ends = frozenset(
            node
            for node in self.graph.order
            if node and not self.graph.successors[node] and len(self.function.blocks[node].instructions) == 1
        )
        self._placement = Placement(self.graph, ends)
        self._tree(0, _Place())

    # -- structure -----------------------------------------------------------------------------------

    def _ordered(self, nodes: Sequence[int]) -> list[int]:
        return sorted(nodes, key=self.graph.rank.__getitem__)

    def _tree(self, node: int, place: _Place, outside: _Place | None = None) -> None:
        """Writes a block and those that it dominates; ``outside`` is the place around the loop that it heads."""
        placement = self._placement
        assert placement is not None
        if self.indent > _MAX_INDENT:
            raise UnstructuredError
        waiting: list[int] = []
        current: int | None = node
        while current is not None:
            here, current = current, None
            if here in self.graph.headers and outside is None:
                behind = self._ordered(placement.after_loop.get(here, ()))
                waiting = behind + waiting
                around = place._replace(labels=(*waiting, *place.labels))
                self._guard(behind, placement.loop_targets(here), around)
                self._entered.add(here)
                with self.suite("while True:"):
                    self._tree(here, _Place((here,), here, around.labels), around)
            else:
                after = self._ordered(placement.after.get(here, ()))
                waiting = after + waiting
                around = place._replace(labels=(*waiting, *place.labels))
                self._guard(after, placement.statement_targets[here], around)
                current = self._node(here, around, None if after else outside)
                outside = None
                if current is not None:
                    continue
            while waiting:
                label = waiting.pop(0)
                if label in self._guarded:
                    with self.suite(f"if target == {label}:"):
                        self._tree(label, place._replace(labels=(*waiting, *place.labels)))
                else:
                    current = label
                    break

    def _guard(self, labels: Sequence[int], targets: frozenset[int], place: _Place) -> None:
        if labels and sum(one in targets for one in place.labels) > 1:
            self._guarded.update(labels)

    def _is_inline(self, target: int) -> bool:
        placement = self._placement
        return placement is not None and target in placement.inline and target not in self._entered

    def _falls(self, edge: Edge, place: _Place) -> bool:
        """Whether control may come out behind the statement that a branch is in."""
        placement = self._placement
        if placement is None:
            return True
        if self._is_inline(edge.target):
            return not placement.whole_targets[edge.target].isdisjoint(place.labels)
        return edge.target in place.labels

    def _jump(self, target: int, place: _Place) -> None:
        if self._placement is None:
            self.line(f"target = {target}")
        elif target in place.labels:
            self._number(target, place.labels)
        elif target == place.header:
            self.line("continue")
        elif target in place.behind:
            self._number(target, place.behind)
            self.line("break")
        else:
            raise UnstructuredError

    def _number(self, target: int, labels: tuple[int, ...]) -> None:
        if any(label in self._guarded for label in labels[: labels.index(target) + 1]):
            self.line(f"target = {target}")

    # -- blocks --------------------------------------------------------------------------------------

    def _node(self, node: int, place: _Place, outside: _Place | None = None) -> int | None:
        """Writes a block; returns the one to continue with at the same level, if there is one."""
        block = self.function.blocks[node]
        count = len(self.lines)
        self.block(block)
        terminator = block.terminator
        match terminator.operation:
            case "cond_br":
                test = self._test(block)
                loops = (
                    outside is not None and len(self.lines) == count and block.edges[0].target != block.edges[1].target
                )
                if loops and outside is not None and self._while(node, test, block.edges, place, outside):
                    return None
                return self._branch(test, block.edges[0], block.edges[1], place)
            case "br_table":
                return self._table(self._test(block), block.edges, place)
            case "return":
                self._return(block)
            case "fail":
                status, text = self.text_of(self._value(terminator, 0)), quoted(terminator.text)
                self.flush()
                self.locate(terminator.location)
                self.raised(status.number(), text)
            case _:
                self.flush([source for _, source in block.edges[0].copies])
                return self._leave(block.edges[0], place)
        return None

    def _test(self, block: Block) -> Text:
        test = self.text_of(self._value(block.terminator, 0))
        self.flush()
        return test

    def _return(self, block: Block) -> None:
        values = block.terminator.operands
        texts = [self.text_of(value).number() for value in values if not isinstance(value, tuple)]
        self.flush()
        if texts:
            self.line(f"return {', '.join(texts)}")
        elif self.indent or self._placement is None:
            self.line("return")

    def _leave(self, edge: Edge, place: _Place) -> int | None:
        self.copy(edge)
        if self._is_inline(edge.target):
            return edge.target
        self._jump(edge.target, place)
        return None

    def _arm(self, edge: Edge, place: _Place) -> None:
        """Writes the copies of a branch and its target, as a suite."""
        saved = self._location
        count = len(self.lines)
        self.indent += 1
        following = self._leave(edge, place)
        if following is not None:
            self._inline(following, place)
        if not any(not line.lstrip().startswith("#") for line in self.lines[count:]):
            self.line("pass")
        self.indent -= 1
        self._location = saved

    def _inline(self, node: int, place: _Place) -> None:
        if self._placement is not None:
            self._tree(node, place)
            return
        current: int | None = node
        while current is not None:
            current = self._node(current, place)

    def _does_nothing(self, edge: Edge, place: _Place) -> bool:
        """Whether a branch falls through without a statement."""
        labels = place.labels
        return (
            self._placement is not None
            and not edge.copies
            and not self._is_inline(edge.target)
            and edge.target in labels
            and not any(label in self._guarded for label in labels[: labels.index(edge.target) + 1])
        )

    def _branch(self, test: Text, yes: Edge, no: Edge, place: _Place) -> int | None:
        text = test.test()
        yes_falls, no_falls = self._falls(yes, place), self._falls(no, place)
        if (yes_falls and not no_falls) or (self._does_nothing(yes, place) and not self._does_nothing(no, place)):
            text, yes, no = test.negated(), no, yes
            yes_falls, no_falls = no_falls, yes_falls
        self.line(f"if {text}:")
        self._arm(yes, place)
        if not yes_falls:
            return self._leave(no, place)
        if not self._does_nothing(no, place):
            self.line("else:")
            self._arm(no, place)
        return None

    def _while(self, header: int, test: Text, edges: Sequence[Edge], place: _Place, outside: _Place) -> bool:
        """Turns the ``while True:`` on the last line into one with a condition, if the header is only a test."""
        if not self.lines or self.lines[-1].strip() != "while True:":
            return False
        loops = self.graph.loops
        inside = [header in loops[edge.target] for edge in edges]
        if inside[0] == inside[1]:
            return False
        stay, leave = (edges[0], edges[1]) if inside[0] else (edges[1], edges[0])
        self.indent -= 1
        self.lines.pop()
        self.line(f"while {test.test() if inside[0] else test.negated()}:")
        start = len(self.lines)
        self._arm(stay, place)
        last = self.lines[-1]
        if last == f"{'    ' * (self.indent + 1)}continue":
            self.lines.pop()
        if not any(line.strip() == "break" for line in self.lines[start:]):
            following = self._leave(leave, outside)
            if following is not None:
                self._inline(following, outside)
        elif not self._does_nothing(leave, outside):
            self.line("else:")
            self._arm(leave, outside)
        self.indent += 1
        return True

    def _table(self, test: Text, edges: Sequence[Edge], place: _Place) -> int | None:
        default, *cases = edges
        if not cases:
            return self._leave(default, place)
        name = test.text if test.atom and test.text.isidentifier() else "case"
        if name == "case":
            self.line(f"case = {test.number()}")
        for position, edge in enumerate(cases):
            self.line(f"{'elif' if position else 'if'} {name} == {position}:")
            self._arm(edge, place)
        self.line("else:")
        self._arm(default, place)
        return None

    # -- without structure ---------------------------------------------------------------------------

    def write_numbered(self) -> None:
        """Writes the function as a loop over block numbers."""
        self.line("target = 0")
        with self.suite("while True:"):
            for position, node in enumerate(sorted(self.graph.order)):
                with self.suite(f"{'elif' if position else 'if'} target == {node}:"):
                    self._location = None
                    self._node(node, _Place())
