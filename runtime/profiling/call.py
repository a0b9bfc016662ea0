"""What a profile notes of a session's call while it runs: a few readings of the clock, and nothing that takes time.

The clock is ``time.monotonic_ns``, to which device timestamps are related too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from ...hal_vulkan import Fence
    from ..modules.hal.fence import HalFence
    from ..sessions.session_function import SessionFunction
    from .profile import Profile

__all__ = ["CallRecord", "SynchronousCall", "now", "profiled_async_call"]

now: Final = time.monotonic_ns
"""The clock of profiles, in nanoseconds."""


SynchronousCall: TypeAlias = "tuple[SessionFunction, int, int, int, int, int, str, bool]"
"""Function, thread; begin, arguments bound, program done, end; error, and whether native functions were timed. A tuple costs least."""


class CallRecord:
    """One call of a session, in nanoseconds of the host's monotonic clock; 0 for what did not come to pass.

    Attributes:
        name: the function's full name.
        is_native: whether it is a native function, which no program calls.
        thread: that called it.
        begin, end: of the call.
        bind_begin, bind_end: of the conversion of arguments; for a synchronous call the first is ``begin``.
        steps: thread, begin and end of each step of the program. A synchronous call is one, waits included.
        settled: when the work behind an asynchronous function's fence was done.
        convert_begin: of the conversion of results.
        error: what it failed with, by name; ``""`` for nothing.
        is_async: whether it runs in steps, between which it waits.
        phase: of the profile, when it began.
        is_detailed: whether native functions were timed during all of it.
    """

    __slots__ = (
        "_profile",
        "_step",
        "begin",
        "bind_begin",
        "bind_end",
        "convert_begin",
        "end",
        "error",
        "is_async",
        "is_detailed",
        "is_native",
        "name",
        "phase",
        "settled",
        "steps",
        "thread",
    )

    def __init__(self, name: str, profile: Profile | None, *, is_native: bool = False, is_async: bool = False) -> None:
        self.name = name
        self._profile = profile
        self.is_native = is_native
        self.is_async = is_async
        self.thread = threading.get_ident()
        self.bind_end = self.settled = self.convert_begin = self.end = 0
        self.error = ""
        self.steps: list[tuple[int, int, int]] = []
        self._step = 0
        self.is_detailed = True
        self.phase = 0 if profile is None else profile.phase
        self.begin = self.bind_begin = now()

    @classmethod
    def of_synchronous(cls, call: SynchronousCall) -> CallRecord:
        """The record of a synchronous call that was noted as a tuple."""
        function, thread, begin, bound, invoked, end, error, is_detailed = call
        record = cls(function.name, None, is_native=function.function.native is not None)
        record.thread, record.begin, record.bind_begin, record.end = thread, begin, begin, end
        record.error, record.is_detailed = error, is_detailed
        if bound:
            record.bind_end = bound
            record.steps.append((thread, bound, invoked))
        return record

    def enter_step(self) -> None:
        """See ``InvocationObserver``."""
        self._step = now()

    def leave_step(self) -> None:
        """See ``InvocationObserver``."""
        self.steps.append((threading.get_ident(), self._step, now()))

    def ended(self, error: BaseException | None) -> None:
        """See ``InvocationObserver``."""
        if error is not None:
            self.error = type(error).__name__
        self.end = now()
        if self._profile is not None:
            self.is_detailed = self._profile.call_ended(self.begin, self.end, self.phase)

    def invoked(self) -> None:
        """The program of a synchronous call returned or failed."""
        self.steps.append((self.thread, self.bind_end, now()))


def profiled_async_call(
    record: CallRecord,
    function: SessionFunction,
    arguments: tuple[object, ...],
    named: Mapping[str, object],
    timeout: float | None,
    wait: Fence | HalFence | None,
    signal: Fence | HalFence | None,
) -> Any:
    """``SessionFunction.__call__`` of an asynchronous function, noted in ``record``."""
    try:
        if named or len(arguments) != function._count:
            arguments = function.signature.place(arguments, dict(named))
        values = tuple([bind(value) for bind, value in zip(function._binders, arguments, strict=True)])
        record.bind_end = now()
        return function._call_async(values, timeout, wait, signal, record)
    except BaseException as error:
        record.ended(error)
        raise
    finally:
        if not record.end:
            record.ended(None)
