"""Invocations that a coroutine drives: they begin, wait and end in the coroutine that awaits them.

In the thread of an asyncio loop that is the cheapest way to run one: no callback is scheduled, no other object is told.
``AsyncInvocation`` (background.py) is for everything else. Thread rule: ``abort`` from any thread.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ...status import PumiceError
from ...waits.armed_wait import arm_frame
from ...waits.awaitable import look_for, tell
from ...waits.wait_frame import WaitFrame
from ...waits.wait_mode import WaitMode, give_way
from ..execution.context import Context, Function
from ..execution.policy import InvocationPolicy
from ..execution.stack import Stack
from .asyncio_loop import AsyncioLoop
from .driven import DrivenInvocation

if TYPE_CHECKING:  # programs without it start sooner
    import asyncio


class AwaitedInvocation(DrivenInvocation):
    """One invocation: ``await`` it once, in the thread of its loop; it gives its results: ``None``, one, or a tuple.

    Cancelling the task aborts it and releases what it holds.

    Args:
        values: the VM's.
        timeout: seconds for everything; ``None`` is no limit.
        wait: how it waits for devices; ``None`` is as they were opened.
    """

    __slots__ = ("_future", "_values")

    _gives_way = True
    _loop: AsyncioLoop

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
        super().__init__(loop, context, function, policy, timeout, wait)
        self._values = values
        self._future: asyncio.Future[None] | None = None

    def __await__(self) -> Generator[Any, Any, Any]:
        values, self._values = self._values, ()
        self._loop.enter(self)
        self._context.invocations.add(self)
        return self.drive(values)

    def _perform(self, frame: WaitFrame, stack: Stack | None, quick: bool = False) -> Generator[Any, Any, None]:
        if quick:
            source = frame.sources[0]
            give_way()  # the driver's thread may be waiting for this core
            try:
                if source.query() or (yield from look_for(source, self._wait, self._deadline, self._has_ended)):
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
            else:
                tell(loop, wake, error)

        armed = arm_frame(frame, self._deadline, callback)
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

    def _wake(self) -> None:
        self._loop.call(self._resume)

    def _resume(self, _: Exception | None) -> None:
        future = self._future
        if future is not None and not future.done():
            future.set_result(None)
