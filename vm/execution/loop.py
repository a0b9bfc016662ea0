"""Loops, which run the steps of asynchronous invocations and perform their waits.

A loop runs callbacks one after another. It ends by ``close`` or by an exception from a callback (its *failure*). From
then on callbacks, scheduled before or later, are called with AbortedError. Every callback is called exactly once.

``InlineLoop`` runs callbacks inside the calls that schedule them, and blocks while an invocation waits. ``ThreadLoop``
has a thread. asyncio's loop is in asyncio_loop.py. A loop of your own subclasses ``Loop`` and implements ``_post``.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

from ...base.closeable import Closeable
from ...base.locks import RLock
from ...status import AbortedError, PumiceError
from ...waits.armed_wait import ArmedWait, arm_frame
from ...waits.awaitable import gather_wakes, wake_told
from ...waits.deferred import DeferredWait, can_defer, look_at
from ...waits.wait_frame import WaitFrame
from ...waits.wait_mode import WaitMode, waits
from .deadlines import wait_for
from .stack import Stack

_MAX_BEFORE_DEFERRED: Final = 32  # callbacks before deferred waits are polled

_log = logging.getLogger("pumice.vm")

LoopCallback: TypeAlias = Callable[["Exception | None"], None]
"""Called with ``None``, or with AbortedError if the loop ended first; for a wait, with the error that prevented it.

It must not block.
"""


class Abortable(Protocol):
    """An object to abort when the loop ends."""

    def abort(self, error: PumiceError) -> None:
        """Ends it with this error, if it has not ended."""


class Loop(Closeable, ABC):
    """The executor of asynchronous invocations. Thread rule: every method from any thread.

    Attributes:
        failure: the exception of a callback that ended it, or ``None``.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._ended: PumiceError | None = None
        self.failure: BaseException | None = None
        self._active: set[Abortable] = set()

    # -- for subclasses ------------------------------------------------------------------------------

    @abstractmethod
    def _post(self, callback: Callable[[], None]) -> None:
        """Schedules ``callback`` after those posted before; raises if it cannot."""

    def _stop(self) -> None:  # many loops have nothing to stop
        """Called once the loop has ended; nothing is posted after this."""

    def runs_here(self) -> bool:
        """Whether this is the loop's own thread, where blocking on the loop would deadlock."""
        return False

    def _defer(self, wait: DeferredWait) -> bool:
        """Keeps a wait for a device, to poll when no callback is due; ``False`` if this loop does not."""
        return False

    # -- scheduling ----------------------------------------------------------------------------------

    def call(self, callback: LoopCallback) -> None:
        """Schedules a callback, which may run before this returns; it gets AbortedError if the loop ends first."""
        if self._ended is None:
            try:
                self._post(lambda: self._run(callback))
                return
            except Exception as error:
                self.fail(error)
        self._run(callback)

    def start(self, callback: LoopCallback) -> None:
        """Performs ``call`` for the first step of an invocation; a loop may run it immediately."""
        self.call(callback)

    def _run(self, callback: LoopCallback, error: Exception | None = None) -> None:
        try:
            callback(self._ended or error)
        except BaseException as raised:
            if self._ended is not None:
                _log.exception("a callback of a loop that had ended raised")
            else:
                self.fail(raised)
            if not isinstance(raised, Exception):  # Ctrl-C goes to the code that runs the loop
                raise

    def wait(
        self,
        stack: Stack,
        frame: WaitFrame,
        deadline: float | None,
        callback: LoopCallback,
        mode: WaitMode | None = None,
    ) -> ArmedWait | DeferredWait | None:
        """Performs the wait on top of a stack; calls back when it is over, with the outcome on the frame.

        ``mode`` is the wait mode for a device; ``None`` means the device's mode.

        Returns:
            The wait, which can be cancelled; ``None`` if it is over.
        """
        if mode != "block" and can_defer(frame) and self.runs_here():
            wait = DeferredWait(frame, deadline, lambda error: self._run(callback, error), self.call, mode)
            if self._defer(wait):
                return wait
        return arm_frame(frame, deadline, lambda _: self.call(callback))

    # -- the end -------------------------------------------------------------------------------------

    @property
    def is_closed(self) -> bool:
        """Whether it has ended, by ``close`` or a failure."""
        return self._ended is not None

    def fail(self, error: BaseException) -> None:
        """Ends the loop because a callback raised; for subclasses."""
        with self._lock:
            if self._ended is not None:
                return
            self.failure = error
            self._ended = AbortedError(
                f"the loop that the invocation ran on ended: a callback raised {type(error).__name__}: {error}"
            )
            self._ended.__cause__ = error
        _log.error("a callback of a loop raised, which ends the loop", exc_info=error)
        self._end()

    def close(self) -> None:
        """Ends the loop: invocations on it get AbortedError. Idempotent."""
        with self._lock:
            if self._ended is not None:
                return
            self._ended = AbortedError("the loop that the invocation ran on was closed")
        self._end()

    def _end(self) -> None:
        """Aborts the invocations, once."""
        active = self._active.copy()
        assert self._ended is not None
        for invocation in active:
            invocation.abort(self._ended.again())
        self._stop()

    def add(self, invocation: Abortable) -> bool:
        """Registers an object to abort when the loop ends; ``False`` if it has ended."""
        # The end of the loop sets ``_ended`` first and then takes the set, so one of the two threads sees the other's
        # change.
        self._active.add(invocation)
        return self._ended is None

    def remove(self, invocation: Abortable) -> None:
        """Removes an object that ``add`` registered."""
        self._active.discard(invocation)

    def __repr__(self) -> str:
        state = "open" if self._ended is None else "failed" if self.failure is not None else "closed"
        return f"<{type(self).__name__}, {state}, {len(self._active)} invocation(s)>"


