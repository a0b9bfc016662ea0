"""``await`` on a wait source: in asyncio coroutines, and in native functions that are coroutines.

Whoever drives a native coroutine sets ``driving``: then ``await`` yields the source to it, and the invocation suspends.
Anywhere else a callback tells the running asyncio loop. Nothing blocks.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from .notification import Notifies
from .status import FailedPreconditionError, PumiceError

if TYPE_CHECKING:  # programs without it start sooner
    import asyncio


class Driving(threading.local):
    """Whether this thread steps a native coroutine."""

    depth: int = 0


driving = Driving()


def await_source(source: Notifies) -> Generator[Any, Any, None]:
    """The ``__await__`` of every wait source.

    Raises:
        FailedPreconditionError: there is neither a running loop nor an invocation.
        PumiceError: the source's failure.
    """
    if driving.depth:
        yield source
        return
    import asyncio

    running_loop = asyncio._get_running_loop
    loop = running_loop()
    if loop is None:
        raise FailedPreconditionError(
            "await on a wait source needs a running asyncio loop, or a native function that is a coroutine"
        )
    future: asyncio.Future[None] = loop.create_future()

    def settle(error: PumiceError | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error.again())

    def callback(error: PumiceError | None) -> None:
        if running_loop() is loop:
            settle(error)
            return
        with contextlib.suppress(RuntimeError):  # the loop was closed, and its coroutines with it
            loop.call_soon_threadsafe(settle, error)

    notification = source.notify(callback)
    try:
        yield from future
    except BaseException:
        notification.cancel()
        raise
