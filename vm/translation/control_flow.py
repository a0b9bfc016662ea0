"""The control-flow graph of a function from one entry, and the position of each node in structured source.

Nodes are ints; node 0 is the entry. ``Graph`` finds reverse postorder, dominators and natural loops, each in about
linear time in the edges. ``Placement`` determines, after Ramsey (Beyond Relooper, 2022), which nodes are written inside
a branch to them and which follow the statement of another node. Python has no labelled blocks, so a jump out of two
loops at once raises ``UnstructuredError``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

_MAX_LABELS: Final = 256  # after one statement; with more labels the source is neither fast nor readable
_MAX_LOOPS: Final = 15  # nested loops; CPython accepts 20


class UnstructuredError(Exception):
    """The graph cannot be written with Python's statements; the translator writes a dispatch loop instead."""


class Graph:
    """A control-flow graph of the nodes that are reachable from node 0."""

    def __init__(self, successors: Callable[[int], Sequence[int]]) -> None:
        # For each reachable node the targets of its edges in order, with duplicates.
        self.successors: dict[int, Sequence[int]] = {0: successors(0)}
        postorder: list[int] = []
        stack: list[tuple[int, int]] = [(0, 0)]
        while stack:
            node, position = stack.pop()
            targets = self.successors[node]
            while position < len(targets) and targets[position] in self.successors:
                position += 1
            if position < len(targets):
                target = targets[position]
                self.successors[target] = successors(target)
                stack.append((node, position + 1))
                stack.append((target, 0))
            else:
                postorder.append(node)
        self.order: list[int] = postorder[::-1]
        self.rank: dict[int, int] = {node: position for position, node in enumerate(self.order)}
        self.predecessors: dict[int, list[int]] = {node: [] for node in self.order}  # without duplicates
        for node in self.order:
            for target in dict.fromkeys(self.successors[node]):
                self.predecessors[target].append(node)

    def is_back_edge(self, source: int, target: int) -> bool:
        """Whether an edge goes to a loop's header or into the middle of a loop."""
        return self.rank[target] <= self.rank[source]

    def find_dominators(self) -> None:
        """Computes ``immediate_dominator`` of each node, and ``headers``, the targets of back edges.

        A graph is reducible if its back edges go to dominators; then dominators do not depend on back edges, and one
        pass finds them. Raises UnstructuredError if a loop has two entries.
        """
        self.immediate_dominator: dict[int, int] = {0: 0}
        depth = {0: 0}
        # For each node an ancestor at a distance that allows searches in logarithmic time (Myers: An Applicative
        # Random-Access Stack, 1983).
        jump = {0: 0}
        parent = self.immediate_dominator

        def at_depth(node: int, wanted: int) -> int:
            while depth[node] > wanted:
                node = jump[node] if depth[jump[node]] >= wanted else parent[node]
            return node

        def common(a: int, b: int) -> int:
            a, b = at_depth(a, depth[b]), at_depth(b, depth[a])
            while a != b:
                if jump[a] != jump[b]:
                    a, b = jump[a], jump[b]
                else:
                    a, b = parent[a], parent[b]
            return a

        for node in self.order[1:]:
            above = -1
            for other in self.predecessors[node]:
                if not self.is_back_edge(other, node):
                    above = other if above < 0 else common(above, other)
            parent[node] = above
            depth[node] = depth[above] + 1
            far = jump[above]
            jump[node] = jump[far] if depth[above] - depth[far] == depth[far] - depth[jump[far]] else above
        self.headers: set[int] = set()
        for node in self.order:
            for other in self.predecessors[node]:
                if self.is_back_edge(other, node):
                    if at_depth(other, depth[node]) != node:
                        raise UnstructuredError
                    self.headers.add(node)

    def find_loops(self) -> None:
        """Computes ``loops``: for each node the headers of its natural loops, outermost first."""
        inner: dict[int, int] = {}  # the innermost loop around a node; for a header, the loop around its own loop
        merged = {node: node for node in self.order}

        def outermost(node: int) -> int:
            """Returns the header of the outermost loop found so far that contains the node, or the node itself."""
            root = node
            while merged[root] != root:
                root = merged[root]
            while merged[node] != root:
                merged[node], node = root, merged[node]
            return root

        for header in reversed(self.order):
            if header not in self.headers:
                continue
            pending = [outermost(other) for other in self.predecessors[header] if self.is_back_edge(other, header)]
            body: set[int] = set()
            while pending:
                node = pending.pop()
                if node == header or node in body:
                    continue
                body.add(node)
                pending += [outermost(other) for other in self.predecessors[node]]
            for node in body:
                inner[node] = header
                merged[node] = header
        self.loops: dict[int, tuple[int, ...]] = {}
        for node in self.order:
            around = inner.get(node)
            headers = self.loops[around] if around is not None else ()
            if node in self.headers:
                headers = (*headers, node)
            if len(headers) > _MAX_LOOPS:
                raise UnstructuredError
            self.loops[node] = headers


