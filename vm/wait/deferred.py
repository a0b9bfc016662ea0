"""Waits that are looked at once more before they are armed.

Work of a device is often done by the time that its loop has nothing else to do: then asking is all it takes, where arming a callback means to
wake the device's notifier, and to be woken by it. So a loop puts such a wait aside, goes on with what is scheduled, and looks behind
that, once; what is not ready then is armed. Only sources that say they answer ``query`` quickly are put aside (``quick_query``).

Thread rule: ``look`` in the loop's thread; ``cancel`` from any.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from ...status import DeadlineExceededError, PumiceError
from .armed import ArmedWait, arm_frame
from .frame import WaitFrame

__all__ = ["LateWait", "can_wait_late", "look_at"]

# Held for a few assignments. Reentrant, as finalizers may cancel.
_lock: Final = threading.RLock()


def can_wait_late(frame: WaitFrame) -> bool:
    """Whether a frame waits for one source whose ``query`` is quick."""
    sources = frame.sources
    return len(sources) == 1 and getattr(type(sources[0]), "quick_query", False)


class LateWait:
    """A wait that was put aside. It ends in its callback, once, or is cancelled."""

    __slots__ = ("_armed", "_callback", "_deadline", "_frame", "_schedule")

    def __init__(
        self,
        frame: WaitFrame,
        deadline: float | None,
        callback: Callable[[Exception | None], None],
        schedule: Callable[[Callable[[Exception | None], None]], None],
    ) -> None:
        self._frame = frame
        self._deadline = deadline
        self._callback: Callable[[Exception | None], None] | None = callback
        self._schedule = schedule
        self._armed: ArmedWait | None = None

    @property
    def is_done(self) -> bool:
        """Whether it was cancelled, or its callback has been or is being called."""
        return self._callback is None

    def look(self, *, query: bool = True) -> bool:
        """Asks the source, and arms it if it is not ready; whether it was.

        The callback comes in this call where the source is ready or cannot be asked, and is scheduled on the loop where it gets ready later.

        Args:
            query: whether to ask; it is armed at once otherwise.
        """
        frame = self._frame
        ready = False
        failure: Exception | None = None
        if self._callback is None:
            return False
        try:
            if query:
                ready = frame.sources[0].query()
            if not ready:
                armed = arm_frame(frame, self._deadline, self._later)
                with _lock:
                    self._armed = armed
                    cancelled = self._callback is None
                if cancelled:
                    armed.cancel()
                return False
            frame.complete()
        except DeadlineExceededError as error:  # the source's own
            frame.complete(error)
        except PumiceError as error:
            frame.complete(error)
        except Exception as error:
            failure = error
        if callback := self._take():
            callback(failure)
        return True

    def _later(self, _: PumiceError | None) -> None:
        self._schedule(self._end)

    def _end(self, ended: Exception | None) -> None:
        if callback := self._take():
            callback(ended)

    def _take(self) -> Callable[[Exception | None], None] | None:
        with _lock:
            callback, self._callback = self._callback, None
        return callback

    def cancel(self) -> bool:
        """Ends it without the callback; ``False`` when that has been, or is being, called."""
        with _lock:
            taken, self._callback = self._callback is not None, None
            armed = self._armed
        if armed is not None:
            armed.cancel()
        return taken


def look_at(waits: deque[LateWait]) -> None:
    """Looks at what was put aside by now, in order.

    Work of a device ends in the order it began, mostly: behind the first that is not ready nothing is asked any more.
    """
    ready = True
    for _ in range(len(waits)):
        ready = waits.popleft().look(query=ready)
