"""Deferred waits: a loop polls their source before it arms a callback.

Work of a device is often done by the time that its loop has nothing else to do, or soon after. Then a few queries are
enough, whereas an armed callback must wake the device's poll thread and be woken by it. So a loop defers such a wait,
runs scheduled callbacks, and then queries the source: once, and again as long as the source considers polling
worthwhile (``look``). Sources that are not ready by then are armed. Only sources with ``quick_query`` are deferred.

Thread rule: ``look_at`` in the loop's thread; ``cancel`` from any.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import monotonic

from ..status import PumiceError
from .armed_wait import ArmedWait, arm_frame
from .notification import Notification, lock
from .wait_frame import WaitFrame
from .wait_mode import Look, WaitMode, give_way


def can_defer(frame: WaitFrame) -> bool:
    """Whether a frame waits for one source whose ``query`` is quick."""
    sources = frame.sources
    return len(sources) == 1 and getattr(type(sources[0]), "quick_query", False)


class DeferredWait(Notification):
    """A wait that is not armed yet. It ends in its callback, once, or is cancelled.

    The callback gets ``None`` with the outcome on the frame, or the error that kept the wait from being performed.
    ``schedule`` makes the loop call a callback.
    """

    __slots__ = ("_armed", "_began", "_deadline", "_failure", "_frame", "_look", "_mode", "_schedule", "_until")

    def __init__(
        self,
        frame: WaitFrame,
        deadline: float | None,
        callback: Callable[[Exception | None], None],
        schedule: Callable[[Callable[[Exception | None], None]], None],
        mode: WaitMode | None = None,
    ) -> None:
        self._callback = callback
        self._frame = frame
        self._deadline = deadline
        self._schedule = schedule
        self._mode = mode
        self._failure: Exception | None = None
        self._armed: ArmedWait | None = None
        self._look: Look | None = None
        self._began = self._until = 0.0

    def is_over(self) -> bool:
        """Whether its source is ready or failed, or it was cancelled; the outcome is on the frame."""
        if self._callback is None:
            return True
        frame = self._frame
        try:
            if not frame.sources[0].query():
                return False
            frame.complete()
        except PumiceError as error:
            frame.complete(error)
        except Exception as error:
            self._failure = error
        if self._look is not None:
            self._look.found(monotonic() - self._began)
        return True

    def end(self) -> None:
        """Calls back, once it is over."""
        self.call(self._failure)

    def begin_look(self) -> bool:
        """Returns whether polling is worthwhile, and sets its duration."""
        look = getattr(self._frame.sources[0], "look", None)
        if look is not None and self._look is None:
            self._look = polling = look(self._mode)
            if polling is not None:
                self._began = now = monotonic()
                self._until = now + polling.length(now)
        return self._look is not None

    def goes_on(self) -> bool:
        """Returns whether to continue polling."""
        now = monotonic()
        if now < self._until and (self._deadline is None or now < self._deadline):
            return True
        assert self._look is not None
        self._look.missed(now - self._began)
        return False

    def arm(self) -> None:
        """Arms the source, whose callback ends it in the loop."""
        if self._callback is None:
            return
        try:
            armed = arm_frame(self._frame, self._deadline, lambda _: self._schedule(self.call))
        except Exception as error:
            self.call(error)
            return
        with lock:
            self._armed = armed
            is_done = self.is_done
        if is_done:  # cancelled meanwhile
            armed.cancel()

    def _ended(self, *, is_cancelled: bool) -> None:
        with lock:
            armed = self._armed
        if is_cancelled and armed is not None:
            armed.cancel()


def look_at(waits: deque[DeferredWait]) -> bool:
    """Polls the deferred waits, in order; returns whether to poll again when the loop is idle.

    Work of a device mostly ends in the order in which it began, so waits after the first unfinished wait are not
    queried. When polling for that wait ends, all are armed.
    """
    for _ in range(len(waits)):
        first = waits[0]
        if not first.is_over():
            if not first.begin_look():
                break
            give_way()  # the driver's thread may be waiting for this core
            if not first.is_over():
                if first.goes_on():
                    return True
                break
        waits.popleft()
        first.end()
    else:
        return bool(waits)
    for _ in range(len(waits)):
        waits.popleft().arm()
    return False
