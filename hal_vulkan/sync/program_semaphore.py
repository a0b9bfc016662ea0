"""Semaphores of programs, which close with their last reference."""

from __future__ import annotations

from ...status import CancelledError
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
        # May run at any point, under any lock: only takes a note (docs/design/hal.md).
        if not getattr(self, "is_closed", True):
            self.device.dropped.append(self)
