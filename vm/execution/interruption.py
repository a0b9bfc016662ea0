"""The exception that ends an invocation whose deadline has passed, and the deadlines under way."""

from __future__ import annotations

from typing import Final

deadlines: Final[dict[int, float]] = {}
"""The deadline of the invocations under way in each thread, in ``time.monotonic()`` seconds; only with a timeout."""


class Interrupted(BaseException):
    """Raised in the thread of an invocation whose deadline passed; becomes its DeadlineExceededError."""
