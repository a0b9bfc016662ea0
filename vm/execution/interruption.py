"""The exception that ends an invocation after its deadline, and the current deadlines."""

from __future__ import annotations

from typing import Final

deadlines: Final[dict[int, float]] = {}
"""The deadline of the current invocations of each thread, in ``time.monotonic()`` seconds, if there is a timeout."""


class Interrupted(BaseException):
    """Raised in the thread of an invocation whose deadline passed; becomes its DeadlineExceededError."""
