"""Runs: one invocation from its turn to its results. All drivers use ``Run.advance``.

``advance`` runs until the invocation must wait or has ended, and returns the wait or ``None``. The driver performs the
wait, in its own way, and advances again:

* ``call``, below, blocks the thread: synchronous calls;
* callbacks of a loop (``invocation/background.py``): ``async_invoke``, ``Invocation``;
* the coroutine that awaits it (``invocation/awaited.py``): calls in an event loop;
* the caller of staged calls (``invocation/stages.py``).

Calling sequence: construction, then ``advance`` until it returns ``None``, then ``outcome``; ``close`` if a driver
gives up. Thread rule: ``advance`` in any thread, one at a time; ``abort`` at any time from any thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Protocol

from ...status import PumiceError
from ...waits.source import WaitSource
from ...waits.wait_frame import OnWait, Wait, WaitFrame
from ..types.host_memory import limited_to
from .admission import ContextGate, Turn
from .deadlines import deadline_of_call, guard_of, outer_deadline, step_until, timed_out, wait_for
from .interruption import Interrupted, deadlines
from .policy import InvocationPolicy
from .stack import Stack

if TYPE_CHECKING:
    from ...base.memory_budget import MemoryBudget
    from .admission import Ticket


class RunFunction(Protocol):
    """The part of a ``Function`` (context.py) that runs use."""

    @property
    def full_name(self) -> str: ...


class RunContext(Protocol):
    """The part of a ``Context`` (context.py) that runs use."""

    gate: ContextGate
    max_time: float | None
    host_memory: MemoryBudget | None

    def limited(self, timeout: float | None, /) -> float | None:
        """Returns a timeout, or the longest time of a call if that is shorter."""

    def stack_for(self, function: Any, arguments: tuple[Any, ...], /) -> Stack:
        """Returns a stack with a function entered."""


class InvocationObserver(Protocol):
    """Observes each step of an invocation, in the thread that makes it, and its end."""

    def enter_step(self) -> None:
        """Called when a step begins."""

    def leave_step(self) -> None:
        """Called when the step is over: the invocation waits, yielded or ended."""

    def ended(self, error: BaseException | None) -> None:
        """Called when the invocation has ended, before those who wait for it are notified."""


class Run(Turn):
    """An invocation in progress.

    Args:
        context: the context of the function; its gate has the turns.
        values: the VM's values.
        policy: the order among the context's other invocations; ``None`` means that of a synchronous call.
        timeout: the time limit of the whole invocation in seconds; ``None`` means no limit.
        stays: whether the driver blocks in the thread of the run's steps.
        on_wait: the behaviour of native functions that wait (waits/wait_frame.py); they block only without a deadline.

    Attributes:
        deadline: the ``monotonic()`` seconds at which it ends; also the limit for the current invocations of this
            thread.
        stack: the stack while suspended; ``None`` before the first step and after the last.
        wait: the wait to perform before the next ``advance``.
        error, results: the outcome; results as VM values.
        observer: the observer of its steps.
        settle: a function that is called when the program is done; it returns the source for which the results must
            wait.
        has_begun: whether the run has had its turn; else it waits for it, or was rejected.
        is_settling: whether the program is done.
    """

    __slots__ = (
        "_values",
        "context",
        "deadline",
        "error",
        "function",
        "gate",
        "has_begun",
        "is_settling",
        "observer",
        "on_wait",
        "results",
        "settle",
        "stack",
        "timeout",
        "wait",
    )

    def __init__(
        self,
        context: RunContext,
        function: RunFunction,
        values: tuple[Any, ...],
        policy: InvocationPolicy | None,
        timeout: float | None,
        stays: bool,
        on_wait: OnWait,
    ) -> None:
        self.policy = policy  # inlines ``Turn.__init__``, as every call makes a run
        self.stays = stays
        self.has_turn = False
        self.thread = 0
        self.ticket: Ticket | None
        self.ticket = self.ending = self.guard = None
        self.context: RunContext = context
        self.gate: ContextGate = context.gate
        self.function: RunFunction = function
        self._values = values
        if context.max_time is not None:
            timeout = context.limited(timeout)
        self.timeout: float | None = timeout
        self.deadline: float | None = None if timeout is None and not deadlines else deadline_of_call(timeout)
        self.on_wait: OnWait = "suspend" if on_wait == "block" and self.deadline is not None else on_wait
        self.observer: InvocationObserver | None = None
        self.settle: Callable[[], WaitSource | None] | None = None
        self.stack: Stack | None = None
        self.wait: WaitFrame | None = None
        self.error: Exception | None = None
        self.results: Any = None
        self.is_settling: bool
        self.has_begun: bool
        self.has_begun = self.is_settling = False

    def advance(self) -> WaitFrame | None:
        """Runs until it has to wait or has ended.

        Returns:
            The wait to perform before the next call, with its outcome on the frame; one that is ``done`` already only
            lets others have their turn. ``None`` when it has ended.

        Raises:
            Interrupted: the deadline of an outer invocation passed.
            BaseException: the thread was interrupted by an exception that is no Exception, such as KeyboardInterrupt.
                The run has ended.
        """
        # Avoids calls, as every invocation runs this (benchmarks/call_latency.py).
        wait: WaitFrame | None = None
        is_over = True
        try:
            if self.is_settling:
                self._check_settled()
            else:
                stack = self.stack
                if stack is None:
                    stack = self.stack = self.context.stack_for(self.function, self._values)
                    stack.on_wait = self.on_wait
                    self._values = ()  # the program's from here on
                elif self.deadline is not None or not self.has_begun:
                    self._check_wait()
                try:
                    ticket = self.gate.begin_step(self)
                    if ticket is not None:
                        is_over = False
                        wait = self.wait or WaitFrame(Wait((ticket,), resume=_nothing))
                    else:
                        self.has_begun = True
                        plain = self.deadline is None and self.observer is None and self.context.host_memory is None
                        is_over = stack.step() if plain else self._watched_step(stack)
                        if not is_over:
                            wait = stack.wait_frame or YIELDED
                        else:  # while it is inside, where an abort does not touch the stack
                            self.results, self.stack = stack.results, None
                finally:
                    self.gate.end_step(self, is_over)
                if is_over and self.settle is not None:
                    wait = self._begin_to_settle(self.settle)
        except BaseException as error:
            if not self._fail(error):
                raise
            wait = None
        if wait is None and self.ending is not None:
            self.error = self.ending.again()
        self.wait = wait
        return wait

    def _watched_step(self, stack: Stack) -> bool:
        observer, deadline = self.observer, self.deadline
        if observer is not None:
            observer.enter_step()
        memory = self.context.host_memory
        try:
            with contextlib.nullcontext() if memory is None else limited_to(memory):
                return stack.step() if deadline is None else step_until(stack, deadline)
        finally:
            if observer is not None:
                observer.leave_step()

    def _check_wait(self) -> None:
        """Checks the performed wait, between two steps."""
        wait = self.wait
        assert wait is not None
        self._check_deadline(wait)
        if not self.has_begun:  # the wait was for its turn
            if wait.error is not None:
                raise wait.error
            wait.done = self.ticket is None

    def _check_settled(self) -> None:
        wait = self.wait
        assert wait is not None
        self._check_deadline(wait)
        if wait.error is not None:
            raise wait.error

    def _check_deadline(self, wait: WaitFrame) -> None:
        if (not wait.done or wait.error is not None) and self.deadline is not None and monotonic() >= self.deadline:
            raise Interrupted

    def _begin_to_settle(self, settle: Callable[[], WaitSource | None]) -> WaitFrame | None:
        self.is_settling = True
        source = settle()
        if source is None or source.query():
            return None
        return WaitFrame(Wait((source,), resume=_nothing))

    # -- the end -------------------------------------------------------------------------------------

    def _fail(self, error: BaseException) -> bool:
        """Ends it with an error; returns whether the error is its outcome, and not an interruption of the thread."""
        self.close()
        if isinstance(error, Interrupted):
            if self.ending is not None:
                self.error = self.ending.again()
            elif self.timeout is not None and monotonic() < outer_deadline():
                self.error = timed_out(self.function.full_name, self.timeout)
        elif isinstance(error, Exception):
            # An error caused by ending it is reported as its end.
            self.error = error if self.ending is None else self.ending.again()
        return self.error is not None

    def close(self) -> None:
        """Releases everything that it holds; idempotent. Called by its driver, between steps."""
        self.gate.end_step(self, True)
        stack, self.stack = self.stack, None
        if stack is not None:
            stack.abort()
        self.wait = self.results = None
        self._values = ()

    def drop(self) -> None:
        """Performs ``close`` for finalizers, which may run at any point and under any lock."""
        stack, self.stack = self.stack, None
        if stack is not None:
            stack.abort()
        self.gate.drop(self)

    def outcome(self) -> Any:
        """Returns the results, or raises the error; may be called once."""
        error, self.error = self.error, None  # its traceback refers to this run
        if error is None:
            return self.results
        try:
            raise error
        finally:
            del error

    def abort(self, error: PumiceError) -> None:
        """Ends it with an error, unless it has ended.

        If it is suspended, everything it holds is released before this returns. If it is in a step, the step is
        interrupted in the program's own code, after native functions return.
        """
        with self.gate.lock:
            if self.ending is not None:
                return
            self.ending = error
            if self.thread:
                if self.stack is not None:
                    self.guard = guard_of(self.stack, monotonic())
                    self.guard.enter(self.thread)
                return
            stack, self.stack = self.stack, None
        if stack is not None:
            stack.abort()
        self.gate.give_back(self)
        self._wake()

    def _wake(self) -> None:
        """Wakes the driver of a suspended run that was aborted."""


def call(run: Run) -> Any:
    """Drives a run in the calling thread, blocking during its waits; returns its results.

    Native calls are not interrupted, so the deadline is checked again after them. A timeout of 0 requests results
    without waiting, and is not checked.

    Raises:
        DeadlineExceededError: the time passed; all resources of the run are released.
        Interrupted: the deadline of the outer invocation passed.
        PumiceError: the run failed; this is its error.
    """
    try:  # also around the loop, as an interrupt may come between two steps
        while (wait := run.advance()) is not None:
            if not wait.done:
                assert run.stack is not None
                wait_for(run.stack, wait, run.deadline)
    except BaseException:
        run.close()
        raise
    if run.timeout is not None and run.timeout > 0 and run.error is None:
        assert run.deadline is not None
        if monotonic() >= run.deadline:
            if monotonic() >= outer_deadline():
                raise Interrupted
            raise timed_out(run.function.full_name, run.timeout)
    return run.results if run.error is None else run.outcome()


def _nothing(_: object) -> None:
    """Resumes nothing; for waits outside a stack."""


YIELDED: Final = WaitFrame(Wait(resume=_nothing))
"""The wait of a program that only yields to others."""
YIELDED.complete()
