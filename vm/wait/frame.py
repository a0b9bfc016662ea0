"""What suspends an invocation: ``Wait``, which a native function returns instead of its results, and the frame made of it.

Calling sequence: a native function returns ``Wait(sources, resume=…)``; the interpreter pushes a ``WaitFrame`` over the
native function's frame and gives control back to whoever drives the invocation; that waits for the sources by whatever means
it has and stores the outcome on the frame; on resumption ``resume`` is called with it and returns the function's results.

Thread rule: as the invocation's: any thread, one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...status import InvalidArgumentError, PumiceError
from .source import Waitable

__all__ = ["Wait", "WaitFrame"]


class Wait:
    """A native function's answer that its results are not there yet.

    It is over when its sources are ready: all of them, or one where ``any`` is set. The first source that fails ends it too, with
    that source's failure, in either case: what failed stays failed, and all of them can no longer become ready.

    Attributes:
        sources: what it waits for; none means that it only yields.
        any: whether one ready source is enough.
        deadline: ``time.monotonic()`` seconds after which the wait ends with DeadlineExceededError; ``None`` is never.
        resume: called once, when the wait is over, with ``None`` or the wait's error: a source's failure or
            DeadlineExceededError. Returns the function's results, or another Wait; raises what the function fails with.

    Raises:
        InvalidArgumentError: sources that are no sequence, a deadline that is no number, a ``resume`` that cannot be called.
    """

    # ``callee``: of a call that goes to a function of another bytecode module, with its arguments; for the interpreter.
    __slots__ = ("any", "callee", "deadline", "resume", "sources")

    def __init__(
        self,
        sources: Sequence[Waitable] = (),
        *,
        any: bool = False,
        deadline: float | None = None,
        resume: Callable[[PumiceError | None], object],
    ) -> None:
        # What comes wrong is said here, inside the native function that made it, and not in the interpreter's depths.
        if type(sources) is not tuple:
            try:
                sources = tuple(sources)
            except TypeError:
                raise InvalidArgumentError(
                    f"a Wait takes a sequence of wait sources, got {type(sources).__name__}"
                ) from None
        if deadline is not None and type(deadline) is not float:
            try:
                deadline = float(deadline)
            except (TypeError, ValueError, OverflowError):
                raise InvalidArgumentError(
                    f"a Wait's deadline is a time.monotonic() time in seconds or None, got {deadline!r}"
                ) from None
        if deadline is not None and deadline != deadline:
            raise InvalidArgumentError("a Wait's deadline is a time.monotonic() time in seconds or None, got NaN")
        if not callable(resume):
            raise InvalidArgumentError(
                f"a Wait's resume is called with the outcome and returns the results; got {type(resume).__name__}"
            )
        self.sources: tuple[Any, ...] = sources
        self.any = any
        self.deadline = deadline
        self.resume = resume
        self.callee: tuple[Any, tuple[Any, ...]] | None = None

    def __repr__(self) -> str:
        return f"<Wait for {'any' if self.any else 'all'} of {len(self.sources)} source(s)>"


class WaitFrame:
    """A wait on an invocation's stack.

    Attributes:
        sources, any, deadline: as the ``Wait`` that it was made of.
        done: whether the outcome is known.
        error: the outcome: ``None`` or what went wrong.
    """

    __slots__ = ("any", "deadline", "done", "error", "resume", "sources")

    def __init__(self, wait: Wait) -> None:
        self.sources: tuple[Any, ...] = wait.sources
        self.any = wait.any
        self.deadline = wait.deadline
        self.resume = wait.resume
        self.done = False
        self.error: PumiceError | None = None

    def complete(self, error: PumiceError | None = None) -> None:
        """Stores the outcome; for whoever performed the wait."""
        self.error = error
        self.done = True

    def __repr__(self) -> str:
        state = "pending" if not self.done else "ready" if self.error is None else repr(self.error)
        return f"<WaitFrame {'any' if self.any else 'all'} of {len(self.sources)} source(s), {state}>"
