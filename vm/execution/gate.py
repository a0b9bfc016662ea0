"""The gate of a context: which thread is inside, and whether another one may enter.

A context that is not concurrent is used by one thread at a time, nested calls of that thread included; one that is
``concurrent`` only counts. Synchronous calls go through ``acquire`` and ``release``; steps of invocations that hold a
ticket (admission.py) through ``begin_step`` and ``end_step``.

Thread rule: every method from any thread.
"""

from __future__ import annotations

import threading

from ...status import ClosedError, FailedPreconditionError
from .admission import Admission, Ticket


class ContextGate:
    """Which thread is inside a context.

    Attributes:
        kind: what messages call the context.
        concurrent: whether its invocations may overlap.
        admission: the tickets of its invocations.
        is_closed: whether the context was closed.
    """

    __slots__ = ("_depth", "_lock", "_owner", "admission", "concurrent", "is_closed", "kind")

    def __init__(self, kind: str, *, concurrent: bool) -> None:
        self.kind = kind
        self.concurrent = concurrent
        self.is_closed = False
        self.admission = Admission(self)
        # Held by the thread inside, once for each nested call; where calls are concurrent only while counting.
        self._lock = threading.RLock()
        self._owner: int | None = None
        self._depth = 0

    @property
    def concurrent_option(self) -> str:
        """How a context is made concurrent, for messages."""
        return "options=SessionOptions(concurrent=True)" if self.kind == "session" else "concurrent=True"

    def check_open(self) -> None:
        """Raises ClosedError if the context was closed."""
        if self.is_closed:
            raise ClosedError(f"this {self.kind} was closed")

    # -- synchronous calls ---------------------------------------------------------------------------

    def acquire(self) -> None:
        """Enters for a call; calls of one thread may be nested. ``release`` follows.

        Raises:
            FailedPreconditionError: another thread is inside, or an invocation with a ticket is under way.
            ClosedError: the context was closed.
        """
        if self.concurrent:
            with self._lock:
                self.check_open()
                self._owner = threading.get_ident()
                self._depth += 1
            return
        if not self._lock.acquire(False):
            raise FailedPreconditionError(
                f"this {self.kind} is in use by thread {self._owner_name()}: use it from one thread at a time (hold "
                f"a lock, or make one {self.kind} a thread), or make it with {self.concurrent_option}"
            )
        if self.is_closed or (self.admission.holder is not None and not self._depth):
            self._refuse()
        self._owner = threading.get_ident()
        self._depth += 1

    def _refuse(self) -> None:
        """Leaves again and says why, unless the invocation under way turns out to have been dropped."""
        admission = self.admission
        if not self.is_closed:
            admission.release_dropped()
            if admission.holder is None:
                return
        self._lock.release()
        if admission.waiting:  # a ticket may have found this thread inside meanwhile
            admission.admit()
        self.check_open()
        raise FailedPreconditionError(
            f"an invocation of this {self.kind} is under way, suspended or about to run: end or await it, wait for a "
            f"turn with an asynchronous call, or make the {self.kind} with {self.concurrent_option}"
        )

    def release(self) -> None:
        """Leaves after ``acquire``."""
        if self.concurrent:
            with self._lock:
                self._depth -= 1
            return
        self._depth -= 1
        self._lock.release()
        if self.admission.waiting:
            self.admission.admit()

    # -- steps of invocations ------------------------------------------------------------------------

    def begin_step(self) -> None:
        """Enters for a step of an invocation whose ticket was admitted. ``end_step`` follows.

        Raises:
            ClosedError: the context was closed.
        """
        # Does not block for long: other threads only hold the lock to look.
        self._lock.acquire()
        if self.is_closed:
            self._lock.release()
            self.check_open()
        self._owner = threading.get_ident()
        self._depth += 1
        if self.concurrent:
            self._lock.release()

    def end_step(self) -> None:
        """Leaves after ``begin_step``."""
        if self.concurrent:
            self._lock.acquire()
        self._depth -= 1
        self._lock.release()

    def give_to(self, ticket: Ticket) -> bool:
        """Makes a ticket the holder if no thread is inside; whether it did."""
        if self.concurrent:
            self.admission.holder = ticket
            return True
        # With the lock held, so that no synchronous call enters in between.
        if not self._lock.acquire(False):
            return False
        try:
            if self._depth:
                return False
            self.admission.holder = ticket
            return True
        finally:
            self._lock.release()

    # -- state ---------------------------------------------------------------------------------------

    def is_idle(self) -> bool:
        """Whether no thread is inside."""
        if not self._lock.acquire(False):
            return False
        try:
            return not self._depth
        finally:
            self._lock.release()

    def is_running_here(self) -> bool:
        """Whether this thread is inside a context that is not concurrent."""
        return not self.concurrent and self._depth > 0 and self._owner == threading.get_ident()

    def is_stepping_elsewhere(self) -> bool:
        """Whether an invocation with a ticket is in a step in another thread."""
        return bool(self.admission.in_flight and self._depth and not self.is_running_here())

    # -- closing -------------------------------------------------------------------------------------

    def begin_close(self) -> bool:
        """Enters to close the context; ``False`` if it is closed already. ``end_close`` follows.

        Raises:
            FailedPreconditionError: a thread is inside, or an invocation is in flight.
        """
        if not self._lock.acquire(False):
            raise self._in_use()
        try:
            if self.is_closed:
                self.end_close()
                return False
            if self._depth:
                raise self._in_use()
            count = self.admission.in_flight
            if count:
                raise FailedPreconditionError(
                    f"{count} invocation{'s' * (count != 1)} of this {self.kind} {'are' if count != 1 else 'is'} in "
                    "flight: end, await, cancel or abort them before close"
                )
        except BaseException:
            self.end_close()
            raise
        return True

    def end_close(self) -> None:
        """Leaves after ``begin_close``."""
        self._lock.release()
        if self.admission.waiting:  # a ticket may have found this thread inside meanwhile
            self.admission.admit()

    def _in_use(self) -> FailedPreconditionError:
        return FailedPreconditionError(
            f"this {self.kind} is in use by thread {self._owner_name()}; close it when its calls have returned"
        )

    def _owner_name(self) -> str:
        for thread in threading.enumerate():
            if thread.ident == self._owner:
                return repr(thread.name)
        return str(self._owner)
