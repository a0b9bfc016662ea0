"""``await`` on a wait source: in a coroutine of asyncio's, and in a native function of a module that is one.

Whoever drives a native coroutine says so with ``driving``; then an ``await`` gives the source to it, and the invocation suspends. Anywhere
else the running asyncio loop is told by a callback, and nothing blocks.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Protocol

from .status import FailedPreconditionError, PumiceError

if TYPE_CHECKING:  # programs that do not use it start sooner
    import asyncio

__all__ = ["Driving", "await_source", "driving"]


class _Notification(Protocol):
    def cancel(self) -> bool: ...


class _Notifies(Protocol):
    def notify(self, callback: Callable[[PumiceError | None], None], /) -> _Notification: ...


class Driving(threading.local):
    """Whether this thread steps a native coroutine."""

    depth: int = 0


driving = Driving()


def await_source(source: _Notifies) -> Generator[Any, Any, None]:
    """What ``__await__`` of a wait source returns.

    Raises:
        FailedPreconditionError: there is no running loop, nor an invocation.
        PumiceError: the source's failure.
    """
    if driving.depth:
        yield source
        return
    import asyncio

    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise FailedPreconditionError(
            "await on a wait source needs a running asyncio loop, or a native function that is a coroutine"
        ) from None
    future: asyncio.Future[None] = loop.create_future()

    def settle(error: PumiceError | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error.again())

    def callback(error: PumiceError | None) -> None:
        if asyncio._get_running_loop() is loop:
            settle(error)
            return
        with contextlib.suppress(RuntimeError):  # the loop was closed, and with it whoever waited
            loop.call_soon_threadsafe(settle, error)

    notification = source.notify(callback)
    try:
        yield from future
    finally:
        notification.cancel()
