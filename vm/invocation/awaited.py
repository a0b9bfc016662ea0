"""Invocations that a coroutine drives: they begin, wait and end in the coroutine that awaits them.

In the thread of an asyncio loop this is the cheapest way: no callback is scheduled and no other object is notified.
``AsyncInvocation`` (background.py) is for everything else. Thread rule: ``abort`` from any thread.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ...status import PumiceError
from ...waits.armed_wait import arm_frame
from ...waits.awaitable import look_for, tell
from ...waits.deferred import can_defer
from ...waits.wait_frame import WaitFrame
from ...waits.wait_mode import WaitMode, give_way
from ..execution.context import Context, Function
from ..execution.policy import FIFO, InvocationPolicy, checked_policy
from ..execution.run import Run
from .asyncio_loop import AsyncioLoop

if TYPE_CHECKING:  # programs without it start sooner
    import asyncio


class AwaitedInvocation(Run):
    """An invocation to be awaited once, in the thread of its loop; returns its results: ``None``, a value, or a tuple.

    If the task is cancelled, the invocation is aborted and its objects are released.

    Args:
        values: the VM's values.
        timeout: the time limit of the whole invocation in seconds; ``None`` means no limit.
        wait: the wait mode for devices; ``None`` keeps the mode that they were opened with.
    """

    __slots__ = ("_future", "_loop", "_mode")

    context: Context
    function: Function

    def __init__(
        self,
        loop: AsyncioLoop,
        context: Context,
        function: Function,
        values: tuple[Any, ...],
        policy: InvocationPolicy | None = None,
        timeout: float | None = None,
        wait: WaitMode | None = None,
    ) -> None:
        policy = checked_policy(policy, FIFO, concurrent=context.concurrent)
        # Where the driver shares a core with this thread, the work is often done when the program asks.
        super().__init__(context, function, values, policy, timeout, False, "ask")
        self._future: asyncio.Future[None] | None = None
        self._loop = loop
        self._mode = wait

    def __await__(self) -> Generator[Any, Any, Any]:
        loop, context = self._loop, self.context
        loop.enter(self)
        context.invocations.add(self)
        try:
            wait = self.advance()
            if wait is None:
                yield  # it has not suspended: let the event loop's other tasks run
            while wait is not None:
                yield  # the other tasks first: the work may be done by then
                if not wait.done and self.ending is None:
                    yield from self._perform(wait)
                wait = self.advance()
        except GeneratorExit:
            self.drop()  # perhaps by the garbage collector
            raise
        except BaseException:
            self.close()
            raise
        finally:
            loop.remove(self)
            context.invocations.discard(self)
        return self.outcome()

    def _perform(self, frame: WaitFrame) -> Generator[Any, Any, None]:
        """Polls a source that answers quickly, then waits for a callback."""
        if self._mode != "block" and can_defer(frame):
            source = frame.sources[0]
            try:
                is_ready = source.query()
                if not is_ready:
                    give_way()  # the driver's thread may be waiting for this core
                    is_ready = source.query() or (
                        yield from look_for(source, self._mode, self.deadline, self._is_ending)
                    )
            except PumiceError as error:
                frame.complete(error)
                return
            if is_ready:
                frame.complete()
                return
        loop = self._loop.loop
        self._future = future = loop.create_future()

        def wake(_: object) -> None:
            if not future.done():
                future.set_result(None)

        def callback(error: PumiceError | None) -> None:
            if self._loop.runs_here():
                wake(error)
            else:
                tell(loop, wake, error)

        armed = arm_frame(frame, self.deadline, callback)
        try:
            if self.ending is None:  # otherwise ``_resume`` may have been called before the future existed
                yield from future
        finally:
            self._future = None
            armed.cancel()

    def _is_ending(self) -> bool:
        return self.ending is not None

    def _wake(self) -> None:
        self._loop.call(self._resume)

    def _resume(self, _: Exception | None) -> None:
        future = self._future
        if future is not None and not future.done():
            future.set_result(None)
