"""Invocations, step by step: what IREE's ``vm/invocation.h`` declares, call by call.

Synchronous::

    outputs = invoke(context, function, inputs)

Staged, for schedulers that have better things to do than to block::

    state = InvokeState()
    status = begin_invoke(state, context, function, inputs)
    while status is StatusCode.DEFERRED:
        if state.wait_frame is not None:
            wait_invoke(state)              # or wait_invoke_async, or a wait of your own
        status = resume_invoke(state)
    result = end_invoke(state)              # .status, .outputs, .error; result.unwrap()

The calls return or raise what became of *the call*; what became of the invocation is in ``end_invoke``'s result: a program that fails is an
invocation that ended. A call out of order, or made while another one is under way on the same state, raises FailedPreconditionError and
changes nothing.

Ownership: the state owns the invocation's stack and everything on it, from ``begin_invoke`` to ``end_invoke`` or ``abort_invoke``; inputs are
captured when it begins, and the list they came in is the caller's again. A state that is dropped is aborted. Thread rule: any thread, one at a
time (checked).

The header's sentences, one by one, are in docs/design/invocation.md.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, MutableSequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ..status import (
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    PumiceError,
    StatusCode,
)
from .admission import Turn, checked_policy
from .armed_wait import ArmedWait, arm_frame
from .context import Context
from .deadlines import deadlines, guard_of, step_until, timeout_seconds, wait_for
from .frame import Frame, NativeFrame
from .function import Function
from .list import VmList
from .marshalling import append_outputs, marshal_inputs, outputs_of
from .policy import REFUSE, InvocationPolicy
from .stack import Stack
from .wait_frame import Wait, WaitFrame
from .watchdog import Guard, Interrupted

__all__ = [
    "Inputs",
    "InvokeResult",
    "InvokeState",
    "abort_invoke",
    "begin_invoke",
    "end_invoke",
    "invoke",
    "resume_invoke",
    "wait_invoke",
    "wait_invoke_async",
]

Inputs: TypeAlias = "Iterable[Any] | VmList"
"""Values for a function's arguments: ints, floats, references, a tuple of tuples for a repeated one; or a ``VmList`` of them."""


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


class InvokeState:
    """An invocation under way: its stack, and where it is in the calling sequence. Used again after its end.

    Begin with ``begin_invoke``; the functions of this module are its methods in all but form.
    """

    __slots__ = ("__weakref__", "_busy", "_error", "_function", "_guard", "_phase", "_stack", "_thread", "_turn")

    def __init__(self) -> None:
        self._busy = threading.Lock()
        self._phase = _IDLE
        self._stack: Stack | None = None
        self._function: Function | None = None
        self._turn: Turn | None = None
        self._error: Exception | None = None
        self._thread = 0  # that is in a step
        self._guard: Guard | None = None  # that interrupts it

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
        return {_SUSPENDED: StatusCode.DEFERRED, _DONE: StatusCode.OK}.get(self._phase)

    @property
    def wait_frame(self) -> WaitFrame | None:
        """The wait to be performed before it is resumed; ``None`` if it only yielded. Valid until ``resume_invoke``."""
        stack = self._stack
        return stack.wait_frame if stack is not None and self._phase is _SUSPENDED else None

    @property
    def frames(self) -> tuple[Frame | NativeFrame | WaitFrame, ...]:
        """The frames of the suspended invocation, from the outermost: functions with pc, registers and source location."""
        return () if self._stack is None else tuple(self._stack.frames)

    def __del__(self) -> None:
        if self._phase is not _IDLE:
            self._clear()

    def take(self) -> tuple[Exception | None, tuple[Any, ...] | None]:
        """The error or the outputs of an invocation that has ended, and its end; for who knows that nobody else is at it."""
        stack, function, error = self._stack, self._function, self._error
        assert stack is not None and function is not None and self._phase is _DONE
        results = None if error is not None else outputs_of(function, stack.results)
        stack.results = None
        self._clear()
        return error, results

    def _clear(self) -> None:
        stack, turn = self._stack, self._turn
        self._stack = self._function = self._turn = self._error = None
        self._phase = _IDLE
        if stack is not None:
            stack.abort()
        if turn is not None:
            turn.release()

    def __repr__(self) -> str:
        name = "" if self._function is None else f" of {self._function.full_name}"
        return f"<InvokeState{name}, {self._phase}>"


