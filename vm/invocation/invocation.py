"""``Invocation``: a pending or finished function call, which can be queried, waited for, awaited or cancelled.

IREE's ``vm/invocation.h`` declares this stateful invocation and does not implement it. It runs on a loop
(background.py). Thread rule: any thread. The design is in docs/design/invocation.md.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Protocol

from ...status import DeadlineExceededError, FailedPreconditionError, InvalidArgumentError, PumiceError, StatusCode
from ...waits.awaitable import await_source, driving
from ...waits.latch import Latch
from ...waits.source import WaitSource
from ...waits.wait_mode import WaitMode
from ..execution.context import Context, Function
from ..execution.deadlines import deadline_after
from ..execution.loop import Loop
from ..execution.policy import FIFO, InvocationPolicy, checked_policy
from ..execution.run import InvocationObserver
from .background import AsyncInvocation, values_of
from .stages import Inputs
from .state import status_of


class CallInProgress(Protocol):
    """The part of a session's call after the program."""

    def settle(self) -> WaitSource | None:
        """Returns the fence that the results wait for, once the program has ended."""

    def results(self, outputs: tuple[Any, ...], /) -> Any:
        """Converts the VM's results to the caller's."""

    def end(self) -> None:
        """Releases the call's objects at its end, with or without an error, before anybody is notified."""


