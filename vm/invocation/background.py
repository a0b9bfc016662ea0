"""Invocations that run on a loop and end in a callback: ``async_invoke``.

Callbacks of a ``Loop`` run the steps; waits block no thread. Thread rule: any thread. The design is in
docs/design/invocation.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeAlias

from ...status import CancelledError, InvalidArgumentError
from ...waits.armed_wait import ArmedWait
from ...waits.deferred import DeferredWait
from ...waits.futures import as_pumice_error
from ...waits.source import WaitSource
from ...waits.wait_frame import WaitFrame
from ...waits.wait_mode import WaitMode
from ..execution.context import Context, Function
from ..execution.deadlines import timed_out
from ..execution.loop import Loop
from ..execution.policy import FIFO, InvocationPolicy, checked_policy
from ..execution.run import Run
from ..execution.stack import Stack
from .marshalling import outputs_of
from .stages import Inputs, checked_call

AsyncCallback: TypeAlias = Callable[[Loop, "Exception | None", "tuple[Any, ...] | None"], None]
"""Called with the loop, and the outputs or the error."""


class AsyncInvocation(Run):
    """Runs one invocation on a loop; ``async_invoke`` makes it.

    Its steps never overlap: each step is scheduled by the previous step, or by the end of its wait. ``abort`` and
    ``cancel`` may be called at any time: a suspended invocation ends at once, a running one after its step. Its
    callback is called on the loop.

    Args:
        loop: the loop that runs it; when the loop ends, the invocation is aborted.
        make_values: a function that makes the VM's values when the invocation begins.
        policy: the order among others; ``None`` waits for a turn, and overlaps in a concurrent context.
        timeout: the time limit of the whole invocation in seconds; ``None`` means no limit.
        wait: the loop's wait mode for devices; ``None`` keeps the mode that they were opened with.
    """

    __slots__ = ("_armed", "_callback", "_is_driven", "_loop", "_make_values", "_mode")

    context: Context
    function: Function

    def __init__(
        self,
        loop: Loop,
        context: Context,
        function: Function,
        make_values: Callable[[], tuple[Any, ...]],
        policy: InvocationPolicy | None,
        timeout: float | None,
        callback: AsyncCallback,
        wait: WaitMode | None = None,
    ) -> None:
        # Where the driver shares a core with the loop's thread, the work is often done when the program asks.
        super().__init__(context, function, (), policy, timeout, False, "ask")
        self._armed: ArmedWait | DeferredWait | None = None
        self._is_driven = False
        self._loop = loop
        self._make_values: Callable[[], tuple[Any, ...]] | None = make_values
        self._callback: AsyncCallback | None = callback
        self._mode = wait

    def start(self) -> None:
        """Schedules or runs the first step."""
        self.context.invocations.add(self)
        self._loop.add(self)
        self._loop.start(self._drive)  # with an error if it has ended

    # -- steps, on the loop --------------------------------------------------------------------------

    def _drive(self, error: Exception | None) -> None:
        """Runs a step, then passes its wait to the loop or calls the callback."""
        with self.gate.lock:
            if self._is_driven or self._callback is None:
                return  # the running step sees that it is ending
            self._is_driven = True
            self._armed = None
        wait: WaitFrame | None = None
        thrown: BaseException | None = None
        try:
            error = self.ending or error  # the loop's end may be part of what ends it
            if error is None:
                self._prepare()
                wait = self.advance()
                error = self.error
        except BaseException as raised:
            thrown = raised
        self._is_driven = False
        if wait is not None:
            try:
                self._arm(wait)
            except BaseException as raised:
                wait, thrown = None, raised
        if thrown is not None:
            error = self.ending or (
                thrown if isinstance(thrown, Exception) else as_pumice_error(thrown, "the invocation")
            )
        if wait is None:
            self._finish(error)
        if isinstance(thrown, (KeyboardInterrupt, SystemExit)):
            raise thrown

    def _prepare(self) -> None:
        """Converts the inputs, before the first step."""
        make_values, self._make_values = self._make_values, None
        if make_values is not None:
            if self.deadline is not None and time.monotonic() >= self.deadline:
                raise timed_out(getattr(self.function, "full_name", "the invocation"), self.timeout)
            self._values = make_values()
            self.policy: InvocationPolicy = checked_policy(self.policy, FIFO, concurrent=self.context.concurrent)

    def _arm(self, wait: WaitFrame) -> None:
        """Passes a wait to the loop. The wait may be over already, or the invocation may have ended."""
        if wait.done:
            self._loop.call(self._drive)
            return
        armed = self._loop.wait(self.stack or Stack(), wait, self.deadline, self._drive, self._mode)
        if armed is None or armed.is_done:
            return
        with self.gate.lock:
            self._armed = armed
            is_ending = self.ending is not None
        if is_ending:
            self._wake()

    def needs_this_thread(self) -> bool:
        """Whether it cannot continue while the calling thread blocks."""
        return self._loop.runs_here() or self.gate.runs_here()

    # -- the end -------------------------------------------------------------------------------------

    def _wake(self) -> None:
        armed = self._armed
        # A loop that has ended may never run the scheduled callbacks.
        if (armed is not None and armed.cancel()) or self._loop.is_closed:
            self._loop.call(self._drive)

    def cancel(self) -> None:
        """Aborts with CancelledError."""
        self.abort(CancelledError("the invocation was cancelled"))

    def _finish(self, error: Exception | None) -> None:
        """Calls the callback, once."""
        with self.gate.lock:
            callback, self._callback = self._callback, None
        if callback is None:
            return
        outputs = None if error is not None else outputs_of(self.function, self.results)
        self.close()
        self.error: Exception | None = None
        self.settle: Callable[[], WaitSource | None] | None = None
        self._make_values = None
        self._loop.remove(self)
        self.context.invocations.discard(self)
        callback(self._loop, error, outputs)


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
        loop: the loop that runs its steps and the callback.
        inputs: the values for its arguments, kept until it begins; do not change the list before.
        callback: a function that is called exactly once, with the loop, the error or ``None``, and the outputs or
            ``None``; possibly before this function returns. It must not block; an exception from it ends the loop. The
            error is the program's, or InvalidArgumentError for inputs that do not match, DeadlineExceededError,
            CancelledError, or AbortedError if the loop ended first.
        policy: the order among the context's other invocations; ``None`` waits for a turn, and overlaps in a concurrent
            context.
        timeout: the time limit in seconds, including the wait for a turn; ``None`` means no limit.

    Returns:
        The invocation, which can be cancelled.

    Raises:
        InvalidArgumentError: the loop, the context, the callback or the timeout has the wrong type. The callback is not
            called then.
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
    """Returns a function that converts inputs when the invocation begins; refuses a callable at once."""
    if callable(inputs):
        raise InvalidArgumentError(f"inputs is a sequence of values, got {type(inputs).__name__}")
    return lambda: checked_call(context, function, inputs)