_IDLE: Final = "no invocation"
_SUSPENDED: Final = "suspended"
_DONE: Final = "ended"


class _Exclusive:
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
                _IDLE: "one without an invocation (end or abort that first)",
                _SUSPENDED: "one that is suspended (begin_invoke or resume_invoke returned DEFERRED)",
                _DONE: "one whose invocation has ended (begin_invoke or resume_invoke returned OK)",
            }[self._phases[0]]
            raise FailedPreconditionError(
                f"{self._call} takes a state {expected.removeprefix('one ')}; this one: {phase}{name}"
            )

    def __exit__(self, *_: object) -> None:
        self._state._busy.release()


# -- synchronous ---------------------------------------------------------------------------------------


def invoke(
    context: Context,
    function: Function,
    inputs: Inputs = (),
    outputs: MutableSequence[Any] | VmList | None = None,
    *,
    policy: InvocationPolicy | None = None,
    timeout: float | None = None,
) -> tuple[Any, ...]:
    """Calls a function and waits until it is done; it may block on whatever the program waits for.

    Args:
        context: that the function is of.
        function: ``context.lookup`` finds it.
        inputs: values for its arguments; the list remains the caller's.
        outputs: a list that results are appended to.
        policy: how it is ordered among the context's other invocations; ``None`` fails where it would have to wait for a turn (in a
            concurrent context it overlaps).
        timeout: seconds for everything, the wait for a turn included; ``None`` is for ever.

    Returns:
        the results, one for each that the function declares.

    Raises:
        InvalidArgumentError: inputs that do not match the calling convention; the message says which.
        FailedPreconditionError: the function is of another context, or the context is in use and the policy does not wait.
        DeadlineExceededError: the time passed; everything of the invocation is released.
        PumiceError: what the program failed with, located.
    """
    values = checked_call(context, function, inputs)
    if policy is None or context.is_running_here():
        results = outputs_of(function, context.invoke(function, values, timeout=timeout))
    else:
        results = _invoke_in_turn(context, function, values, policy, timeout)
    if outputs is not None:
        append_outputs(outputs, function.convention.results, results)
    return results


def _invoke_in_turn(
    context: Context,
    function: Function,
    values: tuple[Any, ...],
    policy: InvocationPolicy,
    timeout: float | None,
) -> tuple[Any, ...]:
    own = math.inf if timeout is None else time.monotonic() + timeout_seconds(timeout)
    # An invocation made by a native function ends by the deadline of what called that.
    outer = deadlines.get(threading.get_ident(), math.inf)
    deadline = None if own == outer == math.inf else min(own, outer)
    state = InvokeState()
    try:
        status = begin(state, context, function, values, checked_policy(policy, context, REFUSE), deadline)
        while status is StatusCode.DEFERRED:
            frame, stack = state.wait_frame, state._stack
            if frame is not None and stack is not None:
                wait_for(stack, frame, deadline)
                if not frame.done:
                    raise Interrupted
            status = step(state, deadline)
        return end_invoke(state).unwrap()
    except Interrupted:
        if timeout is None or time.monotonic() >= outer:
            raise
        raise DeadlineExceededError(
            f"{function.full_name} was not done within its timeout of {timeout:g} s; everything of the call was released"
        ) from None
    finally:
        abort_invoke(state)


# -- staged --------------------------------------------------------------------------------------------


