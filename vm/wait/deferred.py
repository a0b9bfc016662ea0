"""Deferred waits: a loop asks their source once more before it arms them.

Work of a device is often done by the time that its loop has nothing else to do. Then one query is enough, where an
armed callback has to wake the device's notifier and be woken by it. So a loop defers such a wait, runs what is
scheduled, and then asks once; what is not ready by then is armed. Only sources that say they answer ``query`` quickly
are deferred (``quick_query``).

Thread rule: ``look`` in the loop's thread; ``cancel`` from any.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ...notification import Notification
from ...status import PumiceError
from .frame import WaitFrame
from .waits import ArmedWait, arm_frame


def can_defer(frame: WaitFrame) -> bool:
    """Whether a frame waits for one source whose ``query`` is quick."""
    sources = frame.sources
    return len(sources) == 1 and getattr(type(sources[0]), "quick_query", False)


class DeferredWait(Notification):
    """A wait that is not armed yet. It ends in its callback, once, or is cancelled.

    The callback gets ``None`` with the outcome on the frame, or what kept the wait from being performed. ``schedule``
    has a callback called by the loop.
    """

    __slots__ = ("_armed", "_deadline", "_frame", "_schedule")

    def __init__(
        self,
        frame: WaitFrame,
        deadline: float | None,
        callback: Callable[[Exception | None], None],
        schedule: Callable[[Callable[[Exception | None], None]], None],
    ) -> None:
        super().__init__(callback)
        self._frame = frame
        self._deadline = deadline
        self._schedule = schedule
        self._armed: ArmedWait | None = None

    def look(self, *, query: bool = True) -> bool:
        """Asks the source, and arms it if it is not ready or was not to be asked; whether it was ready.

        The callback comes in this call where the source is ready or cannot be asked, else through the loop.
        """
        frame = self._frame
        ready = False
        failure: Exception | None = None
        if self.is_done:
            return False
        try:
            if query:
                ready = frame.sources[0].query()
            if not ready:
                self._armed = arm_frame(frame, self._deadline, lambda _: self._schedule(self.call))
                if self._callback is None:  # cancelled meanwhile
                    self._cancelled()
                return False
            frame.complete()
        except PumiceError as error:
            frame.complete(error)
        except Exception as error:
            failure = error
        self.call(failure)
        return True

    def _cancelled(self) -> None:
        if self._armed is not None:
            self._armed.cancel()


def look_at(waits: deque[DeferredWait]) -> None:
    """Looks at the waits deferred by now, in order.

    Work of a device mostly ends in the order it began: behind the first that is not ready nothing is asked any more.
    """
    ready = True
    for _ in range(len(waits)):
        ready = waits.popleft().look(query=ready)
