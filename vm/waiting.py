"""Performs the wait of a wait frame in the calling thread.

One source is waited for by its own means. Several are armed together and the thread sleeps until enough of them have called
back: a failure is known at once, however long the others take, and nothing polls.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from ..status import DeadlineExceededError, InvalidArgumentError, PumiceError
from .wait_frame import WaitFrame
from .wait_source import Cancellable, WaitSource

__all__ = ["LONGEST_WAIT", "perform_wait"]

LONGEST_WAIT: Final = min(threading.TIMEOUT_MAX, 1e9)
"""Seconds, some thirty years: what is to be waited for longer is waited for without a limit. Platforms' timers end somewhere."""


def perform_wait(frame: WaitFrame, deadline: float | None) -> None:
    """Blocks until the frame's wait is over or the caller's deadline passes.

    The outcome is stored on the frame: ready, a source's failure, or that the frame's own deadline passed.

    Args:
        frame: of a suspended invocation.
        deadline: the caller's, in ``time.monotonic()`` seconds. When it passes first the frame is left as it is, not
            done, and can be waited for again.

    Raises:
        InvalidArgumentError: something among the sources is none.
        BaseException: what a source raised beside the errors of pumice, or a signal handler (KeyboardInterrupt).
    """
    own = frame.deadline
    until = own if deadline is None else deadline if own is None else min(own, deadline)
    if until is not None and until - time.monotonic() > LONGEST_WAIT:
        until = None
    sources = frame.sources
    try:
        if len(sources) == 1:
            sources[0].wait_until(until)
        elif sources:
            _wait_several(frame, until)
    except DeadlineExceededError as error:
        if until is not None and time.monotonic() >= until and until != own:
            return
        frame.complete(error)
        return
    except PumiceError as error:
        frame.complete(error)
        return
    except AttributeError:
        _check_sources(frame)
        raise
    frame.complete()


def _wait_several(frame: WaitFrame, until: float | None) -> None:
    outcome = threading.Event()
    failures: list[PumiceError] = []
    missing = 1 if frame.any else len(frame.sources)
    lock = threading.Lock()

    def callback(error: PumiceError | None) -> None:
        nonlocal missing
        with lock:
            missing -= 1
            # What came first counts: a failure behind enough ready sources is too late.
            if error is not None and not outcome.is_set():
                failures.append(error)
            if missing <= 0 or error is not None:
                outcome.set()

    armed: list[Cancellable] = []
    try:
        for source in frame.sources:
            armed.append(_armed(source, callback))
            if outcome.is_set():
                break
        if not outcome.wait(None if until is None else max(0.0, until - time.monotonic())):
            what = "none" if frame.any else f"{missing}"
            raise DeadlineExceededError(
                f"{what} of the {len(frame.sources)} sources waited for {'was' if frame.any else 'were not'} ready in time"
            )
    finally:
        for notification in armed:
            notification.cancel()
    if failures:
        raise failures[0]


def _armed(source: WaitSource, callback: Callable[[PumiceError | None], None]) -> Cancellable:
    notification = source.notify(callback)
    if not hasattr(notification, "cancel"):
        raise InvalidArgumentError(
            f"{type(source).__name__}.notify returned {type(notification).__name__}; it returns an object with cancel()"
        )
    return notification


def _check_sources(frame: WaitFrame) -> None:
    for position, source in enumerate(frame.sources):
        if not isinstance(source, WaitSource):
            raise InvalidArgumentError(
                f"source {position} of a Wait is {type(source).__name__}; a wait source has query(), wait_until(deadline) and "
                "notify(callback)"
            ) from None
