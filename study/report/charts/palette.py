"""The colours of reports: Okabe and Ito's, distinguishable with any colour vision, and similar ones for dark pages.

Figures use the colours of light pages; the page replaces them by those in ``DARK`` if the reader prefers dark pages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...statistics.comparison import Verdict

_BLUE: Final = "#0072b2"
_VERMILLION: Final = "#d55e00"
_GREEN: Final = "#009e73"
_PURPLE: Final = "#cc79a7"
_ORANGE: Final = "#e69f00"
_SKY: Final = "#56b4e9"
_OLIVE: Final = "#a89a10"
_GREY: Final = "#7a7f87"
_SLATE: Final = "#5f7ba6"

INK: Final = "#1f2430"
"""Primary text and lines."""
MUTED: Final = "#5d6470"
"""Secondary text and lines."""
FAINT: Final = "#dfe3e8"
"""Grids."""

DARK: Final[Mapping[str, str]] = {
    _BLUE: "#4aa5e0",
    _VERMILLION: "#f08040",
    _GREEN: "#2fbf95",
    _PURPLE: "#e09cc4",
    _ORANGE: "#f2b84b",
    _SKY: "#9ad4f6",
    _OLIVE: "#d8cb52",
    _GREY: "#9298a2",
    _SLATE: "#8ea9d2",
    INK: "#e7eaf0",
    MUTED: "#a6adb9",
    FAINT: "#353b46",
}
"""The colours of dark pages by those of light pages."""

SERIES: Final = (_BLUE, _VERMILLION, _GREEN, _PURPLE, _ORANGE, _SKY, _OLIVE, _GREY)
"""The colours of lines, in order."""

SYMBOLS: Final = ("circle", "square", "diamond", "triangle-up", "x", "cross", "pentagon", "star")
"""The markers of lines, in order, which distinguish lines without colour too."""

SEGMENT_COLOURS: Final[Mapping[str, str]] = {
    "create": _GREY,
    "update": _PURPLE,
    "record": _ORANGE,
    "submit": _VERMILLION,
    "call": _SLATE,
    "queue": _SKY,
    "execute": _BLUE,
    "wake": _GREEN,
    "device": _SLATE,
    "read": _OLIVE,
}
"""The colour of each segment, in every report."""

FLAGS: Final[Mapping[str, str]] = {
    "undisturbed": _BLUE,
    "preempted": _VERMILLION,
    "throttled": _ORANGE,
    "starved": _SKY,
    "clock unsure": _PURPLE,
}
"""The colour of a sample by its disturbance."""

VERDICT: Final[Mapping[Verdict, str]] = {
    Verdict.SAME: _GREY,
    Verdict.FASTER: _GREEN,
    Verdict.SLOWER: _VERMILLION,
    Verdict.UNCLEAR: _ORANGE,
}
"""The colour of a comparison's verdict."""


def line_style(index: int) -> tuple[str, str]:
    """Returns the colour and the marker of a line by its index in the legend; the first 64 combinations differ."""
    return SERIES[index % len(SERIES)], SYMBOLS[(index + index // len(SERIES)) % len(SYMBOLS)]


def faded(colour: str, alpha: float) -> str:
    """Makes a colour of this module translucent, in a form that the page can still replace."""
    red, green, blue = (int(colour[index : index + 2], 16) for index in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:g})"
