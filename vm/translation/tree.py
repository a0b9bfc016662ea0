"""Writes the nodes of a graph as nested statements of Python, with labels at the points where branches meet.

A label is written after the statement that contains its branches. If a statement may branch to several labels, a
variable selects the label (Ramsey, Beyond Relooper, 2022).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import ClassVar, NamedTuple

from .control_flow import Graph, Placement, UnstructuredError


class Exits(NamedTuple):
    """The targets that control can reach from a position in the source."""

    labels: tuple[int, ...] = ()  # by falling off the end of the statement, in order
    header: int = -1  # by ``continue``
    behind: tuple[int, ...] = ()  # by ``break``, in order


class TreeWriter(ABC):
    """Writes the statements around nodes; subclasses write the nodes and lines.

    Calling sequence: created → ``write_tree``, or nodes are written inside a loop over their numbers.

    Attributes:
        graph: the function's graph.
        indent: the level of the next line.
        variable: the name of the variable that selects the label.
        max_indent: the deepest nesting; a loop over numbers replaces deeper nesting.
    """

    variable: ClassVar[str]
    max_indent: ClassVar[int]
    indent: int

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._placement: Placement | None = None  # ``None`` in a loop over numbers
        self._inline: Collection[int] = frozenset()
        self._entered: set[int] = set()  # headers of loops whose ``while`` was written
        self._guarded: set[int] = set()  # labels that are entered by their number

    # -- what subclasses write -----------------------------------------------------------------------

    @abstractmethod
    def line(self, text: str) -> None:
        """Adds a line."""

    @abstractmethod
    def suite(self, header: str) -> AbstractContextManager[None]:
        """Adds a header and indents the lines written inside."""

    @abstractmethod
    def node(self, node: int, exits: Exits, outside: Exits | None = None) -> int | None:
        """Writes a node; returns the next node to write at the same level, or ``None``."""

    def enter_loop(self, header: int, behind: Sequence[int]) -> None:  # noqa: B027  # subclasses may ignore it
        """Called before a loop and the labels after it are written."""

    def await_label(self, label: int) -> None:  # noqa: B027  # subclasses may ignore it
        """Called before the statement in front of a label is written."""

    def enter_label(self, label: int) -> None:  # noqa: B027  # subclasses may ignore it
        """Called before a label is written."""

    # -- statements ----------------------------------------------------------------------------------

    def write_tree(self, ends: frozenset[int]) -> None:
        """Writes all nodes, and ``ends`` at each branch to them; may raise UnstructuredError."""
        self._placement = Placement(self.graph, ends)
        self._inline = self._placement.inline
        self._tree(0, Exits())

    def _tree(self, node: int, exits: Exits, outside: Exits | None = None) -> None:
        """Writes a node and the nodes that it dominates.

        If the node is the header of a loop whose ``while`` was just written, ``outside`` has the exits around the loop.
        """
        placement = self._placement
        assert placement is not None
        if self.indent > self.max_indent:
            raise UnstructuredError
        waiting: list[int] = []
        current: int | None = node
        while current is not None:
            here, current = current, None
            if here in self.graph.headers and outside is None:
                behind = self._ordered(placement.after_loop.get(here, ()))
                self.enter_loop(here, behind)
                waiting = behind + waiting
                around = exits._replace(labels=(*waiting, *exits.labels))
                self._guard(behind, placement.loop_targets(here), around)
                self._entered.add(here)
                with self.suite("while True:"):
                    self._tree(here, Exits((here,), here, around.labels), around)
            else:
                after = self._ordered(placement.after.get(here, ()))
                waiting = after + waiting
                around = exits._replace(labels=(*waiting, *exits.labels))
                self._guard(after, placement.statement_targets[here], around)
                for label in after:
                    self.await_label(label)
                current = self.node(here, around, None if after else outside)
                outside = None
                if current is not None:
                    continue
            while waiting:
                label = waiting.pop(0)
                self.enter_label(label)
                if label in self._guarded:
                    with self.suite(f"if {self.variable} == {label}:"):
                        self._tree(label, exits._replace(labels=(*waiting, *exits.labels)))
                else:
                    current = label
                    break

    def _ordered(self, nodes: Collection[int]) -> list[int]:
        return sorted(nodes, key=self.graph.rank.__getitem__)

    def _guard(self, labels: Sequence[int], targets: frozenset[int], exits: Exits) -> None:
        """Numbers the labels of a statement that may branch to several labels."""
        if labels and sum(label in targets for label in exits.labels) > 1:
            self._guarded.update(labels)

    def write_inline(self, node: int, exits: Exits) -> None:
        """Writes a node and the nodes that it dominates inside a branch."""
        if self._placement is not None:
            self._tree(node, exits)
            return
        current: int | None = node
        while current is not None:
            current = self.node(current, exits)

    # -- labels --------------------------------------------------------------------------------------

    def _is_inline(self, target: int) -> bool:
        """Whether a node is written inside a branch to it; branches back to a loop's header are jumps."""
        return target in self._inline and target not in self._entered

    def _falls(self, target: int, exits: Exits) -> bool:
        """Whether control may continue after the statement that contains a branch to ``target``."""
        if self._placement is None:
            return True
        if self._is_inline(target):
            return not self._placement.whole_targets[target].isdisjoint(exits.labels)
        return target in exits.labels

    def _jump(self, target: int, exits: Exits) -> None:
        """Jumps to a label, by falling through to the end of the statement or by exiting the loop."""
        if self._placement is None:
            self.line(f"{self.variable} = {target}")
        elif target in exits.labels:
            self._number(target, exits.labels)
        elif target == exits.header:
            self.line("continue")
        elif target in exits.behind:
            self._number(target, exits.behind)
            self.line("break")
        else:
            raise UnstructuredError

    def _is_numbered(self, target: int, labels: tuple[int, ...]) -> bool:
        """Whether a label is reached by its number."""
        return any(label in self._guarded for label in labels[: labels.index(target) + 1])

    def _number(self, target: int, labels: tuple[int, ...]) -> None:
        if self._is_numbered(target, labels):
            self.line(f"{self.variable} = {target}")
