"""Adapters that make wait sources of futures and of objects with ``when_ready``.

``as_wait_source`` picks the adapter. Thread rule: every method from any thread.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ..status import (
    AbortedError,
    CancelledError,
    FailedPreconditionError,
    InvalidArgumentError,
    PumiceError,
    UnknownError,
)
from .awaitable import await_source
from .latch import Latch
from .notification import lock
from .source import WaitSource, WhenReady

if TYPE_CHECKING:  # programs start sooner without these imports
    import asyncio
    import concurrent.futures


class _FutureLatch(Latch):
    """Ready when a future is done; failed if the future failed. ``await`` on it returns the future's result."""

    __slots__ = ("_attached", "future")
    _name = "the future"

    def __init__(self, future: Any) -> None:
        super().__init__()
        self.future: Any = future
        self._attached = False

    def _attach(self) -> None:
        self.future.add_done_callback(self._done)

    def _poll(self) -> None:
        if self.future.done():
            self._done(self.future)

    def _armed(self) -> None:
        if not self._attached:
            self._attached = True
            self._attach()

    def _done(self, future: concurrent.futures.Future[Any] | asyncio.Future[Any]) -> None:
        subject = f"{self._name} that was waited for"
        if future.cancelled():
            self.settle(CancelledError(f"{subject} was cancelled"))
        else:
            error = future.exception()
            self.settle(None if error is None else as_pumice_error(error, subject))

    def __await__(self) -> Generator[Any, Any, Any]:
        try:
            yield from await_source(self)
        except PumiceError:
            if not self.future.done():
                raise
        return self.future.result()


class FutureSource(_FutureLatch):
    """Ready when a ``concurrent.futures.Future`` is done; failed if the future failed.

    ``await`` on it in a native function returns the future's result.
    """

    __slots__ = ()

    def __init__(self, future: concurrent.futures.Future[Any]) -> None:
        super().__init__(future)

    def result(self) -> Any:
        """Returns the future's result, or raises its error; does not block."""
        return self.future.result(0)


class AsyncioSource(_FutureLatch):
    """Ready when an asyncio future or task is done; failed if that failed.

    Args:
        future: a future of a running loop, in any thread.

    A blocking wait in the thread of its loop is refused: it would deadlock.
    """

    __slots__ = ()
    _name = "the asyncio future"

    def __init__(self, future: asyncio.Future[Any]) -> None:
        super().__init__(future)

    def _attach(self) -> None:
        try:
            self.future.get_loop().call_soon_threadsafe(super()._attach)
        except RuntimeError:
            self.settle(AbortedError("the loop of the asyncio future that was waited for is closed"))

    def wait_until(self, deadline: float | None = None) -> None:
        """Blocks until done; raises like every wait source, and FailedPreconditionError in the thread of its loop."""
        if not self.query() and sys.modules["asyncio"]._get_running_loop() is self.future.get_loop():
            raise FailedPreconditionError(
                "a blocking wait for an asyncio future in the thread of its loop deadlocks; use await, or call_async"
            )
        super().wait_until(deadline)


class WhenReadySource(Latch):
    """The wait source of an object that only has ``when_ready``."""

    __slots__ = ("_asked", "source")

    def __init__(self, source: WhenReady) -> None:
        super().__init__()
        self.source: WhenReady = source
        self._asked = False

    def _poll(self) -> None:
        self._armed()

    def _armed(self) -> None:
        with lock:
            if self._asked:
                return
            self._asked = True
        try:
            self.source.when_ready(self._ready)
        except Exception as error:
            self.settle(as_pumice_error(error, f"{type(self.source).__name__}.when_ready"))

    def _ready(self, error: object = None, /) -> None:
        name = type(self.source).__name__
        if error is not None and not isinstance(error, BaseException):
            error = InvalidArgumentError(
                f"{name} called back with {type(error).__name__}; it calls with nothing when ready and with an "
                "exception when failed"
            )
        self.settle(None if error is None else as_pumice_error(error, name))


def as_wait_source(source: Any) -> WaitSource:
    """Returns the wait source itself, or the adapter of a future or of an object with ``when_ready``.

    Raises:
        InvalidArgumentError: the object is none of these.
    """
    if hasattr(source, "notify") and hasattr(source, "query") and hasattr(source, "wait_until"):
        whole: WaitSource = source
        return whole
    futures, asyncio = sys.modules.get("concurrent.futures"), sys.modules.get("asyncio")
    if futures is not None and isinstance(source, futures.Future):
        return FutureSource(source)
    if asyncio is not None and asyncio.isfuture(source):
        return AsyncioSource(source)
    if callable(getattr(source, "when_ready", None)):
        return WhenReadySource(source)
    raise InvalidArgumentError(
        f"{type(source).__name__} is not a wait source; a wait source has query(), wait_until(deadline) and "
        "notify(callback), or when_ready(callback), or is a future"
    )


def as_pumice_error(error: BaseException, subject: str) -> PumiceError:
    """Returns a pumice error whose cause is the exception, or the exception itself if it is one."""
    if isinstance(error, PumiceError):
        return error
    if type(error).__name__ == "CancelledError":  # asyncio's and concurrent.futures'
        known: PumiceError = CancelledError(f"{subject} was cancelled")
    else:
        known = UnknownError(f"{subject} failed with {type(error).__name__}: {error}")
    known.__cause__ = error
    return known
