"""Submissions held back on the host until their waits are scheduled; queue.py explains why."""

from __future__ import annotations

import heapq
import threading
from collections import deque
from typing import Protocol

from ...status import InternalError, PumiceError, ResourceExhaustedError
from ..instance.logical_device import LogicalDevice
from .batch import Batch


class Submits(Protocol):
    """The part of a queue that a held submission uses; ``SubmissionQueue`` documents it."""

    device: LogicalDevice

    def commit(self, batch: Batch) -> None: ...

    def settle(self, batch: Batch) -> None: ...


class HeldSubmission:
    """A pending batch that waits on the host for its waits to be scheduled.

    Its command buffers were prepared when it was held back. The thread whose ``try_release`` or ``fail`` claims it
    first submits it or fails it. After an interrupt (Ctrl-C) that thread repeats the interrupted step.
    """

    def __init__(self, queue: Submits, batch: Batch) -> None:
        self._queue = queue
        self._batch = batch
        self._owner: int | None = None  # the thread that ends it
        self._error: PumiceError | None = None

    def hold(self) -> None:
        """Adds it to the semaphores that it waits for, then checks whether they have been scheduled meanwhile.

        If this raises, even from an interrupt, the caller claims and drops it, or another thread ends it.
        """
        batch = self._batch
        with self._queue.device.lock:
            for semaphore, value in batch.waits:
                semaphore.held[self] = None
                heapq.heappush(semaphore.held_by_value, (value, batch.serial, self))
        for semaphore, _ in batch.waits:
            if semaphore.failure is not None:
                self.fail(semaphore.failure)
                return
        self.try_release()

    def try_release(self) -> None:
        """Submits it if every wait is scheduled now."""
        for semaphore, value in self._batch.waits:
            if value > semaphore.scheduled:
                return
        _worklist.run(self, None)

    def fail(self, error: PumiceError) -> None:
        """Drops it and fails the semaphores that it signals."""
        _worklist.run(self, error)

    def end(self, error: PumiceError | None) -> None:
        """Submits it, or fails its signals, unless another thread does."""
        if not self.claim():
            return
        batch = self._batch
        if error is not None:
            self._error = error
        if self._error is None and not batch.number:
            self._submit()
        if self._error is not None and not batch.number:
            for semaphore, _ in batch.signals:
                semaphore.fail(self._error)
        self._queue.settle(batch)

    def claim(self) -> bool:
        """Returns whether this thread ends it: the first caller, until the submission has ended."""
        me, batch = threading.get_ident(), self._batch
        with self._queue.device.lock:
            if self._owner is None:
                self._owner = me
            if self._owner != me or not batch.serial:
                return False
            for semaphore, _ in batch.waits:
                semaphore.held.pop(self, None)
                if not semaphore.held:
                    semaphore.held_by_value.clear()
        return True

    def _submit(self) -> None:
        try:
            for semaphore, _ in self._batch.waits:
                if semaphore.failure is not None:
                    raise semaphore.failure
            self._queue.commit(self._batch)
        except PumiceError as error:
            self._error = error
        except MemoryError as error:
            self._error = ResourceExhaustedError("no host memory to submit work that was held back")
            self._error.__cause__ = error
        except Exception as error:
            self._error = InternalError(f"submitting work that was held back raised {type(error).__name__}: {error}")
            self._error.__cause__ = error


class _Worklist(threading.local):
    """Ends a thread's held submissions one after another instead of nested, however long the chain."""

    def __init__(self) -> None:
        self._pending: deque[tuple[HeldSubmission, PumiceError | None]] = deque()
        self._running = False

    def run(self, submission: HeldSubmission, error: PumiceError | None) -> None:
        if self._running:
            self._pending.append((submission, error))
            return
        self._running = True
        try:
            self._pending.append((submission, error))
            self._work()
        except BaseException:
            self._work()  # after Ctrl-C, too: entries of the list are neither submitted nor failed yet
            raise
        finally:
            self._running = False

    def _work(self) -> None:
        while self._pending:
            submission, error = self._pending[0]
            submission.end(error)
            self._pending.popleft()


_worklist = _Worklist()
