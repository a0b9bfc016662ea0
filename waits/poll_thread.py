"""Poll threads: the one mechanism for waits that need a thread.

A poll thread sleeps until a callback is due and calls it. Callbacks run one after another, with no lock held, and must
not block. The thread starts when first needed, and never polls.

``PollThread.shared()`` serves the times and file descriptors of the process. Each device has a poll thread of its own,
made with a ``NativeWait``: a driver's wait for semaphores cannot be combined with a selector, or with semaphores of
another device, and cannot be interrupted. While a thread is in such a wait, the shared thread makes calls that become
due in other ways, such as by a signal from the host.

Thread rule: every method from any thread.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import math
import os
import selectors
import socket
import threading
import time
from collections import deque
from typing import ClassVar, Final, Protocol, TypeAlias

from ..base.locks import RLock
from ..status import CancelledError, InvalidArgumentError, PumiceError
from .notification import Callback, Notification

Due: TypeAlias = tuple[Notification, PumiceError | None]
"""A notification, and the argument of its callback."""

_order = itertools.count()
_LONGEST: Final = 3600.0  # the most seconds of one sleep; selectors accept some weeks at most

# States of a thread.
_RUNNING: Final = 0  # looks for work, and again before it sleeps
_SLEEPING: Final = 1  # until woken, or until the next time is due
_WAITING: Final = 2  # in a native wait


class NativeWait(Protocol):
    """The wait that a device's thread blocks in. Only that thread calls it."""

    def collect(self) -> None:
        """Adds the callbacks that are due by now to ``PollThread.due``."""

    def is_pending(self) -> bool:
        """Whether there is work to wait for. Called under the thread's lock; it must take no other lock."""

    def wait(self) -> None:
        """Blocks until some work is done, or the device is lost."""


class _Timer(Notification):
    """One callback armed for a time."""

    __slots__ = ("_thread",)

    def __init__(self, callback: Callback, thread: PollThread) -> None:
        super().__init__(callback)
        self._thread = thread

    def _ended(self, *, is_cancelled: bool) -> None:
        if is_cancelled:
            self._thread._timer_cancelled()


class _Watch(Notification):
    """One callback armed for a descriptor."""

    __slots__ = ("_thread", "descriptor", "events")

    def __init__(self, callback: Callback, thread: PollThread, descriptor: int, events: int) -> None:
        super().__init__(callback)
        self._thread = thread
        self.descriptor = descriptor
        self.events = events

    def _ended(self, *, is_cancelled: bool) -> None:
        if is_cancelled:
            self._thread._unwatch(self)


