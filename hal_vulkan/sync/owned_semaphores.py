"""Semaphores that their users do not close: those of programs, and the timelines of queues."""

from __future__ import annotations

from ...status import CancelledError, FailedPreconditionError
from .context import SemaphoreContext
from .semaphore import TimelineSemaphore


class ProgramSemaphore(TimelineSemaphore):
    """A program's timeline semaphore, initially at 0. It closes with its last reference."""

    __slots__ = ()

    def __init__(self, context: SemaphoreContext, name: str) -> None:
        context.device.check_usable()
        super().__init__(context, 0, name)

    def close(self) -> None:
        """Destroys the semaphore and drops work that waits for it on the host; idempotent."""
        if self.held:
            self.fail(CancelledError("nobody is left who could signal this fence; work that waits for it is dropped"))
        super().close()

    def __del__(self) -> None:
        # May run at any point, under any lock, so it only appends to a list (docs/design/hal.md).
        if not getattr(self, "is_closed", True):
            self.device.dropped.append(self)


class QueueTimeline(TimelineSemaphore):
    """The semaphore that each submission of a queue signals with its number. Only the queue signals and closes it."""

    judged = False

    def __init__(self, context: SemaphoreContext, name: str) -> None:
        super().__init__(context, 0, name)

    def signal(self, value: int) -> None:
        """Raises FailedPreconditionError."""
        raise FailedPreconditionError(f"{self.name} counts the submissions of its queue: only that signals it")

    def close(self) -> None:
        """Does nothing: the device destroys it."""

    def _release_blocked(self) -> None:
        """Does nothing: its waiters wait for submitted work, which finishes or is lost with the device."""
