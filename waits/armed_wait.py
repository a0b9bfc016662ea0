"""Waits for one source or several, with a deadline: by a callback, or blocking.

``arm`` arms each source by its own ``notify``, and one callback gets the outcome. A blocking wait for one source is its
``wait_until``. Several sources are armed together and the thread sleeps until the callback, so a failure is known
immediately, however long the other sources take.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from ..status import DeadlineExceededError, InternalError, InvalidArgumentError, PumiceError
from .futures import as_pumice_error, as_wait_source
from .notification import Callback, JointNotification
from .source import LONGEST_WAIT, WaitSource, block
from .wait_frame import WaitFrame


class ArmedWait(JointNotification):
    """A wait in progress: its callback comes exactly once, or never if it is cancelled first.

    The first failure is the outcome, unless enough of the ``count`` sources were ready before; with ``any`` one source
    is enough.
    """

    __slots__ = ("__weakref__", "_any", "_count")

    def __init__(self, count: int, any: bool, callback: Callback) -> None:
        super().__init__(callback, 1 if any else count)
        self._any = any
        self._count = count

    def _source_ended(self, error: object) -> None:
        # The source may be a user's, which may call back with any value.
        if isinstance(error, BaseException):
            error = as_pumice_error(error, "a wait source")
        elif error is not None:
            kind = type(error).__name__
            error = InternalError(f"a wait source called back with {kind}; it does with None or a PumiceError")
        super()._source_ended(error)

    def arm_deadline(self, deadline: float) -> None:
        """Ends the wait at ``time.monotonic()`` seconds, unless it is over by then."""
        if self._callback is None:
            return
        if deadline <= time.monotonic():
            self._late()
            return
        from .poll_thread import PollThread

        self._add(PollThread.shared().call_at(deadline, self._late))

    def _late(self, _: PumiceError | None = None) -> None:
        if self._callback is not None:
            self.call(DeadlineExceededError(self.describe()))

    def describe(self) -> str:
        """Describes the missing sources, for a message."""
        kind = "none" if self._any else str(self._missing)
        if self._count == 1:
            return "the source waited for was not ready in time"
        return f"{kind} of the {self._count} sources waited for {'was' if self._any else 'were not'} ready in time"


def arm(sources: Sequence[WaitSource], any: bool, deadline: float | None, callback: Callback) -> ArmedWait:
    """Calls back once all sources (or with ``any`` one) are ready, one failed, or the deadline passed.

    The callback gets ``None`` or the error, in this call or in the thread that makes a source ready. It must not block.

    Raises:
        InvalidArgumentError: one of the sources is not a wait source, or its ``notify`` returns nothing to cancel.
        BaseException: a source's ``notify`` raised it. The callback does not come then.
    """
    armed = ArmedWait(len(sources), any, callback)
    armed.arm(sources)
    if deadline is not None:
        armed.arm_deadline(deadline)
    return armed


def arm_frame(frame: WaitFrame, deadline: float | None, callback: Callback) -> ArmedWait:
    """Arms a wait frame, which has the outcome when the callback comes. The earlier deadline counts."""

    def done(error: PumiceError | None) -> None:
        frame.complete(error)
        callback(error)

    try:
        return arm(frame.sources, frame.any, frame.until(deadline), done)
    except AttributeError:
        if not _adapt(frame):
            raise
    return arm(frame.sources, frame.any, frame.until(deadline), done)


def _adapt(frame: WaitFrame) -> bool:
    """Replaces the futures among a frame's sources by wait sources; returns whether there were any.

    Raises:
        InvalidArgumentError: a source is neither a wait source nor a future.
    """
    sources = frame.sources
    adapted = []
    for position, source in enumerate(sources):
        try:
            adapted.append(as_wait_source(source))
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"source {position} of a Wait is {error.message}") from None
    frame.sources = tuple(adapted)
    return not all(a is b for a, b in zip(adapted, sources, strict=True))


def perform_wait(frame: WaitFrame, deadline: float | None) -> None:
    """Blocks until the frame's wait is over or the caller's deadline passes.

    The outcome is stored on the frame: ready, a source's failure, or the frame's deadline passed. If the caller's
    deadline passes first, the frame is not done and can be waited for again.

    Raises:
        InvalidArgumentError: one of the sources is not a wait source.
        BaseException: a source raised an error that is not pumice's, or a signal handler raised one
            (KeyboardInterrupt).
    """
    until = frame.until(deadline)
    if until is not None and until - time.monotonic() > LONGEST_WAIT:
        until = None
    sources = frame.sources
    try:
        if len(sources) == 1:
            sources[0].wait_until(until)
        elif sources:
            wait_several(sources, frame.any, until)
    except DeadlineExceededError as error:
        if until is None or time.monotonic() < until or until == frame.deadline:
            frame.complete(error)
    except PumiceError as error:
        frame.complete(error)
    except AttributeError:
        if not _adapt(frame):
            raise
        perform_wait(frame, deadline)
    else:
        frame.complete()


def wait_several(sources: Sequence[WaitSource], any: bool, until: float | None) -> None:
    """Blocks until all sources are ready, or one with ``any``; raises the first failure, or DeadlineExceededError."""
    late = block(lambda callback: arm(sources, any, None, callback), until)
    if late is not None:
        raise DeadlineExceededError(late.describe())
