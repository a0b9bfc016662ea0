"""Performs the wait of a wait frame in the calling thread.

One source is waited for by its ``wait_until``. Several are armed together, and the thread sleeps until enough of them
have called back: a failure is known at once, however long the others take, and nothing polls.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Final

from ...status import DeadlineExceededError, PumiceError
from .armed import adapt, arm
from .frame import WaitFrame
from .source import WaitSource

LONGEST_WAIT: Final = min(threading.TIMEOUT_MAX, 1e9)
"""Seconds, some thirty years. Longer waits have no limit, as platforms' timers end somewhere."""


def perform_wait(frame: WaitFrame, deadline: float | None) -> None:
    """Blocks until the frame's wait is over or the caller's deadline passes.

    The outcome is stored on the frame: ready, a source's failure, or that the frame's own deadline passed.

    Args:
        frame: of a suspended invocation.
        deadline: the caller's, in ``time.monotonic()`` seconds. When it passes first, the frame is not done and can be
            waited for again.

    Raises:
        InvalidArgumentError: one of the sources is no wait source.
        BaseException: another error than pumice's that a source raised, or that of a signal handler
            (KeyboardInterrupt).
    """
    own = frame.deadline
    until = own if deadline is None else deadline if own is None else min(own, deadline)
    if until is not None and until - time.monotonic() > LONGEST_WAIT:
        until = None
    try:
        _wait(frame, until)
    except DeadlineExceededError as error:
        if until is not None and time.monotonic() >= until and until != own:
            return
        frame.complete(error)
        return
    except PumiceError as error:
        frame.complete(error)
        return
    except AttributeError:
        if not adapt(frame):
            raise
        perform_wait(frame, deadline)
        return
    frame.complete()


def _wait(frame: WaitFrame, until: float | None) -> None:
    sources = frame.sources
    if len(sources) == 1:
        sources[0].wait_until(until)
    elif sources:
        wait_several(sources, frame.any, until)


def wait_several(sources: Sequence[WaitSource], any: bool, until: float | None) -> None:
    """Blocks until all sources are ready, or one of them; raises the first failure.

    Raises:
        DeadlineExceededError: ``time.monotonic()`` passed ``until`` first.
        PumiceError: the failure of a source.
    """
    outcome = threading.Event()
    failures: list[PumiceError] = []

    def callback(error: PumiceError | None) -> None:
        if error is not None:
            failures.append(error)
        outcome.set()

    armed = arm(sources, any, None, callback)
    try:
        if not outcome.wait(None if until is None else min(max(0.0, until - time.monotonic()), LONGEST_WAIT)):
            raise DeadlineExceededError(armed.describe())
    finally:
        armed.cancel()
    if failures:
        raise failures[0].again()
