"""The Python source of one variant of a translated function, and its writer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Source:
    """The source of one variant.

    Attributes:
        text: Python source of a function ``make(…)`` that returns ``f(frame, a)``.
        names: parameters of ``make``, which each context binds (``im3`` import 3, ``fn5`` function 5, ``ro1`` rodata,
            …).
        pcs: for each line of the text the pc it is from, or -1.
    """

    __slots__ = ("names", "pcs", "text")

    def __init__(self, text: str, names: tuple[str, ...], pcs: tuple[int, ...]) -> None:
        self.text = text
        self.names = names
        self.pcs = pcs


class SourceWriter:
    """Lines of Python, each with the pc it is from.

    Attributes:
        lines, pcs: written so far.
        indent: levels of the next line.
        pc: of the instruction that is being written.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.pcs: list[int] = []
        self.indent = 2
        self.pc = -1
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

    def bound(self, name: str) -> str:
        """Notes a name that each context binds, and returns it."""
        self._names[name] = None
        return name

    def source(self, head: list[str], head_pcs: list[int]) -> Source:
        """The whole function; ``head`` comes before the lines written."""
        names = tuple(self._names)
        text = "\n".join(
            (f"def make({', '.join(names)}):", "    def f(frame, a):", *head, *self.lines, "    return f", "")
        )
        return Source(text, names, (-1, -1, *head_pcs, *self.pcs, -1))