class Placement:
    """The position of each node of a reducible graph.

    Args:
        small: the nodes without successors that may be written more than once.

    Raises:
        UnstructuredError: the graph is irreducible, or a branch exits two loops to a node that is not at their end.
    """

    def __init__(self, graph: Graph, small: frozenset[int] = frozenset()) -> None:
        graph.find_dominators()
        graph.find_loops()
        self._graph = graph
        self._counts: dict[int, Counter[int]] = {}
        # For each node the nodes that follow its statement at the same level, in order: the points where its branches
        # meet.
        self.after: dict[int, list[int]] = {}
        self.after_loop: dict[int, list[int]] = {}  # for each header the nodes that follow its ``while``
        self.inline: set[int] = set()  # nodes that are written inside the branch to them
        for node in graph.order[1:]:
            if node in small:
                self.inline.add(node)
                continue
            forward = [other for other in graph.predecessors[node] if not graph.is_back_edge(other, node)]
            owner = graph.immediate_dominator[node]
            left = self._loops_left(owner, node)
            many = len(forward) > 1 or self._edges(forward[0], node) > 1
            if left and not (not many and not graph.successors[node]):
                self.after_loop.setdefault(left[0], []).append(node)
            elif many:
                self.after.setdefault(owner, []).append(node)
            else:
                self.inline.add(node)
        for labels in (*self.after.values(), *self.after_loop.values()):
            if len(labels) > _MAX_LABELS:
                raise UnstructuredError
        self._find_targets()

    def _edges(self, source: int, target: int) -> int:
        """Returns the number of edges from one node to another."""
        counts = self._counts.get(source)
        if counts is None:
            counts = self._counts[source] = Counter(self._graph.successors[source])
        return counts[target]

    def _loops_left(self, source: int, target: int) -> tuple[int, ...]:
        """Returns the headers of the loops around ``source`` that do not contain ``target``, outermost first."""
        inside = self._graph.loops[target]
        return tuple(header for header in self._graph.loops[source] if header not in inside)

    def _find_targets(self) -> None:
        graph = self._graph
        # For each node the labels that are targets of branches out of its statement and the statements written with it.
        self.statement_targets: dict[int, frozenset[int]] = {}
        self.whole_targets: dict[int, frozenset[int]] = {}
        for node in reversed(graph.order):
            targets: set[int] = set()
            for target in dict.fromkeys(graph.successors[node]):
                if target in self.inline and not graph.is_back_edge(node, target):
                    targets |= self.whole_targets[target]
                else:
                    targets.add(target)
            self.statement_targets[node] = frozenset(targets)
            after, behind = self.after.get(node, ()), self.after_loop.get(node, ())
            for follower in (*after, *behind):
                targets |= self.whole_targets[follower]
            targets.difference_update(after, behind)
            targets.discard(node)
            if len(targets) > _MAX_LABELS:
                raise UnstructuredError
            self.whole_targets[node] = frozenset(targets)

    def loop_targets(self, header: int) -> frozenset[int]:
        """Returns the labels that are targets of branches out of a loop."""
        targets = self.statement_targets[header]
        return targets.union(*(self.whole_targets[node] for node in self.after.get(header, ())))
