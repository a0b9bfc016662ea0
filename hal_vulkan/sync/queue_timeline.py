"""The timeline of a queue."""

from __future__ import annotations

from ...status import FailedPreconditionError
from .context import SemaphoreContext
from .semaphore import TimelineSemaphore


class QueueTimeline(TimelineSemaphore):
    """The semaphore that each submission of a queue signals with its number. Only the queue signals and closes it."""

    judged = False

    def __init__(self, context: SemaphoreContext, name: str) -> None:
        super().__init__(context, 0, name)

    def signal(self, value: int) -> None:
        """Raises FailedPreconditionError."""
        raise FailedPreconditionError(f"{self.name} counts the submissions of its queue: only that signals it")

    def close(self) -> None:
        """Does nothing: it is destroyed with the device."""

    def _release_blocked(self) -> None:
        """Does nothing: its waiters wait for submitted work, which finishes or is lost with the device."""