class InlineLoop(Loop):
    """Runs callbacks in the thread that schedules them, before ``call`` returns, and blocks while an invocation waits.

    Callbacks that a callback schedules run after it, not inside it, so the host's stack does not grow. An invocation
    that another thread cancels during a wait is released immediately, but the waiting thread continues to wait, and the
    callback is called when that wait is over.
    """

    def __init__(self) -> None:
        super().__init__()
        self._local = threading.local()

    def _post(self, callback: Callable[[], None]) -> None:
        pending: deque[Callable[[], None]] | None = getattr(self._local, "pending", None)
        if pending is not None:
            pending.append(callback)
            return
        pending = self._local.pending = deque((callback,))
        try:
            while pending:
                pending.popleft()()
        finally:
            self._local.pending = None

    def wait(
        self,
        stack: Stack,
        frame: WaitFrame,
        deadline: float | None,
        callback: LoopCallback,
        mode: WaitMode | None = None,
    ) -> ArmedWait | None:
        """Performs a wait in the calling thread."""
        with waits(mode):
            wait_for(stack, frame, deadline)
        self.call(callback)
        return None


class ThreadLoop(Loop):
    """Runs callbacks on its own thread, which the first callback starts and ``close`` ends."""

    def __init__(self, name: str = "pumice-loop") -> None:
        super().__init__()
        self._name = name
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._deferred: deque[DeferredWait] = deque()
        self._thread: threading.Thread | None = None

    def _post(self, callback: Callable[[], None]) -> None:
        with self._lock:
            if self._ended is not None:  # nothing may follow _stop's entry
                raise self._ended.again()
            self._queue.put(callback)
            if self._thread is None:
                # Set before it runs, as callbacks call runs_here().
                self._thread = threading.Thread(
                    target=_serve, args=(self._queue, self._deferred), name=self._name, daemon=True
                )
                try:
                    self._thread.start()
                except BaseException:
                    self._thread = None
                    raise

    def runs_here(self) -> bool:
        """Whether this is its thread."""
        return self._thread is threading.current_thread()

    def _defer(self, wait: DeferredWait) -> bool:
        self._deferred.append(wait)
        return True

    def _stop(self) -> None:
        # Queued callbacks are still called, and see that the loop has ended.
        self._queue.put(None)

    def close(self) -> None:
        """Ends the loop: invocations on it get AbortedError. Waits for the thread, unless called in it. Idempotent."""
        super().close()
        thread = self._thread
        if thread is None:
            _drain(self._queue)
        elif thread is not threading.current_thread():
            thread.join()

    def __del__(self) -> None:
        self._queue.put(None)


def _serve(callbacks: queue.SimpleQueue[Callable[[], None] | None], deferred: deque[DeferredWait]) -> None:
    # Holds no reference to the loop, so that dropping the loop ends the thread.
    gather_wakes()
    since = 0
    while True:
        if since >= _MAX_BEFORE_DEFERRED or callbacks.empty():
            since = 0
            if deferred:
                with contextlib.suppress(BaseException):  # see below
                    look_at(deferred)
            wake_told()
            if deferred and callbacks.empty():
                continue
        callback = callbacks.get()
        since += 1
        if callback is None:
            break
        # An exception like SystemExit from a native function has ended the loop by now and was logged.
        with contextlib.suppress(BaseException):
            callback()
        del callback
    _drain(callbacks)
    wake_told()


def _drain(callbacks: queue.SimpleQueue[Callable[[], None] | None]) -> None:
    with contextlib.suppress(queue.Empty):
        while True:
            callback = callbacks.get_nowait()
            if callback is not None:
                callback()
