"""The record of a session's call while it runs: a few readings of the clock.

The clock is ``time.monotonic_ns``, to which device timestamps are converted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from ...vm.execution.context import Function

now: Final = time.monotonic_ns
"""The clock of profiles, in nanoseconds."""


class CallRecord:
    """A call of a session, which begins now; in nanoseconds of the host's clock, 0 for steps that did not happen.

    Attributes:
        bind_begin, bind_end: the times of the conversion of arguments; for a synchronous call the first is ``begin``.
        steps: the thread, begin and end of each step of the program. A synchronous call is one step, including waits.
        settled: the time at which the work behind an asynchronous function's fence was done.
        convert_begin: the beginning of the conversion of results.
        error: the class of the exception that ended the call; ``""`` for none.
        is_async: whether the call runs in steps, between which it waits.
        phase: the phase of the profile when the call began.
        is_detailed: whether native functions were timed during all of it.
        on_end: a function that takes begin, end and phase, and returns ``is_detailed``.
    """

    __slots__ = (
        "_step",
        "begin",
        "bind_begin",
        "bind_end",
        "convert_begin",
        "end",
        "error",
        "function",
        "is_async",
        "is_detailed",
        "on_end",
        "phase",
        "settled",
        "steps",
        "thread",
    )

    def __init__(
        self, function: Function, phase: int, on_end: Callable[[int, int, int], bool], *, is_async: bool
    ) -> None:
        self.function: Function = function
        self.is_async: bool = is_async
        self.on_end: Callable[[int, int, int], bool] = on_end
        self.thread: int = threading.get_ident()
        self.bind_end: int
        self.convert_begin: int
        self.settled: int
        self.end: int
        self.bind_end = self.settled = self.convert_begin = self.end = 0
        self.error: str = ""
        self.steps: list[tuple[int, int, int]] = []
        self._step = 0
        self.is_detailed: bool = True
        self.phase: int = phase
        self.begin: int
        self.bind_begin: int
        self.begin = self.bind_begin = now()

    def __enter__(self) -> CallRecord:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.ended(error)

    # -- InvocationObserver --------------------------------------------------------------------------

    def enter_step(self) -> None:
        self._step = now()

    def leave_step(self) -> None:
        self.steps.append((threading.get_ident(), self._step, now()))

    def ended(self, error: BaseException | None) -> None:
        if error is not None:
            self.error = type(error).__name__
        self.end = now()
        self.is_detailed = self.on_end(self.begin, self.end, self.phase)

    def invoked(self) -> None:
        """Notes that the program of a synchronous call returned or failed."""
        self.steps.append((self.thread, self.bind_end, now()))
