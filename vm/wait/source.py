"""What the VM can wait on: the one protocol that semaphores, fences and a user's own sources share.

The VM knows no Vulkan; it waits on anything with these three methods. HAL timepoints and fences have them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from ...status import PumiceError

if TYPE_CHECKING:
    import asyncio
    import concurrent.futures

__all__ = ["Cancellable", "WaitSource", "Waitable", "WhenReady"]


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


@runtime_checkable
class WhenReady(Protocol):
    """The least that a wait source of a user's can be.

    ``when_ready`` is called once, from whichever thread, and calls back once, from whichever thread, perhaps before it returns: with nothing
    when ready, with an exception when failed.
    """

    def when_ready(self, callback: Callable[..., None], /) -> object:
        """Calls ``callback()`` when ready, ``callback(error)`` when failed."""
        ...


Waitable: TypeAlias = "WaitSource | WhenReady | concurrent.futures.Future[Any] | asyncio.Future[Any]"
"""What a ``Wait`` takes: wait sources, and what ``as_wait_source`` makes one of."""
