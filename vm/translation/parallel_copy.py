"""Writes the copies of branches: all at once, in an order that reads nothing too late."""

from __future__ import annotations

from .basic_block import Edge
from .call_writer import CallWriter
from .values import Text

__all__ = ["CopyWriter"]


class CopyWriter(CallWriter):
    """See the top of this file."""

    def copy(self, edge: Edge) -> None:
        """Writes the copies of an edge; nothing that is dead behind it is copied."""
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
                text = self.waiting.get(name)
                if text is not None:
                    self._forget(name)
                else:
                    text = self.read((kind, source))
                moves[f"{kind}{slot}"] = text
        self._parallel(moves)

    def _parallel(self, moves: dict[str, Text]) -> None:
        """Assigns as if all at once: one by one where the order allows it, what goes round in a circle by way of others."""
        readers: dict[str, int] = {}  # how many of the others still read a name
        for target, text in moves.items():
            for name in text.reads:
                if name in moves and name != target:
                    readers[name] = readers.get(name, 0) + 1
        ready = [name for name in moves if not readers.get(name)]
        while moves:
            if not ready:
                # Each of these is read by another one: keep one aside.
                name = next(iter(moves))
                self.line(f"t = {name}")
                for text in moves.values():
                    if name in text.reads:
                        text.text = _replaced(text.text, name, "t")
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


def _replaced(text: str, name: str, other: str) -> str:
    """A text with a name replaced."""
    parts: list[str] = []
    at = 0
    while True:
        found = text.find(name, at)
        if found < 0:
            return "".join((*parts, text[at:]))
        end = found + len(name)
        whole = (not found or not (text[found - 1].isalnum() or text[found - 1] == "_")) and not text[
            end : end + 1
        ].isalnum()
        parts += (text[at:found], other if whole else name)
        at = end
