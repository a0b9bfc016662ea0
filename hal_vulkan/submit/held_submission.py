"""Submissions held back on the host until their waits are scheduled; queue.py says why."""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable, Sequence

from ...status import InternalError, PumiceError, ResourceExhaustedError
from ..commands.command_buffer import CommandBuffer
from ..commands.recording import Recording
from ..instance.logical_device import LogicalDevice
from .retirement import Points


class HeldSubmission:
    """A submission that waits on the host for its waits to be scheduled.

    Its commands are prepared when it is held back, as if it were submitted then. What is closed afterwards is kept for
    it, as for work on the queue.

    It ends submitted or failed, in the thread whose ``try_release`` or ``fail`` claims it first. After an interrupt
    (Ctrl-C) that thread repeats the step that was interrupted. The queue sets ``is_submitted`` when it notes the
    submission.
    """

    def __init__(
        self,
        device: LogicalDevice,
        submit: Callable[[HeldSubmission], object],
        command_buffers: Sequence[CommandBuffer],
        waits: Points,
        signals: Points,
        *,
        transient: bool,
    ) -> None:
        self._device = device
        self._submit_now = submit
        self.command_buffers = tuple(command_buffers)
        self.waits = tuple(waits)
        self.signals = tuple(signals)
        self.prepared: list[tuple[CommandBuffer, Recording]] = []
        self.is_submitted = False
        self._transient = transient
        self._owner: int | None = None  # the thread that ends it
        self._error: PumiceError | None = None
        self._serial = 0

    def hold(self, prepare: Callable[[], None]) -> None:
        """Prepares it and adds it to the semaphores that it waits for, then checks: one may be scheduled by now.

        If it raises, by an interrupt too, the submission is not held, or another thread ends it.
        """
        device = self._device
        serial = self._serial = device.register_held()
        try:
            prepare()
            with device.schedule_lock:
                for semaphore, value in self.waits:
                    semaphore.held[self] = None
                    heapq.heappush(semaphore.held_by_value, (value, serial, self))
            for semaphore, _ in self.waits:
                if semaphore.failure is not None:
                    self.fail(semaphore.failure)
                    return
            self.try_release()
        except BaseException:
            if self._claim():
                self._release(dropped=True)
            raise

    def try_release(self) -> None:
        """Submits it if every wait is scheduled now."""
        for semaphore, value in self.waits:
            if value > semaphore.scheduled:
                return
        _worklist.run(self, None)

    def fail(self, error: PumiceError) -> None:
        """Drops it and fails what it was to signal."""
        _worklist.run(self, error)

    def end(self, error: PumiceError | None) -> None:
        """Submits it, or fails its signals, unless another thread does."""
        if not self._claim():
            return
        if error is not None:
            self._error = error
        if self._error is None and not self.is_submitted:
            self._submit()
        if not self.is_submitted and self._error is not None:
            for semaphore, _ in self.signals:
                semaphore.fail(self._error)
        self._release(dropped=not self.is_submitted)

    def _claim(self) -> bool:
        """Whether this thread is the one to end it: the first that asks."""
        me = threading.get_ident()
        with self._device.schedule_lock:
            if self._owner is None:
                self._owner = me
            if self._owner != me or not self._serial:
                return False
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
            self._submit_now(self)
        except PumiceError as error:
            self._error = error
        except MemoryError as error:
            self._error = ResourceExhaustedError("no host memory to submit work that was held back")
            self._error.__cause__ = error
        except Exception as error:
            self._error = InternalError(f"submitting work that was held back raised {type(error).__name__}: {error}")
            self._error.__cause__ = error

    def _release(self, *, dropped: bool) -> None:
        """Releases what was kept for it."""
        if dropped:
            for commands, recording in self.prepared:
                commands.unprepare(recording)
                if self._transient:
                    commands.close()
        self._device.released_held(self._serial)
        self._serial = 0


class _Worklist(threading.local):
    """Ends the held submissions of this thread one after another instead of nested, however long the chain is."""

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
            self._work()  # after Ctrl-C, too: what is on the list is neither submitted nor failed yet
            raise
        finally:
            self._running = False

    def _work(self) -> None:
        while self._pending:
            submission, error = self._pending[0]
            submission.end(error)
            self._pending.popleft()


_worklist = _Worklist()
