"""Timeouts in seconds, as deadlines and as nanoseconds."""

from __future__ import annotations

import math
import time
from typing import Final

from ..status import InvalidArgumentError

CLOSE_TIMEOUT_S: Final = 300.0
"""The most seconds that the close of a device waits for work and for threads."""
EXIT_TIMEOUT_S: Final = 10.0
"""The most seconds that the end of the process waits for a device's work."""


def deadline_after(timeout: float | None) -> float | None:
    """Returns the ``time.monotonic()`` deadline in this many seconds; ``None`` for no deadline."""
    return None if timeout is None or timeout_nanoseconds(timeout) < 0 else time.monotonic() + timeout


def timeout_nanoseconds(timeout: float) -> int:
    """Returns a timeout, or -1 for no timeout; InvalidArgumentError for NaN."""
    if math.isnan(timeout):
        raise InvalidArgumentError("timeout must be a number of seconds or None, got nan")
    if timeout <= 0:
        return 0
    return -1 if timeout == math.inf else int(timeout * 1e9)
