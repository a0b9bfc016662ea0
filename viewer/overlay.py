"""Text over the picture: frame times, and errors of the shader. Drawn by Pillow (the extra ``images``)."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from ..status import UnavailableError

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont

PERCENTILES: Final = (50, 95, 99)
_KEPT: Final = 240
NAMES: Final = ("frame", "GPU", "latency", "present")
"""From the begin of a frame to that of the next; its commands on the device; from its begin to the end of these, by
calibrated clocks; and the calls that show it, with what they wait for."""
_BACKGROUND: Final = (18, 20, 26, 255)
_TEXT: Final = (226, 230, 236, 255)
_FAINT: Final = (140, 148, 160, 255)
_BAD: Final = (255, 120, 110, 255)
_SIZE: Final = 14
_MARGIN: Final = 8
# In sizes of the font: lines, names of rows, and columns of numbers.
_LINE, _NAME, _COLUMN = 1.35, 5.0, 4.2
_CARETS: Final = re.compile(r"[ |]*(\^+)")

Rows = Sequence[tuple[str, Sequence[float]]]


class FrameTimes:
    """Milliseconds of the last 240 frames, by measured interval."""

    def __init__(self) -> None:
        self._kept: dict[str, deque[float]] = {name: deque(maxlen=_KEPT) for name in NAMES}

    def add(self, name: str, milliseconds: float) -> None:
        """Adds a time of one frame; the name is one of ``NAMES``."""
        self._kept[name].append(milliseconds)

    def rows(self) -> list[tuple[str, list[float]]]:
        """Returns each name that was timed, with its last time and the ``PERCENTILES``."""
        return [
            (name, [values[-1], *np.percentile(values, PERCENTILES).tolist()])
            for name, values in self._kept.items()
            if values
        ]


class Overlay:
    """Draws panels of text with a font of Pillow's own."""

    def __init__(self, scale: float = 1.0) -> None:
        """Loads the font; ``scale`` is the display's: 2 where text is twice as large.

        Raises:
            UnavailableError: Pillow is not installed, or was built without FreeType.
        """
        try:
            from PIL import Image, ImageDraw, ImageFont, features
        except ModuleNotFoundError as error:
            raise UnavailableError("text over pictures is drawn by Pillow: pip install 'pumice[view]'") from error
        if not features.check("freetype2"):
            raise UnavailableError("text over pictures needs a Pillow with FreeType, which its wheels have")
        self._image, self._draw = Image, ImageDraw
        self._size = round(_SIZE * scale)
        self._font = cast("FreeTypeFont", ImageFont.load_default(self._size))

    def panel(self, title: str, rows: Rows, message: str, width: int) -> np.ndarray:
        """Returns a panel as an array of shape (height, width, 4), uint8.

        Args:
            title: the first line; "" for none.
            rows: the names with a time each for the last frame and the percentiles, in milliseconds.
            message: the text of an error; long lines are wrapped.
            width: the largest width of the panel, in pixels.
        """
        line, first, column = (round(self._size * part) for part in (_LINE, _NAME, _COLUMN))
        table: list[tuple[str, list[str]]] = []
        if rows:
            table = [("ms", ["last", *(f"{percentile} %" for percentile in PERCENTILES)])]
            table += [(name, [f"{value:.2f}" for value in values]) for name, values in rows]
        wrapped = self._wrapped(message, width - 2 * _MARGIN)
        titles = [title] if title else []
        lengths = [self._font.getlength(text) for text in (*titles, *(text for text, _ in wrapped))]
        inner = max([*lengths, first + column * len(table[0][1]) if table else 0], default=0)
        lines = len(titles) + len(table) + len(wrapped)
        size = min(width, round(inner) + 2 * _MARGIN), line * lines + 2 * _MARGIN
        picture = self._image.new("RGBA", size, _BACKGROUND)
        draw = self._draw.Draw(picture)
        y = _MARGIN
        for text in titles:
            draw.text((_MARGIN, y), text, _TEXT, self._font)
            y += line
        for number, (name, cells) in enumerate(table):
            color = _TEXT if number else _FAINT
            draw.text((_MARGIN, y), name, color, self._font)
            for index, cell in enumerate(cells):
                draw.text((_MARGIN + first + column * (index + 1), y), cell, color, self._font, anchor="ra")
            y += line
        for text, marked in wrapped:
            draw.text((_MARGIN, y), text, _BAD, self._font)
            if marked is not None:
                begin, end = (_MARGIN + self._font.getlength(text[:at]) for at in marked)
                draw.line((begin, y + line - 2, end, y + line - 2), _BAD, 2)
            y += line
        return np.asarray(picture)

    def _wrapped(self, message: str, width: float) -> list[tuple[str, tuple[int, int] | None]]:
        """Returns lines that fit a width, and which characters to underline: those above a compiler's carets."""
        wrapped: list[tuple[str, tuple[int, int] | None]] = []
        for text in message.splitlines():
            if wrapped and (carets := _CARETS.fullmatch(text)):
                wrapped[-1] = wrapped[-1][0], carets.span(1)
                continue
            while (count := self._fitting(text, width)) < len(text):
                wrapped.append((text[:count], None))
                text = text[count:]
            wrapped.append((text, None))
        return wrapped

    def _fitting(self, text: str, width: float) -> int:
        """Returns the number of a text's characters that fit a width, at least one, up to the end of a word if
        possible.
        """
        count = len(text)
        while count > 1 and self._font.getlength(text[:count]) > width:
            count -= 1
        return count if count == len(text) else text.rfind(" ", 1, count) + 1 or count
