"""A wait source as users write one: an event of ``threading`` with callbacks, which knows nothing of devices."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pumice.status import DeadlineExceededError, PumiceError

Callback = Callable[[PumiceError | None], None]


class Signal:
    """Becomes ready, or fails, when ``set`` is called, by a timer if a delay is given. Counts what is armed on it."""

    def __init__(self, delay: float | None = None, failure: PumiceError | None = None) -> None:
        self.failure = failure
        self.callbacks: list[Callback] = []
        self._event = threading.Event()
        self._lock = threading.Lock()
        if delay is not None:
            timer = threading.Timer(delay, self.set)
            timer.daemon = True
            timer.start()

    def set(self) -> None:
        with self._lock:
            self._event.set()
            callbacks, self.callbacks = self.callbacks, []
        for callback in callbacks:
            callback(self.failure)

    def query(self) -> bool:
        if self._event.is_set() and self.failure is not None:
            raise self.failure
        return self._event.is_set()

    def wait_until(self, deadline: float | None = None) -> None:
        if not self._event.wait(None if deadline is None else max(0.0, deadline - time.monotonic())):
            raise DeadlineExceededError("the signal was not set in time")
        if self.failure is not None:
            raise self.failure

    def notify(self, callback: Callback) -> Armed:
        with self._lock:
            if not self._event.is_set():
                self.callbacks.append(callback)
                return Armed(self, callback)
        callback(self.failure)
        return Armed(self, callback)

    def cancel(self, callback: Callback) -> bool:
        with self._lock:
            if callback not in self.callbacks:
                return False
            self.callbacks.remove(callback)
            return True


class Armed:
    """A callback on a signal."""

    def __init__(self, signal: Signal, callback: Callback) -> None:
        self._signal = signal
        self._callback = callback

    def cancel(self) -> bool:
        return self._signal.cancel(self._callback)
