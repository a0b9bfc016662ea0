"""Recordings with timestamps, which a profile keeps until their submissions have retired.

Thread rule: the same as for their queue.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from ..commands.context import CommandContext
from ..commands.recording import Recording
from ..commands.recording_cache import RecordingCache
from ..commands.timestamps import TimestampRecorder

_MAX_RANGES: Final = 64


class TimedRecordings:
    """A command buffer's idle recordings with timestamps, by ranges of memory.

    Attributes:
        key: the key of the recording that was taken last.
        locations: the source locations of the dispatches.
        timestamps: the timestamps of the recording that was read last.
    """

    def __init__(self, context: CommandContext, locations: tuple[Mapping[str, str], ...]) -> None:
        self._context = context
        self._rings: RecordingCache[bytes, list[Recording]] = RecordingCache(_MAX_RANGES, self._recycle)
        self._lock = threading.Lock()
        self.key: bytes = b""
        self.locations = locations
        self.timestamps: TimestampRecorder | None = None
        self.is_dropped: bool = False

    def take(self, key: bytes) -> Recording | None:
        """Takes an idle recording for these ranges, or ``None``."""
        with self._lock:
            self.key = key
            ring = self._rings.get(key)
            return ring.pop() if ring else None

    def give_back(self, key: bytes, recording: Recording) -> None:
        """Takes back a recording that no submission uses."""
        surplus: list[Recording] | None = None
        with self._lock:
            if self.is_dropped:
                surplus = [recording]
            else:
                ring = self._rings.get(key)
                if ring is None:
                    surplus = self._rings.evict()
                    ring = self._rings.keep(key, [])
                ring.append(recording)
        self._recycle(surplus or [])

    def drop(self) -> None:
        """Recycles all idle recordings now, and those in use when they come back."""
        with self._lock:
            self.is_dropped = True
        self._rings.drop()

    def _recycle(self, ring: list[Recording]) -> None:
        while ring:  # a submission may take from it concurrently
            self._context.recycle(ring.pop())
