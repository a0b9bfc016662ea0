"""Terminal output: text without control characters, tables and lists of facts. Rich is imported on first use."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Container, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


# A number with its sign, exponent and unit of time.
_FIGURE = re.compile(r"(?<![A-Za-z_])[+-]?\d[\d.,]*(e[+-]?\d+)?( ?(ns|µs|ms|s|%)(?!\w))?")


def printable(text: str, *, keep: str = "") -> str:
    """Escapes control characters and lone surrogates: a file's name must not control the terminal."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in keep else c.encode("unicode_escape", "backslashreplace").decode() for c in text
    )


def new_table(columns: Iterable[str], *, right: Container[str] = (), title: str | None = None) -> Table:
    """Returns an empty table with these headings; the columns in ``right`` are right-aligned."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="cyan", title=title, title_justify="left")
    for column in columns:
        table.add_column(printable(column), justify="right" if column in right else "left", overflow="fold")
    return table


def facts_grid(facts: Iterable[tuple[str, str]]) -> Table:
    """Returns a grid of names and values, one pair per row."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts:
        grid.add_row(Text("  " + printable(name)), Text(printable(value, keep="\n")))
    return grid


def said_once(said: Iterable[tuple[str, str]]) -> list[str]:
    """Returns a line for each text and its subject: ``mul n=8: no samples``.

    Texts that differ only in figures become one line, with the first text: ``12 points: no samples``, ``12 points, the
    first of which is mul n=8: 3 samples``.
    """
    groups: dict[str, dict[str, str]] = {}
    for name, text in said:
        groups.setdefault(_FIGURE.sub("#", text), {})[name] = text
    lines = []
    for texts in groups.values():
        name, text = next(iter(texts.items()))
        if len(texts) > 1:
            first = "" if len(set(texts.values())) == 1 else f", the first of which is {name}"
            name = f"{len(texts)} points{first}"
        lines.append(printable(f"{name}: {text}"))
    return lines


def console_environment() -> dict[str, str]:
    """Returns an environment without sizes (``COLUMNS``, ``LINES``) on which Rich's console fails, such as ``²``."""
    sizes = ("COLUMNS", "LINES")
    return {name: value for name, value in os.environ.items() if name not in sizes or re.fullmatch(r"\d{1,5}", value)}


def plain_text(content: RenderableType, width: int) -> list[str]:
    """Renders Rich content as lines without colours."""
    from rich.console import Console

    console = Console(
        file=io.StringIO(),
        width=width,
        markup=False,
        emoji=False,
        highlight=False,
        color_system=None,
        _environ=console_environment(),
    )
    with console.capture() as capture:
        console.print(content)
    return [line.rstrip() for line in capture.get().splitlines()]
