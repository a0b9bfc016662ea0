"""Wait sources: the objects that threads, callbacks and coroutines wait for.

HAL fences and timepoints, latches, times and descriptors are ``Source`` objects. Users' classes need not be: the
protocol ``WaitSource`` has the three methods that are used here, and ``WhenReady`` has a single method.
"""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeAlias, TypeVar, runtime_checkable

from ..status import DeadlineExceededError, PumiceError
from .awaitable import await_source
from .notification import Callback, Cancellable
from .wait_mode import Look, WaitMode

if TYPE_CHECKING:
    import asyncio
    import concurrent.futures

Armed = TypeVar("Armed", bound=Cancellable)

LONGEST_WAIT: Final = min(threading.TIMEOUT_MAX, 1e9)
"""Seconds, some thirty years. Longer waits have no limit, as platforms' timers have a maximum."""


def seconds_until(deadline: float | None) -> float | None:
    """Returns the seconds until ``time.monotonic()`` reaches ``deadline``, as a timeout for threads."""
    return None if deadline is None else min(max(0.0, deadline - time.monotonic()), LONGEST_WAIT)


def block(notify: Callable[[Callback], Armed], deadline: float | None) -> Armed | None:
    """Blocks until a notification armed here comes; raises its failure.

    Returns:
        ``None``, or the cancelled notification if it has not come by ``deadline``.
    """
    ended = threading.Event()
    failures: list[PumiceError] = []

    def callback(error: PumiceError | None) -> None:
        if error is not None:
            failures.append(error)
        ended.set()

    armed = notify(callback)
    try:
        is_late = not ended.wait(seconds_until(deadline))
    finally:
        armed.cancel()
    if failures:
        raise failures[0].again()
    return armed if is_late else None


@runtime_checkable
class WaitSource(Protocol):
    """An object that becomes ready once, or fails, and stays so."""

    __slots__ = ()

    @abstractmethod
    def query(self) -> bool:
        """Whether it is ready now. Raises its failure."""

    @abstractmethod
    def wait_until(self, deadline: float | None = None) -> None:
        """Blocks until ready; raises its failure, or DeadlineExceededError at ``deadline`` (``time.monotonic()``)."""

    @abstractmethod
    def notify(self, callback: Callback, /) -> Cancellable:
        """Calls back exactly once, with ``None`` or the failure, perhaps before it returns. Does not block."""


class Source(WaitSource):
    """A wait source of pumice's own. Subclasses define ``query`` and ``notify``; the other ways to wait follow.

    Attributes:
        quick_query: whether ``query`` is quick, so that loops query before they arm a callback (deferred.py).
        told_late: whether threads that call back may gather wake-ups of asyncio loops (awaitable.py).
    """

    __slots__ = ()
    quick_query: ClassVar[bool] = False
    told_late: ClassVar[bool] = False

    def look(self, mode: WaitMode | None = None) -> Look | None:
        """Returns the look with which a loop polls before arming a callback; ``None`` for no polling.

        ``mode`` overrides the device's.
        """
        return None

    def wait_until(self, deadline: float | None = None) -> None:
        """Blocks until ready; raises its failure, or DeadlineExceededError at ``deadline`` (``time.monotonic()``)."""
        if not self.query() and block(self.notify, deadline) is not None and not self.query():
            raise DeadlineExceededError(f"{self!r} was not ready in time; it can be waited for again")

    def __await__(self) -> Generator[Any, Any, Any]:
        """Suspends an asyncio coroutine, or a native function that is a coroutine; blocks nothing."""
        return await_source(self)


@runtime_checkable
class WhenReady(Protocol):
    """The smallest wait source: ``as_wait_source`` makes it a complete one.

    ``when_ready`` is called once, from any thread, and calls back once, from any thread, perhaps before it returns:
    without an argument when ready, with an exception when failed.
    """

    def when_ready(self, callback: Callable[..., None], /) -> object:
        """Calls ``callback()`` when ready, ``callback(error)`` when failed."""


Waitable: TypeAlias = "WaitSource | WhenReady | concurrent.futures.Future[Any] | asyncio.Future[Any]"
"""The sources of a ``Wait``: wait sources, and objects that ``as_wait_source`` converts."""