def begin_invoke(
    state: InvokeState,
    context: Context,
    function: Function,
    inputs: Inputs = (),
    *,
    policy: InvocationPolicy | None = None,
) -> StatusCode:
    """Begins an invocation and runs it until it ends or has to wait.

    Args:
        state: without an invocation; from here on it holds this one, and ``end_invoke`` or ``abort_invoke`` must follow.
        context: that the function is of.
        function: ``context.lookup`` finds it.
        inputs: values for its arguments. They are captured: the list can be used again at once.
        policy: how it is ordered among the context's other invocations. One that waits for its turn is DEFERRED, with a wait frame like any
            other; ``None`` fails instead (in a concurrent context it overlaps).

    Returns:
        OK: it ended, well or not: ``end_invoke`` says which. DEFERRED: ``resume_invoke`` must follow, after the wait if there is a
        ``wait_frame``.

    Raises:
        FailedPreconditionError: the state has an invocation already; the function is of another context; the context is in use and
            the policy does not wait. Nothing has begun then.
        InvalidArgumentError: inputs that do not match the calling convention. Nothing has begun then.
        ClosedError: the context was closed.
    """
    values = checked_call(context, function, inputs)
    return begin(state, context, function, values, checked_policy(policy, context, REFUSE), None)


def checked_call(context: Context, function: Function, inputs: Inputs) -> tuple[Any, ...]:
    """The VM's values of inputs, where all three fit each other; as ``begin_invoke`` says."""
    if not isinstance(context, Context):
        raise InvalidArgumentError(f"expected a Context, got {type(context).__name__}")
    if not isinstance(function, Function):
        raise InvalidArgumentError(f"expected a Function, as context.lookup gives, got {type(function).__name__}")
    if function.context is not context:
        raise FailedPreconditionError(f"{function.full_name} is a function of another context")
    return marshal_inputs(function, inputs)


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
    with _Exclusive(state, "begin_invoke", _IDLE):
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
    turn = context.turns.enter(policy)
    state._turn = turn
    state._function = function
    state._error = None
    try:
        stack = state._stack = Stack(context.max_stack_depth)
        if turn.is_settled:
            _enter(stack, function, values)
            return _step(state, deadline)
        if function.bytecode is not None:
            stack.frames.append(Frame(function.bytecode))
        stack.frames.append(NativeFrame(function.full_name, _no_resume))
        stack.frames.append(WaitFrame(Wait((turn,), resume=_admitted(function, values))))
        stack.frames[-2].resume = stack.frames[-1].resume  # type: ignore[union-attr]
        state._phase = _SUSPENDED
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
    """What a function is entered with once it is its turn: a bytecode one gets its arguments, a native one is called."""

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
    context = function.context
    try:
        context.begin_step()
        try:
            done = _run(state, stack, deadline)
        finally:
            context.end_step()
    except Exception as error:
        state._error = error
        done = True
    except BaseException:
        state._clear()
        raise
    if not done:
        state._phase = _SUSPENDED
        return StatusCode.DEFERRED
    state._phase = _DONE
    # Whoever waits for a turn need not wait until the result was asked for.
    assert state._turn is not None
    state._turn.release()
    return StatusCode.OK


def _run(state: InvokeState, stack: Stack, deadline: float | None) -> bool:
    turn = state._turn
    assert turn is not None
    state._thread = turn.thread = threading.get_ident()
    try:
        try:
            return stack.step() if deadline is None else step_until(stack, deadline)
        finally:
            turn.thread = 0
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


def resume_invoke(state: InvokeState) -> StatusCode:
    """Runs an invocation on that was DEFERRED.

    Returns:
        OK: it ended, well or not. DEFERRED: as from ``begin_invoke``.

    Raises:
        FailedPreconditionError: it is not suspended, or its wait was not performed.
    """
    return step(state, None)


def step(state: InvokeState, deadline: float | None) -> StatusCode:
    """``resume_invoke`` that is over by a deadline in ``time.monotonic()`` seconds, whatever the program does.

    Raises:
        Interrupted: the deadline passed; the invocation is aborted.
    """
    if type(state) is not InvokeState or state._phase is not _SUSPENDED or not state._busy.acquire(False):
        with _Exclusive(state, "resume_invoke", _SUSPENDED):  # which says what is wrong
            raise FailedPreconditionError(
                "resume_invoke: another call was under way on this state; make one after another"
            )
    try:
        if state._phase is not _SUSPENDED:
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


