"""Times of the last frames, and their percentiles."""

from __future__ import annotations

from collections import deque
from typing import Final

import numpy as np

PERCENTILES: Final = (50, 95, 99)
_KEPT: Final = 240
NAMES: Final = ("frame", "GPU", "latency", "present")
"""From the begin of a frame to that of the next; its commands on the device; from its begin to the end of these, by
calibrated clocks; and the calls that show it, with what they wait for."""


class FrameTimes:
    """Milliseconds of the last 240 frames, by what was timed."""

    def __init__(self) -> None:
        self._kept: dict[str, deque[float]] = {name: deque(maxlen=_KEPT) for name in NAMES}

    def add(self, name: str, milliseconds: float) -> None:
        """Notes a time of one frame; the name is one of ``NAMES``."""
        self._kept[name].append(milliseconds)

    def rows(self) -> list[tuple[str, list[float]]]:
        """Returns each name that was timed, with its last time and the ``PERCENTILES``."""
        return [
            (name, [values[-1], *np.percentile(values, PERCENTILES).tolist()])
            for name, values in self._kept.items()
            if values
        ]
