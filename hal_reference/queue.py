"""The queue: a thread that runs submissions in order.

A submission with unscheduled waits is held back and blocks no other; the submission that schedules them releases it.
The thread starts with the first submission and ends after a second without submissions.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from ..base.lazy_dataclass import dataclass
from ..status import FailedPreconditionError, InternalError, InvalidArgumentError, PumiceError
from .command_buffer import CommandBuffer
from .logical_device import LogicalDevice
from .semaphore import Due, Semaphore, notify_all

_IDLE_S: Final = 1.0
_log = logging.getLogger("pumice.queue")

Points = tuple[tuple[Semaphore, int], ...]


@dataclass(eq=False, slots=True)
class _Submission:
    actions: Sequence[Callable[[], None]]
    waits: Points
    signals: Points
    number: int = 0  # 0 until it is scheduled

    def run(self) -> PumiceError | None:
        """Runs it, unless one of its waits has failed; returns the failure."""
        failure = self.failure()
        if failure is not None:
            return failure
        try:
            for action in self.actions:
                action()
        except PumiceError as raised:
            return raised
        except BaseException as raised:  # waiters get the error
            _log.exception("a submission to the reference device raised")
            return InternalError(f"a submission raised {type(raised).__name__}: {raised}")
        return None

    def failure(self) -> PumiceError | None:
        """Returns the first failed wait's error."""
        return next((semaphore.failure for semaphore, _ in self.waits if semaphore.failure is not None), None)


class Queue:
    """Runs submissions.

    Attributes:
        stream: the semaphore that each submission signals with its number. It fails with submissions that signal
            nothing else.

    Thread rule: any thread.
    """

    def __init__(self, device: LogicalDevice) -> None:
        self.device = device
        self._ready: deque[_Submission] = deque()
        self._held: list[_Submission] = []
        self._thread: threading.Thread | None = None
        self._running = False
        self._count = 0
        self.stream: Semaphore = Semaphore(device, 0, "stream")

    def submit(
        self,
        command_buffers: Sequence[CommandBuffer] = (),
        *,
        waits: Sequence[tuple[Any, int]] = (),
        signals: Sequence[tuple[Any, int]] = (),
        bindings: Sequence[Any] | None = None,
    ) -> int:
        """Hands work to the thread; returns immediately. See ``hal.device.Submits``."""
        device = self.device
        device.check_usable()
        for semaphore, _ in (*waits, *signals):
            if not isinstance(semaphore, Semaphore) or semaphore.device is not device:
                raise InvalidArgumentError(f"{semaphore} belongs to another device")
        with device.lock:
            for semaphore, value in signals:
                if semaphore.failure is not None or semaphore.is_closed:
                    semaphore.query()  # raises
                if value <= semaphore.scheduled:
                    raise FailedPreconditionError(
                        f"{semaphore.name}: a payload only increases: {semaphore.scheduled} is reached or submitted, "
                        f"got {value}"
                    )
            actions = [action for commands in command_buffers for action in commands.prepare(bindings)]
            submission = _Submission(actions, tuple(waits), tuple(signals))
            self._held.append(submission)
        self.release()
        return submission.number

    def resubmit(self, commands: CommandBuffer, generation: int, bindings: Sequence[Any] | None = None) -> int:
        """Submits the commands with ``submit``."""
        return 0

    def release(self) -> None:
        """Runs held work that can run now, and drops work that can never run. The caller holds no lock."""
        due: Due = []
        with self.device.lock:
            progress = True
            while progress:  # released work may schedule another submission's waits
                progress = False
                for submission in list(self._held):
                    if submission.failure() is not None:
                        due += self._finished(submission, submission.failure())
                    elif all(value <= semaphore.scheduled for semaphore, value in submission.waits):
                        self._schedule(submission)
                    else:
                        continue
                    self._held.remove(submission)
                    progress = True
        notify_all(due)

    def _schedule(self, submission: _Submission) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="pumice reference queue", daemon=True)
            thread.start()
            self._thread = thread
        submission.number = self._count = self._count + 1
        for semaphore, value in (*submission.signals, (self.stream, submission.number)):
            semaphore.scheduled = max(semaphore.scheduled, value)
            semaphore.pending.append(value)
        self._ready.append(submission)
        self.device.changed.notify_all()

    def _run(self) -> None:
        changed = self.device.changed
        while True:
            with self.device.lock:
                changed.wait_for(lambda: self._ready or self.device.is_closed, _IDLE_S)
                if not self._ready:
                    self._thread = None
                    return
                submission = self._ready.popleft()
                self._running = True
            error = submission.run()
            with self.device.lock:
                self._running = False
                due = self._finished(submission, error)
            del submission, error  # a waiting thread must not keep their objects alive
            self.release()
            notify_all(due)
            due.clear()

    def _finished(self, submission: _Submission, error: PumiceError | None) -> Due:
        due: Due = []
        for semaphore, value in submission.signals:
            if value in semaphore.pending:
                semaphore.pending.remove(value)
            if error is not None:
                due += semaphore.set_failure(error)
            elif semaphore.failure is None:
                due += semaphore.advance(value)
        if submission.number:
            self.stream.pending.remove(submission.number)
            if error is not None and not submission.signals:
                due += self.stream.set_failure(error)
            elif self.stream.failure is None:
                due += self.stream.advance(submission.number)
        self.device.changed.notify_all()
        return due

    @property
    def is_idle(self) -> bool:
        """Whether all submitted work has run; held work does not count."""
        return not self._ready and not self._running

    def drop(self, error: PumiceError) -> None:
        """Fails work that has not begun, as the device is closed."""
        due: Due = []
        with self.device.lock:
            dropped = [*self._held, *self._ready]
            self._held.clear()
            self._ready.clear()
            for submission in dropped:
                due += self._finished(submission, error)
        notify_all(due)
