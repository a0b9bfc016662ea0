"""Semaphores that close themselves with their last reference, as fences and contexts of the VM hold them."""

from __future__ import annotations

from ....hal_vulkan import TimelineSemaphore
from ....hal_vulkan.sync.context import SemaphoreContext
from ....status import CancelledError

__all__ = ["HalSemaphore"]


class HalSemaphore(TimelineSemaphore):
    """A timeline semaphore at 0 that is closed some time after its last reference has gone."""

    __slots__ = ()

    def __init__(self, context: SemaphoreContext, name: str) -> None:
        context.device.check_usable()
        super().__init__(context, 0, name)

    def close(self) -> None:
        """Destroys the semaphore; what waits for it on the host is dropped, as nobody is left to signal it. Idempotent."""
        if self.held:
            self.fail(CancelledError("nobody is left who could signal this fence; work that waits for it is dropped"))
        super().close()

    def __del__(self) -> None:
        # The garbage collector may come at any point, under any lock: only a note is taken (docs/design/hal.md).
        if not getattr(self, "is_closed", True):
            self.device.dropped.append(self)
