"""What notebooks show: tables in HTML, escaped, in the colours of the page, be it light or dark."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence

_LINE = "border-bottom: 1px solid rgba(128, 128, 128, 0.4)"
_LINE_WIDTH = 40
_CELL = "padding: 0.2em 0.7em; color: inherit; background: transparent"


def html_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    notes: Iterable[str] = (),
    texts: int = 1,
) -> str:
    """A table with a title above and notes below, all of them texts without markup.

    Args:
        columns: headings; all empty for none.
        rows: a text for each column.
        title, notes: lines above and below.
        texts: how many columns at the left hold texts; the others hold numbers, aligned to the right.
    """
    rows = list(rows)
    styles = []
    for place in range(len(columns)):
        if place < texts:
            # Long texts wrap, but not before a line of them is worth reading.
            width = min(max(len(row[place]) for row in (columns, *rows)), _LINE_WIDTH)
            styles.append(f"text-align: left; vertical-align: top; min-width: {width}ch")
        else:
            styles.append("text-align: right; vertical-align: top; white-space: nowrap")

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


def figure_text(value: float | None) -> str:
    """A number with four digits, without an exponent where it is readable; a dash for none."""
    if value is None or math.isnan(value):
        return "—"
    if not 1e-5 <= abs(value) < 1e12:
        return f"{value:.4g}"
    return f"{value:,.{max(0, 3 - math.floor(math.log10(abs(value))))}f}"


def interval_text(low: float, high: float) -> str:
    """The ends of an interval; a dash if it is unknown."""
    return "—" if math.isnan(low) and math.isnan(high) else f"[{figure_text(low)}, {figure_text(high)}]"
