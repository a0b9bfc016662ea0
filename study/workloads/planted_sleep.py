"""Host sleeps planted into a segment, for tests of the measurement: they must show there and nowhere else."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Final

from ...status import InvalidArgumentError

_NEEDED: Final[Mapping[str, tuple[str, object] | None]] = {
    "update": ("update", True),
    "record": ("record", "each"),
    "wake": None,
    "read": ("read", True),
}
"""The segments that the host can sleep in, and the setting that gives samples the segment."""


class PlantedSleep:
    """The settings ``host_sleep`` and ``host_sleep_in`` of kind ``kernel``.

    Raises:
        InvalidArgumentError: samples have no such segment, or the host cannot sleep in it.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._seconds = float(settings["host_sleep"])
        self._segment: str = settings["host_sleep_in"]
        if not self._seconds:
            self._segment = ""
            return
        if self._segment not in _NEEDED:
            raise InvalidArgumentError(
                f"the host can sleep in {', '.join(_NEEDED)}; in {self._segment!r} it would change what is measured",
                location="host_sleep_in",
            )
        needed = _NEEDED[self._segment]
        if needed is not None and settings[needed[0]] != needed[1]:
            raise InvalidArgumentError(
                f"samples have no segment {self._segment!r} to sleep in; set {needed[0]} = {json.dumps(needed[1])}",
                location="host_sleep_in",
            )

    def is_in(self, segment: str) -> bool:
        """Whether the sleep is in that segment."""
        return segment == self._segment

    def at_end_of(self, segment: str) -> None:
        """Sleeps if that is the segment; at its end, so that the sleep adds to it."""
        if segment == self._segment:
            time.sleep(self._seconds)
