"""asyncio's loop as a ``Loop``: invocations run in its thread, between its other callbacks.

Any event loop with asyncio's interface works, uvloop's included.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING

from ...status import FailedPreconditionError, InvalidArgumentError
from ...waits.deferred import DeferredWait, look_at
from ..execution.loop import Abortable, Loop, LoopCallback

if TYPE_CHECKING:  # programs without it start sooner
    import asyncio


class AsyncioLoop(Loop):
    """Runs invocations in the thread of an asyncio loop.

    A step occupies the loop while it runs, which may be long if the program computes much in the VM. To avoid this, run
    invocations on their context's own thread, as ``call_async`` does. An exception from a callback also goes to the
    loop's exception handler.

    When the asyncio loop shuts down (``asyncio.run`` ends, or ``shutdown_asyncgens``) this loop is closed.

    Args:
        loop: the asyncio loop; ``None`` means the running loop.

    Raises:
        FailedPreconditionError: no loop was given and none is running.
        InvalidArgumentError: the argument is not a loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        import asyncio

        super().__init__()
        self._running_loop = asyncio._get_running_loop
        if loop is None:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                raise FailedPreconditionError(
                    "no asyncio loop is running; give one, or make AsyncioLoop() in a coroutine"
                ) from None
        if not isinstance(loop, asyncio.AbstractEventLoop):
            raise InvalidArgumentError(f"loop is an asyncio loop, got {type(loop).__name__}")
        self.loop = loop
        self._guard: AsyncGenerator[None, None] | None = None
        self._deferred: deque[DeferredWait] = deque()
        self._looks = False  # whether ``_look`` is scheduled
        self._calls = False  # whether a callback is running now

    def call(self, callback: LoopCallback) -> None:
        if self._ended is None and self._running_loop() is self.loop:
            self.loop.call_soon(self._enter, self._run, callback)  # no need to wake it
        else:
            super().call(callback)

    def start(self, callback: LoopCallback) -> None:
        if self._ended is None and not self._calls and self._running_loop() is self.loop:
            self._enter(self._run, callback)
        else:
            self.call(callback)

    def _post(self, callback: Callable[[], None]) -> None:
        self.loop.call_soon_threadsafe(self._enter, callback)

    def _defer(self, wait: DeferredWait) -> bool:
        self._deferred.append(wait)
        if not self._looks:
            self._looks = True
            self.loop.call_soon(self._look)  # after the callbacks that are due
        return True

    def _look(self) -> None:
        again = self._calls = True  # again after an exception, too
        try:
            again = look_at(self._deferred)
        finally:
            self._calls = False
            self._looks = again
            if again:
                self.loop.call_soon(self._look)

    def runs_here(self) -> bool:
        """Whether this is the loop's thread and the loop is running."""
        return self._running_loop() is self.loop

    def _enter(self, function: Callable[..., None], *arguments: LoopCallback) -> None:
        """Calls a function in the loop's thread."""
        if self._guard is None:
            self._watch()
        self._calls = True
        try:
            function(*arguments)
        finally:
            self._calls = False

    def enter(self, invocation: Abortable) -> None:
        """Registers an invocation that a coroutine drives; raises AbortedError if the loop has ended."""
        if self._guard is None:
            self._watch()
        self._active.add(invocation)
        if self._ended is not None:  # see Loop.add
            self._active.discard(invocation)
            raise self._ended.again()

    def _watch(self) -> None:
        # At shutdown a loop closes its asynchronous generators; it gives no other sign of the shutdown.
        self._guard = _until_shutdown(self)
        with contextlib.suppress(StopIteration):
            self._guard.asend(None).send(None)

    def fail(self, error: BaseException) -> None:
        """Ends the loop because a callback raised."""
        super().fail(error)
        if not self.loop.is_closed():
            context = {"message": "a callback of a pumice.vm.AsyncioLoop raised", "exception": error}
            with contextlib.suppress(RuntimeError):
                self.loop.call_soon_threadsafe(self.loop.call_exception_handler, context)


async def _until_shutdown(loop: Loop) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        loop.close()
