"""The Python source of one variant of a translated function, and what writes it line by line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Source", "SourceWriter"]


class Source:
    """The source of one variant.

    Attributes:
        text: Python source of a function ``make(…)`` that returns ``f(frame, a)``.
        names: parameters of ``make``: what is bound for each context (``im3`` import 3, ``fn5`` function 5, ``ro1`` rodata, …).
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
        lines, pcs: what was written.
        indent: how deep the next line is.
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
        """Adds a header and indents what is written inside; a suite that stays empty passes."""
        self.line(header)
        count = len(self.lines)
        self.indent += 1
        yield
        if len(self.lines) == count:
            self.line("pass")
        self.indent -= 1

    def bound(self, name: str) -> str:
        """A name that is bound for each context."""
        self._names[name] = None
        return name

    def source(self, head: list[str], head_pcs: list[int]) -> Source:
        """All of it as a function, behind the lines of ``head``."""
        names = tuple(self._names)
        text = "\n".join(
            (f"def make({', '.join(names)}):", "    def f(frame, a):", *head, *self.lines, "    return f", "")
        )
        return Source(text, names, (-1, -1, *head_pcs, *self.pcs, -1))
