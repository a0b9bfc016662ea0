"""What notebooks show: tables in HTML and plots in SVG, escaped, in the colours of the page, be it light or dark."""

from __future__ import annotations

import base64
import html
import math
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

_LINE = "border-bottom: 1px solid rgba(128, 128, 128, 0.4)"
_LINE_WIDTH = 40
_NARROW = "white-space: nowrap; min-width: 0"  # some pages have wide columns by default
_CELL = "padding: 0.2em 0.7em; color: inherit; background: transparent"

# Okabe and Ito's, each with a contrast of 3 or more on white and on black.
_COLOURS: Final = ("#0b84cf", "#d55e00", "#009e73", "#c0659a", "#a88400", "#7a7f87")
_GREY: Final = "#808080"
# An image knows of the page that the browser asks for one in dark, which may be the system's and not the page's: both
# colours can be read on either.
_STYLE: Final = "<style>text{fill:#757575}@media(prefers-color-scheme:dark){text{fill:#8a8a8a}}</style>"
_FONT: Final = 'font-family="system-ui, sans-serif" font-size="13"'
_WIDTH, _HEIGHT, _TOP, _RIGHT = 400, 170, 34, 24
_LETTER: Final = 7.5  # of the font's 13 pixels, about

MAX_LINES: Final = len(_COLOURS)
"""The most lines of a plot."""

# ipykernel's files of cells are named by the process, and in it by what the cell holds.
_CELL_FILE: Final = re.compile(r"(?<=ipykernel)(?:_\d+)?(?=[/\\]+\d+\.py\b)")


class Mark(NamedTuple):
    """A point of a plot: its place, and the ends of its interval, NaN if it is unknown."""

    x: float
    y: float
    low: float
    high: float


def html_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    notes: Iterable[str] = (),
    texts: Collection[str] = (),
) -> str:
    """A table with a title above and notes below, all of them texts without markup.

    Args:
        columns: headings; all empty for none.
        rows: a text for each column.
        title, notes: lines above and below.
        texts: columns that hold texts, as the first one does; the others hold numbers, aligned to the right.
    """
    rows = list(rows)
    styles = []
    for place, column in enumerate(columns):
        if not place or column in texts:
            # Long texts wrap, but not before a line of them is worth reading; JupyterLab keeps no unit of characters
            # in what it shows untrusted.
            is_long = max(len(row[place]) for row in (columns, *rows)) > _LINE_WIDTH
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
    """A text with the same names for the files of cells in every process, so that caches know it again."""
    return _CELL_FILE.sub("", text)


def with_process(text: str) -> str:
    """A text with the names that the files of cells have in this process."""
    return _CELL_FILE.sub(f"_{os.getpid()}", text)


