"""``await`` on a wait source: in asyncio coroutines, and in native functions that are coroutines.

Whoever drives a native coroutine sets ``driving``: then ``await`` yields the source to it, and the invocation suspends.
Anywhere else the source is looked at first, if it answers quickly, and then a callback tells the running asyncio loop.
Nothing blocks.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator
from time import monotonic
from typing import TYPE_CHECKING, Any

from .status import FailedPreconditionError, PumiceError
from .waiting import Look, WaitMode, give_way

if TYPE_CHECKING:  # programs without it start sooner
    import asyncio


class Driving(threading.local):
    """Whether this thread steps a native coroutine."""

    depth: int = 0


driving = Driving()


def look_for(
    source: Any, mode: WaitMode | None = None, deadline: float | None = None, ended: Callable[[], object] = bool
) -> Generator[None, None, bool]:
    """Looks at a source that was not ready when it was asked, between the other callbacks of an asyncio loop.

    Args:
        source: a wait source with ``quick_query``; it is asked again if it has ``look`` (hal/semaphore.py).
        mode: how to wait; ``None`` is as the device was opened.
        deadline: ``monotonic()`` seconds at which to stop.
        ended: whether to stop; asked each time.

    Returns:
        whether it is ready, or ``ended``. Raises its failure.
    """
    look = getattr(source, "look", None)
    looks: Look | None = None if look is None else look(mode)
    if looks is None:
        return False
    began = now = monotonic()
    until = now + looks.length(now)
    until = until if deadline is None else min(until, deadline)
    while now < until:
        yield
        give_way()  # the driver's thread may be waiting for this core
        if ended() or source.query():
            looks.found(monotonic() - began)
            return True
        now = monotonic()
    looks.missed(now - began)
    return False


def await_source(source: Any) -> Generator[Any, Any, None]:
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
    if getattr(type(source), "quick_query", False):
        yield  # the loop's other callbacks first: the work may be done by then
        give_way()
        if source.query() or (yield from look_for(source)):
            return
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
