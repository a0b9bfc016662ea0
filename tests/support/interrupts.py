"""Ctrl-C at chosen points of a call: exactly where CPython looks for signals."""

from __future__ import annotations

import _thread
import dis
import random
import signal
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from support.soak import SEED

__all__ = ["interrupt_at", "interrupted", "points"]

_CHECKED = ("CALL", "JUMP_BACKWARD")


def interrupt_at(number: int, run: Callable[[], object], is_traced: Callable[[str], bool]) -> bool:
    """Runs with Ctrl-C at the numbered point in the traced files; returns whether it has so many.

    CPython looks for signals at the beginnings of functions, at the ends of calls of C functions, and at jumps
    backward. The signal is posted right before, so that the interpreter itself raises KeyboardInterrupt, where and how
    it does for a user. Call it in the main thread.
    """
    return _traced(number, run, is_traced) >= number


def interrupted(number: int, run: Callable[[], object], is_traced: Callable[[str], bool]) -> bool:
    """Does ``interrupt_at``, and checks that KeyboardInterrupt came out; returns ``False`` if there was no such point.

    Calls that take turns with other threads do not always have the same number of them.
    """
    try:
        assert not interrupt_at(number, run, is_traced), "the interrupt was swallowed"
    except KeyboardInterrupt:
        return True
    return False


def points(run: Callable[[], object], is_traced: Callable[[str], bool], most: int | None = None) -> list[int]:
    """Returns the numbers of the points of a call, or ``most`` of them that the seed chooses."""
    every = range(1, _traced(sys.maxsize, run, is_traced) + 1)
    return list(every) if most is None else sorted(random.Random(SEED).sample(every, min(most, len(every))))


def _traced(number: int, run: Callable[[], object], is_traced: Callable[[str], bool]) -> int:
    """Returns how many points there were, at most ``number``."""
    checks: dict[CodeType, set[int] | None] = {}
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        nonlocal count
        code = frame.f_code
        if code not in checks:
            steps = dis.get_instructions(code) if is_traced(code.co_filename) else None
            checks[code] = steps and {step.offset for step in steps if step.opname.startswith(_CHECKED)}
        offsets = checks[code]
        if offsets is None or count >= number:
            return None
        frame.f_trace_opcodes = True
        if event == "call" or (event == "opcode" and frame.f_lasti in offsets):
            count += 1
            if count == number:
                # A for loop calls without looking for signals afterwards, which would raise in this function.
                for _ in iter(_thread.interrupt_main, 1):
                    return trace
        return trace

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sys.settrace(trace)
        try:
            run()
        finally:
            sys.settrace(None)
    finally:
        signal.signal(signal.SIGINT, before)
    return count