class PollThread:
    """A thread that waits and calls back.

    Attributes:
        due: the notifications to call, in order. Code that adds to it calls ``flush`` afterwards.
    """

    _shared: ClassVar[PollThread | None] = None
    _starting: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, name: str, native: NativeWait | None = None) -> None:
        self._name = name
        self._native = native
        self._pid = os.getpid()
        # Reentrant, as finalizers cancel; under it only the shared thread's lock is taken.
        self._lock = RLock()
        self._calling = RLock()  # held while a callback runs, in whichever thread
        self._thread: threading.Thread | None = None
        self._is_stopping = False
        self._doing = _RUNNING
        self._asleep = threading.Lock()  # blocks its sleep while there is no selector; cheaper than an Event
        self._asleep.acquire()
        self.due: deque[Due] = deque()
        self._timers: list[tuple[float, int, _Timer]] = []  # a heap
        self._cancelled_timers = 0
        self._sleeps_until = math.inf
        self._watches: dict[int, list[_Watch]] = {}
        self._selector: selectors.BaseSelector | None = None
        self._wake_in: socket.socket
        self._wake_out: socket.socket

    @classmethod
    def shared(cls) -> PollThread:
        """Returns the poll thread of this process; a forked child has its own."""
        shared = cls._shared
        if shared is None or shared._pid != os.getpid():
            with cls._starting:
                shared = cls._shared
                if shared is None or shared._pid != os.getpid():
                    shared = cls._shared = cls("pumice-poll")
        return shared

    # -- the thread ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the thread, unless it was started or is stopping."""
        if self._thread is not None:
            return
        with self._lock:
            if self._thread is None and not self._is_stopping:
                thread = self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                try:
                    thread.start()
                except BaseException:
                    if thread.ident is None:
                        self._thread = None
                    raise

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def wake(self) -> None:
        """Makes the thread check again whether there is work to wait for."""
        with self._lock:
            self._wake()

    def flush(self) -> None:
        """Runs due callbacks: in the thread, or in the shared thread if that one is in a native wait."""
        with self._lock:
            if self.due and not self._wake():
                PollThread.shared()._call_soon(Notification(self._assist))

    def stop(self, timeout: float | None = None) -> bool:
        """Ends the thread, which must have nothing to wait for, and makes due calls; may be repeated.

        Returns:
            ``False``, and no calls are made, if the thread is still in a callback after ``timeout`` seconds.
        """
        with self._lock:
            self._is_stopping = True
            self._wake()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)
            if thread.is_alive():
                return False
        self._call_due()
        return True

    def abandon(self) -> None:
        """Forgets the thread in a forked child, where it does not run."""
        self._lock, self._calling = RLock(), RLock()
        self._thread = None
        self._is_stopping = True

    def _call_soon(self, notification: Notification) -> None:
        self.start()
        with self._lock:
            self.due.append((notification, None))
            self._wake()

    def _wake(self) -> bool:
        """Wakes the thread; returns ``False`` if it is in a native wait. The caller holds the lock."""
        if self._doing == _SLEEPING:
            self._doing = _RUNNING
            if self._selector is None:
                self._asleep.release()
            else:
                with contextlib.suppress(BlockingIOError):  # it was woken already
                    self._wake_out.send(b"\0")
        return self._doing == _RUNNING

    def _assist(self, _: PumiceError | None) -> None:
        """Makes the calls of a thread that is in a native wait. Called in the shared thread, which must not block."""
        # A thread that has returned makes them itself, as it checks for more before it waits again.
        while self.due and self._calling.acquire(blocking=False):
            try:
                self._call_next()
            finally:
                self._calling.release()

    def _call_due(self) -> None:
        while self.due:
            with self._calling:
                self._call_next()

    def _call_next(self) -> None:
        with contextlib.suppress(IndexError):  # the other thread took the last
            notification, error = self.due.popleft()
            notification.call(error)

    def _run(self) -> None:
        native = self._native
        while True:
            self._call_due()
            if native is not None:
                native.collect()
            with self._lock:
                self._collect_timers()
                if self.due:
                    continue
                if self._is_stopping:
                    return
                selector = self._selector
                is_native = native is not None and native.is_pending()
                self._doing = _WAITING if is_native else _SLEEPING
                self._sleeps_until = self._timers[0][0] if self._timers else math.inf
                sleep = self._sleeps_until - time.monotonic()
            was_woken = True
            if native is not None and is_native:
                native.wait()
            elif selector is not None:
                self._select(selector, min(max(sleep, 0.0), _LONGEST))
            else:
                was_woken = self._asleep.acquire(timeout=-1 if sleep == math.inf else min(max(sleep, 0.0), _LONGEST))
            with self._lock:
                if not was_woken and self._doing == _RUNNING:
                    self._asleep.acquire()  # it was woken just as its time was over
                self._doing = _RUNNING

    # -- times ---------------------------------------------------------------------------------------

    def call_at(self, when: float, callback: Callback) -> Notification:
        """Calls back with ``None`` once ``time.monotonic()`` is at ``when``."""
        self.start()
        timer = _Timer(callback, self)
        with self._lock:
            heapq.heappush(self._timers, (when, next(_order), timer))
            if when < self._sleeps_until:
                self._wake()
        return timer

    def _timer_cancelled(self) -> None:
        with self._lock:
            # Most timers are cancelled before they are due: they are swept when they are half of all.
            self._cancelled_timers += 1
            if self._cancelled_timers > 64 and 2 * self._cancelled_timers > len(self._timers):
                self._timers = [entry for entry in self._timers if not entry[2].is_done]
                heapq.heapify(self._timers)
                self._cancelled_timers = 0

    def _collect_timers(self) -> None:
        timers, now = self._timers, time.monotonic()
        while timers and (timers[0][0] <= now or timers[0][2].is_done):
            self.due.append((heapq.heappop(timers)[2], None))

    # -- descriptors ---------------------------------------------------------------------------------

    def watch(self, descriptor: int, events: int, callback: Callback) -> Notification:
        """Calls back with ``None`` once one of ``events`` (of ``selectors``) occurs, or with InvalidArgumentError.

        The descriptor, of a pipe, socket, eventfd, …, must stay open until then. Regular files are always ready.
        """
        self.start()
        watch = _Watch(callback, self, descriptor, events)
        error: PumiceError | None = None
        with self._lock:
            if self._selector is None:
                self._make_selector()
            self._watches.setdefault(descriptor, []).append(watch)
            try:
                self._rearm(descriptor)
            except (OSError, ValueError, KeyError) as raised:
                self._watches[descriptor].remove(watch)
                if not self._watches[descriptor]:
                    del self._watches[descriptor]
                if not isinstance(raised, PermissionError):  # epoll's answer for regular files, which are always ready
                    error = InvalidArgumentError(f"file descriptor {descriptor} cannot be waited for: {raised}")
            else:
                self._wake()  # selectors without a kernel object look again only when woken
                return watch
        watch.call(error)
        return watch

    def _make_selector(self) -> None:
        self._wake()  # it sleeps without a selector
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake_in, selectors.EVENT_READ)

    def _unwatch(self, watch: _Watch) -> None:
        with self._lock:
            watches = self._watches.get(watch.descriptor, [])
            if watch in watches:
                watches.remove(watch)
                self._rearm(watch.descriptor)

    def _rearm(self, descriptor: int) -> None:
        """Tells the selector the current events of a descriptor. The caller holds the lock."""
        assert self._selector is not None
        events = 0
        for watch in self._watches[descriptor]:
            events |= watch.events
        # Always anew: the file may have been closed and its number reused.
        if descriptor in self._selector.get_map():
            with contextlib.suppress(OSError, ValueError, KeyError):
                self._selector.unregister(descriptor)
        if events:
            self._selector.register(descriptor, events)
        else:
            del self._watches[descriptor]

    def _select(self, selector: selectors.BaseSelector, seconds: float) -> None:
        """Sleeps until a descriptor is ready, or it is woken; adds the watches of descriptors that are ready."""
        try:
            ready = selector.select(seconds)
        except OSError as raised:  # a descriptor was closed
            self._drop_closed(raised)
            return
        with self._lock:
            for key, events in ready:
                if key.fileobj is self._wake_in:
                    with contextlib.suppress(BlockingIOError):
                        while self._wake_in.recv(4096):
                            pass
                    continue
                watches = self._watches.get(key.fd, [])
                for watch in [watch for watch in watches if watch.events & events]:
                    watches.remove(watch)
                    self.due.append((watch, None))
                with contextlib.suppress(OSError, ValueError, KeyError):
                    self._rearm(key.fd)

    def _drop_closed(self, raised: OSError) -> None:
        assert self._selector is not None
        with self._lock:
            for descriptor in list(self._watches):
                try:
                    os.fstat(descriptor)
                except OSError:
                    for watch in self._watches.pop(descriptor):
                        self.due.append((watch, CancelledError(f"file descriptor {descriptor} was closed ({raised})")))
                    with contextlib.suppress(OSError, ValueError, KeyError):
                        self._selector.unregister(descriptor)