def place_text(place: str) -> str:
    """A file and a line, ``net.py:8``, as people know it: a cell by its number, ``In[3]:8``."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)  # since IPython 8
    if named is None:
        return place
    file_name, colon, line = with_process(place).rpartition(":")
    cell = named(file_name)
    return place if cell is None else f"{cell[1]}{colon}{line}"


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


def svg_plot(lines: Mapping[str, Sequence[Mark]], *, x: str, y: str) -> str:
    """Lines through points with intervals; an axis over more than a decade is logarithmic.

    It is an image in a data URI, which notebooks that are not trusted yet show, too; they drop elements of SVG.

    Args:
        lines: at most ``MAX_LINES``, by name, of finite places in ascending order.
        x, y: titles of the axes.
    """
    marks = [mark for line in lines.values() for mark in line]
    known_x = sorted({mark.x for mark in marks})
    # An interval of few samples may be very wide; it ends at the edge.
    low, high = min(mark.y for mark in marks), max(mark.y for mark in marks)
    ends = [end for mark in marks for end in (mark.low, mark.high) if low / 2 <= end <= high * 2]
    known_y = sorted([low, high, *ends])
    y_ticks = _ticks(known_y)
    names = list(lines) if len(lines) > 1 else []
    top = _TOP + (20 * len(names) + 8 if names else 0)
    bottom = top + _HEIGHT
    left = 16 + _LETTER * max(len(_tick_text(tick)) for tick in y_ticks)
    wide_x, wide_y = _is_wide(known_x), _is_wide(known_y)
    across = _scale(known_x, left + 12, _WIDTH - _RIGHT, is_log=wide_x)
    up = _scale(known_y if wide_y else [0.0, *known_y], bottom, top + 6, is_log=wide_y)

    def clipped(value: float) -> float:
        return min(max(up(value) if value > 0 or not wide_y else math.inf, top), bottom)

    parts = [_text(4, top - 18, y), _text(_WIDTH - _RIGHT, bottom + 40, x, "end")]
    for place, (name, colour) in enumerate(zip(names, _COLOURS, strict=False)):
        height = 16.0 + 20 * place
        parts += [f'<circle cx="10" cy="{height - 4.5}" r="5" fill="{colour}"/>', _text(22, height, name)]
    for tick in y_ticks:
        height = up(tick)
        parts.append(_stroke(f"M{left:.1f} {height:.1f}H{_WIDTH - _RIGHT + 8}", _GREY, 1, 0.3))
        parts.append(_text(left - 8, height + 4.5, _tick_text(tick), "end"))
    free = -math.inf
    for value in known_x:
        half = _LETTER * len(_tick_text(value)) / 2
        if across(value) - half > free:
            parts.append(_text(across(value), bottom + 20, _tick_text(value), "middle"))
            free = across(value) + half + 6
    for colour, line in zip(_COLOURS, lines.values(), strict=False):
        path = "L".join(f"{across(mark.x):.1f} {up(mark.y):.1f}" for mark in line)
        parts.append(_stroke(f"M{path}", colour, 2, 1))
        for mark in line:
            if math.isfinite(mark.low) and math.isfinite(mark.high):
                interval = f"M{across(mark.x):.1f} {clipped(mark.low):.1f}V{clipped(mark.high):.1f}"
                parts.append(_stroke(interval, colour, 6, 0.4))
            parts.append(f'<circle cx="{across(mark.x):.1f}" cy="{up(mark.y):.1f}" r="4" fill="{colour}" class="m"/>')
    size = f'width="{_WIDTH}" height="{bottom + 46}" viewBox="0 0 {_WIDTH} {bottom + 46}"'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" {size} fill="none" {_FONT}>{_STYLE}{"".join(parts)}</svg>'
    data = base64.b64encode(svg.encode()).decode()
    style = "max-width: 100%; height: auto"
    return f'<p><img alt="{html.escape(f"{y} over {x}")}" style="{style}" src="data:image/svg+xml;base64,{data}"></p>'


def _stroke(path: str, colour: str, width: int, opacity: float) -> str:
    return f'<path d="{path}" stroke="{colour}" stroke-width="{width}" stroke-opacity="{opacity}"/>'


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f"<text {place}>{html.escape(text)}</text>"


def _tick_text(value: float) -> str:
    return f"{value:,.10g}" if 1e-4 <= abs(value) < 1e9 or not value else f"{value:g}"


def _is_wide(values: Sequence[float]) -> bool:
    return 0 < 10 * values[0] < values[-1]


def _scale(values: Sequence[float], first: float, last: float, *, is_log: bool) -> Callable[[float], float]:
    """Values, in ascending order, to places from ``first`` to ``last``."""
    change = math.log10 if is_log else float
    low, high = change(values[0]), change(values[-1])
    return lambda value: first + (last - first) * (change(value) - low) / ((high - low) or 1)


def _ticks(values: Sequence[float]) -> list[float]:
    """Round values within some, in ascending order; those of a linear axis begin with 0."""
    low, high = values[0], values[-1]
    if not _is_wide(values):
        if high <= 0:
            return [0.0]
        step = 10.0 ** math.floor(math.log10(high / 3))
        step = next(step * each for each in (5, 2, 1) if high >= 2 * step * each)
        return [place * step for place in range(math.floor(high / step) + 1)]
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    every = [float(f"{each}e{power}") for power in powers for each in ((1, 2, 5) if len(powers) < 5 else (1,))]
    return [each for each in every if low <= each <= high]
