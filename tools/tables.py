"""Tables and JSON on stdout, for commands that show results."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Sequence

from rich.console import Console, RenderableType
from rich.text import Text

from ..base.terminal import console_environment, facts_grid, new_table, printable
from .streams import put

_PIPED_WIDTH = 1000
_PROSE_WIDTH = 100


def heading(text: str) -> None:
    _print(Text(printable(text), style="bold"))


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Prints names with their values, one per line."""
    _print(facts_grid(facts))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, prose: bool = False) -> None:
    """Prints a table with a heading for each column.

    With ``prose`` its texts are for people, and are folded even for a pipe.
    """
    table = new_table(columns)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    _print(table, _PROSE_WIDTH if prose else _PIPED_WIDTH)


def print_json(value: object) -> None:
    """Prints JSON as ASCII text, which every encoding of stdout supports."""
    put(json_text(value))


def json_text(value: object) -> str:
    """Returns JSON in the format of `print_json`."""
    return json.dumps(value, indent=2)


def print_renderables(parts: Iterable[RenderableType]) -> None:
    """Prints renderables, one after another."""
    for part in parts:
        _print(part)


def _print(content: RenderableType, piped_width: int = _PIPED_WIDTH) -> None:
    terminal = sys.stdout.isatty()
    # It renders for stdout but does not write: Rich would end the program if the reader is gone.
    console = Console(
        file=io.TextIOWrapper(io.BytesIO(), encoding=getattr(sys.stdout, "encoding", None) or "utf-8"),
        # ``None`` defers to the environment (FORCE_COLOR).
        force_terminal=terminal or None,
        # A pipe has no width; lines that a program reads must not be folded.
        width=None if terminal else piped_width,
        markup=False,
        emoji=False,
        highlight=False,
        _environ=console_environment(),
    )
    with console.capture() as capture:
        console.print(content)
    # Rich pads every line to the table's width.
    put("".join(line.rstrip() + "\n" for line in capture.get().splitlines()), end="")
