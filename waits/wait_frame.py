"""Suspension of an invocation: ``Wait``, which a native function returns instead of its results, and its frame.

Calling sequence: a native function returns ``Wait(sources, resume=…)``; the interpreter pushes a ``WaitFrame`` on top
of the native function's frame and returns to its driver; the driver waits for the sources and stores the outcome on the
frame; on resumption ``resume`` is called with the outcome and returns the function's results.

Thread rule: the same as for the invocation: any thread, one at a time.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeAlias

from ..status import InvalidArgumentError, PumiceError
from .source import Waitable

OnWait: TypeAlias = Literal["suspend", "ask", "block"]
"""The way in which native functions wait for a device.

They return a ``Wait``; or they first query, once per step, whether it is over; or they block in place, in calls without
a deadline that nothing else can end. The last two save suspending and resuming.
"""


class StepMode(threading.local):
    """The way in which native functions wait in the invocation that this thread steps."""

    on_wait: OnWait = "suspend"


step_mode: Final = StepMode()


class Wait:
    """Returned by a native function whose results are not ready yet.

    It is over when its sources are ready: all of them, or one if ``any`` is set. The first source that fails ends it in
    either case, with that source's failure.

    Attributes:
        sources: the wait sources; without sources it only yields.
        any: whether one ready source is enough.
        deadline: the ``time.monotonic()`` seconds after which the wait ends with DeadlineExceededError; ``None`` means
            never.
        resume: a function that is called once, when the wait is over, with ``None`` or the wait's error: a source's
            failure or DeadlineExceededError. It returns the function's results, or another Wait, and raises the
            function's failure.

    Raises:
        InvalidArgumentError: ``sources`` is not a sequence, ``deadline`` no number, or ``resume`` not callable.
    """

    # ``callee``, for the interpreter: the called function of another bytecode module, and its arguments.
    __slots__ = ("any", "callee", "deadline", "resume", "sources")

    def __init__(
        self,
        sources: Sequence[Waitable] = (),
        *,
        any: bool = False,
        deadline: float | None = None,
        resume: Callable[[PumiceError | None], object],
    ) -> None:
        # Checked here, so that the traceback shows the native function and not the interpreter.
        if type(sources) is not tuple:
            try:
                sources = tuple(sources)
            except TypeError:
                raise InvalidArgumentError(
                    f"a Wait takes a sequence of wait sources, got {type(sources).__name__}"
                ) from None
        if deadline is not None:
            value: object = deadline
            try:
                deadline = float(deadline)
            except (TypeError, ValueError, OverflowError):
                deadline = math.nan
            if deadline != deadline:
                raise InvalidArgumentError(
                    f"a Wait's deadline is a time.monotonic() time in seconds or None, got {value!r}"
                )
        if not callable(resume):
            raise InvalidArgumentError(
                f"a Wait's resume is called with the outcome and returns the results; got {type(resume).__name__}"
            )
        self.sources: tuple[Any, ...] = sources
        self.any: bool = any
        self.deadline: float | None = deadline
        self.resume: Callable[[PumiceError | None], object] = resume
        self.callee: tuple[Any, tuple[Any, ...]] | None = None

    def __repr__(self) -> str:
        return f"<Wait for {'any' if self.any else 'all'} of {len(self.sources)} source(s)>"


class WaitFrame:
    """A wait on an invocation's stack.

    Attributes:
        sources, any, deadline: the same as in the ``Wait``.
        done: whether the outcome is known.
        error: the outcome: ``None`` or the error.
    """

    __slots__ = ("any", "deadline", "done", "error", "resume", "sources")

    def __init__(self, wait: Wait) -> None:
        self.sources: tuple[Any, ...] = wait.sources
        self.any: bool = wait.any
        self.deadline: float | None = wait.deadline
        self.resume: Callable[[PumiceError | None], object] = wait.resume
        self.done: bool = False
        self.error: PumiceError | None = None

    def until(self, deadline: float | None) -> float | None:
        """Returns the earlier of its own deadline and another deadline."""
        own = self.deadline
        return own if deadline is None else deadline if own is None else min(own, deadline)

    def complete(self, error: PumiceError | None = None) -> None:
        """Stores the outcome."""
        self.error = error
        self.done = True

    def __repr__(self) -> str:
        state = "pending" if not self.done else "ready" if self.error is None else repr(self.error)
        return f"<WaitFrame {'any' if self.any else 'all'} of {len(self.sources)} source(s), {state}>"
