"""What settles once: the common part of all wait sources that become ready by a call instead of a device.

Thread rule: every method from any thread, and from signal handlers. Callbacks run in the thread that settles it, or in ``notify`` where it is
settled already, with no lock held; they must not block. What one raises is logged and keeps nobody else from being called.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator
from typing import Any, Final

from ...awaiting import await_source
from ...status import DeadlineExceededError, PumiceError

__all__ = ["Latch", "call_back"]

_log = logging.getLogger("pumice.vm")

# One for all of them, held for a few assignments: ten thousand sources need no ten thousand locks. Reentrant, as a signal handler may
# settle one while its thread is in here.
_lock: Final = threading.RLock()

Callback = Callable[[PumiceError | None], None]


def call_back(callback: Callback, error: PumiceError | None) -> None:
    """Calls a callback; what it raises is logged."""
    try:
        callback(error)
    except Exception:
        _log.exception("a callback of a wait source raised")


class LatchNotification:
    """One armed callback."""

    __slots__ = ("_callback", "_latch")

    def __init__(self, latch: Latch, callback: Callback) -> None:
        self._latch: Latch | None = latch
        self._callback: Callback | None = callback

    def take(self) -> Callback | None:
        """The callback, the first time it is asked for."""
        with _lock:
            callback, self._callback = self._callback, None
            self._latch = None
        return callback

    def cancel(self) -> bool:
        """Disarms it; ``False`` when the callback has been, or is being, called."""
        with _lock:
            if self._callback is None:
                return False
            latch, self._callback, self._latch = self._latch, None, None
            assert latch is not None
            latch._drop(self)
        latch._disarmed()
        return True


class Latch:
    """A wait source that is settled once: ready, or failed.

    Subclasses whose readiness comes from elsewhere override ``_armed``, which is called when somebody first wants to be told, and
    ``_poll``, which looks.
    """

    __slots__ = ("__weakref__", "_error", "_notifications", "_settled")

    def __init__(self) -> None:
        self._settled = False
        self._error: PumiceError | None = None
        # None, one, or several by identity: most have one at most.
        self._notifications: LatchNotification | dict[LatchNotification, None] | None = None

    # -- for subclasses ------------------------------------------------------------------------------

    def _armed(self) -> None:
        """Somebody wants to be told: see to it that ``settle`` is called. May be called again."""

    def _disarmed(self) -> None:
        """Somebody does not want to be told any more."""

    def _poll(self) -> None:
        """Calls ``settle`` if what stands behind it is ready."""

    # -- state ---------------------------------------------------------------------------------------

    def settle(self, error: PumiceError | None = None) -> bool:
        """Makes it ready, or failed; ``False`` if it was settled before, which stands."""
        with _lock:
            if self._settled:
                return False
            self._error = error
            self._settled = True
            notifications, self._notifications = self._notifications, None
        if notifications is not None:
            for one in (notifications,) if isinstance(notifications, LatchNotification) else tuple(notifications):
                if callback := one.take():
                    call_back(callback, error)
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
        """Whether somebody wants to be told."""
        return bool(self._notifications)

    def _drop(self, notification: LatchNotification) -> None:
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
            deadline: ``time.monotonic()`` seconds; ``None`` is for ever.

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

    def notify(self, callback: Callback) -> LatchNotification:
        """Calls back once, when it is ready or failed, perhaps before this returns. Blocks nothing."""
        notification = LatchNotification(self, callback)
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
        elif taken := notification.take():
            call_back(taken, self._error)
        return notification

    def __await__(self) -> Generator[Any, Any, Any]:
        return await_source(self)

    def __repr__(self) -> str:
        state = "pending" if not self._settled else "ready" if self._error is None else f"failed: {self._error}"
        return f"<{type(self).__name__}, {state}>"
