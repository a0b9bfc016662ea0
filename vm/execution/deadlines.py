"""Runs an invocation in the calling thread until a deadline: the implementation of ``timeout=``.

An invocation made by a native function while another one is under way in the same thread is part of that one: it also
ends by the outer deadline, whatever its own timeout, and the outer invocation reports it.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable
from types import CellType, CodeType
from typing import Final, TypeVar

from ...status import DeadlineExceededError, InvalidArgumentError, PumiceError, ResourceExhaustedError
from ..translation import float_numerics, numerics
from ..types import buffer, elements, siphash
from ..wait.frame import WaitFrame
from ..wait.latch import LONGEST_WAIT
from ..wait.source import WaitSource
from ..wait.waits import perform_wait
from .frame import Frame, NativeFrame
from .stack import Stack, is_translated
from .watchdog import Guard, Interrupted, Watchdog

deadlines: Final[dict[int, float]] = {}
"""By thread, the deadline of the invocations under way in it, in ``time.monotonic()`` seconds; only with a timeout."""

_SHOWN_FRAMES: Final = 10
# Operations that may be interrupted half done: they change nothing but buffers of the program.
_OPERATIONS: Final = frozenset(str(module.__file__) for module in (buffer, elements, float_numerics, numerics, siphash))


def timeout_seconds(timeout: float) -> float:
    """A timeout as seconds, between 0 and the longest wait of the platform.

    Raises:
        InvalidArgumentError: it is no number.
    """
    try:
        if isinstance(timeout, (bool, str, bytes)):
            raise TypeError
        seconds = float(timeout)
    except OverflowError:  # an int that no float holds
        return LONGEST_WAIT if timeout > 0 else 0.0
    except (TypeError, ValueError):
        seconds = math.nan
    if seconds != seconds:
        raise InvalidArgumentError(f"timeout is a number of seconds or None, got {timeout!r}")
    return min(max(seconds, 0.0), LONGEST_WAIT)


def run_until_done(stack: Stack, name: str, timeout: float | None) -> None:
    """Steps an invocation until it is done, and performs its waits.

    Args:
        stack: with the function entered; released if the invocation ends in an error.
        name: of the function, for messages.
        timeout: seconds; ``None`` leaves only the deadline of the outer invocation, if there is one.

    Raises:
        InvalidArgumentError: a timeout that is no number.
        DeadlineExceededError: the time passed first.
        Interrupted: the deadline of the outer invocation passed.
        PumiceError: the program failed.
    """
    me = threading.get_ident()
    outer = deadlines.get(me, math.inf)
    own = math.inf if timeout is None else time.monotonic() + timeout_seconds(timeout)
    deadlines[me] = min(own, outer)
    try:
        _run(stack, deadlines[me])
        # Native calls are not interrupted; the deadline is checked again after them. A timeout of 0 asks for results
        # that need no waiting, so it is not checked.
        if timeout is not None and timeout > 0 and time.monotonic() >= deadlines[me]:
            raise Interrupted
    except Interrupted:
        if timeout is None or time.monotonic() >= outer:
            raise
        raise DeadlineExceededError(
            f"{name} was not done within its timeout of {timeout:g} s; everything of the call was released"
        ) from None
    finally:
        if outer == math.inf:
            del deadlines[me]
        else:
            deadlines[me] = outer


def _run(stack: Stack, deadline: float) -> None:
    if deadline == math.inf:
        _step_to_end(stack, None)
        return

    _guarded(stack, deadline, lambda: _step_to_end(stack, deadline))


_T = TypeVar("_T")


def _guarded(stack: Stack, deadline: float, run: Callable[[], _T]) -> _T:
    """Runs steps of a stack under the watchdog; on any error everything on the stack is released."""
    guard = guard_of(stack, deadline)
    try:
        guard.enter()
        try:
            return run()
        finally:
            guard.leave()
    except BaseException as error:
        guard.leave()  # again, if the interrupt came before the first call
        stack.abort()
        if isinstance(error, ResourceExhaustedError) and not stack.max_depth:
            raise Interrupted from None
        raise


def guard_of(stack: Stack, deadline: float) -> Guard:
    """A guard, not entered yet, that interrupts the functions on a stack from a deadline on."""

    def calls() -> Iterable[CellType]:
        stack.max_depth = 0  # calls through the stack are refused
        frame = stack.frames[-1] if stack.frames else None
        return frame.function.call_cells() if isinstance(frame, Frame) else ()

    return Watchdog.shared().guard(deadline, _is_interruptible, calls)


def step_until(stack: Stack, deadline: float) -> bool:
    """``stack.step()`` that ends by a deadline.

    Args:
        stack: of a suspended invocation whose wait is done; empty afterwards if the deadline passed.
        deadline: ``time.monotonic()`` seconds.

    Raises:
        Interrupted: the deadline passed.
        PumiceError: the program failed.
    """
    me = threading.get_ident()
    outer = deadlines.get(me, math.inf)
    deadlines[me] = min(deadline, outer)
    try:
        done = _guarded(stack, deadlines[me], stack.step)
        if time.monotonic() >= deadlines[me] and not done:
            stack.abort()
            raise Interrupted
        return done
    finally:
        if outer == math.inf:
            del deadlines[me]
        else:
            deadlines[me] = outer


def _step_to_end(stack: Stack, deadline: float | None) -> None:
    try:
        while not stack.step():
            wait = stack.wait_frame
            if wait is not None:
                wait_for(stack, wait, deadline)
            if deadline is not None and time.monotonic() >= deadline and (wait is None or not wait.done or wait.error):
                raise Interrupted
    except BaseException:
        stack.abort()
        raise


def wait_for(stack: Stack, frame: WaitFrame, deadline: float | None) -> None:
    """Performs the wait on top of a stack; errors from it say where the program waits."""
    try:
        perform_wait(frame, deadline)
    except Interrupted:
        raise
    except BaseException as error:
        callers = [one for one in reversed(stack.frames) if not isinstance(one, WaitFrame)]
        for one in callers[:_SHOWN_FRAMES]:
            error.add_note(
                f"  while waiting in {one.name}"
                if isinstance(one, NativeFrame)
                else f"  called from {one.function.place(one.pc)}"
            )
        caller = next((one for one in callers if isinstance(one, Frame)), None)
        if isinstance(error, PumiceError) and error.location is None and caller is not None:
            error.location = caller.function.place(caller.pc)
        raise


def await_source(source: WaitSource, deadline: float | None) -> None:
    """Waits for a source, also until the deadline of invocations under way in this thread.

    Args:
        source: what to wait for.
        deadline: ``time.monotonic()`` seconds; ``None`` leaves only that of those invocations.

    Raises:
        DeadlineExceededError: the deadline passed first.
        Interrupted: the deadline of an invocation under way in this thread passed.
        PumiceError: the source's failure.
    """
    outer = deadlines.get(threading.get_ident(), math.inf) if deadlines else math.inf
    until = min(outer, math.inf if deadline is None else deadline)
    try:
        source.wait_until(None if until == math.inf else until)
    except DeadlineExceededError:
        if time.monotonic() >= outer:
            raise Interrupted from None
        raise


def _is_interruptible(code: CodeType) -> bool:
    return is_translated(code) or code.co_filename in _OPERATIONS
