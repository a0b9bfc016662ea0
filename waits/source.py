"""The protocol of wait sources: what the VM waits on.

HAL timepoints and fences have its three methods, and so can any class of a user's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from .notification import Callback, Cancellable

if TYPE_CHECKING:
    import asyncio
    import concurrent.futures


@runtime_checkable
class WaitSource(Protocol):
    """Something that becomes ready once, or fails, and stays so."""

    def query(self) -> bool:
        """Whether it is ready now. Raises its failure."""

    def wait_until(self, deadline: float | None = None) -> None:
        """Blocks until ready; raises its failure, or DeadlineExceededError at ``deadline`` (``time.monotonic()``)."""

    def notify(self, callback: Callback, /) -> Cancellable:
        """Calls back exactly once, with ``None`` or the failure, perhaps before it returns. Does not block."""


@runtime_checkable
class WhenReady(Protocol):
    """The smallest wait source: ``as_wait_source`` makes a whole one of it.

    ``when_ready`` is called once, from any thread, and calls back once, from any thread, perhaps before it returns:
    with nothing when ready, with an exception when failed.
    """

    def when_ready(self, callback: Callable[..., None], /) -> object:
        """Calls ``callback()`` when ready, ``callback(error)`` when failed."""


Waitable: TypeAlias = "WaitSource | WhenReady | concurrent.futures.Future[Any] | asyncio.Future[Any]"
"""The sources of a ``Wait``: wait sources, and what ``as_wait_source`` takes."""
