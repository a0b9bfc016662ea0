"""Writes the copies of branches: parallel copies, in an order that reads each name before it is overwritten."""

from __future__ import annotations

import re

from .basic_block import Edge
from .call_writer import CallWriter
from .values import Text


class CopyWriter(CallWriter):
    """Writes the copies of edges."""

    def copy(self, edge: Edge) -> None:
        """Writes the copies of an edge whose targets are live behind it."""
        if not edge.operands:
            return
        live = self.analysis.blocks[edge.target].live_in
        moves: dict[str, Text] = {}
        for number, origin in edge.refs.items():
            if origin is None or not live & self.analysis.ref_bit(number):
                moves[f"r{number}"] = Text("None")
            else:
                moves[f"r{number}"] = self.read(("r", origin))
        for slot, source in edge.values.items():
            if not live >> slot & 1:
                continue
            if self.raw:
                self.read_names.add(f"s{source}")
                moves[f"s{slot}"] = Text(f"s{source}", frozenset((f"s{source}",)))
                continue
            kind = self.state[source]
            if kind not in "JG":
                name = f"{kind}{source}"
                text = self.pending.get(name)
                if text is not None:
                    self._forget(name)
                else:
                    text = self.read((kind, source))
                moves[f"{kind}{slot}"] = text
        self._parallel(moves)

    def _parallel(self, moves: dict[str, Text]) -> None:
        """A parallel copy: one assignment after another; cycles are broken with a temporary."""
        readers: dict[str, int] = {}  # how many others still read a name
        for target, text in moves.items():
            for name in text.reads:
                if name in moves and name != target:
                    readers[name] = readers.get(name, 0) + 1
        ready = [name for name in moves if not readers.get(name)]
        while moves:
            if not ready:
                # Each of these is read by another one.
                name = next(iter(moves))
                self.line(f"t = {name}")
                for text in moves.values():
                    if name in text.reads:
                        text.text = re.sub(rf"\b{name}\b", "t", text.text)
                        text.reads = (text.reads - {name}) | {"t"}
                ready.append(name)
                continue
            name = ready.pop()
            text = moves.pop(name)
            self.put(name, text)
            for one in text.reads:
                if one in moves and one != name:
                    readers[one] -= 1
                    if not readers[one]:
                        ready.append(one)
