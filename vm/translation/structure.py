"""Writes a function's control flow: as ``if`` and ``while`` if the graph allows it, otherwise as a dispatch loop.

Node 0 of the graph is the start of the variant; node n + 1 is block n. A node at which several branches meet is a
*label*, written after the statement that contains the branches; if a statement may branch to several labels, ``b``
selects the label.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .analysis import FunctionAnalysis
from .blocks import NodeWriter
from .flow import COLD_FUNCTION, Flow, Warmth
from .ranges import FULL, Range
from .tree import Exits

_MAX_CHAIN: Final = 12  # nested blocks of a dispatch loop


class StructureWriter(NodeWriter):
    """Writes the control flow of a variant.

    ``refuted`` are wrong guesses to avoid, as pairs of header and name; ``None`` allows no guess.
    """

    variable = "b"
    max_indent = 60  # CPython accepts 100 levels

    def __init__(
        self,
        analysis: FunctionAnalysis,
        flow: Flow,
        entry: int,
        refuted: frozenset[tuple[int, str]] | None = None,
        warmth: Warmth = COLD_FUNCTION,
    ) -> None:
        super().__init__(analysis, flow, entry, warmth)
        self._known_at: dict[int, tuple[dict[str, Range], int]] = {}
        self._not_guessed = refuted
        self._written_in: dict[int, int] | None = None

    def enter_loop(self, header: int, behind: Sequence[int]) -> None:
        """Forgets the bounds of names that the loop changes, but guesses that non-negative names stay so.

        Counters and indices stay non-negative, and their sums and products then often need no wrapping. Each branch
        back to the header checks the guess.
        """
        written = self._loop_writes().get(header, 0)
        changing: list[str] = []
        for name in list(self.bounds):
            if written >> int(name[1:]) & (3 if name[0] == "I" else 1):
                low, _ = self.bounds.pop(name)
                if low >= 0 and self._not_guessed is not None and (header, name) not in self._not_guessed:
                    changing.append(name)
        for label in behind:
            self._known_at[label] = self.known()
        live = self.analysis.blocks[header - 1].live_in if header else 0
        self._guesses[header] = [name for name in changing if live >> int(name[1:]) & 1]
        for name in self._guesses[header]:
            self.bounds[name] = (0, FULL[name[0]][1])

    def _loop_writes(self) -> dict[int, int]:
        """Returns for each header a mask of the registers that its loop writes."""
        if self._written_in is None:
            self._written_in = {}
            for node, headers in self.graph.loops.items():
                for header in headers:
                    if node:
                        self._written_in[header] = self._written_in.get(header, 0) | self.analysis.written[node - 1]
        return self._written_in

    def await_label(self, label: int) -> None:
        self._known_at[label] = self.known()

    def enter_label(self, label: int) -> None:
        self.recall(self._known_at[label])

    def _jump(self, target: int, exits: Exits) -> None:
        if self._placement is not None:
            for name in self._guesses.get(target, ()):
                if self.bounds.get(name, (-1, 0))[0] < 0:
                    self.refuted.add((target, name))
        super()._jump(target, exits)

    # -- a dispatch loop -----------------------------------------------------------------------------

    def write_dispatch_loop(self) -> None:
        """Writes the variant as a loop over node numbers, if Python's statements cannot express the graph."""
        graph = self.graph
        edges: dict[int, int] = {}
        for node in graph.order:
            for target in graph.successors[node]:
                edges[target] = edges.get(target, 0) + 1
        inline = set(self.flow.ends)
        depth = dict.fromkeys(graph.order, 0)
        for node in graph.order[1:]:
            above = graph.predecessors[node][0]
            if edges[node] == 1 and not graph.is_back_edge(above, node) and depth[above] < _MAX_CHAIN:
                depth[node] = depth[above] + 1
                inline.add(node)
        self._inline = inline
        self.line("b = 0")
        with self.suite("while True:"):
            self._search([node for node in sorted(graph.order) if node not in inline])

    def _search(self, nodes: Sequence[int]) -> None:
        if len(nodes) > 1:
            middle = len(nodes) // 2
            with self.suite(f"if b < {nodes[middle]}:"):
                self._search(nodes[:middle])
            with self.suite("else:"):
                self._search(nodes[middle:])
            return
        self.bounds: dict[str, Range] = {}
        self.write_inline(nodes[0], Exits())
