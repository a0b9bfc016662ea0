"""Latches: the common part of wait sources that a call makes ready, instead of a device.

Thread rule: every method from any thread, and from signal handlers. Callbacks run in the thread that settles the latch,
or in ``notify`` if it is already settled.
"""

from __future__ import annotations

from ..status import PumiceError
from .notification import Callback, Notification, lock
from .source import Source


class _LatchNotification(Notification):
    """One callback armed on a latch."""

    __slots__ = ("_latch",)

    def __init__(self, latch: Latch, callback: Callback) -> None:
        super().__init__(callback)
        self._latch = latch

    def _ended(self, *, is_cancelled: bool) -> None:
        if is_cancelled:
            with lock:
                if self._latch._notifications is not None:
                    self._latch._notifications.pop(self, None)
            self._latch._disarmed()


class Latch(Source):
    """A wait source that is settled once: ready, or failed.

    Subclasses whose readiness comes from elsewhere override ``_armed`` and ``_poll``.

    Attributes:
        is_settled: whether it is ready or failed.
    """

    __slots__ = ("__weakref__", "_error", "_notifications", "is_settled")

    def __init__(self) -> None:
        self.is_settled: bool = False
        self._error: PumiceError | None = None
        self._notifications: dict[_LatchNotification, None] | None = None  # in order

    # -- for subclasses ------------------------------------------------------------------------------

    def _armed(self) -> None:
        """Makes sure that ``settle`` will be called. Called for each armed callback."""

    def _disarmed(self) -> None:
        """Called when a callback was cancelled."""

    def _poll(self) -> None:
        """Calls ``settle`` if it is ready now."""

    # -- state ---------------------------------------------------------------------------------------

    def settle(self, error: PumiceError | None = None) -> bool:
        """Makes it ready, or failed; does nothing and returns ``False`` if it is already settled."""
        with lock:
            if self.is_settled:
                return False
            self._error = error
            self.is_settled = True
            notifications, self._notifications = self._notifications, None
        if notifications is not None:
            for notification in notifications:
                notification.call(error)
        return True

    @property
    def has_listeners(self) -> bool:
        """Whether a callback is armed."""
        return bool(self._notifications)

    # -- the wait source -----------------------------------------------------------------------------

    def query(self) -> bool:
        """Whether it is ready now. Raises its failure."""
        if not self.is_settled:
            self._poll()
        if self._error is not None:
            raise self._error.again()
        return self.is_settled

    def notify(self, callback: Callback) -> Notification:
        """Calls back once, when it is ready or failed, perhaps before this returns. Blocks nothing."""
        notification = _LatchNotification(self, callback)
        with lock:
            settled = self.is_settled
            if not settled:
                if self._notifications is None:
                    self._notifications = {}
                self._notifications[notification] = None
        if not settled:
            self._armed()
        else:
            notification.call(self._error)
        return notification

    def __repr__(self) -> str:
        state = "pending" if not self.is_settled else "ready" if self._error is None else f"failed: {self._error}"
        return f"<{type(self).__name__}, {state}>"
