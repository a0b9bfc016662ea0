"""``Invocation``: a function call that is under way or done, to be queried, waited for, awaited, cancelled.

The stateful invocation that IREE's ``vm/invocation.h`` declares and does not implement. It runs on a loop
(background.py). Thread rule: every method from any thread. The design is in docs/design/invocation.md.
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
    """The part of a session's call that follows the program."""

    def settle(self) -> WaitSource | None:
        """Returns the fence that the results wait for, once the program is done."""

    def results(self, outputs: tuple[Any, ...], /) -> Any:
        """Returns the caller's results for the VM's."""

    def end(self) -> None:
        """Releases what the call holds: it has ended, well or not. Called before anybody is notified."""


class Invocation(Latch):
    """A function call that is under way or done: to be queried, waited for, awaited, cancelled.

    ``Invocation.create`` begins one. It is a wait source, ready when the invocation has ended, well or not: native
    functions of other contexts can wait for it.

    Attributes:
        outputs: the results, one for each that the function declares; ``None`` while it is not done, and if it failed.
        error: the error; ``None`` while it is not done, and if it did not fail.
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
            timeout: the seconds for everything, the wait for a turn included; ``None`` means no limit.

        Raises:
            InvalidArgumentError: the context, the function or the loop is none, or the timeout is not a number.
            FailedPreconditionError: the function is of another context.
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
        """Does ``create`` for the runtime.

        Args:
            values: a function that makes the VM's values when the invocation begins.
            call: the steps after the program.
            wait: the loop's wait mode for devices; ``None`` means as they were opened.
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
        """Whether it has ended, well or not."""
        return self.is_settled

    def wait_until(self, deadline: float | None = None) -> None:
        """Blocks until it is done, well or not.

        Raises:
            FailedPreconditionError: the thread is one that the invocation needs to continue: that of its loop, or one
                that runs a function of its context.
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
                continues; ``done()`` distinguishes that from its own failure.
            ``done()`` distinguishes that from its own failure.
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
            PumiceError: the program failed; a native function's own exception is raised as it is.
        """
        self.wait_until(deadline_after(timeout))
        return self._result()

    def _result(self) -> Any:
        error = self.error
        if error is not None:
            raise error.again() if isinstance(error, PumiceError) else error
        return self.outputs

    def cancel(self) -> None:
        """Cancels it: at once if it waits, otherwise after the step that it is in, which may be its last.

        Work that it submitted to a device goes on; its resources are released when that is done.
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
