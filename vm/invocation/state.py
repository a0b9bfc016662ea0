"""The state of an invocation under way: its stack, where it is in the calling sequence, and its steps.

What may be called when, and by whom, is said and checked here; the calls themselves are in invocation.py.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from ...status import FailedPreconditionError, InvalidArgumentError, PumiceError, StatusCode
from ..execution.admission import Ticket
from ..execution.context import Context, Function
from ..execution.deadlines import guard_of, step_until
from ..execution.frame import Frame, NativeFrame
from ..execution.policy import InvocationPolicy
from ..execution.stack import Stack
from ..execution.watchdog import Guard
from ..wait.frame import Wait, WaitFrame
from .marshalling import outputs_of

__all__ = [
    "DONE",
    "IDLE",
    "SUSPENDED",
    "Exclusive",
    "InvocationObserver",
    "InvokeResult",
    "InvokeState",
    "begin",
    "interrupt_step",
    "status_of",
    "step",
    "try_abort",
]


@dataclass(frozen=True, slots=True)
class InvokeResult:
    """What became of an invocation.

    Attributes:
        status: OK, or why it ended.
        outputs: its results, one for each that the function declares; ``None`` unless it is OK.
        error: what it failed with, located in the program; a native function's own exception as it was raised.
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
    """Is told of each step of an asynchronous invocation, in the thread that makes it, and of its end."""

    def enter_step(self) -> None:
        """A step begins."""

    def leave_step(self) -> None:
        """It is over: the invocation waits, yielded or ended."""

    def ended(self, error: BaseException | None) -> None:
        """The invocation has ended, before anybody who waits for it is told."""


class InvokeState:
    """An invocation under way: its stack, and where it is in the calling sequence. Used again after its end.

    Begin with ``begin_invoke``; the functions of this module are its methods in all but form.
    """

    __slots__ = (
        "__weakref__",
        "_busy",
        "_error",
        "_function",
        "_guard",
        "_phase",
        "_stack",
        "_thread",
        "_ticket",
        "observer",
    )

    def __init__(self) -> None:
        self._busy = threading.Lock()
        self._phase = IDLE
        self._stack: Stack | None = None
        self._function: Function | None = None
        self._ticket: Ticket | None = None
        self._error: Exception | None = None
        self._thread = 0  # that is in a step
        self._guard: Guard | None = None  # that interrupts it
        self.observer: InvocationObserver | None = None

    @property
    def context(self) -> Context | None:
        """The context that it runs in; ``None`` while there is no invocation."""
        return None if self._function is None else self._function.context

    @property
    def function(self) -> Function | None:
        """The function that was invoked; ``None`` while there is no invocation."""
        return self._function

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
        """The frames of the suspended invocation, from the outermost: functions with pc, registers and source location."""
        return () if self._stack is None else tuple(self._stack.frames)

    def __del__(self) -> None:
        # The garbage collector may run this at any point, under any lock: ending the ticket would run callbacks.
        stack, ticket = self._stack, self._ticket
        if stack is not None:
            stack.abort()
        if ticket is not None:
            ticket.drop()

    def take(self) -> tuple[Exception | None, tuple[Any, ...] | None]:
        """The error or the outputs of an invocation that has ended, and its end; for who knows that nobody else is at it."""
        stack, function, error = self._stack, self._function, self._error
        assert stack is not None and function is not None and self._phase is DONE
        results = None if error is not None else outputs_of(function, stack.results)
        stack.results = None
        self._clear()
        return error, results

    def _clear(self) -> None:
        stack, ticket = self._stack, self._ticket
        self._stack = self._function = self._ticket = self._error = None
        self._phase = IDLE
        if stack is not None:
            stack.abort()
        if ticket is not None:
            ticket.release()

    def __repr__(self) -> str:
        name = "" if self._function is None else f" of {self._function.full_name}"
        return f"<InvokeState{name}, {self._phase}>"


IDLE: Final = "no invocation"
SUSPENDED: Final = "suspended"
DONE: Final = "ended"


class Exclusive:
    """Keeps two calls on one state apart: the second one is refused."""

    __slots__ = ("_call", "_phases", "_state")

    def __init__(self, state: InvokeState, call: str, *phases: str) -> None:
        if not isinstance(state, InvokeState):
            raise InvalidArgumentError(f"{call} takes an InvokeState, got {type(state).__name__}")
        self._state = state
        self._call = call
        self._phases = phases

    def __enter__(self) -> None:
        state = self._state
        if not state._busy.acquire(False):
            raise FailedPreconditionError(
                f"{self._call}: another call is under way on this state; make the steps of an invocation one after another"
            )
        if state._phase not in self._phases:
            phase, name = state._phase, "" if state._function is None else f" of {state._function.full_name}"
            state._busy.release()
            expected = {
                IDLE: "one without an invocation (end or abort that first)",
                SUSPENDED: "one that is suspended (begin_invoke or resume_invoke returned DEFERRED)",
                DONE: "one whose invocation has ended (begin_invoke or resume_invoke returned OK)",
            }[self._phases[0]]
            raise FailedPreconditionError(
                f"{self._call} takes a state {expected.removeprefix('one ')}; this one: {phase}{name}"
            )

    def __exit__(self, *_: object) -> None:
        self._state._busy.release()