class Invocation(Latch):
    """A pending or finished function call, which can be queried, waited for, awaited or cancelled.

    ``Invocation.create`` begins an invocation. It is a wait source, ready when the invocation has ended, with or
    without an error: native functions of other contexts can wait for it.

    Attributes:
        outputs: the function's results; ``None`` until it has ended successfully.
        error: the error; ``None`` unless it has failed.
    """

    __slots__ = ("_call", "_observer", "_run", "error", "outputs")

    told_late = True  # the thread that settles it gathers wake-ups (waits/awaitable.py)

    def __init__(self) -> None:
        super().__init__()
        self._run: AsyncInvocation | None = None
        self.outputs: Any = None
        self.error: Exception | None = None
        self._call: CallInProgress | None = None
        self._observer: InvocationObserver | None = None

    @classmethod
    def create(
        cls,
        context: Context,
        function: Function,
        inputs: Inputs = (),
        *,
        policy: InvocationPolicy | None = None,
        loop: Loop | None = None,
        timeout: float | None = None,
    ) -> Invocation:
        """Begins an invocation.

        Args:
            inputs: the values for its arguments. Do not change a list before it begins.
            policy: the order among the context's other invocations; ``None`` waits for a turn, and overlaps in a
                concurrent context.
            loop: the loop that runs its steps; ``None`` means the context's own (``Context.loop``).
            timeout: the time limit in seconds, including the wait for a turn; ``None`` means no limit.

        Raises:
            InvalidArgumentError: the context, function, loop or timeout has the wrong type.
            FailedPreconditionError: the function belongs to another context.
            ClosedError: the context was closed.

        Later errors: see ``query_status()``.
        """
        return cls()._start(context, function, values_of(context, function, inputs), policy, loop, timeout)

    def _start(
        self,
        context: Context,
        function: Function,
        values: Callable[[], tuple[Any, ...]],
        policy: InvocationPolicy | None,
        loop: Loop | None,
        timeout: float | None,
        call: CallInProgress | None = None,
        observer: InvocationObserver | None = None,
        wait: WaitMode | None = None,
    ) -> Invocation:
        """Performs ``create`` for the runtime.

        Args:
            values: a function that makes the VM's values when the invocation begins.
            call: the steps after the program.
            wait: the loop's wait mode for devices; ``None`` keeps the mode that they were opened with.
        """
        if not isinstance(context, Context) or not isinstance(function, Function):
            raise InvalidArgumentError(
                f"an invocation is of a Function in a Context; got {type(function).__name__} and "
                f"{type(context).__name__}"
            )
        if function.context is not context:
            raise FailedPreconditionError(f"{function.full_name} is a function of another context")
        if loop is not None and not isinstance(loop, Loop):
            raise InvalidArgumentError(f"loop is a pumice.vm.Loop, got {type(loop).__name__}")
        checked_policy(policy, FIFO, concurrent=context.concurrent)
        context.check_open()
        self._call = call
        self._observer = observer
        run = AsyncInvocation(loop or context.loop, context, function, values, policy, timeout, self._ended, wait)
        run.observer = observer
        if call is not None:
            run.settle = call.settle
        self._run = run
        run.start()
        return self

    def _ended(self, loop: Loop, error: Exception | None, outputs: tuple[Any, ...] | None) -> None:
        call, self._call = self._call, None
        if error is None and call is not None:
            try:
                outputs = call.results(outputs or ())
            except Exception as raised:
                error = raised
        self.outputs = outputs if error is None else None
        self.error = error
        self._run = None
        if call is not None:
            call.end()
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.ended(error)
        self.settle()

    # -- its outcome ---------------------------------------------------------------------------------

    def query_status(self) -> StatusCode:
        """Returns OK, DEFERRED while it is not done, CANCELLED, ABORTED if its loop ended, or its error's code."""
        if not self.is_settled:
            return StatusCode.DEFERRED
        return StatusCode.OK if self.error is None else status_of(self.error)

    def done(self) -> bool:
        """Whether it has ended, with or without an error."""
        return self.is_settled

    def wait_until(self, deadline: float | None = None) -> None:
        """Blocks until it is done, with or without an error.

        Raises:
            FailedPreconditionError: the invocation needs the calling thread to continue: the thread of its loop, or a
                thread that runs a function of its context.
            DeadlineExceededError: the deadline passed first.
        """
        run = self._run
        if run is not None and not self.is_settled and run.needs_this_thread():
            raise FailedPreconditionError(
                "waiting for an invocation in the thread that it runs in would never end; await it, or use "
                "add_done_callback"
            )
        super().wait_until(deadline)

    def wait(self, deadline: float | None = None) -> StatusCode:
        """Blocks until it is done, or until ``time.monotonic()`` is at the deadline.

        Returns:
            The status as of ``query_status()``; or DEADLINE_EXCEEDED if the deadline passed first. The invocation then
                continues; ``done()`` distinguishes this from a deadline of the invocation.
        """
        try:
            self.wait_until(deadline)
        except DeadlineExceededError:
            return StatusCode.DEADLINE_EXCEEDED
        return self.query_status()

    def result(self, timeout: float | None = None) -> Any:
        """Returns its results, once it is done.

        Args:
            timeout: the seconds to wait; ``None`` means no limit.

        Raises:
            DeadlineExceededError: the invocation was not done in time, and continues; or its own timeout passed.
            CancelledError: the invocation was cancelled.
            AbortedError: the loop that it ran on ended.
            PumiceError: the program failed; a native function's exception is raised unchanged.
        """
        self.wait_until(deadline_after(timeout))
        return self._result()

    def _result(self) -> Any:
        error = self.error
        if error is not None:
            raise error.again() if isinstance(error, PumiceError) else error
        return self.outputs

    def cancel(self) -> None:
        """Cancels it: at once if it waits, otherwise after the current step, which may be its last.

        Work submitted to a device continues; its resources are released when the work is done.
        """
        run = self._run
        if run is not None:
            run.cancel()

    def add_done_callback(self, callback: Callable[[Invocation], None]) -> None:
        """Calls ``callback(invocation)`` once it is done: on its loop, or at once. It must not block."""
        if not callable(callback):
            raise InvalidArgumentError(f"callback is called with the invocation, got {type(callback).__name__}")
        self.notify(lambda _: callback(self))

    def __await__(self) -> Generator[Any, Any, Any]:
        """Waits for it and returns its results; if the waiting task is cancelled, so is the invocation."""
        if self.is_settled and not driving.depth:
            yield  # it has not suspended: the event loop's other tasks have their turn
            return self._result()
        try:
            yield from await_source(self)
        except BaseException:
            if not self.is_settled:
                self.cancel()
            raise
        return self._result()

    def __repr__(self) -> str:
        return f"<Invocation, {self.query_status().name}>"
