"""Deadlines: steps and waits that end at a deadline; the implementation of ``timeout=``.

An invocation made by a native function is part of the outer invocation in its thread: it also ends by the outer
deadline, whatever its own timeout, and the outer invocation reports it.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable
from types import CellType
from typing import Final

from ...status import DeadlineExceededError, InvalidArgumentError, PumiceError, ResourceExhaustedError
from ...waits.armed_wait import perform_wait
from ...waits.source import LONGEST_WAIT, WaitSource
from ...waits.wait_frame import WaitFrame
from .frame import Frame, NativeFrame
from .interruption import Interrupted, deadlines
from .stack import Stack
from .watchdog import Guard

_SHOWN_FRAMES: Final = 10


def timeout_seconds(timeout: float) -> float:
    """Returns a timeout as seconds, between 0 and the longest wait of the platform; raises InvalidArgumentError."""
    try:
        if isinstance(timeout, (bool, str, bytes)):
            raise TypeError
        seconds = float(timeout)
    except OverflowError:  # an int beyond the range of floats
        return LONGEST_WAIT if timeout > 0 else 0.0
    except (TypeError, ValueError):
        seconds = math.nan
    if seconds != seconds:
        raise InvalidArgumentError(f"timeout is a number of seconds or None, got {timeout!r}")
    return min(max(seconds, 0.0), LONGEST_WAIT)


def deadline_after(timeout: float | None) -> float | None:
    """Returns the ``time.monotonic()`` time in ``timeout`` seconds; raises InvalidArgumentError if it
    is not a number.
    """
    return None if timeout is None else time.monotonic() + timeout_seconds(timeout)


def timed_out(name: str, timeout: float | None) -> DeadlineExceededError:
    """Returns the error of an invocation that was not finished in time."""
    return DeadlineExceededError(
        f"{name} was not done within its timeout of {timeout:g} s; everything of the call was released"
    )


def outer_deadline() -> float:
    """Returns the deadline of the current invocations of this thread; infinite if there are none."""
    return deadlines.get(threading.get_ident(), math.inf)


def deadline_of_call(timeout: float | None) -> float | None:
    """Returns the deadline of an invocation that begins in this thread: its own or the outer one, if earlier."""
    own = deadline_after(timeout)
    if not deadlines:
        return own
    outer = outer_deadline()
    return own if outer == math.inf else outer if own is None else min(own, outer)


def step_until(stack: Stack, deadline: float) -> bool:
    """Runs ``stack.step()``, and ends it with ``Interrupted`` at ``deadline`` (``time.monotonic()``), which empties the
    stack.
    """

    me = threading.get_ident()
    outer = outer_deadline()
    deadline = min(deadline, outer)
    guard = guard_of(stack, deadline)
    deadlines[me] = deadline
    try:
        guard.enter()
        try:
            done = stack.step()
        finally:
            guard.leave()
        if not done and time.monotonic() >= deadline:
            raise Interrupted
        return done
    except BaseException as error:
        guard.leave()  # again, if the interrupt came before the first call
        stack.abort()
        if isinstance(error, ResourceExhaustedError) and not stack.max_depth:
            raise Interrupted from None
        raise
    finally:
        if outer == math.inf:
            del deadlines[me]
        else:
            deadlines[me] = outer


def guard_of(stack: Stack, deadline: float) -> Guard:
    """Returns a guard, not entered yet, that interrupts the functions on a stack after a deadline."""

    def calls() -> Iterable[CellType]:
        stack.max_depth = 0  # calls through the stack are rejected
        frame = stack.frames[-1] if stack.frames else None
        return frame.function.call_cells() if isinstance(frame, Frame) else ()

    return Guard(deadline, calls)


def wait_for(stack: Stack, frame: WaitFrame, deadline: float | None) -> None:
    """Performs the wait on top of a stack; errors contain the program's location."""
    try:
        perform_wait(frame, deadline)
    except Interrupted:
        raise
    except BaseException as error:
        callers = [caller_frame for caller_frame in reversed(stack.frames) if not isinstance(caller_frame, WaitFrame)]
        for caller_frame in callers[:_SHOWN_FRAMES]:
            error.add_note(
                f"  while waiting in {caller_frame.name}"
                if isinstance(caller_frame, NativeFrame)
                else f"  called from {caller_frame.function.translation.place(caller_frame.pc)}"
            )
        caller = next((caller_frame for caller_frame in callers if isinstance(caller_frame, Frame)), None)
        if isinstance(error, PumiceError) and error.location is None and caller is not None:
            error.location = caller.function.translation.place(caller.pc)
        raise


def await_source(source: WaitSource, deadline: float | None) -> None:
    """Waits for a source until a deadline; ``Interrupted`` ends it at the deadline of this thread's invocations."""
    outer = outer_deadline() if deadlines else math.inf
    until = min(outer, math.inf if deadline is None else deadline)
    try:
        source.wait_until(None if until == math.inf else until)
    except DeadlineExceededError:
        if time.monotonic() >= outer:
            raise Interrupted from None
        raise
