"""Wait sources for tests, and a module with a function that waits for them.

``Signal`` is one as users write it: an event of ``threading`` with callbacks, which knows nothing of devices.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from pumice.status import DeadlineExceededError, PumiceError
from pumice.vm import Event, NativeModule, Wait

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


class Quick(Event):
    """An event that says it answers quickly, and for how many seconds it pays to look; counts what it is asked."""

    quick_query = True

    def __init__(self, seconds: float | None = None, *, ready: bool = False) -> None:
        super().__init__()
        self.seconds = seconds
        self.queries = 0
        self.notifications = 0
        self.outcomes: list[str] = []
        if ready:
            self.set()

    def query(self) -> bool:
        self.queries += 1
        return super().query()

    def notify(self, callback: Callback) -> Any:
        self.notifications += 1
        return super().notify(callback)

    def look(self, mode: object = None) -> Quick | None:
        return None if self.seconds is None else self

    def length(self, now: float) -> float:
        assert self.seconds is not None
        return self.seconds

    def found(self, seconds: float) -> None:
        self.outcomes.append("found")

    def missed(self, seconds: float) -> None:
        self.outcomes.append("missed")
        asyncio.get_running_loop().call_soon(self.set)


def waiting_module(sources: Sequence[Any], deadline: float | None = None) -> NativeModule:
    """A module whose ``m.wait`` waits for the source of an index, and then gives the index twice."""
    module = NativeModule("m")

    @module.function("wait", "0i_i")
    def wait(index: int) -> Wait:
        def resume(error: PumiceError | None) -> int:
            if error is not None:
                raise error
            return index * 2

        return Wait((sources[index],), deadline=deadline, resume=resume)

    return module
