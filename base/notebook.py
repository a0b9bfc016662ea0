"""Tables for notebooks, and names of notebook cells. Texts are escaped; colours follow the page, light or dark."""

from __future__ import annotations

import html
import math
import os
import re
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Final

_LINE: Final = "border-bottom: 1px solid rgba(128, 128, 128, 0.4)"
_LINE_WIDTH: Final = 40
_NARROW: Final = "white-space: nowrap; min-width: 0"  # some pages have wide columns by default
_CELL: Final = "padding: 0.2em 0.7em; color: inherit; background: transparent"

# ipykernel's file name of a cell consists of its process id and a hash of the cell's source.
_CELL_FILE: Final = re.compile(r"(?<=ipykernel)(?:_\d+)?(?=[/\\]+\d+\.py\b)")


def html_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    notes: Iterable[str] = (),
    texts: Collection[str] = (),
) -> str:
    """Returns a table with a title above and notes below; all texts are escaped.

    Args:
        columns: the headings; all empty for a table without headings.
        rows: a text for each column.
        title, notes: the lines above and below the table.
        texts: the indices of text columns besides the first; the others are numbers, aligned to the right.
    """
    rows = list(rows)
    styles = []
    for index, column in enumerate(columns):
        if not index or column in texts:
            # Long texts wrap at a readable width. In em: JupyterLab drops `ch` from untrusted output.
            is_long = max(len(row[index]) for row in (columns, *rows)) > _LINE_WIDTH
            wraps = f"min-width: {_LINE_WIDTH / 2:g}em" if is_long else _NARROW
            styles.append(f"text-align: left; vertical-align: top; {wraps}")
        else:
            styles.append(f"text-align: right; vertical-align: top; {_NARROW}")

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(
            f'<{tag} style="{style}; {_CELL}; {_LINE}">{html.escape(text)}</{tag}>'
            for style, text in zip(styles, row, strict=True)
        )

    head = f"<thead><tr>{cells('th', columns)}</tr></thead>" if any(columns) else ""
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    above = f"<p><b>{html.escape(title)}</b></p>" if title else ""
    below = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    table = f'<table style="border-collapse: collapse; color: inherit">{head}<tbody>{body}</tbody></table>'
    return f'<div style="overflow-x: auto; color: inherit">{above}{table}{below}</div>'


def without_process(text: str) -> str:
    """Removes the process id from the file names of cells, so that cache keys are equal in every process."""
    return _CELL_FILE.sub("", text)


def with_process(text: str) -> str:
    """Inserts this process's id into the file names of cells; undoes ``without_process``."""
    return _CELL_FILE.sub(f"_{os.getpid()}", text)


def place_text(location: str) -> str:
    """Formats a file and line, ``net.py:8``, for people; a cell is shown by its number, ``In[3]:8``."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)  # since IPython 8
    if named is None:
        return location
    file_name, colon, line = with_process(location).rpartition(":")
    cell = named(file_name)
    return location if cell is None else f"{cell[1]}{colon}{line}"


def figure_text(value: float | None) -> str:
    """Formats a number with four digits, without an exponent if that is readable; a dash for None or NaN."""
    if value is None or math.isnan(value):
        return "—"
    if not 1e-5 <= abs(value) < 1e12:
        return f"{value:.4g}"
    return f"{value:,.{max(0, 3 - math.floor(math.log10(abs(value))))}f}"


def interval_text(low: float, high: float) -> str:
    """Formats an interval; a dash if it is unknown."""
    return "—" if math.isnan(low) and math.isnan(high) else f"[{figure_text(low)}, {figure_text(high)}]"
