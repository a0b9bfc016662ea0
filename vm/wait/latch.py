"""Latches: the common part of wait sources that become ready by a call instead of a device.

Thread rule: every method from any thread, and from signal handlers. Callbacks run in the thread that settles the latch,
or in ``notify`` where it is settled already.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from typing import Any, Final

from ...awaiting import await_source
from ...notification import Callback, Notification
from ...status import DeadlineExceededError, PumiceError

# One lock for all latches, held for a few assignments: ten thousand sources need no ten thousand locks. Reentrant, as a
# signal handler may settle a latch while its thread holds it.
_lock: Final = threading.RLock()


class _LatchNotification(Notification):
    """One callback armed on a latch."""

    __slots__ = ("_latch",)

    def __init__(self, latch: Latch, callback: Callback) -> None:
        super().__init__(callback)
        self._latch = latch

    def _cancelled(self) -> None:
        with _lock:
            self._latch._drop(self)
        self._latch._disarmed()


class Latch:
    """A wait source that is settled once: ready, or failed.

    Subclasses whose readiness comes from elsewhere override ``_armed``, which is called for each callback that is
    armed, and ``_poll``, which looks.
    """

    __slots__ = ("__weakref__", "_error", "_notifications", "_settled")

    def __init__(self) -> None:
        self._settled = False
        self._error: PumiceError | None = None
        # None, one, or several by identity: most have one at most.
        self._notifications: _LatchNotification | dict[_LatchNotification, None] | None = None

    # -- for subclasses ------------------------------------------------------------------------------

    def _armed(self) -> None:
        """A callback was armed: make sure that ``settle`` is called. May be called again."""

    def _disarmed(self) -> None:
        """A callback was cancelled."""

    def _poll(self) -> None:
        """Calls ``settle`` if it is ready now."""

    # -- state ---------------------------------------------------------------------------------------

    def settle(self, error: PumiceError | None = None) -> bool:
        """Makes it ready, or failed; ``False`` and no change if it is settled already."""
        with _lock:
            if self._settled:
                return False
            self._error = error
            self._settled = True
            notifications, self._notifications = self._notifications, None
        if notifications is not None:
            for one in (notifications,) if isinstance(notifications, _LatchNotification) else tuple(notifications):
                one.call(error)
        return True

    @property
    def is_settled(self) -> bool:
        """Whether it is ready or failed."""
        return self._settled

    @property
    def failure(self) -> PumiceError | None:
        """What it failed with, or ``None``."""
        return self._error

    @property
    def has_listeners(self) -> bool:
        """Whether a callback is armed."""
        return bool(self._notifications)

    def _drop(self, notification: _LatchNotification) -> None:
        if self._notifications is notification:
            self._notifications = None
        elif isinstance(self._notifications, dict):
            self._notifications.pop(notification, None)

    # -- the wait source -----------------------------------------------------------------------------

    def query(self) -> bool:
        """Whether it is ready now. Raises its failure."""
        if not self._settled:
            self._poll()
        if self._error is not None:
            raise self._error.again()
        return self._settled

    def wait_until(self, deadline: float | None = None) -> None:
        """Blocks until ready.

        Args:
            deadline: ``time.monotonic()`` seconds; ``None`` is never.

        Raises:
            DeadlineExceededError: the deadline passed first.
            PumiceError: its failure.
        """
        if not self.query():
            done = threading.Event()
            notification = self.notify(lambda _: done.set())
            try:
                timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
                if timeout is not None and timeout > threading.TIMEOUT_MAX:
                    timeout = None
                if not done.wait(timeout) and not self.query():
                    raise DeadlineExceededError(f"{self!r} was not ready in time; it can be waited for again")
            finally:
                notification.cancel()
        if self._error is not None:
            raise self._error.again()

    def notify(self, callback: Callback) -> Notification:
        """Calls back once, when it is ready or failed, perhaps before this returns. Blocks nothing."""
        notification = _LatchNotification(self, callback)
        with _lock:
            settled = self._settled
            if not settled:
                held = self._notifications
                if held is None:
                    self._notifications = notification
                elif isinstance(held, dict):
                    held[notification] = None
                else:
                    self._notifications = {held: None, notification: None}
        if not settled:
            self._armed()
        else:
            notification.call(self._error)
        return notification

    def __await__(self) -> Generator[Any, Any, Any]:
        return await_source(self)

    def __repr__(self) -> str:
        state = "pending" if not self._settled else "ready" if self._error is None else f"failed: {self._error}"
        return f"<{type(self).__name__}, {state}>"
