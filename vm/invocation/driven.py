"""Asynchronous invocations as generators: from the turn in the context to the results.

Whoever drives one resumes the generator until it returns. In between it performs its waits: an asyncio coroutine that
awaits the invocation (awaited.py), or callbacks of a loop (background.py). Thread rule: ``abort`` from any thread; the
generator is resumed by one thread at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from time import monotonic
from typing import Any, ClassVar

from ...status import PumiceError
from ...waits.deferred import can_defer
from ...waits.source import WaitSource
from ...waits.wait_frame import Wait, WaitFrame
from ...waits.wait_mode import WaitMode
from ..execution.admission import Ticket
from ..execution.context import Context, Function
from ..execution.deadlines import deadline_after, step_until, timed_out
from ..execution.interruption import Interrupted
from ..execution.loop import Loop
from ..execution.policy import FIFO, InvocationPolicy, checked_policy
from ..execution.stack import Stack
from ..execution.watchdog import Guard
from .state import InvocationObserver, interrupt_step, leave_step


class DrivenInvocation(ABC):
    """One invocation. ``drive`` runs it, once; subclasses say how it waits, and what comes after it.

    Args:
        loop: which runs it; when that ends, the invocation is aborted.
        timeout: seconds for everything; ``None`` is no limit.
        wait: how it waits for devices; ``None`` is as they were opened.
        observer: observes its steps.
        settle: gives what its results have to wait for when the program is done.
    """

    # ``_stack`` and ``_held`` are whose who takes them by a swap, in which no thread switch comes: the stack of a
    # suspended invocation, and its ticket, or True where invocations are only counted.
    __slots__ = (
        "_context",
        "_deadline",
        "_ending",
        "_function",
        "_guard",
        "_held",
        "_loop",
        "_observer",
        "_policy",
        "_settle",
        "_stack",
        "_stepped",
        "_thread",
        "_timeout",
        "_wait",
    )

    _gives_way: ClassVar[bool] = False  # whether others have their turn before it asks for a source, and once at least

    def __init__(
        self,
        loop: Loop,
        context: Context,
        function: Function,
        policy: InvocationPolicy | None,
        timeout: float | None,
        wait: WaitMode | None,
        observer: InvocationObserver | None = None,
        settle: Callable[[], WaitSource | None] | None = None,
    ) -> None:
        self._loop = loop
        self._context = context
        self._function = function
        self._policy = policy
        self._timeout = timeout
        self._deadline = None if timeout is None else deadline_after(timeout)
        self._wait: WaitMode | None = wait
        self._observer = observer
        self._settle = settle
        self._stack: Stack | None = None
        self._held: Ticket | bool = False
        self._ending: PumiceError | None = None
        self._thread = 0  # that is in a step
        self._guard: Guard | None = None  # that interrupts it
        self._stepped: Stack | None = None

    def drive(self, values: tuple[Any, ...]) -> Generator[Any, Any, Any]:
        """The steps; returns the results: ``None``, a value, or a tuple of several.

        Yields ``None`` to be resumed when others had their turn, and what ``_perform`` yields. It is aborted if
        ``_ending`` is set or the deadline has passed when it is resumed. ``values`` are the VM's.
        """
        # Written plainly and long: benchmarks/async_calls.py.
        context, deadline, observer = self._context, self._deadline, self._observer
        gate = context.gate
        ticket: Ticket | None = None
        try:
            if self._policy is None and gate.concurrent:
                gate.check_open()
                gate.admission.count += 1
                self._held = True
            else:
                self._held = ticket = gate.admission.enter(
                    checked_policy(self._policy, FIFO, concurrent=gate.concurrent)
                )
                gate.check_open()
                if not ticket.is_settled:
                    yield from self._wait_for(ticket)
            self._stepped = stack = context.stack_for(self._function, values)
            stack.on_wait = "ask"  # where the driver shares a core with this thread, the work is often done by then
            values = ()  # the program's from here on
            suspended = False
            while True:
                if self._ending is not None:
                    raise self._ending.again()
                self._thread = gate.begin_step()
                try:
                    if ticket is not None:
                        ticket.thread = self._thread
                    if observer is not None:
                        observer.enter_step()
                    if self._ending is not None:  # before the step was noted, which is interrupted from now on
                        raise self._ending.again()
                    done = stack.step() if deadline is None else step_until(stack, deadline)
                finally:
                    self._thread = 0
                    try:
                        if self._guard is not None:  # else whoever sets it from now on sees that the step is over
                            leave_step(self)
                        if observer is not None:
                            observer.leave_step()
                    finally:
                        if ticket is not None:
                            ticket.thread = 0
                        gate.end_step()
                if done:
                    break
                suspended = True
                self._stack = stack
                frame = stack.wait_frame
                if frame is None or frame.done:
                    yield
                elif not self._gives_way:
                    yield from self._perform(frame, stack)
                else:
                    yield  # the event loop's other tasks first: the work may be done by then
                    if self._ending is None:
                        quick = self._wait != "block" and can_defer(frame)
                        if quick:
                            try:
                                if frame.sources[0].query():
                                    frame.complete()
                            except PumiceError as error:
                                frame.complete(error)
                        if not frame.done:
                            yield from self._perform(frame, stack, quick)
                self._stack = None
                if deadline is not None and monotonic() >= deadline:
                    raise Interrupted
            self._stepped = None
            if self._settle is not None:
                self._release()  # the next one need not wait for the work
                source = self._settle()
                if source is not None and not source.query():
                    yield from self._wait_for(source)
        except Interrupted:
            raise self._ending or timed_out(self._function.full_name, self._timeout) from None
        except Exception:
            if self._ending is not None:  # an error caused by ending it is reported as that end
                raise self._ending.again() from None
            raise
        except GeneratorExit:
            # The garbage collector may close the generator at any point, under any lock.
            held, self._held = self._held, False
            if isinstance(held, Ticket):
                held.drop()
            else:
                self._held = held
            raise
        finally:
            stepped = self._stepped
            if stepped is not None:
                self._stepped = None
                stepped.abort()
            self._release()
            self._loop.remove(self)
            context.invocations.discard(self)
        if self._gives_way and not suspended:
            yield
        return stack.results

    def _wait_for(self, source: WaitSource) -> Generator[Any, Any, None]:
        """A wait that is not the program's."""
        frame = WaitFrame(Wait((source,), resume=_nothing))
        yield from self._perform(frame, None)
        if self._ending is not None:
            raise self._ending.again()
        if self._deadline is not None and monotonic() >= self._deadline:
            raise Interrupted
        if frame.error is not None:
            raise frame.error

    @abstractmethod
    def _perform(self, frame: WaitFrame, stack: Stack | None, quick: bool = False) -> Generator[Any, Any, None]:
        """Performs a wait, on top of a stack or for the turn; the outcome is on the frame unless it is ending.

        ``quick``: it is for a source that answers quickly (waits/deferred.py), which was not ready when it was asked.
        """

    def _release(self) -> None:
        """Gives its turn back, once."""
        held, self._held = self._held, False
        if held is True:
            self._context.gate.admission.count -= 1
        elif held:
            held.release()

    def abort(self, error: PumiceError) -> None:
        """Ends it with an error, unless it has ended.

        If it is suspended, everything it holds is released before this returns. If it is in a step, that is interrupted
        in the program's own code; a native function returns first.
        """
        if self._ending is not None:
            return
        self._ending = error  # no thread comes between plain statements
        stack, self._stack = self._stack, None
        if stack is not None:
            stack.abort()
            self._release()
        elif self._stepped is None:
            self._release()  # it waits for its turn
        else:
            interrupt_step(self, self._stepped)
        self._wake()

    @abstractmethod
    def _wake(self) -> None:
        """Has it resumed if it is suspended: it is ending."""


def _nothing(_: object) -> None:
    """What a wait that is on no stack resumes."""
