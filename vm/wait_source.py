"""What the VM can wait on: the one protocol that semaphores, fences and a user's own sources share.

The VM knows no Vulkan; it waits on anything with these three methods. HAL timepoints and fences have them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from ..status import PumiceError

__all__ = ["Cancellable", "WaitSource"]


@runtime_checkable
class Cancellable(Protocol):
    """An armed notification."""

    def cancel(self) -> bool:
        """Disarms it; ``False`` when the callback has been, or is being, called."""
        ...


@runtime_checkable
class WaitSource(Protocol):
    """Something that becomes ready once, or fails, and stays so."""

    def query(self) -> bool:
        """Whether it is ready now. Raises its failure."""
        ...

    def wait_until(self, deadline: float | None = None) -> None:
        """Blocks until ready; raises its failure, or DeadlineExceededError when ``time.monotonic()`` passes ``deadline``."""
        ...

    def notify(self, callback: Callable[[PumiceError | None], None]) -> Cancellable:
        """Calls back exactly once, with ``None`` or the failure, perhaps before it returns. Blocks no thread a call."""
        ...
