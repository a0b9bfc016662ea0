"""The reactor: one thread a process that waits for file descriptors and timers.

It sleeps in the selector until a descriptor is ready, the next timer is due, or something new is armed; nothing polls.
It is started when first needed, and a forked child starts its own. Callbacks run on it one after another and must not
block.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import selectors
import socket
import threading
import time
from typing import ClassVar, Final

from ..status import CancelledError, InvalidArgumentError, PumiceError
from .notification import Callback, Notification

_order = itertools.count()
_LONGEST: Final = 3600.0  # seconds in one sleep; selectors take no more than some weeks


class _Timer(Notification):
    """One callback armed for a time."""

    __slots__ = ()

    def _cancelled(self) -> None:
        if Reactor._shared is not None:
            Reactor._shared._timer_cancelled()


class _Watch(Notification):
    """One callback armed for a descriptor."""

    __slots__ = ("descriptor", "events")

    def __init__(self, callback: Callback, descriptor: int, events: int) -> None:
        super().__init__(callback)
        self.descriptor = descriptor
        self.events = events

    def _cancelled(self) -> None:
        if Reactor._shared is not None:
            Reactor._shared._watch_cancelled(self)


class Reactor:
    """The thread. Use ``shared()``."""

    _shared: ClassVar[Reactor | None] = None
    _starting: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._timers: list[tuple[float, int, _Timer]] = []  # a heap
        self._dropped = 0
        self._watches: dict[int, list[_Watch]] = {}
        self._selector = selectors.DefaultSelector()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._selector.register(self._wake_in, selectors.EVENT_READ)
        self._sleeps_until = 0.0
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._run, name="pumice-reactor", daemon=True)
        self._thread.start()

    @classmethod
    def shared(cls) -> Reactor:
        """The reactor of this process."""
        reactor = cls._shared
        if reactor is None or reactor._pid != os.getpid():
            with cls._starting:
                reactor = cls._shared
                if reactor is None or reactor._pid != os.getpid():
                    reactor = cls._shared = cls()
        return reactor

    # -- arming --------------------------------------------------------------------------------------

    def call_at(self, when: float, callback: Callback) -> Notification:
        """Calls back with ``None`` once ``time.monotonic()`` is at ``when``."""
        timer = _Timer(callback)
        with self._lock:
            heapq.heappush(self._timers, (when, next(_order), timer))
            sooner = when < self._sleeps_until
        if sooner:
            self._wake()
        return timer

    def _timer_cancelled(self) -> None:
        with self._lock:
            # Most timers are cancelled before they are due: they are swept when they are half of all.
            self._dropped += 1
            if self._dropped > 64 and 2 * self._dropped > len(self._timers):
                self._timers = [entry for entry in self._timers if not entry[2].is_done]
                heapq.heapify(self._timers)
                self._dropped = 0

    def watch(self, descriptor: int, events: int, callback: Callback) -> Notification:
        """Calls back with ``None`` once one of ``events`` (of ``selectors``) is there, or with InvalidArgumentError.

        The descriptor, of a pipe, socket, eventfd, …, must stay open until then. Regular files are always ready.
        """
        watch = _Watch(callback, descriptor, events)
        error: PumiceError | None = None
        with self._lock:
            self._watches.setdefault(descriptor, []).append(watch)
            try:
                self._rearm(descriptor)
            except (OSError, ValueError, KeyError) as raised:
                self._forget(descriptor, watch)
                if not isinstance(raised, PermissionError):  # epoll's answer for regular files, which are always ready
                    error = InvalidArgumentError(f"file descriptor {descriptor} cannot be waited for: {raised}")
            else:
                self._wake()  # selectors without a kernel object look again only when woken
                return watch
        watch.call(error)
        return watch

    def _watch_cancelled(self, watch: _Watch) -> None:
        with self._lock:
            held = self._watches.get(watch.descriptor)
            if held is not None and watch in held:
                held.remove(watch)
                self._rearm(watch.descriptor)

    def _forget(self, descriptor: int, watch: _Watch) -> None:
        held = self._watches.get(descriptor, [])
        if watch in held:
            held.remove(watch)
        if not held:
            self._watches.pop(descriptor, None)

    def _rearm(self, descriptor: int) -> None:
        """Tells the selector what is wanted of a descriptor now; with the lock held."""
        held = self._watches.get(descriptor)
        events = 0
        for watch in held or ():
            events |= watch.events
        # Always anew: the file may have been closed and its number given to another one.
        if descriptor in self._selector.get_map():
            with contextlib.suppress(OSError, ValueError, KeyError):
                self._selector.unregister(descriptor)
        if events:
            self._selector.register(descriptor, events)
        else:
            self._watches.pop(descriptor, None)

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it has been woken already
            self._wake_out.send(b"\0")

    # -- the thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            now = time.monotonic()
            due: list[tuple[Notification, PumiceError | None]] = []
            with self._lock:
                while self._timers and (self._timers[0][0] <= now or self._timers[0][2].is_done):
                    due.append((heapq.heappop(self._timers)[2], None))
                sleep = 0.0 if due else min(self._timers[0][0] - now, _LONGEST) if self._timers else _LONGEST
                self._sleeps_until = now + sleep
            try:
                ready = self._selector.select(sleep)
            except OSError as raised:  # a descriptor was closed
                ready = []
                due += self._bad_descriptors(raised)
            with self._lock:
                self._sleeps_until = 0.0
                for key, events in ready:
                    if key.fd == self._wake_in.fileno():
                        with contextlib.suppress(BlockingIOError):
                            while self._wake_in.recv(4096):
                                pass
                        continue
                    held = self._watches.get(key.fd, [])
                    for watch in [one for one in held if one.events & events]:
                        held.remove(watch)
                        due.append((watch, None))
                    with contextlib.suppress(OSError, ValueError, KeyError):
                        self._rearm(key.fd)
            for one, error in due:
                one.call(error)
            del due, ready

    def _bad_descriptors(self, raised: OSError) -> list[tuple[Notification, PumiceError | None]]:
        bad: list[tuple[Notification, PumiceError | None]] = []
        with self._lock:
            for descriptor in list(self._watches):
                try:
                    os.fstat(descriptor)
                except OSError:
                    for watch in self._watches.pop(descriptor):
                        bad.append((watch, CancelledError(f"file descriptor {descriptor} was closed ({raised})")))
                    with contextlib.suppress(OSError, ValueError, KeyError):
                        self._selector.unregister(descriptor)
        return bad
