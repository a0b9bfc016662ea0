"""Writes the copies of branches: parallel copies, in an order that reads each name before it is overwritten."""

from __future__ import annotations

from .basic_block import Edge
from .call_writer import CallWriter
from .expressions import NONE, Name, renamed
from .values import PendingValue


class CopyWriter(CallWriter):
    """Writes the copies of edges."""

    def copy(self, edge: Edge) -> None:
        """Writes the copies of an edge whose targets are live behind it."""
        if not edge.operands:
            return
        live = self.analysis.blocks[edge.target].live_in
        moves: dict[str, PendingValue] = {}
        for number, origin in edge.refs.items():
            if origin is None or not live & self.analysis.ref_bit(number):
                moves[f"r{number}"] = PendingValue(NONE)
            else:
                moves[f"r{number}"] = self.read(("r", origin))
        for slot, source in edge.values.items():
            if not live >> slot & 1:
                continue
            if self.raw:
                self.read_names.add(f"s{source}")
                moves[f"s{slot}"] = PendingValue(Name(f"s{source}"), frozenset((f"s{source}",)))
                continue
            kind = self.state[source]
            if kind not in "JG":
                name = f"{kind}{source}"
                value = self.pending.get(name)
                if value is not None:
                    self._forget(name)
                else:
                    value = self.read((kind, source))
                moves[f"{kind}{slot}"] = value
        self._parallel(moves)

    def _parallel(self, moves: dict[str, PendingValue]) -> None:
        """Writes a parallel copy: one assignment after another; cycles are broken with a temporary."""
        readers: dict[str, int] = {}  # how many others still read a name
        for target, value in moves.items():
            for name in value.reads:
                if name in moves and name != target:
                    readers[name] = readers.get(name, 0) + 1
        ready = [name for name in moves if not readers.get(name)]
        while moves:
            if not ready:
                # Each of these is read by another one.
                name = next(iter(moves))
                self.line(f"t = {name}")
                for value in moves.values():
                    if name in value.reads:
                        value.tree = renamed(value.tree, name, "t")
                        value.reads = (value.reads - {name}) | {"t"}
                ready.append(name)
                continue
            name = ready.pop()
            value = moves.pop(name)
            self.put(name, value)
            for read in value.reads:
                if read in moves and read != name:
                    readers[read] -= 1
                    if not readers[read]:
                        ready.append(read)
