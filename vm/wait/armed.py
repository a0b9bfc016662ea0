"""Waits without a thread: several sources armed together, a deadline beside them, one callback.

``arm`` is what ``wait_invoke_async`` and loops wait by; with a thread that sleeps until the callback it is also the
blocking wait for several sources. Each source is armed by its own ``notify``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ...notification import Callback, JointNotification
from ...status import DeadlineExceededError, InternalError, InvalidArgumentError, PumiceError
from .frame import WaitFrame
from .futures import as_pumice_error, as_wait_source
from .source import WaitSource


class ArmedWait(JointNotification):
    """A wait that is under way: its callback comes exactly once, or never if it is cancelled first.

    The first failure is the outcome, unless enough sources were ready before.

    Args:
        count: how many sources there are.
        any: whether one of them is enough.
        callback: gets the outcome.
    """

    __slots__ = ("__weakref__", "_any", "_count")

    def __init__(self, count: int, any: bool, callback: Callback) -> None:
        super().__init__(callback, 1 if any else count)
        self._any = any
        self._count = count

    def arm_until(self, sources: Sequence[WaitSource], deadline: float | None) -> None:
        """``arm`` with a deadline, in ``time.monotonic()`` seconds."""
        self.arm(sources)
        if deadline is not None and self._callback is not None:
            if deadline <= time.monotonic():
                self._late()
                return
            from .reactor import Reactor

            self._add(Reactor.shared().call_at(deadline, self._late))

    def _one(self, error: object) -> None:
        # The source may be a user's, and call back with anything.
        super()._one(error if error is None or isinstance(error, PumiceError) else _stray(error))

    def _late(self, _: PumiceError | None = None) -> None:
        """The deadline has passed."""
        if self._callback is not None:
            self.call(DeadlineExceededError(self.describe()))

    def describe(self) -> str:
        """What is missing, for a message."""
        what = "none" if self._any else str(self._missing)
        if self._count == 1:
            return "the source waited for was not ready in time"
        return f"{what} of the {self._count} sources waited for {'was' if self._any else 'were not'} ready in time"


def arm(sources: Sequence[WaitSource], any: bool, deadline: float | None, callback: Callback) -> ArmedWait:
    """Calls back once all sources are ready, or one of them, or one failed, or the deadline passed.

    Args:
        sources: to be waited for.
        any: whether one is enough.
        deadline: ``time.monotonic()`` seconds, at which the callback gets DeadlineExceededError; ``None`` is never.
        callback: gets ``None`` or the error, in this call or in the thread that makes a source ready. It must not
            block.

    Raises:
        InvalidArgumentError: one of the sources is no wait source, or its ``notify`` returns nothing to cancel.
        BaseException: what a source's ``notify`` raised. The callback does not come then.
    """
    armed = ArmedWait(len(sources), any, callback)
    armed.arm_until(sources, deadline)
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
    """Replaces the futures among a frame's sources by wait sources; whether there were any.

    Raises:
        InvalidArgumentError: a source is neither.
    """
    sources = adapted(frame.sources)
    changed = sources is not frame.sources
    frame.sources = sources
    return changed


def adapted(sources: tuple[Any, ...]) -> tuple[WaitSource, ...]:
    """The same tuple if all are wait sources, else one in which they are."""
    result = []
    for position, source in enumerate(sources):
        try:
            result.append(as_wait_source(source))
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"source {position} of a Wait is {error.message}") from None
    if all(a is b for a, b in zip(result, sources, strict=True)):
        return sources
    return tuple(result)


def _stray(outcome: object) -> PumiceError:
    """The error for anything else that a source called back with."""
    if isinstance(outcome, BaseException):
        return as_pumice_error(outcome, "a wait source")
    return InternalError(f"a wait source called back with {type(outcome).__name__}; it does with None or a PumiceError")
