"""Invocations that a coroutine drives: they begin, wait and end in the coroutine that awaits them.

In the thread of an asyncio loop that is the cheapest way to run one: no callback is scheduled, no other object is told.
``AsyncInvocation`` (background.py) is for everything else. Thread rule: ``abort`` from any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from time import monotonic
from typing import TYPE_CHECKING, Any

from ...awaiting import look_for
from ...status import PumiceError, StatusCode
from ...waiting import WaitMode
from ..execution.context import Context, Function
from ..execution.deadlines import deadline_after, timed_out
from ..execution.policy import FIFO, InvocationPolicy, checked_policy
from ..execution.watchdog import Interrupted
from ..wait.deferred import can_defer
from ..wait.frame import WaitFrame
from ..wait.waits import arm_frame
from .asyncio_loop import AsyncioLoop
from .state import InvokeState, begin, interrupt_step, step, try_abort

if TYPE_CHECKING:  # programs without it start sooner
    import asyncio


class AwaitedInvocation:
    """One invocation: ``await`` it once, in the thread of its loop; it gives the outputs.

    Cancelling the task aborts it and releases what it holds.

    Args:
        values: makes the VM's values when the invocation begins.
        timeout: seconds for everything; ``None`` is no limit.
        wait: how it waits for devices; ``None`` is as they were opened.
    """

    __slots__ = ("_ending", "_future", "_loop", "_state", "_target")

    def __init__(
        self,
        loop: AsyncioLoop,
        context: Context,
        function: Function,
        values: Callable[[], tuple[Any, ...]],
        policy: InvocationPolicy | None = None,
        timeout: float | None = None,
        wait: WaitMode | None = None,
    ) -> None:
        self._loop = loop
        self._target = (context, function, values, policy, timeout, wait)
        self._state = InvokeState()
        self._future: asyncio.Future[None] | None = None
        self._ending: PumiceError | None = None

    def __await__(self) -> Generator[Any, Any, tuple[Any, ...]]:
        # In one piece, for speed: benchmarks/async_calls.py.
        context, function, values, policy, timeout, mode = self._target
        loop, state = self._loop, self._state
        deadline = None if timeout is None else deadline_after(timeout)
        loop.enter(self)
        context.invocations.add(self)
        suspended = False
        try:
            policy = checked_policy(policy, FIFO, concurrent=context.concurrent)
            status = begin(state, context, function, values(), policy, deadline)
            while status is StatusCode.DEFERRED:
                suspended = True
                frame = state.wait_frame
                if frame is None or frame.done:
                    yield
                else:
                    yield from self._perform(frame, deadline, mode)
                if self._ending is not None:
                    raise self._ending.again()
                if deadline is not None and monotonic() >= deadline:
                    raise timed_out(function.full_name, timeout)
                status = step(state, deadline)
            error, outputs = state.outcome()
            if error is not None:
                raise error
            assert outputs is not None
        except Interrupted:
            raise self._ending or timed_out(function.full_name, timeout) from None
        finally:
            if state.function is not None:
                state.clear()
            loop.remove(self)
            context.invocations.discard(self)
        if not suspended:
            yield  # the event loop's other tasks have their turn
        return outputs

    def _perform(self, frame: WaitFrame, deadline: float | None, mode: WaitMode | None) -> Generator[Any, Any, None]:
        """Performs a wait: looks at its source between the event loop's other callbacks, and then arms it."""
        yield
        if mode != "block" and can_defer(frame):
            try:
                if (yield from look_for(frame.sources[0], mode, deadline, self._has_ended)):
                    frame.complete()
                    return
            except PumiceError as error:
                frame.complete(error)
                return
        loop = self._loop.loop
        self._future = future = loop.create_future()

        def wake(_: object) -> None:
            if not future.done():
                future.set_result(None)

        def callback(error: PumiceError | None) -> None:
            if self._loop.runs_here():
                wake(error)
            elif not loop.is_closed():
                loop.call_soon_threadsafe(wake, error)

        armed = arm_frame(frame, deadline, callback)
        try:
            if self._ending is None:
                yield from future
        finally:
            self._future = None
            armed.cancel()

    def _has_ended(self) -> bool:
        return self._ending is not None

    def needs_this_thread(self) -> bool:
        """Whether it cannot go on while the calling thread blocks."""
        return True

    def abort(self, error: PumiceError) -> None:
        """Ends it with an error; what a suspended one holds is released before this returns."""
        if self._ending is not None:
            return
        self._ending = error
        if not try_abort(self._state):
            interrupt_step(self._state)
        self._loop.call(self._wake)

    def _wake(self, _: Exception | None) -> None:
        future = self._future
        if future is not None and not future.done():
            future.set_result(None)
