"""Invocations that a coroutine drives: they begin, wait and end in the coroutine that awaits them.

In the thread of an asyncio loop that is the cheapest way to run one: no callback is scheduled, no other object is told.
``AsyncInvocation`` (background.py) is for everything else. Thread rule: ``abort`` from any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from time import monotonic
from typing import TYPE_CHECKING, Any

from ...awaiting import look_for, tell
from ...status import PumiceError
from ...waiting import WaitMode, give_way
from ..execution.admission import Ticket
from ..execution.context import Context, Function
from ..execution.deadlines import deadline_after, step_until, timed_out
from ..execution.interruption import Interrupted
from ..execution.policy import FIFO, InvocationPolicy, checked_policy
from ..execution.stack import Stack
from ..execution.watchdog import Guard
from ..wait.deferred import can_defer
from ..wait.frame import Wait, WaitFrame
from ..wait.waits import arm_frame
from .asyncio_loop import AsyncioLoop
from .marshalling import outputs_of
from .state import interrupt_step, leave_step

if TYPE_CHECKING:  # programs without it start sooner
    import asyncio


class AwaitedInvocation:
    """One invocation: ``await`` it once, in the thread of its loop; it gives the outputs.

    Cancelling the task aborts it and releases what it holds.

    Args:
        values: the VM's.
        timeout: seconds for everything; ``None`` is no limit.
        wait: how it waits for devices; ``None`` is as they were opened.
    """

    # ``_stack`` and ``_held`` are whose who takes them by a swap, in which no thread switch comes: the stack of a
    # suspended invocation, and its ticket, or True where invocations are only counted.
    __slots__ = (
        "_context",
        "_ending",
        "_future",
        "_guard",
        "_held",
        "_loop",
        "_stack",
        "_stepped",
        "_target",
        "_thread",
    )

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
        self._loop = loop
        self._context = context
        self._target = (function, values, policy, timeout, wait)
        self._stack: Stack | None = None
        self._held: Ticket | bool = False
        self._ending: PumiceError | None = None
        self._future: asyncio.Future[None] | None = None
        self._thread = 0  # that is in a step
        self._guard: Guard | None = None  # that interrupts it
        self._stepped: Stack | None = None

    def __await__(self) -> Generator[Any, Any, tuple[Any, ...]]:
        # Written plainly and long: benchmarks/async_calls.py.
        function, values, policy, timeout, mode = self._target
        loop, context = self._loop, self._context
        gate = context.gate
        deadline = None if timeout is None else deadline_after(timeout)
        loop.enter(self)
        context.invocations.add(self)
        suspended = False
        try:
            gate.check_open()
            ticket: Ticket | None = None
            if policy is None and gate.concurrent:
                with gate.admission.lock:
                    gate.admission.count += 1
                    self._held = True
            else:
                policy = checked_policy(policy, FIFO, concurrent=gate.concurrent)
                self._held = ticket = gate.admission.enter(policy)
            if ticket is not None and not ticket.is_settled:
                suspended = True
                turn = WaitFrame(Wait((ticket,), resume=_nothing))
                yield from self._perform(turn, deadline, mode, False)
                if deadline is not None and monotonic() >= deadline:
                    raise Interrupted
                if turn.error is not None:
                    raise turn.error
            self._stepped = stack = context.stack_for(function, values)
            while True:
                if self._ending is not None:
                    raise self._ending.again()
                gate.begin_step()
                try:
                    self._thread = threading.get_ident()
                    if ticket is not None:
                        ticket.thread = self._thread
                    done = stack.step() if deadline is None else step_until(stack, deadline)
                finally:
                    if ticket is not None:
                        ticket.thread = 0
                    leave_step(self)
                    gate.end_step()
                if done:
                    break
                suspended = True
                self._stack = stack
                if self._ending is None:
                    frame = stack.wait_frame
                    yield  # the loop's other callbacks first: the work may be done by then
                    if frame is not None and not frame.done:
                        quick = mode != "block" and can_defer(frame)
                        if quick:
                            give_way()  # the driver's thread may be waiting for this core
                            try:
                                if frame.sources[0].query():
                                    frame.complete()
                            except PumiceError as error:
                                frame.complete(error)
                        if not frame.done:
                            yield from self._perform(frame, deadline, mode, quick)
                self._stack = None
                if deadline is not None and monotonic() >= deadline:
                    raise Interrupted
            outputs = outputs_of(function, stack.results)
        except Interrupted:
            raise self._ending or timed_out(function.full_name, timeout) from None
        except Exception:
            if self._ending is not None:  # an error caused by ending it is reported as that end
                raise self._ending.again() from None
            raise
        except GeneratorExit:
            # The garbage collector may close the coroutine at any point, under any lock.
            held, self._held = self._held, False
            if isinstance(held, Ticket):
                held.drop()
            else:
                self._held = held
            raise
        finally:
            if self._stepped is not None:
                self._stepped.abort()
            self._release()
            loop.remove(self)
            context.invocations.discard(self)
        if not suspended:
            yield  # the event loop's other tasks have their turn
        return outputs

    def _perform(
        self, frame: WaitFrame, deadline: float | None, mode: WaitMode | None, quick: bool
    ) -> Generator[Any, Any, None]:
        """Performs a wait: looks at a quick source between the event loop's other callbacks, and then arms it."""
        if quick:
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
            else:
                tell(loop, wake, error)

        armed = arm_frame(frame, deadline, callback)
        try:
            if self._ending is None:
                yield from future
        finally:
            self._future = None
            armed.cancel()

    def _has_ended(self) -> bool:
        return self._ending is not None

    def _release(self) -> None:
        """Gives its turn back, once."""
        held, self._held = self._held, False
        if isinstance(held, Ticket):
            held.release()
        elif held:
            admission = self._context.gate.admission
            with admission.lock:
                admission.count -= 1

    def needs_this_thread(self) -> bool:
        """Whether it cannot go on while the calling thread blocks."""
        return True

    def abort(self, error: PumiceError) -> None:
        """Ends it with an error; what a suspended one holds is released before this returns."""
        if self._ending is not None:
            return
        self._ending = error
        stack, self._stack = self._stack, None
        if stack is not None:
            stack.abort()
            self._release()
        elif self._stepped is None:
            self._release()  # it waits for its turn
        else:
            interrupt_step(self, self._stepped)
        self._loop.call(self._wake)

    def _wake(self, _: Exception | None) -> None:
        future = self._future
        if future is not None and not future.done():
            future.set_result(None)


def _nothing(_: object) -> None:
    """What a wait that is on no stack resumes."""
