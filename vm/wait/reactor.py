"""The one thread of a process that waits for file descriptors and for times to pass.

It sleeps in the selector until a descriptor is ready, the next time comes, or somebody arms something new; nothing polls. It is started when
first needed, and a forked child starts its own. Callbacks run on it one after another and must not block.
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
from collections.abc import Callable
from typing import ClassVar, Final, TypeAlias

from ...status import CancelledError, InvalidArgumentError, PumiceError
from .latch import call_back

__all__ = ["Waiter", "Watch"]

Callback: TypeAlias = Callable[[PumiceError | None], None]

_order = itertools.count()
_LONGEST: Final = 3600.0  # seconds in one sleep; platforms' selectors take no more than some weeks


class Watch:
    """One callback armed for a time or a descriptor; called once, or never if cancelled first."""

    __slots__ = ("_callback", "_order", "descriptor", "events", "when")

    def __init__(self, callback: Callback, when: float, descriptor: int = -1, events: int = 0) -> None:
        self._callback: Callback | None = callback
        self._order = next(_order)
        self.when = when
        self.descriptor = descriptor
        self.events = events

    def __lt__(self, other: Watch) -> bool:
        return (self.when, self._order) < (other.when, other._order)

    @property
    def is_done(self) -> bool:
        """Whether it was cancelled, or its callback has been or is being called."""
        return self._callback is None

    def take(self) -> Callback | None:
        """The callback, the first time it is asked for."""
        callback, self._callback = self._callback, None
        return callback

    def cancel(self) -> bool:
        """Disarms it; ``False`` when the callback has been, or is being, called."""
        taken = self.take() is not None
        if taken:
            Waiter.cancelled(self)
        return taken


class Waiter:
    """The thread. Use ``shared()``."""

    _shared: ClassVar[Waiter | None] = None
    _starting: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._timers: list[Watch] = []
        self._dropped = 0
        self._watches: dict[int, list[Watch]] = {}
        self._selector = selectors.DefaultSelector()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._selector.register(self._wake_in, selectors.EVENT_READ)
        self._sleeps_until = 0.0
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._run, name="pumice-waiter", daemon=True)
        self._thread.start()

    @classmethod
    def shared(cls) -> Waiter:
        """The waiter of this process."""
        waiter = cls._shared
        if waiter is None or waiter._pid != os.getpid():
            with cls._starting:
                waiter = cls._shared
                if waiter is None or waiter._pid != os.getpid():
                    waiter = cls._shared = cls()
        return waiter

    @classmethod
    def thread_count(cls) -> int:
        """0 or 1: threads that wait for descriptors and times."""
        return 0 if cls._shared is None or cls._shared._pid != os.getpid() else 1

    @classmethod
    def cancelled(cls, watch: Watch) -> None:
        """Drops what a cancelled watch holds."""
        waiter = cls._shared
        if waiter is None:
            return
        if watch.descriptor >= 0:
            with waiter._lock:
                held = waiter._watches.get(watch.descriptor)
                if held is not None and watch in held:
                    held.remove(watch)
                    waiter._rearm(watch.descriptor)
            return
        with waiter._lock:
            # Timers that are given up in time are the rule, and few ever come due.
            waiter._dropped += 1
            if waiter._dropped > 64 and 2 * waiter._dropped > len(waiter._timers):
                waiter._timers = [one for one in waiter._timers if not one.is_done]
                heapq.heapify(waiter._timers)
                waiter._dropped = 0

    # -- arming --------------------------------------------------------------------------------------

    def call_at(self, when: float, callback: Callback) -> Watch:
        """Calls back with ``None`` once ``time.monotonic()`` is at ``when``."""
        watch = Watch(callback, when)
        with self._lock:
            heapq.heappush(self._timers, watch)
            sooner = when < self._sleeps_until
        if sooner:
            self._wake()
        return watch

    def watch(self, descriptor: int, events: int, callback: Callback) -> Watch:
        """Calls back with ``None`` once a descriptor can be read or written.

        Args:
            descriptor: of a pipe, socket, eventfd, …; it must stay open until then. Regular files are always ready.
            events: ``selectors.EVENT_READ``, ``EVENT_WRITE`` or both, of which one is enough.
            callback: gets InvalidArgumentError if the descriptor is none that can be waited for.
        """
        watch = Watch(callback, 0.0, descriptor, events)
        error: PumiceError | None = None
        with self._lock:
            self._watches.setdefault(descriptor, []).append(watch)
            try:
                self._rearm(descriptor)
            except PermissionError:  # epoll's answer for what is always ready
                self._forget(descriptor, watch)
            except (OSError, ValueError, KeyError) as raised:
                self._forget(descriptor, watch)
                error = InvalidArgumentError(f"file descriptor {descriptor} cannot be waited for: {raised}")
            else:
                self._wake()  # selectors without a kernel object look again only when woken
                return watch
        if taken := watch.take():
            call_back(taken, error)
        return watch

    def _forget(self, descriptor: int, watch: Watch) -> None:
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
        registered = self._selector.get_map()
        if not events:
            self._watches.pop(descriptor, None)
            if descriptor in registered:
                with contextlib.suppress(OSError, ValueError, KeyError):
                    self._selector.unregister(descriptor)
        else:
            # Always anew: where the file was closed and its number serves another one, what the selector remembers is not true.
            if descriptor in registered:
                with contextlib.suppress(OSError, ValueError, KeyError):
                    self._selector.unregister(descriptor)
            self._selector.register(descriptor, events)

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it has been woken already
            self._wake_out.send(b"\0")

    # -- the thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            now = time.monotonic()
            due: list[tuple[Watch, PumiceError | None]] = []
            with self._lock:
                while self._timers and (self._timers[0].when <= now or self._timers[0].is_done):
                    due.append((heapq.heappop(self._timers), None))
                sleep = 0.0 if due else min(self._timers[0].when - now, _LONGEST) if self._timers else _LONGEST
                self._sleeps_until = now + sleep
            try:
                ready = self._selector.select(sleep)
            except OSError as raised:  # a descriptor went bad: find which, and tell those who wait for it
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
            for watch, error in due:
                if callback := watch.take():
                    call_back(callback, error)
            del due, ready

    def _bad_descriptors(self, raised: OSError) -> list[tuple[Watch, PumiceError | None]]:
        bad: list[tuple[Watch, PumiceError | None]] = []
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
