"""The state of a staged invocation: its run, and its position in the calling sequence.

The order of calls is checked here; the calls themselves are in stages.py.
"""

from __future__ import annotations

import threading
from typing import Any, Final

from ...base.lazy_dataclass import dataclass
from ...status import FailedPreconditionError, InvalidArgumentError, PumiceError, StatusCode
from ...waits.wait_frame import WaitFrame
from ..execution.context import Context, Function
from ..execution.frame import Frame, NativeFrame
from ..execution.run import YIELDED, Run
from .marshalling import outputs_of


@dataclass(frozen=True, slots=True)
class InvokeResult:
    """The result of an invocation.

    Attributes:
        status: OK, or the reason why the invocation ended.
        outputs: the function's results; ``None`` unless the status is OK.
        error: the error with its source location, or a native function's exception unchanged.
    """

    status: StatusCode
    outputs: tuple[Any, ...] | None
    error: Exception | None

    def unwrap(self) -> tuple[Any, ...]:
        """Returns the outputs, or raises the error."""
        if self.error is not None:
            raise self.error
        assert self.outputs is not None
        return self.outputs


class InvokeState:
    """A running invocation: its stack, and its position in the calling sequence. It can be reused after the end.

    Begin with ``begin_invoke``. ``function`` is the invoked function; ``None`` while there is no invocation.
    """

    __slots__ = ("_busy", "_phase", "_run", "function")

    def __init__(self) -> None:
        self._busy = threading.Lock()
        self._phase = IDLE
        self._run: Run | None = None
        self.function: Function | None = None

    @property
    def context(self) -> Context | None:
        """The context of the invocation; ``None`` if there is no invocation."""
        return None if self.function is None else self.function.context

    @property
    def status(self) -> StatusCode | None:
        """DEFERRED while it is suspended, OK once ``end_invoke`` is due; ``None`` if there is no invocation."""
        return {SUSPENDED: StatusCode.DEFERRED, DONE: StatusCode.OK}.get(self._phase)

    @property
    def wait_frame(self) -> WaitFrame | None:
        """The wait to be performed before it is resumed; ``None`` if it only yielded. Valid until ``resume_invoke``."""
        run = self._run
        return run.wait if run is not None and run.wait is not YIELDED and self._phase is SUSPENDED else None

    @property
    def frames(self) -> tuple[Frame | NativeFrame | WaitFrame, ...]:
        """The frames of the suspended invocation, outermost first: functions with pc, registers and source location."""
        stack = None if self._run is None else self._run.stack
        return () if stack is None else tuple(stack.frames)

    def __del__(self) -> None:
        # The garbage collector may call this at any point, under any lock, so the run is not ended here: that would
        # call callbacks.
        if self._run is not None:
            self._run.drop()

    def result(self) -> InvokeResult:
        """Returns the result of an invocation that has ended. The caller must have exclusive access."""
        run, function = self._run, self.function
        assert run is not None and function is not None
        if run.error is not None:
            return InvokeResult(status_of(run.error), None, run.error)
        return InvokeResult(StatusCode.OK, outputs_of(function, run.results), None)

    def clear(self) -> None:
        """Releases everything. The caller must have exclusive access."""
        run, self._run, self.function = self._run, None, None
        self._phase = IDLE
        if run is not None:
            run.close()
            run.error = None  # its traceback refers to the run

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


class Exclusive:
    """Exclusive access to a state for one call: ``with Exclusive(state, "resume_invoke", SUSPENDED): …``.

    Raises:
        InvalidArgumentError: the argument is not a state.
        FailedPreconditionError: another call is under way, or the state is in another phase.
    """

    __slots__ = ("_busy",)

    def __init__(self, state: InvokeState, call: str, *phases: str) -> None:
        if not isinstance(state, InvokeState):
            raise InvalidArgumentError(f"{call} takes an InvokeState, got {type(state).__name__}")
        if not state._busy.acquire(False):
            raise FailedPreconditionError(
                f"{call}: another call is in progress on this state; make the steps of an invocation one after another"
            )
        self._busy = state._busy
        if state._phase not in phases:
            text = repr(state)
            self._busy.release()
            raise FailedPreconditionError(f"{call} takes a state {_EXPECTED[phases[0]]}; this one: {text}")

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._busy.release()


def advance(state: InvokeState) -> StatusCode:
    """Advances the run of a state. The caller must have exclusive access.

    Raises:
        BaseException: the thread was interrupted by an exception from outside of the program. The state then has no
            invocation.
    """
    run = state._run
    assert run is not None
    try:
        wait = run.advance()
    except BaseException:
        state.clear()
        raise
    state._phase = DONE if wait is None else SUSPENDED
    return StatusCode.OK if wait is None else StatusCode.DEFERRED


def status_of(error: BaseException) -> StatusCode:
    """Returns an error's status code; UNKNOWN for exceptions that are not a PumiceError."""
    return error.code if isinstance(error, PumiceError) else StatusCode.UNKNOWN
