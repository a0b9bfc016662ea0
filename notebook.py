"""What notebooks show: tables in HTML, escaped, in the colours of the page, be it light or dark."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

_LINE = "border-bottom: 1px solid rgba(128, 128, 128, 0.4)"
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
    sides = ["left" if place < texts else "right" for place in range(len(columns))]

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(
            f'<{tag} style="text-align: {side}; {_CELL}; {_LINE}">{html.escape(text)}</{tag}>'
            for side, text in zip(sides, row, strict=True)
        )

    head = f"<thead><tr>{cells('th', columns)}</tr></thead>" if any(columns) else ""
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    above = f"<p><b>{html.escape(title)}</b></p>" if title else ""
    below = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    table = f'<table style="border-collapse: collapse; color: inherit">{head}<tbody>{body}</tbody></table>'
    return f'<div style="overflow-x: auto; color: inherit">{above}{table}{below}</div>'


def figure_text(value: float | None) -> str:
    """A number with four digits, without an exponent where it is readable; a dash for none."""
    if value is None or value != value:
        return "—"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"
