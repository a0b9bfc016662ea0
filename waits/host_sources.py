"""Host-side wait sources: events, times, file descriptors, and any or all of several sources.

Each class is a ``WaitSource`` (source.py), for native functions that return a ``Wait`` on it, and for ``await``.
Futures are in futures.py. Thread rule: every method from any thread.
"""

from __future__ import annotations

import selectors
import time
from typing import TYPE_CHECKING, Any

from ..status import DeadlineExceededError, InvalidArgumentError, PumiceError
from .armed_wait import ArmedWait, arm
from .futures import as_pumice_error, as_wait_source
from .latch import Latch
from .notification import Callback, Notification
from .source import Source

if TYPE_CHECKING:
    from .source import WaitSource


class Event(Latch):
    """Ready once it is set.

    >>> event = Event()
    >>> event.set()
    """

    __slots__ = ()

    def set(self) -> None:
        """Makes it ready; no change if it is ready or failed already."""
        self.settle()

    def fail(self, error: PumiceError | BaseException) -> None:
        """Makes it failed; no change if it is ready or failed already. Foreign errors become UnknownError."""
        self.settle(as_pumice_error(error, "the event"))

    def is_set(self) -> bool:
        """Whether it is ready; raises its failure."""
        return self.query()


class Delay(Source):
    """Ready when a time has passed.

    Args:
        seconds: the seconds from now.

    Raises:
        InvalidArgumentError: the argument is not a number.
    """

    __slots__ = ("when",)

    def __init__(self, seconds: float) -> None:
        value: object = seconds
        try:
            when = float("nan") if isinstance(value, (str, bytes, bool)) else time.monotonic() + float(seconds)
        except (TypeError, ValueError, OverflowError):
            when = float("nan")
        if when != when:
            raise InvalidArgumentError(f"a Delay takes a number of seconds, got {seconds!r}")
        self.when: float = when
        """``time.monotonic()`` seconds at which it is ready."""

    def query(self) -> bool:
        """Whether the time has passed."""
        return time.monotonic() >= self.when

    def wait_until(self, deadline: float | None = None) -> None:
        """Sleeps until the source is ready; raises DeadlineExceededError if ``deadline`` comes first."""
        until = self.when if deadline is None else min(self.when, deadline)
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 1e6))
        if not self.query():
            raise DeadlineExceededError(f"{self!r} was not ready in time; it can be waited for again")

    def notify(self, callback: Callback) -> Notification:
        """Calls back once the time has passed, on the poll thread."""
        from .poll_thread import PollThread  # imported here: most programs use no timers

        return PollThread.shared().call_at(self.when, callback)

    def __repr__(self) -> str:
        return f"<Delay, {max(0.0, self.when - time.monotonic()):.3g} s left>"


class FileReady(Latch):
    """Ready once a file descriptor can be read or written: an eventfd, a pipe, a socket, …

    Once ready it stays ready, even after reads from the descriptor.

    Args:
        file: a descriptor, or an object with ``fileno()``, which is kept alive. It must stay open.
        read, write: whether to wait for reading and for writing; with both, either is enough.

    Raises:
        InvalidArgumentError: there is no descriptor, or nothing to wait for. A descriptor that cannot be waited for
            fails the source.
    """

    __slots__ = ("_events", "_file", "_watch", "descriptor")

    def __init__(self, file: Any, *, read: bool = True, write: bool = False) -> None:
        super().__init__()
        self._watch: Notification | None = None
        try:
            descriptor = file if isinstance(file, int) else file.fileno()
        except (AttributeError, OSError, ValueError) as error:
            raise InvalidArgumentError(
                f"FileReady takes a file descriptor or an object that has one, got {file!r}: {error}"
            ) from None
        if not isinstance(descriptor, int) or isinstance(descriptor, bool) or descriptor < 0:
            raise InvalidArgumentError(f"a file descriptor is an int of at least 0, got {descriptor!r}")
        if not (read or write):
            raise InvalidArgumentError("FileReady waits for read, write or both; got neither")
        self._file = file
        self._events = (selectors.EVENT_READ if read else 0) | (selectors.EVENT_WRITE if write else 0)
        self.descriptor: int = descriptor

    def _poll(self) -> None:
        with selectors.DefaultSelector() as selector:
            try:
                selector.register(self.descriptor, self._events)
            except PermissionError:  # epoll's answer for regular files, which are always ready
                self.settle()
                return
            except (OSError, ValueError) as error:
                self.settle(InvalidArgumentError(f"file descriptor {self.descriptor} cannot be waited for: {error}"))
                return
            if selector.select(0):
                self.settle()

    def _armed(self) -> None:
        from .poll_thread import PollThread  # imported here: most programs wait for no descriptors

        if self._watch is None or self._watch.is_done:
            self._watch = PollThread.shared().watch(self.descriptor, self._events, self.settle)

    def _disarmed(self) -> None:
        watch = self._watch
        if watch is not None and not self.has_listeners:
            watch.cancel()


class _Several(Source):
    """The common part of ``AnyOf`` and ``AllOf``."""

    __slots__ = ("sources",)
    _any = False

    def __init__(self, *sources: Any) -> None:
        self.sources: tuple[WaitSource, ...] = tuple(as_wait_source(source) for source in sources)

    def notify(self, callback: Callback) -> ArmedWait:
        """Calls back once, when it is ready or failed."""
        return arm(self.sources, self._any, None, callback)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.sources)}>"


class AnyOf(_Several):
    """Ready when one of its sources is ready; failed if one fails before. Without sources it is ready immediately.

    Args:
        sources: the wait sources, or values that ``as_wait_source`` takes.
    """

    __slots__ = ()
    _any = True

    def query(self) -> bool:
        """Whether a source is ready now; raises the first failure met."""
        return not self.sources or True in [source.query() for source in self.sources]


class AllOf(_Several):
    """Ready when all of its sources are ready; failed as soon as one fails. Without sources it is ready immediately.

    Args:
        sources: the wait sources, or values that ``as_wait_source`` takes.
    """

    __slots__ = ()

    def query(self) -> bool:
        """Whether all are ready now; raises the first failure met, even after a source that is not ready."""
        return False not in [source.query() for source in self.sources]
