"""Streams of calls, several at a time: the asynchronous iterator behind ``SessionFunction.stream``."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ...hal.buffer import Buffer
from ...status import InvalidArgumentError
from ...vm.invocation.invocation import Invocation
from .donation import buffer_of
from .outputs import Out

if TYPE_CHECKING:
    import asyncio

_END: Any = object()


def stream_calls(
    submit: Callable[[Any, Out | None], Invocation],
    calls: Iterable[Any] | AsyncIterable[Any],
    out: Iterable[Out] | None,
    depth: int,
    ordered: bool,
) -> AsyncIterator[Any]:
    """Returns the results of calls, at most ``depth`` in flight; ``out`` has the arrays of each call."""
    if not isinstance(depth, int) or isinstance(depth, bool) or depth < 1:
        raise InvalidArgumentError(f"depth is the most calls in flight, at least 1; got {depth!r}")
    if isinstance(calls, AsyncIterable):
        source = aiter(calls)
    else:
        try:
            source = _each(iter(calls))
        except TypeError:
            raise InvalidArgumentError(f"a stream takes an iterable of calls, got {type(calls).__name__}") from None
    outs = None
    if out is not None:
        try:
            outs = iter(out)
        except TypeError:
            raise InvalidArgumentError(
                f"out of a stream is an iterable, with the arrays of each call; got {type(out).__name__}"
            ) from None
    return _stream(submit, source, _Outs(outs), depth, ordered)


class _Outs:
    """The arrays that calls in flight write; an array must not be in use twice."""

    def __init__(self, outs: Iterator[Out] | None) -> None:
        self._outs = outs
        self._used: dict[Invocation, list[Buffer]] = {}
        self._next: list[Buffer] = []

    def take(self) -> Out | None:
        """Returns the arrays of the next call."""
        if self._outs is None:
            return None
        out: Out | None = next(self._outs, None)
        if out is None:
            raise InvalidArgumentError("out of the stream ended before its calls: it has the arrays of each call")
        buffers_of = [buffer_of(buffer) for buffer in (out if isinstance(out, (tuple, list)) else (out,))]
        self._next = [buffer for buffer in buffers_of if buffer is not None]
        if any(buffer.overlaps(used) for buffer in self._next for buffers in self._used.values() for used in buffers):
            raise InvalidArgumentError(
                "an array of the stream's out came again while a call that writes it was in flight, or its result not "
                "taken; give at least depth of them"
            )
        return out

    def submitted(self, invocation: Invocation) -> None:
        """Notes the invocation for the arrays that ``take`` returned last."""
        if self._next:
            self._used[invocation] = self._next

    def taken(self, invocation: Invocation) -> None:
        """Notes that the caller has received the result."""
        self._used.pop(invocation, None)


async def _each(calls: Any) -> AsyncGenerator[Any, None]:
    for call in calls:
        yield call


async def _next(source: AsyncIterator[Any]) -> Any:
    """Returns the next call, or ``_END``."""
    # Not anext(source, _END): CPython up to 3.12 crashes if __anext__ raises when called instead of when awaited.
    try:
        return await source.__anext__()
    except StopAsyncIteration:
        return _END


async def _stream(
    submit: Callable[[Any, Out | None], Invocation],
    source: AsyncIterator[Any],
    outs: _Outs,
    depth: int,
    ordered: bool,
) -> AsyncGenerator[Any, None]:
    import asyncio  # imported late so that programs without it start sooner

    loop = asyncio.get_running_loop()
    flight: deque[Invocation] = deque()
    ended: deque[Invocation] = deque()  # in the order of completion, unless ordered
    wake: asyncio.Event = asyncio.Event()
    asked: asyncio.Task[Any] | None = None  # the next call, while the source computes it
    more = True

    def done(invocation: Invocation) -> None:
        def note() -> None:
            if not ordered:
                ended.append(invocation)
            wake.set()

        try:
            loop.call_soon_threadsafe(note)
        except RuntimeError:
            return  # the loop is closed, so the iteration is over

    try:
        while more or flight:
            while more and len(flight) < depth:
                if asked is None:
                    asked = asyncio.ensure_future(_next(source))
                    asked.add_done_callback(lambda _: wake.set())
                    await asyncio.sleep(0)
                if not asked.done():
                    break
                call = asked.result()
                asked = None
                if call is _END:
                    more = False
                else:
                    invocation = submit(call, outs.take())
                    outs.submitted(invocation)
                    flight.append(invocation)
                    invocation.add_done_callback(done)
            wake.clear()
            ready = _take(flight, ended, ordered)
            if ready is not None:
                yield ready._result()
                outs.taken(ready)
            elif flight or more:
                if asked is not None and asked.done() and len(flight) < depth:
                    continue
                await wake.wait()
    finally:
        for invocation in flight:
            invocation.cancel()
        if asked is not None:
            asked.cancel()
            await asyncio.wait([asked])
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()


def _take(flight: deque[Invocation], ended: deque[Invocation], ordered: bool) -> Invocation | None:
    """Returns the invocation with the next result, if it is done."""
    if ordered:
        return flight.popleft() if flight and flight[0].done() else None
    if not ended:
        return None
    invocation = ended.popleft()
    flight.remove(invocation)
    return invocation
