"""The Python source of one variant of a translated function, and its writer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...base.lazy_dataclass import dataclass
from .expressions import Call, Expression, Literal, Name


@dataclass(frozen=True, slots=True)
class Source:
    """The source of one variant."""

    text: str  # of a function ``make(…)`` that returns ``f(frame, a)``
    names: tuple[str, ...]  # parameters of ``make``, bound by each context (``im3`` import 3, ``ro1`` rodata, …)
    pcs: tuple[int, ...]  # for each line of the text the pc it is from, or -1


class SourceWriter:
    """Lines of Python, each with the pc it is from."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.pcs: list[int] = []
        self.indent: int = 2
        self.pc = -1  # of the instruction that is being written
        self._names: dict[str, None] = {}

    def line(self, text: str) -> None:
        """Adds a line."""
        self.lines.append("    " * self.indent + text)
        self.pcs.append(self.pc)

    @contextmanager
    def suite(self, header: str) -> Iterator[None]:
        """Adds a header and indents the lines written inside; an empty suite becomes ``pass``."""
        self.line(header)
        count = len(self.lines)
        self.indent += 1
        yield
        if len(self.lines) == count:
            self.line("pass")
        self.indent -= 1

    def bound(self, name: str) -> Name:
        """Notes a name that each context binds, and returns it."""
        self._names[name] = None
        return Name(name)

    def ask_tier(self, entry: int, count: Expression, registers: Expression) -> None:
        """Hands the call to machine code from an entry on, if it is ready."""
        asked = Call(self.bound("tier"), (Name("frame"), Literal(entry), count, registers))
        self.line(f"t = {asked.python()}")
        with self.suite("if t is not COLD:"):
            self.line("return t")

    def source(self, head: SourceWriter) -> Source:
        """Returns the whole function, with the lines of ``head`` first."""
        names = tuple(head._names | self._names)
        start = (f"def make({', '.join(names)}):", "    def f(frame, a):")
        text = "\n".join((*start, *head.lines, *self.lines, "    return f", ""))
        return Source(text, names, (-1, -1, *head.pcs, *self.pcs, -1))
