"""Callbacks that come once, or never if they are cancelled first: what ``notify`` of every wait source returns.

Thread rule: every method from any thread, and from signal handlers and finalizers: nothing here blocks. Callbacks run
with no lock held. They must not block; what one raises is logged and keeps no other from being called.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from ..status import InvalidArgumentError, PumiceError

_log = logging.getLogger("pumice.waits.notification")

Callback: TypeAlias = Callable[[PumiceError | None], object]
"""Gets ``None`` when what was waited for is ready, and the failure otherwise."""


@runtime_checkable
class Cancellable(Protocol):
    """An armed notification."""

    def cancel(self) -> bool:
        """Disarms it; ``False`` when the callback has been, or is being, called."""


class Notifies(Protocol):
    """The part of a wait source that arms callbacks."""

    def notify(self, callback: Callback, /) -> Cancellable:
        """Calls back once, perhaps before it returns."""


class Notification:
    """A callback that comes once, or never if it is cancelled first.

    Subclasses release what they hold in ``_cancelled``.
    """

    # That one caller takes the callback needs no lock: neither a thread switch nor a signal handler comes between plain
    # assignments.
    __slots__ = ("_callback",)

    def __init__(self, callback: Callback) -> None:
        self._callback: Callable[..., object] | None = callback

    @property
    def is_done(self) -> bool:
        """Whether it was cancelled, or its callback has been or is being called."""
        return self._callback is None

    def call(self, error: Exception | None = None) -> None:
        """Calls back, unless it was called or cancelled before."""
        callback, self._callback = self._callback, None
        if callback is not None:
            try:
                callback(error)
            except Exception:
                _log.exception("a notification's callback raised")

    def cancel(self) -> bool:
        """Disarms it; ``False`` when the callback has been, or is being, called."""
        callback, self._callback = self._callback, None
        if callback is None:
            return False
        self._cancelled()
        return True

    def _cancelled(self) -> None:
        """Called once, if it was cancelled before it was called."""


class JointNotification(Notification):
    """One callback for several sources: it comes when enough of them are ready, or with the first failure.

    What was armed for it is disarmed before the callback comes. Calling sequence: make it, then ``arm``.

    Args:
        callback: as for one source.
        missing: how many of the sources have to be ready.
    """

    __slots__ = ("_armed", "_missing")

    def __init__(self, callback: Callback, missing: int) -> None:
        super().__init__(callback)
        self._missing = missing
        self._armed: list[Cancellable] = []

    def arm(self, sources: Sequence[Notifies]) -> None:
        """Arms every source; with none of them the callback comes at once.

        Raises:
            InvalidArgumentError: a ``notify`` returns nothing to cancel.
            BaseException: what a source's ``notify`` raised. Everything is disarmed and the callback does not come.
        """
        try:
            for source in sources:
                armed = source.notify(self._one)
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
        """Adds what is to be disarmed at the end, which may have come meanwhile."""
        self._armed.append(armed)
        if self._callback is None:
            armed.cancel()  # the list that it is on may have been worked off
            self._cancelled()

    def _one(self, error: PumiceError | None) -> None:
        """One of the sources is ready, or failed."""
        self._missing -= 1
        if self._callback is not None and (error is not None or self._missing <= 0):
            self.call(error)

    def call(self, error: Exception | None = None) -> None:
        """Calls back, unless it was called or cancelled before."""
        self._cancelled()  # first: the callback may take long
        super().call(error)

    def _cancelled(self) -> None:
        armed, self._armed = self._armed, []
        for one in armed:
            one.cancel()
