"""Callbacks that come once, or never if cancelled first: the results of every wait source's ``notify``.

Thread rule: every method from any thread, and from signal handlers and finalizers: nothing here blocks. Callbacks run
with no lock held and must not block; exceptions of a callback are logged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeAlias, runtime_checkable

from ..base.locks import RLock
from ..status import InvalidArgumentError, PumiceError

_log = logging.getLogger("pumice.waits.notification")

Callback: TypeAlias = Callable[[PumiceError | None], object]
"""Called with ``None`` when the source is ready, and with its failure otherwise."""

lock: Final = RLock()
"""One lock for all notifications and latches, held for a few assignments, so that ten thousand sources do not need ten
thousand locks. Reentrant, as a signal handler or a finalizer may settle a latch while its thread holds it.
"""


@runtime_checkable
class Cancellable(Protocol):
    """An armed notification."""

    def cancel(self) -> bool:
        """Disarms it; returns ``False`` if the callback was called, or is being called."""


class Notifies(Protocol):
    """The part of a wait source that arms callbacks."""

    def notify(self, callback: Callback, /) -> Cancellable:
        """Calls back once, perhaps before it returns."""


class Notification:
    """A callback that comes once, or never if it is cancelled first.

    Subclasses release their resources in ``_ended``.
    """

    __slots__ = ("_callback",)

    def __init__(self, callback: Callback) -> None:
        self._callback: Callable[..., object] | None = callback

    @property
    def is_done(self) -> bool:
        """Whether it was cancelled, or its callback was called or is being called."""
        return self._callback is None

    def call(self, error: Exception | None = None) -> None:
        """Calls back, unless it was called or cancelled before."""
        callback = None
        try:
            with lock:
                callback, self._callback = self._callback, None
            if callback is not None:
                self._ended(is_cancelled=False)
        finally:  # an interrupt (Ctrl-C) leaves no thread waiting
            if callback is not None:
                try:
                    callback(error)
                except Exception:
                    _log.exception("a notification's callback raised")

    def cancel(self) -> bool:
        """Disarms it; returns ``False`` if the callback was called, or is being called."""
        with lock:
            callback, self._callback = self._callback, None
        if callback is None:
            return False
        self._ended(is_cancelled=True)
        return True

    def _ended(self, *, is_cancelled: bool) -> None:
        """Called once, when it is cancelled or immediately before its callback is called."""


class JointNotification(Notification):
    """One callback for several sources: it comes when enough of them are ready, or with the first failure.

    The sources' own notifications are cancelled before the callback comes. Calling sequence: make it, then ``arm``.

    Args:
        callback: the callback, as for one source.
        missing: the number of sources that must be ready.
    """

    __slots__ = ("_armed", "_missing")

    def __init__(self, callback: Callback, missing: int) -> None:
        super().__init__(callback)
        self._missing = missing
        self._armed: list[Cancellable] = []

    def arm(self, sources: Sequence[Notifies]) -> None:
        """Arms every source; without sources the callback comes immediately.

        Raises:
            InvalidArgumentError: a ``notify`` returns nothing to cancel.
            BaseException: a source's ``notify`` raised it. Everything is disarmed and the callback does not come.
        """
        try:
            for source in sources:
                armed = source.notify(self._source_ended)
                if not hasattr(armed, "cancel"):
                    raise InvalidArgumentError(
                        f"{type(source).__name__}.notify returned {type(armed).__name__}; it returns an object with "
                        "cancel()"
                    )
                self._add(armed)
                if self._callback is None:
                    return
        except BaseException:
            self.cancel()
            raise
        if not sources:
            self.call()

    def _add(self, armed: Cancellable) -> None:
        """Adds a notification to cancel at the end, or cancels it if the end has come."""
        with lock:
            self._armed.append(armed)
            is_done = self._callback is None
        if is_done:
            armed.cancel()

    def _source_ended(self, error: PumiceError | None) -> None:
        """Counts a source that is ready; ends with the last one or a failure."""
        with lock:
            self._missing -= 1
            is_over = error is not None or self._missing <= 0
        if is_over:
            self.call(error)

    def _ended(self, *, is_cancelled: bool) -> None:
        with lock:
            armed, self._armed = self._armed, []
        for notification in armed:
            notification.cancel()