def wait_invoke(state: InvokeState, wait_frame: WaitFrame | None = None, deadline: float | None = None) -> StatusCode:
    """Performs the wait of a suspended invocation, in the calling thread.

    Args:
        state: suspended, with a wait frame.
        wait_frame: the state's; ``None`` takes that.
        deadline: ``time.monotonic()`` seconds; together with the frame's own, the earlier one counts.

    Returns:
        OK: the wait was performed. What it came to is on the frame, ``None``, a source's failure or DeadlineExceededError, and for the
        program to see when it is resumed.

    Raises:
        FailedPreconditionError: the invocation is not suspended in a wait, or in another one.
        InvalidArgumentError: something that the program waits for is no wait source.
    """
    with _Exclusive(state, "wait_invoke", _SUSPENDED):
        frame = _frame_of(state, wait_frame, "wait_invoke")
        if frame.done:
            return StatusCode.OK
        stack = state._stack
        assert stack is not None
        wait_for(stack, frame, deadline)
        if not frame.done:
            frame.complete(DeadlineExceededError("the deadline given to wait_invoke passed before the wait was over"))
        return StatusCode.OK


def wait_invoke_async(
    state: InvokeState,
    wait_frame: WaitFrame | None,
    deadline: float | None,
    callback: Callable[[PumiceError | None], None],
) -> ArmedWait:
    """Performs the wait of a suspended invocation without a thread.

    Args:
        state: suspended, with a wait frame.
        wait_frame: the state's; ``None`` takes that.
        deadline: ``time.monotonic()`` seconds; together with the frame's own, the earlier one counts.
        callback: called once, with what is then on the frame: ``None``, a source's failure or DeadlineExceededError. It may come before this
            returns; otherwise it comes in the thread of whoever is ready. It must not block; ``resume_invoke`` may run for long, and
            belongs into another thread.

    Returns:
        the wait, to be cancelled: then the callback does not come, and the frame can be waited for again.

    Raises:
        FailedPreconditionError: the invocation is not suspended in a wait, or in another one.
        InvalidArgumentError: something that the program waits for is no wait source, or ``callback`` cannot be called. The callback does
            not come then.
    """
    if not callable(callback):
        raise InvalidArgumentError(f"callback is called with None or an error; got {type(callback).__name__}")
    with _Exclusive(state, "wait_invoke_async", _SUSPENDED):
        frame = _frame_of(state, wait_frame, "wait_invoke_async")
    if frame.done:
        armed = ArmedWait(1, False, callback)
        armed.ready(frame.error)
        return armed
    return arm_frame(frame, deadline, callback)


def _frame_of(state: InvokeState, wait_frame: WaitFrame | None, call: str) -> WaitFrame:
    frame = state.wait_frame
    if frame is None:
        raise FailedPreconditionError(f"{call}: the invocation yielded and waits for nothing; resume it")
    if wait_frame is not None and wait_frame is not frame:
        raise FailedPreconditionError(f"{call}: the wait frame is not the one on top of this invocation's stack")
    return frame


def end_invoke(state: InvokeState, outputs: MutableSequence[Any] | VmList | None = None) -> InvokeResult:
    """Ends the sequence and gives the result; the state can be used again.

    Args:
        state: of an invocation that has ended.
        outputs: a list that results are appended to.

    Returns:
        what became of the invocation, which is the caller's.

    Raises:
        FailedPreconditionError: it is suspended, or there is none.
        InvalidArgumentError: results that ``outputs`` does not take; the result is still there to be asked for.
    """
    with _Exclusive(state, "end_invoke", _DONE):
        stack, function, error = state._stack, state._function, state._error
        assert stack is not None and function is not None
        if error is None:
            results = outputs_of(function, stack.results)
            if outputs is not None:
                append_outputs(outputs, function.convention.results, results)
            result = InvokeResult(StatusCode.OK, results, None)
        else:
            result = InvokeResult(status_of(error), None, error)
        stack.results = None
        state._clear()
        return result


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


def abort_invoke(state: InvokeState) -> None:
    """Drops an invocation, wherever it is, and everything it holds; the state can be used again. Idempotent.

    The program is not told: it is gone. To have it end in an orderly way, fail what it waits for.

    Raises:
        FailedPreconditionError: a step is under way in another thread.
    """
    with _Exclusive(state, "abort_invoke", _IDLE, _SUSPENDED, _DONE):
        state._clear()
