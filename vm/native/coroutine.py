"""Native functions that are coroutines: ``async def``, with ``await`` where they wait.

::

    @module.function("read", "0i_i")
    async def read(descriptor: int) -> int:
        await FileReady(descriptor)
        return os.read(descriptor, 1)[0]

Each ``await`` on a wait source suspends the invocation, as returning a ``Wait`` does. On resumption the coroutine
continues behind it, or the source's failure is raised there. The coroutine of an aborted invocation is closed: its
``finally`` blocks run.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from ...awaiting import driving
from ...status import FailedPreconditionError, PumiceError
from ..wait.frame import Wait


def driven(function: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
    """A function that runs a coroutine function's coroutines; their results are not checked."""

    def call(*arguments: Any) -> Any:
        return advance(function(*arguments), lambda result: result)

    return call


def advance(coroutine: Coroutine[Any, Any, Any], finish: Callable[[Any], Any], error: PumiceError | None = None) -> Any:
    """Runs a coroutine to its next ``await``, for a Wait, or to its end, for what ``finish`` makes of its result.

    An ``error`` is raised in it where it waits.
    """
    driving.depth += 1
    try:
        source = coroutine.send(None) if error is None else coroutine.throw(error)
    except StopIteration as end:
        result = end.value
    else:
        return _wait(coroutine, finish, source)
    finally:
        driving.depth -= 1
    return finish(result)


def _wait(coroutine: Coroutine[Any, Any, Any], finish: Callable[[Any], Any], source: Any) -> Wait:
    def resume(error: PumiceError | None) -> object:
        return advance(coroutine, finish, error)

    if isinstance(source, Wait):  # of an awaitable that yields its own
        return Wait(source.sources, any=source.any, deadline=source.deadline, resume=resume)
    if source is None or getattr(source, "_asyncio_future_blocking", None) is not None:
        # asyncio.sleep(0) or a bare asyncio future: neither can be awaited outside of asyncio's tasks.
        coroutine.close()
        raise FailedPreconditionError(
            "a native coroutine awaited something of asyncio's; await pumice.AsyncioSource(task), or another wait "
            "source"
        )
    return Wait((source,), resume=resume)
