"""Waits without a thread: several sources armed together, a deadline beside them, one callback.

``arm`` is what ``wait_invoke_async`` does, what loops wait by, and, with a thread that sleeps until the callback, what a blocking wait for
several sources is. Whatever mix of sources it is, each is told by its own means.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ...status import DeadlineExceededError, InternalError, InvalidArgumentError, PumiceError
from .frame import WaitFrame
from .futures import as_pumice_error, as_wait_source
from .latch import call_back
from .source import Cancellable, WaitSource

if TYPE_CHECKING:
    from .reactor import Watch

__all__ = ["ArmedWait", "adapt", "arm", "arm_frame"]

Callback: TypeAlias = Callable[[PumiceError | None], None]

# Held for a few assignments. Reentrant: a signal handler or a finalizer may end a wait in a thread that is in here.
_lock: Final = threading.RLock()


class ArmedWait:
    """A wait that is under way: its callback comes exactly once, or never if it is cancelled first.

    What was armed for it is disarmed as soon as the outcome is known. The first failure is the outcome, unless what was ready before was
    enough.
    """

    __slots__ = ("__weakref__", "_any", "_armed", "_callback", "_count", "_missing", "_timer")

    def __init__(self, count: int, any: bool, callback: Callback) -> None:
        self._callback: Callback | None = callback
        self._armed: list[Cancellable] = []
        self._timer: Watch | None = None
        self._any = any
        self._count = count
        self._missing = 1 if any else count

    @property
    def is_done(self) -> bool:
        """Whether it was cancelled, or its callback has been or is being called."""
        return self._callback is None

    def ready(self, outcome: object) -> None:
        """One of the sources is ready (``None``), or failed; it may be a user's, and so call with whatever."""
        error = outcome if outcome is None or isinstance(outcome, PumiceError) else _stray(outcome)
        with _lock:
            self._missing -= 1
            if self._callback is None or (self._missing > 0 and error is None):
                return
            callback, self._callback = self._callback, None
        self._disarm()
        call_back(callback, error)

    def late(self, _: PumiceError | None = None) -> None:
        """The deadline has passed."""
        with _lock:
            callback, self._callback = self._callback, None
        if callback is None:
            return
        self._disarm()
        call_back(callback, DeadlineExceededError(self.describe()))

    def describe(self) -> str:
        """What is missing, for a message."""
        what = "none" if self._any else str(self._missing)
        if self._count == 1:
            return "the source waited for was not ready in time"
        return f"{what} of the {self._count} sources waited for {'was' if self._any else 'were not'} ready in time"

    def cancel(self) -> bool:
        """Ends the wait without a callback; ``False`` when that has been, or is being, called."""
        with _lock:
            callback, self._callback = self._callback, None
        if callback is None:
            return False
        self._disarm()
        return True

    def _disarm(self) -> None:
        timer, self._timer = self._timer, None
        armed, self._armed = self._armed, []
        if timer is not None:
            timer.cancel()
        for one in armed:
            one.cancel()

    def start(self, sources: Sequence[WaitSource], deadline: float | None) -> None:
        """Arms everything; what a source raises in doing so is raised, with everything disarmed."""
        try:
            for source in sources:
                notification = _notify(source, self.ready)
                self._armed.append(notification)
                if self._callback is None:  # perhaps since before that one was on the list, which may be another by now
                    notification.cancel()
                    self._disarm()
                    return
            if not sources:
                self._missing = 1
                self.ready(None)
        except BaseException:
            self.cancel()
            raise
        if deadline is not None and self._callback is not None:
            if deadline <= time.monotonic():
                self.late()
                return
            from .reactor import Waiter

            self._timer = Waiter.shared().call_at(deadline, self.late)
        if self._callback is None:  # the outcome came while the last ones were armed
            self._disarm()


def arm(sources: Sequence[WaitSource], any: bool, deadline: float | None, callback: Callback) -> ArmedWait:
    """Calls back once all sources are ready, or one of them, or one failed, or the deadline passed.

    Args:
        sources: none of them is ready at once.
        any: whether one is enough.
        deadline: ``time.monotonic()`` seconds, at which the callback gets DeadlineExceededError; ``None`` is never.
        callback: gets ``None`` or the error; perhaps before this returns; otherwise in the thread of whoever is ready. It must not block.

    Raises:
        InvalidArgumentError: something among the sources is none, or its ``notify`` returns nothing to cancel.
        BaseException: what a source's ``notify`` raised. The callback does not come then.
    """
    armed = ArmedWait(len(sources), any, callback)
    armed.start(sources, deadline)
    return armed


def arm_frame(frame: WaitFrame, deadline: float | None, callback: Callback) -> ArmedWait:
    """``arm`` for a wait frame: the outcome is on the frame when the callback comes.

    Args:
        frame: of a suspended invocation.
        deadline: combined with the frame's own: the earlier one counts.
        callback: gets what is on the frame, ``None`` or the error.
    """
    own = frame.deadline
    until = own if deadline is None else deadline if own is None else min(own, deadline)

    def done(error: PumiceError | None) -> None:
        frame.complete(error)
        callback(error)

    try:
        return arm(frame.sources, frame.any, until, done)
    except AttributeError:
        if not adapt(frame):
            raise
    return arm(frame.sources, frame.any, until, done)


def adapt(frame: WaitFrame) -> bool:
    """Makes wait sources of what is none among a frame's sources; whether there was something to do.

    Raises:
        InvalidArgumentError: of one none can be made.
    """
    sources = adapted(frame.sources)
    changed = sources is not frame.sources
    frame.sources = sources
    return changed


def adapted(sources: tuple[Any, ...]) -> tuple[WaitSource, ...]:
    """The same tuple if all are wait sources, or one where they are."""
    result = []
    for position, source in enumerate(sources):
        try:
            result.append(as_wait_source(source))
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"source {position} of a Wait is {error.message}") from None
    if all(a is b for a, b in zip(result, sources, strict=True)):
        return sources
    return tuple(result)


def _notify(source: WaitSource, callback: Callback) -> Cancellable:
    notification = source.notify(callback)
    if not hasattr(notification, "cancel"):
        raise InvalidArgumentError(
            f"{type(source).__name__}.notify returned {type(notification).__name__}; it returns an object with cancel()"
        )
    return notification


def _stray(outcome: object) -> PumiceError:
    """What stands for something else than an error of pumice's that a source called back with."""
    if isinstance(outcome, BaseException):
        return as_pumice_error(outcome, "a wait source")
    return InternalError(f"a wait source called back with {type(outcome).__name__}; it does with None or a PumiceError")
