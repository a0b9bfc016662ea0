"""Translates a function's instructions to Python source.

A function is translated to a Python function of its frame and its arguments, ``f(frame, a)``. Registers are Python
locals, branches are ``if`` and ``while``, operations are expressions. It runs until it returns its results or suspends:

* At a call of another bytecode function, at a ``yield``, and where a native function returns a ``Wait``, it stores in
  the frame the live registers, the pc and the *entry* to continue at, and returns CALL, YIELD or the ``Wait`` to the
  interpreter. Entry n is the position after instruction n - 1.
* The interpreter continues with the function's variant for that entry, whose source starts after the call. A variant is
  translated when first needed and ends at the next call that always suspends. Neither the host's stack nor a generator
  is kept.

The writers are layers, each a subclass of the one before it: expressions.py lines, values.py values in Python locals,
operation_writer.py operations within a block, call_writer.py calls, suspension and the copies of branches, blocks.py
blocks and their terminators, structure.py the statements around them. ``docs/design/vm.md`` lists other attempts.
"""

from __future__ import annotations

from typing import Final

from .analysis import FunctionAnalysis
from .control_flow import UnstructuredError
from .expressions import Literal, Name, Source
from .flow import COLD_FUNCTION, Flow, Warmth
from .structure import StructureWriter
from .values import ValueWriter

_MAX_GUESSED: Final = 4000  # instructions; larger functions are not translated twice
_ZERO: Final = {"i": "0", "I": "0", "s": "0", "f": "0.0", "F": "0.0", "r": "None"}


class Translator:
    """Translates the variants of one function."""

    def __init__(self, analysis: FunctionAnalysis, warmth: Warmth = COLD_FUNCTION) -> None:
        self.analysis = analysis
        self._warmth = warmth
        self._flow = Flow(analysis)

    def translate(self, entry: int = 0) -> Source:
        """Returns the source of the variant that starts at ``entry``."""
        writer = self._structured(entry)
        if writer is None:
            writer = StructureWriter(self.analysis, self._flow, entry, warmth=self._warmth)
            writer.write_dispatch_loop()
        return self._finish(writer)

    def _structured(self, entry: int) -> StructureWriter | None:
        """Writes the variant with Python's statements; returns ``None`` if they cannot express it."""
        for ends in dict.fromkeys((self._flow.small_ends, self._flow.ends)):
            refuted: frozenset[tuple[int, str]] | None = frozenset()
            if len(self.analysis.instructions) > _MAX_GUESSED:
                refuted = None
            try:
                while True:
                    writer = StructureWriter(self.analysis, self._flow, entry, refuted, self._warmth)
                    writer.write_tree(ends)
                    if not writer.refuted:
                        return writer
                    refuted = frozenset(writer.refuted) if refuted == frozenset() else None
            except UnstructuredError:
                continue
        return None

    def _finish(self, writer: StructureWriter) -> Source:
        """Writes the head, which assigns arguments or saved registers to their names."""
        analysis = self.analysis
        head = ValueWriter(analysis)
        if writer.entry == 0:
            names = [f"{kind}{number}" for kind, number in analysis.arguments]
            source = "a"
            live = analysis.blocks[0].live_in
        else:
            names = list(analysis.names_at(writer.entry))
            source = "frame.registers"
            block = analysis.block_of(writer.entry - 1)
            live = analysis.live_after(block)[writer.entry - 1 - block.start]
        if not writer.entry and self._warmth.start:
            head.ask_tier(0, Literal(self._warmth.start), Name("a"))
        if names:
            head.line(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {source}")
        if writer.entry:
            head.line("frame.registers = ()")
        elif any(name[0] == "r" for name in names):
            head.line("a = None")  # otherwise the arguments, even moved ones, live until the call returns
        bound = set(names)
        if writer.raw and writer.entry == 0:
            for kind, number in analysis.arguments:
                if kind != "r":
                    bound |= {f"s{number}", f"s{number + 1}"} if kind in "IF" else {f"s{number}"}
                    head.write_raw((kind, number), Name(f"{kind}{number}"))
        zeroed: dict[str, list[str]] = {}
        for name in sorted(writer.read_names - bound):
            number = int(name[1:])
            register = number + analysis.ref_shift if name[0] == "r" else number
            if live >> register & 1:
                zeroed.setdefault(_ZERO[name[0]], []).append(name)
        for zero, group in zeroed.items():
            for start in range(0, len(group), 20):
                head.line(f"{' = '.join(group[start : start + 20])} = {zero}")
        if writer.single:
            head.line("single = new_f32()")
        if writer.counts:
            head.line("n = 0")
        return writer.source(head)
