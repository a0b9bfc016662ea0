"""The time from a signal by the host until the threads that wait for it run again.

``wake`` (and ``total``) is from before vkSignalSemaphore until the last waiter is awake. Signals by a device are
measured with the empty kernel, whose ``wake`` begins when the device has ended.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from time import monotonic_ns
from typing import Any

from ...hal_vulkan import TimelineSemaphore
from ...status import DeadlineExceededError
from ...waits.wait_mode import give_way
from .clock import RawSample
from .workload import Workload, WorkloadContext


class SemaphoreWorkload(Workload):
    """A semaphore and its waiters; ``settings`` are those of kind ``semaphore`` in ``target_settings``."""

    def __init__(self, settings: Mapping[str, Any], context: WorkloadContext) -> None:
        super().__init__(context)
        self._semaphore: TimelineSemaphore = self.device.vulkan.create_semaphore(0, "study")
        self._value = 0
        self._look: float = settings["look"] / 1e6
        self._ready = threading.Semaphore(0)
        self._awake: list[int] = []
        self._go: list[threading.Semaphore] = []
        self._threads: list[threading.Thread] = []
        self._ended = False
        self._error: BaseException | None = None
        wait: Callable[[int], int] = getattr(self, f"_wait_{settings['wait']}")
        for index in range(settings["waiters"]):
            go = threading.Semaphore(0)
            self._go.append(go)
            thread = threading.Thread(
                target=self._run, args=(go, wait), name=f"pumice study waiter {index}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def _run(self, go: threading.Semaphore, wait: Callable[[int], int]) -> None:
        while True:
            go.acquire()
            if self._ended:
                return
            try:
                self._awake.append(wait(self._value))
            except BaseException as error:
                self._error = error
            self._ready.release()

    # Each of these announces that it is about to wait, waits, and returns the host's time afterwards.

    def _wait_host(self, value: int) -> int:
        self._ready.release()
        self._semaphore.wait(value, self._context.timeout)
        return monotonic_ns()

    def _wait_look(self, value: int) -> int:
        self._ready.release()
        semaphore, look = self._semaphore, time.monotonic() + self._look
        while semaphore.query() < value:
            if time.monotonic() >= look:
                semaphore.wait(value, self._context.timeout)
                break
            give_way()
        return monotonic_ns()

    def _wait_poll(self, value: int) -> int:
        self._ready.release()
        semaphore, end = self._semaphore, time.monotonic() + self._context.timeout
        while semaphore.query() < value:
            if time.monotonic() > end:
                raise DeadlineExceededError(f"the signal was not seen within {self._context.timeout:g} s")
        return monotonic_ns()

    def _wait_thread(self, value: int) -> int:
        done = threading.Event()
        self._semaphore.notify(value, lambda _: done.set())
        self._ready.release()
        done.wait(self._context.timeout)
        return monotonic_ns()

    def _wait_asyncio(self, value: int) -> int:
        async def wait() -> int:
            asyncio.get_running_loop().call_soon(self._ready.release)
            await self._semaphore.at(value)
            return monotonic_ns()

        return asyncio.run(wait())

    def sample(self) -> RawSample:
        count, limit = len(self._threads), self._context.timeout
        self._value += 1
        self._awake.clear()
        for go in self._go:
            go.release()
        self._acquire(count, limit)
        # They have announced their wait, but are not asleep yet.
        time.sleep(0.0005)
        before = self._context.usage()
        called = monotonic_ns()
        self._semaphore.signal(self._value)
        self._acquire(count, limit)
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        preemptions, cpu = self._context.usage_since(before)
        return RawSample(called, awake=max(self._awake), preemptions=preemptions, cpu=cpu)

    def _acquire(self, count: int, limit: float) -> None:
        for _ in range(count):
            if not self._ready.acquire(timeout=limit):
                raise DeadlineExceededError(f"a waiting thread did not answer within {limit:g} s")

    def close(self) -> None:
        if not self._ended:
            self._ended = True
            for go in self._go:
                go.release()
            for thread in self._threads:
                thread.join(5)
            self._semaphore.close()
