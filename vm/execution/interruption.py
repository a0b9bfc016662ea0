"""What ends an invocation whose deadline passed, and the deadlines of the invocations under way."""

from __future__ import annotations

from typing import Final

deadlines: Final[dict[int, float]] = {}
"""By thread, the deadline of the invocations under way in it, in ``time.monotonic()`` seconds; only with a timeout."""


class Interrupted(BaseException):
    """Raised in the thread of an invocation whose deadline passed; becomes its DeadlineExceededError."""
