"""Counts of live native objects by kind, which the leak tests compare with their baseline.

A native handle is counted where it is made and destroyed, not with its Python object: a handle that is lost by a bug
still counts.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

live: Final[dict[tuple[str, int, int], None]] = {}
"""A key for each native object: its kind, the number of its device or 0, and its own number.

A dictionary instead of a count: an entry is made by an assignment, which neither Ctrl-C nor another thread can
interrupt.
"""


def live_objects() -> dict[str, int]:
    """Returns the live native objects of the process by kind (``"buffer"``, ``"pipeline"``, …),
    without kinds at zero.
    """
    return dict(sorted(Counter([kind for kind, _, _ in live.copy()]).items()))


def forget_objects() -> None:
    """Forgets the parent's objects in a forked child."""
    live.clear()
