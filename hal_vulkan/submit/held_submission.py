"""Submissions that wait on the host for their waits to be scheduled; queue.py says why there are such."""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ...status import PumiceError
from ..commands.command_buffer import CommandBuffer
from ..commands.recording import Recording
from ..memory.buffer import Buffer
from ..sync.semaphore import TimelineSemaphore

if TYPE_CHECKING:
    from .queue import Queue

__all__ = ["HeldSubmission", "Points", "Used"]

Points: TypeAlias = Sequence[tuple[TimelineSemaphore, int]]
Used: TypeAlias = tuple[tuple[CommandBuffer, Recording], ...]


class _Worklist(threading.local):
    """Runs follow-up work of this thread one after another instead of nested, however long the chain is."""

    def __init__(self) -> None:
        self._pending: deque[Callable[[], None]] | None = None

    def run(self, action: Callable[[], None]) -> None:
        if self._pending is not None:
            self._pending.append(action)
            return
        self._pending = deque([action])
        try:
            while self._pending:
                self._pending.popleft()()
        finally:
            self._pending = None


_worklist = _Worklist()


class HeldSubmission:
    """A submission that waits on the host for its waits to be scheduled.

    Its commands are prepared when it is held back, as if it were submitted then: what is closed afterwards is kept
    for it, as for work on the queue.
    """

    __slots__ = ("_claimed", "_prepared", "_serial", "_transient", "command_buffers", "queue", "signals", "waits")

    def __init__(
        self,
        queue: Queue,
        command_buffers: Sequence[CommandBuffer],
        waits: Points,
        signals: Points,
        *,
        transient: bool,
    ) -> None:
        self.queue = queue
        self.command_buffers = tuple(command_buffers)
        self.waits = tuple(waits)
        self.signals = tuple(signals)
        self._transient = transient
        self._claimed = False
        self._prepared: Used = ()
        self._serial = 0

    def hold(self, bindings: Sequence[Buffer] | None) -> None:
        """Hooks it to the semaphores, then looks again: one may have been scheduled meanwhile."""
        device = self.queue.device
        serial = self._serial = device.register_held()
        try:
            self._prepared = self.queue._prepare_held(self.command_buffers, bindings)
        except BaseException:
            device.released_held(serial)
            raise
        with device.schedule_lock:
            for semaphore, value in self.waits:
                semaphore.held[self] = None
                heapq.heappush(semaphore.held_by_value, (value, serial, self))
        for semaphore, _ in self.waits:
            if semaphore.failure is not None:
                self.fail(semaphore.failure)
                return
        self.try_release()

    def try_release(self) -> None:
        """Submits it if every wait is scheduled now."""
        if all(value <= semaphore.scheduled for semaphore, value in self.waits) and self._claim():
            _worklist.run(self._submit)

    def fail(self, error: PumiceError) -> None:
        """Drops it and fails what it was to signal."""
        if self._claim():
            _worklist.run(lambda: self._fail_signals(error))

    def _claim(self) -> bool:
        device = self.queue.device
        with device.schedule_lock:
            if self._claimed:
                return False
            self._claimed = True
            for semaphore, _ in self.waits:
                semaphore.held.pop(self, None)
                if not semaphore.held:
                    semaphore.held_by_value.clear()
        return True

    def _submit(self) -> None:
        try:
            for semaphore, _ in self.waits:
                if semaphore.failure is not None:
                    raise semaphore.failure
            self.queue._submit_now(self.command_buffers, self.waits, self.signals, None, self._prepared)
        except PumiceError as error:
            self._fail_signals(error)
            return
        self.queue.device.released_held(self._serial)

    def _fail_signals(self, error: PumiceError) -> None:
        for commands, recording in self._prepared:
            commands.unprepare(recording)
            if self._transient:
                commands.close()
        for semaphore, _ in self.signals:
            semaphore.fail(error)
        self.queue.device.released_held(self._serial)
