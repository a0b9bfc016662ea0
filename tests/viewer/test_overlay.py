"""Text over pictures: what is drawn where."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("PIL")

from pumice.viewer.overlay import Overlay

ROWS = [("frame", [16.7, 16.6, 17.0, 20.0]), ("GPU", [4.0, 3.9, 5.0, 6.0])]


def is_red(panel: np.ndarray) -> np.ndarray:
    return (panel[..., 0] > 200) & (panel[..., 1] < 160)


def test_a_panel_is_as_large_as_its_text() -> None:
    overlay = Overlay()
    title = overlay.panel("title", (), "", 600)
    table = overlay.panel("title", ROWS, "", 600)
    message = overlay.panel("title", ROWS, "one\ntwo", 600)
    assert title.shape[2] == 4 and title.dtype == np.uint8 and (title[..., 3] == 255).all()
    line = (message.shape[0] - table.shape[0]) // 2
    assert table.shape[0] == title.shape[0] + 3 * line
    assert not is_red(table).any() and is_red(message).any()
    assert Overlay(2.0).panel("title", (), "", 600).shape[0] > 1.5 * title.shape[0]


@pytest.mark.slow
def test_messages_are_wrapped_and_never_wider_than_the_window() -> None:
    overlay = Overlay()
    words = overlay.panel("", (), "some words that do not fit " * 4, 120)
    letters = overlay.panel("", (), "x" * 200, 120)
    assert words.shape[1] <= 120 and letters.shape[1] <= 120
    assert words.shape[0] > 100
    assert overlay.panel("title", ROWS, "message", 5).shape[1] == 5


def test_carets_underline_what_is_above_them() -> None:
    overlay = Overlay()
    plain = overlay.panel("", (), "a.frag:7: wrong\n     7 | float d = foo(1);", 600)
    marked = overlay.panel("", (), "a.frag:7: wrong\n     7 | float d = foo(1);\n       |           ^^^", 600)
    assert marked.shape == plain.shape
    rows, columns = np.nonzero((marked != plain).any(-1))
    assert len(set(rows)) == 2 and rows.min() > plain.shape[0] - 14  # a line under the last line of text
    text = np.nonzero(is_red(plain[plain.shape[0] - 26 :]).any(0))[0]
    assert text.min() < columns.min() < columns.max() < text.max()
