"""Invocations that run on a loop and end in a callback: ``async_invoke``.

They run the staged sequence (state.py) on a ``Loop``: each step is a callback of the loop, each wait is armed and
blocks no thread. Thread rule: every function and method from any thread. The design is in docs/design/invocation.md.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from ...status import CancelledError, InvalidArgumentError, PumiceError, StatusCode
from ...waiting import WaitMode
from ..execution.context import Context, Function
from ..execution.deadlines import deadline_after, timed_out
from ..execution.interruption import Interrupted
from ..execution.loop import Loop
from ..execution.policy import FIFO, InvocationPolicy, checked_policy
from ..execution.stack import Stack
from ..wait.deferred import DeferredWait
from ..wait.frame import Wait, WaitFrame
from ..wait.futures import as_pumice_error
from ..wait.source import WaitSource
from ..wait.waits import ArmedWait
from .stages import Inputs, checked_call
from .state import InvocationObserver, InvokeState, begin, interrupt_step, step, try_abort

AsyncCallback: TypeAlias = Callable[[Loop, "Exception | None", "tuple[Any, ...] | None"], None]
"""Called with the loop, and the outputs or the error."""

# Held for a few assignments. Reentrant, as finalizers and signal handlers may cancel.
_lock: Final = threading.RLock()


class AsyncInvocation:
    """Runs one invocation on a loop; ``async_invoke`` makes it.

    Its steps never overlap: each is scheduled by the one before, or by the end of its wait. ``abort`` and ``cancel``
    may be called at any time: a suspended invocation ends at once, one in a step ends after it.
    """

    __slots__ = (
        "_armed",
        "_callback",
        "_callback_raised",
        "_context",
        "_deadline",
        "_ending",
        "_function",
        "_loop",
        "_policy",
        "_settle",
        "_state",
        "_timeout",
        "_values",
        "_wait",
    )

    def __init__(
        self,
        loop: Loop,
        context: Context,
        function: Function,
        values: Callable[[], tuple[Any, ...]],
        policy: InvocationPolicy | None,
        timeout: float | None,
        callback: AsyncCallback,
        settle: Callable[[Any], WaitSource | None] | None = None,
        observer: InvocationObserver | None = None,
        wait: WaitMode | None = None,
    ) -> None:
        self._loop = loop
        self._context = context
        self._function = function
        self._values: Callable[[], tuple[Any, ...]] | None = values
        self._policy = policy
        self._callback: AsyncCallback | None = callback
        self._callback_raised = False
        self._settle = settle
        self._state = InvokeState()
        self._state.observer = observer
        self._armed: ArmedWait | DeferredWait | None = None
        self._ending: Exception | None = None
        self._timeout = timeout
        self._deadline = None if timeout is None else deadline_after(timeout)
        self._wait: WaitMode | None = wait

    def start(self) -> None:
        """Schedules the first step, or makes it."""
        self._context.invocations.add(self)
        self._loop.add(self)
        self._loop.start(self._begin)  # with an error if it has ended

    # -- steps, on the loop --------------------------------------------------------------------------

    def _begin(self, error: Exception | None) -> None:
        values, self._values = self._values, None
        if values is None or ((error or self._ending or self._deadline) and self._is_over(error)):
            return
        context = self._context
        try:
            policy = checked_policy(self._policy, FIFO, concurrent=context.concurrent)
            self._advance(begin(self._state, context, self._function, values(), policy, self._deadline))
        except BaseException as raised:
            if self._failed(raised):
                raise

    def _resume(self, error: Exception | None) -> None:
        self._armed = None
        if (error or self._ending or self._deadline) and self._is_over(error):
            return
        try:
            self._advance(step(self._state, self._deadline))
        except BaseException as raised:
            if self._failed(raised):
                raise

    def _failed(self, raised: BaseException) -> bool:
        """A step raised; whether the loop has to raise it too."""
        if self._callback_raised:
            return True  # which ends the loop
        if isinstance(raised, Interrupted):
            self._finish(self._ending or self._late(), None)
        elif isinstance(raised, Exception):
            self._finish(self._ending or raised, None)
        else:
            self._finish(self._ending or as_pumice_error(raised, "the invocation"), None)
        return isinstance(raised, (KeyboardInterrupt, SystemExit))

    def _is_over(self, error: Exception | None) -> bool:
        """Ends it if it was cancelled or aborted, or its deadline passed; whether it did."""
        error = self._ending or error  # the loop's end may be part of what ends it
        if error is None and self._deadline is not None and time.monotonic() >= self._deadline:
            error = self._late()
        if error is not None:
            self._finish(error, None)
        return error is not None

    def _late(self) -> PumiceError:
        return timed_out(getattr(self._function, "full_name", "the invocation"), self._timeout)

    def _advance(self, status: StatusCode) -> None:
        state = self._state
        if status is not StatusCode.DEFERRED:
            error, outputs = state.outcome()
            state.clear()
            if error is not None or self._settle is None:
                # An error caused by ending it is reported as that end.
                self._finish(error and (self._ending or error), outputs)
            else:
                self._settled(self._settle(outputs), outputs)
            return
        if self._ending is not None:
            self._finish(self._ending, None)
            return
        frame, stack = state.wait_frame, state._stack
        if frame is None or stack is None or frame.done:
            self._loop.call(self._resume)
            return
        self._hold(self._loop.wait(stack, frame, self._deadline, self._resume, self._wait))

    def _hold(self, armed: ArmedWait | DeferredWait | None) -> None:
        """Keeps the wait, to be cancelled; it may be over already, or the invocation ending."""
        if armed is None or armed.is_done:
            return
        self._armed = armed
        if self._ending is not None:
            self._stop_waiting()

    def _settled(self, source: WaitSource | None, outputs: Any) -> None:
        """The program is done; its results are once a source is ready."""
        if source is None or source.query():
            self._finish(None, outputs)
            return

        frame = WaitFrame(Wait((source,), resume=lambda _: None))

        def over(ended: Exception | None) -> None:
            self._armed = None
            if not self._is_over(ended):
                self._finish(frame.error, None if frame.error else outputs)

        self._hold(self._loop.wait(Stack(), frame, self._deadline, over, self._wait))

    def needs_this_thread(self) -> bool:
        """Whether it cannot go on while the calling thread blocks."""
        return self._loop.runs_here() or self._context.gate.admission.runs_here()

    # -- the end -------------------------------------------------------------------------------------

    def abort(self, error: PumiceError) -> None:
        """Ends it with an error, unless it has ended.

        If it is suspended, everything it holds is released before this returns, and the callback is called on the loop.
        If it is in a step, that is interrupted in the program's own code; a native function returns first.
        """
        with _lock:
            if self._callback is None or self._ending is not None:
                return
            self._ending = error
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        """Releases what a suspended invocation holds, or interrupts its step. It ends on the loop."""
        armed = self._armed
        cancelled = armed is not None and armed.cancel()
        idle = try_abort(self._state)
        if not idle:
            interrupt_step(self._state, self._state._stack)
        # A loop that has ended may never call what was scheduled on it.
        if cancelled or (idle and self._loop.is_closed):
            self._loop.call(self._resume)

    def cancel(self) -> None:
        """``abort`` with CancelledError."""
        self.abort(CancelledError("the invocation was cancelled"))

    def _finish(self, error: Exception | None, outputs: tuple[Any, ...] | None) -> None:
        with _lock:
            callback, self._callback = self._callback, None
        if callback is None:
            try_abort(self._state)
            return
        self._settle = self._values = None
        if self._state.function is not None:
            self._state.clear()
        self._loop.remove(self)
        self._context.invocations.discard(self)
        try:
            callback(self._loop, error, outputs)
        except BaseException:
            self._callback_raised = True
            raise


def async_invoke(
    loop: Loop,
    context: Context,
    function: Function,
    inputs: Inputs,
    callback: AsyncCallback,
    *,
    policy: InvocationPolicy | None = None,
    timeout: float | None = None,
) -> AsyncInvocation:
    """Invokes a function on a loop and returns at once.

    Args:
        loop: where its steps run, and the callback.
        inputs: values for its arguments, kept until it begins; do not change the list before.
        callback: called exactly once, with the loop, the error or ``None``, and the outputs or ``None``; perhaps before
            this returns. It must not block; an exception from it ends the loop. The error is that of the program, or of
            the attempt to invoke it: InvalidArgumentError for inputs that do not match, DeadlineExceededError,
            CancelledError, AbortedError where the loop ended first.
        policy: its order among the context's other invocations; ``None`` waits for a turn, and overlaps in a concurrent
            context.
        timeout: seconds for everything, the wait for a turn included; ``None`` is no limit.

    Returns:
        the invocation, which can be cancelled.

    Raises:
        InvalidArgumentError: no loop or context, a callback that cannot be called, a timeout that is no number. The
            callback is not called then.
    """
    if not isinstance(loop, Loop):
        raise InvalidArgumentError(f"loop is a pumice.vm.Loop, got {type(loop).__name__}")
    if not isinstance(context, Context):
        raise InvalidArgumentError(f"context is a pumice.vm.Context, got {type(context).__name__}")
    if not callable(callback):
        raise InvalidArgumentError(
            f"callback is called with the loop, the error and the outputs; got {type(callback).__name__}"
        )
    values = values_of(context, function, inputs)
    invoked = AsyncInvocation(loop, context, function, values, policy, timeout, callback)
    invoked.start()
    return invoked


def values_of(context: Context, function: Function, inputs: Inputs) -> Callable[[], tuple[Any, ...]]:
    """Makes the VM's values of inputs when the invocation begins; refuses a function in the place of inputs at once."""
    if callable(inputs):
        raise InvalidArgumentError(f"inputs is a sequence of values, got {type(inputs).__name__}")
    return lambda: checked_call(context, function, inputs)
