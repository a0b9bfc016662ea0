"""Invocations in stages, after IREE's ``vm/invocation.h``.

Synchronous::

    outputs = invoke(context, function, inputs)

Staged, for schedulers that must not block::

    state = InvokeState()
    status = begin_invoke(state, context, function, inputs)
    while status is StatusCode.DEFERRED:
        if state.wait_frame is not None:
            wait_invoke(state) # or wait_invoke_async, or your own wait
        status = resume_invoke(state)
    result = end_invoke(state)              # .status, .outputs, .error; result.unwrap()

Each function reports only its own errors. The result of the invocation, a program's failure included, comes from
``end_invoke``. A call out of order, or during another call on the same state, raises FailedPreconditionError and
changes nothing.

Ownership: the state owns the invocation's stack and everything on it, from ``begin_invoke`` to ``end_invoke`` or
``abort_invoke``. The inputs are copied at the start; their list can be reused at once. A state that is dropped is
aborted. Thread rule: any thread, one at a time (checked).

docs/design/invocation.md compares it with the header.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableSequence
from typing import Any, TypeAlias

from ...status import DeadlineExceededError, FailedPreconditionError, InvalidArgumentError, PumiceError, StatusCode
from ...waits.armed_wait import ArmedWait, arm_frame
from ...waits.wait_frame import WaitFrame
from ..execution.context import Context, Function
from ..execution.deadlines import wait_for
from ..execution.policy import REFUSE, InvocationPolicy, checked_policy
from ..execution.run import Run, call
from ..types.list import VmList
from .marshalling import append_outputs, marshal_inputs, outputs_of
from .state import DONE, IDLE, SUSPENDED, Exclusive, InvokeResult, InvokeState, advance

Inputs: TypeAlias = "Iterable[Any] | VmList"
"""Values for a function's arguments, or a ``VmList`` of them: ints, floats, references, tuples for repeated ones."""


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
    """Calls a function and waits until it is done, the program's waits included.

    Args:
        inputs: the values for its arguments; the list is not kept.
        outputs: a list that results are appended to.
        policy: the order among the context's other invocations; ``None`` fails where it would have to wait for a turn,
            and overlaps in a concurrent context.
        timeout: the seconds for everything, the wait for a turn included; ``None`` means no limit.

    Returns:
        The results, one for each that the function declares.

    Raises:
        InvalidArgumentError: inputs do not match the calling convention; the message says which.
        FailedPreconditionError: the function is of another context, or the context is in use and the policy does not
            wait.
        DeadlineExceededError: the time passed; everything of the invocation is released.
        PumiceError: the program failed; the error has the place.
    """
    values = checked_call(context, function, inputs)
    if policy is None or (not context.concurrent and context.gate.runs_here()):
        results = context.invoke(function, values, timeout=timeout)
    else:
        policy = checked_policy(policy, REFUSE, concurrent=context.concurrent)
        results = call(Run(context, function, values, policy, timeout, True, "suspend"))
    results = outputs_of(function, results)
    if outputs is not None:
        append_outputs(outputs, function.convention.results, results)
    return results


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
        state: a state without an invocation; ``end_invoke`` or ``abort_invoke`` must follow.
        inputs: the values for its arguments. They are copied: the list can be reused at once.
        policy: the order among the context's other invocations. An invocation that waits for its turn is DEFERRED, with
            a wait frame; ``None`` fails instead, and overlaps in a concurrent context.

    Returns:
        OK: it ended; ``end_invoke`` returns the results or the error. DEFERRED: ``resume_invoke`` must follow, after
            the wait if
        there is a ``wait_frame``.

    Raises:
        FailedPreconditionError: the state has an invocation already, the function belongs to another context, or the
            context is in use and the policy does not wait. Nothing has begun then.
        InvalidArgumentError: inputs do not match the calling convention. Nothing has begun then.
        ClosedError: the context was closed.
    """
    values = checked_call(context, function, inputs)
    policy = checked_policy(policy, REFUSE, concurrent=context.concurrent)
    with Exclusive(state, "begin_invoke", IDLE):
        state.function = function
        state._run = run = Run(context, function, values, policy, None, False, "suspend")
        status = advance(state)
        if not run.has_begun and run.error is not None:  # its turn was refused
            try:
                run.outcome()
            finally:
                state.clear()
        return status


def checked_call(context: Context, function: Function, inputs: Inputs) -> tuple[Any, ...]:
    """Converts inputs to VM values; raises if they do not fit the function, or the function not the context."""
    if not isinstance(context, Context):
        raise InvalidArgumentError(f"expected a Context, got {type(context).__name__}")
    if not isinstance(function, Function):
        raise InvalidArgumentError(f"expected a Function, as context.lookup gives, got {type(function).__name__}")
    if function.context is not context:
        raise FailedPreconditionError(f"{function.full_name} is a function of another context")
    return marshal_inputs(function, inputs)


def resume_invoke(state: InvokeState) -> StatusCode:
    """Continues an invocation that was DEFERRED; returns as ``begin_invoke``.

    Raises:
        FailedPreconditionError: the invocation is not suspended, or its wait was not performed.
    """
    with Exclusive(state, "resume_invoke", SUSPENDED):
        frame = state.wait_frame
        if frame is not None and not frame.done:
            if frame.sources:
                raise FailedPreconditionError(
                    "resume_invoke: the wait on the stack was not performed; call wait_invoke, or complete() the "
                    "frame when you have waited"
                )
            frame.complete()
        return advance(state)


def wait_invoke(state: InvokeState, wait_frame: WaitFrame | None = None, deadline: float | None = None) -> StatusCode:
    """Performs the wait of a suspended invocation, in the calling thread.

    Args:
        state: the state of a suspended invocation, with a wait frame.
        wait_frame: the wait frame; ``None`` takes the state's.
        deadline: the limit in ``time.monotonic()`` seconds; together with the frame's own, the earlier deadline
            applies.

    Returns:
        OK: the wait was performed. Its outcome is on the frame: ``None``, a source's failure or DeadlineExceededError.
        The program gets it when it is resumed.

    Raises:
        FailedPreconditionError: the invocation is not suspended in this wait.
        InvalidArgumentError: the program waits for an object that is not a wait source.
    """
    with Exclusive(state, "wait_invoke", SUSPENDED):
        frame = _frame_of(state, wait_frame, "wait_invoke")
        if frame.done:
            return StatusCode.OK
        assert state._run is not None and state._run.stack is not None
        wait_for(state._run.stack, frame, deadline)
        if not frame.done:
            frame.complete(DeadlineExceededError("the deadline given to wait_invoke passed before the wait was over"))
        return StatusCode.OK


def wait_invoke_async(
    state: InvokeState,
    wait_frame: WaitFrame | None,
    deadline: float | None,
    callback: Callable[[PumiceError | None], None],
) -> ArmedWait:
    """Performs the wait of a suspended invocation without a thread; arguments as for ``wait_invoke``.

    Args:
        callback: a function that is called once, with the outcome on the frame, as from ``wait_invoke``; possibly
            before this function returns, otherwise in the thread of the source that became ready. It must not block;
            ``resume_invoke`` may run long and belongs in another thread.

    Returns:
        The wait. If it is cancelled the callback is not called, and the frame can be waited for again.

    Raises as ``wait_invoke``, and if ``callback`` is not callable.
    """
    if not callable(callback):
        raise InvalidArgumentError(f"callback is called with None or an error; got {type(callback).__name__}")
    with Exclusive(state, "wait_invoke_async", SUSPENDED):
        frame = _frame_of(state, wait_frame, "wait_invoke_async")
    if frame.done:
        armed = ArmedWait(1, False, callback)
        armed.call(frame.error)
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
    """Ends the sequence and returns the result; the state can be used again.

    Args:
        state: the state of an invocation that has ended.
        outputs: a list that results are appended to.

    Raises:
        FailedPreconditionError: the invocation is suspended, or there is none.
        InvalidArgumentError: ``outputs`` rejects the results; ``end_invoke`` can be called again.
    """
    with Exclusive(state, "end_invoke", DONE):
        result, function = state.result(), state.function
        if outputs is not None and result.outputs is not None and function is not None:
            append_outputs(outputs, function.convention.results, result.outputs)
        state.clear()
        return result


def abort_invoke(state: InvokeState) -> None:
    """Drops an invocation at any stage with everything it holds; the state can be used again. Idempotent.

    The program is not notified. To notify it, fail the source that it waits for.

    Raises:
        FailedPreconditionError: a step is under way in another thread.
    """
    with Exclusive(state, "abort_invoke", IDLE, SUSPENDED, DONE):
        state.clear()
