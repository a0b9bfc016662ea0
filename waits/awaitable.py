"""``await`` on a wait source: in asyncio coroutines, and in native functions that are coroutines.

The driver of a native coroutine sets ``driving``: then ``await`` yields the source to it, and the invocation suspends.
Otherwise the source is first polled, if it answers quickly, and then a callback resumes the running asyncio loop.
Nothing blocks.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from ..base.locks import RLock
from ..status import FailedPreconditionError, PumiceError
from .notification import Callback
from .wait_mode import Look, WaitMode, give_way

if TYPE_CHECKING:  # programs start sooner without this import
    import asyncio


class Driving(threading.local):
    """The number of native coroutines that this thread is stepping."""

    depth: int = 0


driving: Driving = Driving()


def look_for(
    source: Any, mode: WaitMode | None = None, deadline: float | None = None, ended: Callable[[], object] = bool
) -> Generator[None, None, bool]:
    """Polls a source that was not ready, between the other callbacks of an asyncio loop.

    Args:
        source: a wait source with ``quick_query``; it is polled only if it has ``look``.
        mode: the wait mode; ``None`` means the device's mode.
        deadline: the ``monotonic()`` seconds at which to stop.
        ended: a function that returns whether to stop, called at each poll.

    Returns:
        Whether the source is ready, or ``ended`` returned true. Raises its failure.
    """
    look = getattr(source, "look", None)
    looks: Look | None = None if look is None else look(mode)
    if looks is None:
        return False
    began = now = monotonic()
    until = now + looks.length(now)
    until = until if deadline is None else min(until, deadline)
    while now < until:
        yield
        give_way()  # the driver's thread may be waiting for this core
        if ended() or source.query():
            looks.found(monotonic() - began)
            return True
        now = monotonic()
    looks.missed(now - began)
    return False


_LONGEST_GATHERED: Final = 0.005  # seconds; about as long as a busy thread keeps the interpreter


class _Mailbox:
    """Outcomes that other threads post for the coroutines of one asyncio loop.

    A thread that gathers wake-ups (``gather_wakes``) may run long code before it wakes the loop. So if several
    coroutines wait for such threads, the loop checks its mailbox every few milliseconds; a single coroutine is woken
    immediately.
    """

    __slots__ = ("_due", "_is_called", "_is_watched", "_lock", "_watching")

    def __init__(self) -> None:
        self._lock = RLock()  # reentrant, as a signal handler may post
        self._watching = 0  # coroutines
        self._is_watched = False  # whether ``_look`` is scheduled
        self._due: deque[tuple[Callback, PumiceError | None]] = deque()
        self._is_called = False  # whether ``_deliver`` is scheduled

    def post(
        self, loop: asyncio.AbstractEventLoop, callback: Callback, error: PumiceError | None, late: bool = False
    ) -> None:
        with self._lock:
            self._due.append((callback, error))
        boxes = gathered.boxes
        if late and boxes is not None and self._watching > 1:
            boxes[self] = loop
        else:
            self.wake(loop)

    def wake(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            if self._is_called:
                return
            self._is_called = True
        try:
            loop.call_soon_threadsafe(self._deliver, loop)
        except RuntimeError:  # the loop was closed, and its coroutines with it
            self._due.clear()

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Makes the loop check the mailbox regularly until ``unwatch``."""
        self._watching += 1
        if self._watching > 1 and not self._is_watched:
            self._is_watched = True
            loop.call_later(_LONGEST_GATHERED, self._look, loop)

    def unwatch(self) -> None:
        self._watching -= 1

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_watched = self._watching > 1
        if self._is_watched:
            loop.call_later(_LONGEST_GATHERED, self._look, loop)
        if self._due:
            self._deliver(loop)

    def _deliver(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            self._is_called = False
        due = self._due
        try:
            while due:
                callback, error = due.popleft()
                callback(error)
        finally:
            if due:  # an interrupt
                with self._lock:
                    self._is_called = True
                loop.call_soon(self._deliver, loop)


class _Gathered(threading.local):
    """Mailboxes that this thread has posted to, whose loops it must still wake; ``None`` if it wakes immediately."""

    boxes: dict[_Mailbox, asyncio.AbstractEventLoop] | None = None


gathered: Final = _Gathered()


def gather_wakes() -> None:
    """Makes this thread postpone wake-ups of asyncio loops until ``wake_told``, for sources with ``told_late``."""
    gathered.boxes = {}


def wake_told() -> None:
    """Wakes the loops that this thread has posted to."""
    boxes = gathered.boxes
    while boxes:
        box, loop = boxes.popitem()
        box.wake(loop)


_mailboxes: Final[WeakKeyDictionary[Any, _Mailbox]] = WeakKeyDictionary()


def _mailbox_of(loop: asyncio.AbstractEventLoop) -> _Mailbox:
    return _mailboxes.get(loop) or _mailboxes.setdefault(loop, _Mailbox())


def tell(loop: asyncio.AbstractEventLoop, callback: Callback, error: PumiceError | None) -> None:
    """Makes a callback in an asyncio loop, from another thread; does nothing if the loop is closed.

    Waking the loop costs more than the call, so callbacks made before it is awake share one wake-up.
    """
    _mailbox_of(loop).post(loop, callback, error)


def await_source(source: Any) -> Generator[Any, Any, None]:
    """Yields the ``__await__`` of every wait source.

    Raises:
        FailedPreconditionError: there is neither a running loop nor an invocation.
        PumiceError: the source failed; this is its failure.
    """
    if driving.depth:
        yield source
        return
    import asyncio

    running_loop = asyncio._get_running_loop
    loop = running_loop()
    if loop is None:
        raise FailedPreconditionError(
            "await on a wait source needs a running asyncio loop, or a native function that is a coroutine"
        )
    if getattr(type(source), "quick_query", False):
        yield  # runs the loop's other callbacks first: the work may be done after them
        give_way()
        if source.query() or (yield from look_for(source)):
            return
    future: asyncio.Future[None] = loop.create_future()

    def settle(error: PumiceError | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error.again())

    def callback(error: PumiceError | None) -> None:
        if running_loop() is loop:
            settle(error)
        else:
            box.post(loop, settle, error, is_told_late)

    box, is_told_late = _mailbox_of(loop), getattr(type(source), "told_late", False)
    notification = source.notify(callback)
    if is_told_late:
        box.watch(loop)
    try:
        yield from future
    except BaseException:
        notification.cancel()
        raise
    finally:
        if is_told_late:
            box.unwatch()
