"""The state of an invocation under way: its stack, where it is in the calling sequence, and its steps.

The order of calls is checked here; the calls themselves are in stages.py.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Final, Protocol

from ...base.lazy_dataclass import dataclass
from ...status import FailedPreconditionError, InvalidArgumentError, PumiceError, StatusCode
from ...waits.wait_frame import Wait, WaitFrame
from ..execution.admission import Ticket
from ..execution.context import Context, Function
from ..execution.deadlines import guard_of, step_until
from ..execution.frame import Frame, NativeFrame
from ..execution.policy import InvocationPolicy
from ..execution.stack import Stack
from ..execution.watchdog import Guard
from .marshalling import outputs_of


@dataclass(frozen=True, slots=True)
class InvokeResult:
    """The result of an invocation.

    Attributes:
        status: OK, or why it ended.
        outputs: one for each result that the function declares; ``None`` unless it is OK.
        error: with its place in the program; a native function's own exception as it was raised.
    """

    status: StatusCode
    outputs: tuple[Any, ...] | None
    error: Exception | None

    def unwrap(self) -> tuple[Any, ...]:
        """The outputs; raises the error."""
        if self.error is not None:
            raise self.error
        assert self.outputs is not None
        return self.outputs


class InvocationObserver(Protocol):
    """Observes each step of an asynchronous invocation, in the thread that makes it, and its end."""

    def enter_step(self) -> None:
        """A step begins."""

    def leave_step(self) -> None:
        """The step is over: the invocation waits, yielded or ended."""

    def ended(self, error: BaseException | None) -> None:
        """The invocation has ended. Called before those who wait for it are notified."""


class InvokeState:
    """An invocation under way: its stack, and its place in the calling sequence; used again after the end.

    Begin with ``begin_invoke``. ``function`` is the one that was invoked; ``None`` while there is no invocation.
    """

    __slots__ = ("_busy", "_error", "_guard", "_phase", "_stack", "_thread", "_ticket", "function", "observer")

    def __init__(self) -> None:
        self._busy = threading.Lock()
        self._phase = IDLE
        self._stack: Stack | None = None
        self.function: Function | None = None
        self._ticket: Ticket | None = None
        self._error: Exception | None = None
        self._thread = 0  # that is in a step
        self._guard: Guard | None = None  # that interrupts it
        self.observer: InvocationObserver | None = None

    @property
    def context(self) -> Context | None:
        """The context that it runs in; ``None`` while there is no invocation."""
        return None if self.function is None else self.function.context

    @property
    def status(self) -> StatusCode | None:
        """DEFERRED while it is suspended, OK once ``end_invoke`` is due; ``None`` while there is no invocation."""
        return {SUSPENDED: StatusCode.DEFERRED, DONE: StatusCode.OK}.get(self._phase)

    @property
    def wait_frame(self) -> WaitFrame | None:
        """The wait to be performed before it is resumed; ``None`` if it only yielded. Valid until ``resume_invoke``."""
        stack = self._stack
        return stack.wait_frame if stack is not None and self._phase is SUSPENDED else None

    @property
    def frames(self) -> tuple[Frame | NativeFrame | WaitFrame, ...]:
        """The frames of the suspended invocation, outermost first: functions with pc, registers and source location."""
        return () if self._stack is None else tuple(self._stack.frames)

    def __del__(self) -> None:
        # The garbage collector may run this at any point, under any lock: ending the ticket would run callbacks.
        stack, ticket = self._stack, self._ticket
        if stack is not None:
            stack.abort()
        if ticket is not None:
            ticket.drop()

    def outcome(self) -> tuple[Exception | None, tuple[Any, ...] | None]:
        """The error or the outputs of an invocation that has ended. The caller must have exclusive access."""
        stack, function, error = self._stack, self.function, self._error
        assert stack is not None and function is not None
        return error, None if error is not None else outputs_of(function, stack.results)

    def clear(self) -> None:
        """Releases everything. The caller must have exclusive access."""
        stack, ticket = self._stack, self._ticket
        self._stack = self.function = self._ticket = self._error = None
        self._phase = IDLE
        if stack is not None and stack.frames:
            stack.abort()
        if ticket is not None and not ticket.is_released:
            ticket.release()

    def __repr__(self) -> str:
        name = "" if self.function is None else f" of {self.function.full_name}"
        return f"<InvokeState{name}, {self._phase}>"


IDLE: Final = "no invocation"
SUSPENDED: Final = "suspended"
DONE: Final = "ended"
_EXPECTED: Final = {
    IDLE: "without an invocation (end or abort that first)",
    SUSPENDED: "that is suspended (begin_invoke or resume_invoke returned DEFERRED)",
    DONE: "whose invocation has ended (begin_invoke or resume_invoke returned OK)",
}


def take(state: InvokeState, call: str, *phases: str) -> None:
    """Gives one call exclusive access to a state, until it releases ``state._busy``.

    Raises:
        InvalidArgumentError: not a state.
        FailedPreconditionError: another call is under way, or this one is out of order.
    """
    if not isinstance(state, InvokeState):
        raise InvalidArgumentError(f"{call} takes an InvokeState, got {type(state).__name__}")
    if not state._busy.acquire(False):
        raise FailedPreconditionError(
            f"{call}: another call is under way on this state; make the steps of an invocation one after another"
        )
    if state._phase not in phases:
        found = repr(state)
        state._busy.release()
        raise FailedPreconditionError(f"{call} takes a state {_EXPECTED[phases[0]]}; this one: {found}")


class Exclusive:
    """``take`` as a context manager."""

    __slots__ = ("_busy",)

    def __init__(self, state: InvokeState, call: str, *phases: str) -> None:
        take(state, call, *phases)
        self._busy = state._busy

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._busy.release()


def begin(
    state: InvokeState,
    context: Context,
    function: Function,
    values: tuple[Any, ...],
    policy: InvocationPolicy,
    deadline: float | None,
) -> StatusCode:
    """``begin_invoke`` with checked values and, for the first step, a deadline in ``time.monotonic()`` seconds.

    Raises:
        Interrupted: the deadline passed; the invocation is aborted.
    """
    take(state, "begin_invoke", IDLE)
    try:
        context.check_open()
        ticket = state._ticket = context.gate.admission.enter(policy)
        state.function = function
        if ticket.is_settled:
            state._stack = context.stack_for(function, values)
            return _step(state, deadline)

        def admitted(error: PumiceError | None) -> object:
            if error is not None:
                raise error
            return values if function.native is None else function.native(*values)

        # The wait for its turn is on top of the function, which gets its arguments from it.
        stack = state._stack = Stack(context.max_stack_depth)
        if function.bytecode is not None:
            stack.frames.append(Frame(function.bytecode, stack.max_depth - 1))
        stack.push_wait(function.full_name, Wait((ticket,), resume=admitted))
        state._phase = SUSPENDED
        return StatusCode.DEFERRED
    except BaseException:
        state.clear()
        raise
    finally:
        state._busy.release()


def step(state: InvokeState, deadline: float | None) -> StatusCode:
    """``resume_invoke`` that ends by a deadline in ``time.monotonic()`` seconds.

    Raises:
        Interrupted: the deadline passed; the invocation is aborted.
    """
    take(state, "resume_invoke", SUSPENDED)
    try:
        frame = state.wait_frame
        if frame is not None and not frame.done:
            if frame.sources:
                raise FailedPreconditionError(
                    "resume_invoke: the wait on the stack was not performed; call wait_invoke, or complete() the "
                    "frame when you have waited"
                )
            frame.complete()
        return _step(state, deadline)
    finally:
        state._busy.release()


def _step(state: InvokeState, deadline: float | None) -> StatusCode:
    """Continues the invocation; an error of the program is its result.

    Written in one piece: asynchronous calls come here twice each (benchmarks/async_calls.py).

    Raises:
        Interrupted: the deadline passed.
        BaseException: not an Exception, such as KeyboardInterrupt; or ClosedError. The invocation is aborted then.
    """
    stack, function, ticket = state._stack, state.function, state._ticket
    assert stack is not None and function is not None and ticket is not None
    gate = function.context.gate
    try:
        gate.begin_step()
        observer = state.observer
        if observer is not None:
            observer.enter_step()
        try:
            state._thread = ticket.thread = threading.get_ident()
            try:
                done = stack.step() if deadline is None else step_until(stack, deadline)
            finally:
                ticket.thread = 0
                leave_step(state)
        finally:
            if state._thread:
                leave_step(state)  # an interrupt came before the first call
            if observer is not None:
                observer.leave_step()
            gate.end_step()
    except Exception as error:
        state._error = error
        done = True
    except BaseException:
        state.clear()
        raise
    if not done:
        state._phase = SUSPENDED
        return StatusCode.DEFERRED
    state._phase = DONE
    # The next one need not wait until the result is asked for.
    ticket.release()
    return StatusCode.OK


class Stepping(Protocol):
    """What ``leave_step`` and ``interrupt_step`` know of an invocation."""

    _thread: int
    _guard: Guard | None


def leave_step(state: Stepping) -> None:
    """Notes that a step is over."""
    state._thread = 0
    if state._guard is not None:  # else whoever sets it from now on sees that the step is over
        with _interrupting:
            guard, state._guard = state._guard, None
        if guard is not None:
            guard.leave()


# Held while a step is interrupted, which does not end before that is done.
_interrupting: Final = threading.RLock()


def interrupt_step(state: Stepping, stack: Stack | None) -> None:
    """Interrupts the step of a stack in another thread, if one is under way, as soon as it is in translated code."""
    with _interrupting:
        if state._guard is None and stack is not None:
            state._guard = guard = guard_of(stack, time.monotonic())
            thread = state._thread
            if thread:
                guard.enter(thread)
            else:
                state._guard = None


def status_of(error: BaseException) -> StatusCode:
    """An error's status code; UNKNOWN for exceptions that are no PumiceError."""
    return error.code if isinstance(error, PumiceError) else StatusCode.UNKNOWN


def try_abort(state: InvokeState) -> bool:
    """``abort_invoke``, unless a call on the state is under way; whether it did."""
    if not state._busy.acquire(False):
        return False
    try:
        state.clear()
        return True
    finally:
        state._busy.release()
