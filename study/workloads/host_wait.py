"""Waiting for a submission through another thread, as event loops and notifiers do."""

from __future__ import annotations

import threading
from collections import deque
from time import monotonic_ns

from ...hal_vulkan.submit.prepared_submission import PreparedSubmission
from ...status import DeadlineExceededError


class ThreadWait:
    """A thread that waits in vkWaitSemaphores on behalf of another thread, one at a time, and wakes it."""

    def __init__(self) -> None:
        self._wanted: deque[tuple[PreparedSubmission, int, float]] = deque()
        self._asked = threading.Semaphore(0)
        self._answered = threading.Semaphore(0)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="pumice study wait", daemon=True)
        self._thread.start()

    def wait(self, submission: PreparedSubmission, number: int, timeout: float) -> int:
        """Sleeps until the thread has seen the submission complete; returns the host's time right after."""
        self._wanted.append((submission, number, timeout))
        self._asked.release()
        done = self._answered.acquire(timeout=timeout + 10)
        awake = monotonic_ns()
        if not done:
            raise DeadlineExceededError(f"the waiting thread did not answer within {timeout + 10:g} s")
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return awake

    def _run(self) -> None:
        while True:
            self._asked.acquire()
            if not self._wanted:
                return
            submission, number, timeout = self._wanted.popleft()
            try:
                submission.wait(number, timeout)
            except BaseException as error:
                self._error = error
            self._answered.release()

    def close(self) -> None:
        self._asked.release()
        self._thread.join(5)