def begin(
    state: InvokeState,
    context: Context,
    function: Function,
    values: tuple[Any, ...],
    policy: InvocationPolicy,
    deadline: float | None,
) -> StatusCode:
    """``begin_invoke`` with values that were checked, and a deadline in ``time.monotonic()`` seconds for the first step.

    Raises:
        Interrupted: the deadline passed; the invocation is aborted.
    """
    with Exclusive(state, "begin_invoke", IDLE):
        return _begin(state, context, function, values, policy, deadline)


def _begin(
    state: InvokeState,
    context: Context,
    function: Function,
    values: tuple[Any, ...],
    policy: InvocationPolicy,
    deadline: float | None,
) -> StatusCode:
    context.check_open()
    ticket = context.gate.admission.enter(policy)
    state._ticket = ticket
    state._function = function
    state._error = None
    try:
        stack = state._stack = Stack(context.max_stack_depth)
        if ticket.is_settled:
            _enter(stack, function, values)
            return _step(state, deadline)
        if function.bytecode is not None:
            stack.frames.append(Frame(function.bytecode))
        stack.frames.append(NativeFrame(function.full_name, _no_resume))
        stack.frames.append(WaitFrame(Wait((ticket,), resume=_admitted(function, values))))
        stack.frames[-2].resume = stack.frames[-1].resume  # type: ignore[union-attr]
        state._phase = SUSPENDED
        return StatusCode.DEFERRED
    except BaseException:
        state._clear()
        raise


def _no_resume(error: PumiceError | None) -> object:
    raise AssertionError("replaced before anybody resumes")


def _enter(stack: Stack, function: Function, values: tuple[Any, ...]) -> None:
    if function.bytecode is not None:
        stack.enter(function.bytecode, values)
    else:
        assert function.native is not None
        stack.enter_native(function.full_name, function.native, values)


def _admitted(function: Function, values: tuple[Any, ...]) -> Callable[[PumiceError | None], object]:
    """What a function is entered with once it is admitted: a bytecode one gets its arguments, a native one is called."""

    def resume(error: PumiceError | None) -> object:
        if error is not None:
            raise error
        return values if function.native is None else function.native(*values)

    return resume


def _step(state: InvokeState, deadline: float | None) -> StatusCode:
    """Runs the invocation on; what the program fails with is its result.

    Raises:
        Interrupted: the deadline passed.
        BaseException: what is no Exception, such as KeyboardInterrupt; or ClosedError. The invocation is aborted then.
    """
    stack, function = state._stack, state._function
    assert stack is not None and function is not None
    gate = function.context.gate
    try:
        gate.begin_step()
        observer = state.observer
        if observer is not None:
            observer.enter_step()
        try:
            done = _run(state, stack, deadline)
        finally:
            if observer is not None:
                observer.leave_step()
            gate.end_step()
    except Exception as error:
        state._error = error
        done = True
    except BaseException:
        state._clear()
        raise
    if not done:
        state._phase = SUSPENDED
        return StatusCode.DEFERRED
    state._phase = DONE
    # The next one need not wait until the result is asked for.
    assert state._ticket is not None
    state._ticket.release()
    return StatusCode.OK


def _run(state: InvokeState, stack: Stack, deadline: float | None) -> bool:
    ticket = state._ticket
    assert ticket is not None
    state._thread = ticket.thread = threading.get_ident()
    try:
        try:
            return stack.step() if deadline is None else step_until(stack, deadline)
        finally:
            ticket.thread = 0
            _leave(state)
    except BaseException:
        _leave(state)  # again, for an interrupt that came just before
        raise


def _leave(state: InvokeState) -> None:
    with _interrupting:
        state._thread = 0
    if state._guard is not None:
        state._guard.leave()
        state._guard = None


# Held for a few assignments: a step that is to be interrupted does not end meanwhile.
_interrupting: Final = threading.RLock()


def interrupt_step(state: InvokeState) -> None:
    """Has the step that is under way in another thread end with ``Interrupted`` as soon as it is in the program's own code; if there is one."""
    with _interrupting:
        stack = state._stack
        if state._thread and state._guard is None and stack is not None:
            state._guard = guard_of(stack, time.monotonic())
            state._guard.enter(state._thread)


def step(state: InvokeState, deadline: float | None) -> StatusCode:
    """``resume_invoke`` that is over by a deadline in ``time.monotonic()`` seconds, whatever the program does.

    Raises:
        Interrupted: the deadline passed; the invocation is aborted.
    """
    if type(state) is not InvokeState or state._phase is not SUSPENDED or not state._busy.acquire(False):
        with Exclusive(state, "resume_invoke", SUSPENDED):  # which says what is wrong
            raise FailedPreconditionError(
                "resume_invoke: another call was under way on this state; make one after another"
            )
    try:
        if state._phase is not SUSPENDED:
            raise FailedPreconditionError(
                "resume_invoke: another call was under way on this state; make one after another"
            )
        frame = state.wait_frame
        if frame is not None and not frame.done:
            if not frame.sources:
                frame.complete()
            else:
                raise FailedPreconditionError(
                    "resume_invoke: the wait on the stack was not performed; call wait_invoke, or complete() the frame when you have waited"
                )
        return _step(state, deadline)
    finally:
        state._busy.release()


def status_of(error: BaseException) -> StatusCode:
    """An error's status code; UNKNOWN for those that are none of pumice's."""
    return error.code if isinstance(error, PumiceError) else StatusCode.UNKNOWN


def try_abort(state: InvokeState) -> bool:
    """``abort_invoke`` that does nothing where a call on the state is under way; whether it did something."""
    if not state._busy.acquire(False):
        return False
    try:
        state._clear()
        return True
    finally:
        state._busy.release()
