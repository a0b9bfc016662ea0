"""Invocations that run on a loop and end in a callback: ``async_invoke``.

Callbacks of a ``Loop`` drive them (driven.py): each step is one, each wait is armed and blocks no thread. Thread rule:
every function and method from any thread. The design is in docs/design/invocation.md.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator
from typing import Any, TypeAlias

from ...status import CancelledError, InvalidArgumentError, PumiceError
from ...waits.armed_wait import ArmedWait
from ...waits.deferred import DeferredWait
from ...waits.futures import as_pumice_error
from ...waits.source import WaitSource
from ...waits.wait_frame import WaitFrame
from ...waits.wait_mode import WaitMode
from ..execution.context import Context, Function
from ..execution.deadlines import timed_out
from ..execution.loop import Loop
from ..execution.policy import InvocationPolicy
from ..execution.stack import Stack
from .driven import DrivenInvocation
from .marshalling import outputs_of
from .stages import Inputs, checked_call
from .state import InvocationObserver

AsyncCallback: TypeAlias = Callable[[Loop, "Exception | None", "tuple[Any, ...] | None"], None]
"""Called with the loop, and the outputs or the error."""


class AsyncInvocation(DrivenInvocation):
    """Runs one invocation on a loop; ``async_invoke`` makes it.

    Its steps never overlap: each is scheduled by the one before, or by the end of its wait. ``abort`` and ``cancel``
    may be called at any time: a suspended invocation ends at once, one in a step ends after it. Its callback is called
    on the loop.
    """

    __slots__ = ("_armed", "_callback", "_callback_raised", "_steps", "_values")

    def __init__(
        self,
        loop: Loop,
        context: Context,
        function: Function,
        values: Callable[[], tuple[Any, ...]],
        policy: InvocationPolicy | None,
        timeout: float | None,
        callback: AsyncCallback,
        settle: Callable[[], WaitSource | None] | None = None,
        observer: InvocationObserver | None = None,
        wait: WaitMode | None = None,
    ) -> None:
        super().__init__(loop, context, function, policy, timeout, wait, observer, settle)
        self._values: Callable[[], tuple[Any, ...]] | None = values
        self._callback: AsyncCallback | None = callback
        self._callback_raised = False
        self._steps: Generator[Any, Any, Any] | None = None
        self._armed: ArmedWait | DeferredWait | None = None

    def start(self) -> None:
        """Schedules the first step, or makes it."""
        self._context.invocations.add(self)
        self._loop.add(self)
        self._loop.start(self._begin)  # with an error if it has ended

    # -- steps, on the loop --------------------------------------------------------------------------

    def _begin(self, error: Exception | None) -> None:
        values, self._values = self._values, None
        if values is None:
            return
        if self._deadline is not None and error is None and time.monotonic() >= self._deadline:
            error = timed_out(getattr(self._function, "full_name", "the invocation"), self._timeout)
        try:
            if error is None and self._ending is None:
                self._steps = self.drive(values())
        except BaseException as raised:
            if self._failed(raised):
                raise
            return
        self._advance(error)

    def _advance(self, error: Exception | None) -> None:
        self._armed = None
        error = self._ending or error  # the loop's end may be part of what ends it
        if error is not None:
            self._finish(error, None)
            return
        steps = self._steps
        if steps is None:  # it has ended
            return
        try:
            self._hold(next(steps))
        except StopIteration as ended:
            try:
                # An error caused by ending it is reported as that end.
                self._finish(self._ending, None if self._ending else outputs_of(self._function, ended.value))
            except BaseException as raised:
                if self._failed(raised):
                    raise
        except BaseException as raised:
            if self._failed(raised):
                raise

    def _failed(self, raised: BaseException) -> bool:
        """A step raised; whether the loop has to raise it too."""
        if self._callback_raised:
            return True  # which ends the loop
        error = raised if isinstance(raised, Exception) else as_pumice_error(raised, "the invocation")
        self._finish(self._ending or error, None)
        return isinstance(raised, (KeyboardInterrupt, SystemExit))

    def _perform(self, frame: WaitFrame, stack: Stack | None, quick: bool = False) -> Generator[Any, Any, None]:
        yield stack or Stack(), frame

    def _hold(self, wait: tuple[Stack, WaitFrame] | None) -> None:
        """Has the loop perform a wait that can be cancelled; it may be over already, or the invocation ending."""
        if wait is None:
            self._loop.call(self._advance)
            return
        stack, frame = wait
        armed = self._loop.wait(stack, frame, self._deadline, self._advance, self._wait)
        if armed is None or armed.is_done:
            return
        self._armed = armed
        if self._ending is not None:
            self._wake()

    def needs_this_thread(self) -> bool:
        """Whether it cannot go on while the calling thread blocks."""
        return self._loop.runs_here() or self._context.gate.admission.runs_here()

    # -- the end -------------------------------------------------------------------------------------

    def abort(self, error: PumiceError) -> None:
        """Ends it with an error, unless it has ended; see the base class. The callback is called on the loop."""
        if self._callback is not None:
            super().abort(error)

    def _wake(self) -> None:
        armed = self._armed
        # A loop that has ended may never call what was scheduled on it.
        if (armed is not None and armed.cancel()) or (self._loop.is_closed and not self._thread):
            self._loop.call(self._advance)

    def cancel(self) -> None:
        """``abort`` with CancelledError."""
        self.abort(CancelledError("the invocation was cancelled"))

    def _finish(self, error: Exception | None, outputs: tuple[Any, ...] | None) -> None:
        callback, self._callback = self._callback, None
        steps, self._steps = self._steps, None
        if steps is not None:
            self._release()
            with contextlib.suppress(ValueError):  # another thread is in a step; it ends by itself
                steps.close()
        if callback is None:
            return
        self._settle = self._values = None
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
