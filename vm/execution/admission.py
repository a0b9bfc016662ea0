"""Which invocation of a context may run, and which thread is inside: tickets, their admission, the gate.

Each staged or asynchronous invocation has a ``Ticket`` from its beginning to its end. A ticket is a wait source that is
ready when the invocation may run: one that has to wait is suspended as in any other wait, on top of its stack, before
anything ran.

A context that is not concurrent is used by one thread at a time, nested calls of that thread included; one that is
``concurrent`` only counts. Synchronous calls go through ``acquire`` and ``release`` of the gate; steps of invocations
that hold a ticket through ``begin_step`` and ``end_step``.

Thread rule: every method from any thread.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import threading
from collections import deque
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Final

from ...status import ClosedError, FailedPreconditionError
from ...waits.latch import Latch
from .policy import InvocationPolicy

_order: Final = itertools.count()


class Ticket(Latch):
    """An invocation's place in the order of its context.

    Attributes:
        thread: that is in a step of the invocation, or 0.
        is_released: whether it has ended.
    """

    __slots__ = ("_admission", "_key", "is_released", "thread")

    def __init__(self, admission: Admission, policy: InvocationPolicy) -> None:
        self.is_settled = False  # as a latch begins; every call makes a ticket
        self._error = None
        self._notifications = None
        self._admission = admission
        self._key = (-policy.priority, next(_order))
        self.is_released = False
        self.thread = 0

    def __lt__(self, other: Ticket) -> bool:
        return self._key < other._key

    def _poll(self) -> None:
        self._admission.release_dropped()

    def wait_until(self, deadline: float | None = None) -> None:
        """Blocks until the invocation may run; refused in a thread whose end of a function it would wait for."""
        if not self.is_settled and self._admission.runs_here():
            raise FailedPreconditionError(
                "waiting for a turn in a context whose function this thread is running would never end; call the "
                "function with context.invoke instead"
            )
        super().wait_until(deadline)

    def release(self) -> None:
        """Ends it, whether it was admitted or not, and admits the next one; idempotent."""
        admission = self._admission
        with admission.lock:
            if self.is_released:
                return
            self.is_released = True
            admission.count -= 1
            if admission.holder is self:
                admission.holder = None
            elif self in admission.waiting:
                admission.waiting.remove(self)
                heapq.heapify(admission.waiting)
        if admission.waiting:  # one that comes now is admitted by whoever makes it
            admission.admit()

    def drop(self) -> None:
        """``release`` for finalizers, which may run at any point and under any lock: only takes a note."""
        self._admission.dropped.append(self)
        _Releaser.wake(self._admission)


class Admission:
    """The tickets of one context.

    A ticket is held by an invocation, not by a thread: one that is suspended in a wait still holds it. Synchronous
    calls take no ticket but look at ``holder``.

    Attributes:
        holder: the admitted ticket, where the context runs one invocation at a time.
        waiting: tickets that are not admitted, as a heap.
        dropped: tickets whose invocations are gone.
        count: how many have not ended; changed by plain statements, which no thread switch divides.
    """

    def __init__(self, gate: ContextGate) -> None:
        self._gate = gate
        self.lock = threading.RLock()
        self.dropped: deque[Ticket] = deque()
        self.count = 0
        self.holder: Ticket | None = None
        self.waiting: list[Ticket] = []

    @property
    def in_flight(self) -> int:
        """How many tickets have not ended."""
        self.release_dropped()
        return self.count

    def enter(self, policy: InvocationPolicy) -> Ticket:
        """A ticket for a new invocation, settled where it may run at once.

        Raises FailedPreconditionError where the policy refuses to wait, or is ``CONCURRENT`` and the context is not.
        """
        gate = self._gate
        if self.dropped:
            self.release_dropped()
        ticket = Ticket(self, policy)
        if policy.concurrent:
            if not gate.concurrent:
                raise FailedPreconditionError(
                    f"this {gate.kind} was not made for concurrent invocations: make it with {gate.concurrent_option}, "
                    "or give another policy"
                )
            self.count += 1
            ticket.is_settled = True  # nobody knows it yet
            return ticket
        with self.lock:
            if policy.refuse and (self.waiting or self.holder is not None or not (gate.concurrent or gate.is_idle())):
                raise FailedPreconditionError(
                    f"this {gate.kind} is running another invocation, which ends first: end or await that one, give "
                    f"policy=FIFO to wait for a turn, or make the {gate.kind} with {gate.concurrent_option}"
                )
            self.count += 1
            heapq.heappush(self.waiting, ticket)
        self.admit()
        if not ticket.is_settled:
            if policy.refuse:  # another one was admitted meanwhile
                ticket.release()
                raise FailedPreconditionError(
                    f"this {gate.kind} has just begun to run another invocation: give policy=FIFO to wait for a "
                    f"turn, or make the {gate.kind} with {gate.concurrent_option}"
                )
            _Releaser.start()
            self.release_dropped()  # dropped before the releaser ran
        return ticket

    def admit(self) -> None:
        """Admits the first waiting ticket if none is held. Called wherever one may have ended."""
        with self.lock:
            if not self.waiting or self.holder is not None or not self._gate.give_to(self.waiting[0]):
                return
            ticket = heapq.heappop(self.waiting)
        ticket.settle()

    def release_dropped(self) -> None:
        """Ends the tickets that were dropped."""
        while self.dropped:
            try:
                ticket = self.dropped.popleft()
            except IndexError:  # another thread was quicker
                return
            ticket.release()

    def runs_here(self) -> bool:
        """Whether this thread is in a function of the context that ends before the next ticket is admitted."""
        holder = self.holder
        return self._gate.is_running_here() or (holder is not None and holder.thread == threading.get_ident())


class _Releaser:
    """A thread that releases dropped tickets while others wait for theirs.

    It is started where a ticket has to wait, never in a finalizer: starting a thread takes locks. Without waiting
    tickets dropped ones are released by the next call that looks at the admission.
    """

    _lock: Final = threading.Lock()
    _queue: Final[SimpleQueue[Admission]] = SimpleQueue()  # its put() may be called in finalizers
    _thread: threading.Thread | None = None

    @classmethod
    def start(cls) -> None:
        with cls._lock:
            if cls._thread is None or not cls._thread.is_alive():  # none yet, or none in a forked child
                cls._thread = threading.Thread(target=cls._run, name="pumice releaser", daemon=True)
                cls._thread.start()

    @classmethod
    def wake(cls, admission: Admission) -> None:
        if cls._thread is not None:
            cls._queue.put(admission)

    @classmethod
    def _run(cls) -> None:
        while True:
            cls._queue.get().release_dropped()


class ContextGate:
    """Which thread is inside a context.

    Attributes:
        kind: what messages call the context.
        concurrent: whether its invocations may overlap.
        admission: the tickets of its invocations.
        is_closed: whether the context was closed.
    """

    __slots__ = (
        "_depth",
        "_is_closing",
        "_lock",
        "_owner",
        "admission",
        "concurrent",
        "concurrent_option",
        "is_closed",
        "kind",
    )

    def __init__(self, kind: str, *, concurrent: bool) -> None:
        self.kind = kind
        self.concurrent = concurrent
        # How it is made concurrent, for messages.
        self.concurrent_option = "options=SessionOptions(concurrent=True)" if kind == "session" else "concurrent=True"
        self.is_closed = False
        self.admission = Admission(self)
        # Held by the thread inside, once for each nested call. Where calls are concurrent they are only counted, which
        # takes no lock: no thread switch divides a plain statement. Whoever closes sets ``_is_closing`` before it looks
        # at the count, and those who enter count before they look at that.
        self._lock = threading.RLock()
        self._owner: int | None = None
        self._depth = 0
        self._is_closing = False

    def check_open(self) -> None:
        """Raises ClosedError if the context was closed."""
        if self.is_closed:
            raise ClosedError(f"this {self.kind} was closed")

    # -- synchronous calls ---------------------------------------------------------------------------

    def acquire(self) -> None:
        """Enters for a call; calls of one thread may be nested. ``release`` follows.

        Raises FailedPreconditionError while another thread or an invocation with a ticket is inside, or ClosedError.
        """
        if self.concurrent:
            self.begin_step()
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
        if not self.is_closed:
            self.admission.release_dropped()
            if self.admission.holder is None:
                return
        self._unlock()
        self.check_open()
        raise FailedPreconditionError(
            f"an invocation of this {self.kind} is under way, suspended or about to run: end or await it, wait for a "
            f"turn with an asynchronous call, or make the {self.kind} with {self.concurrent_option}"
        )

    def release(self) -> None:
        """Leaves after ``acquire``."""
        self._depth -= 1
        if self.concurrent:
            return
        self._lock.release()
        if self.admission.waiting:  # inline: every call comes here
            self.admission.admit()

    # -- steps of invocations ------------------------------------------------------------------------

    def begin_step(self) -> int:
        """Enters for a step of an invocation whose ticket was admitted; ``end_step`` follows.

        Returns the calling thread's identifier; raises ClosedError.
        """
        owner = threading.get_ident()
        if self.concurrent:
            self._owner = owner
            self._depth += 1
            if not self._is_closing:
                return owner
            self._depth -= 1
        # Does not block for long: other threads only hold the lock to look, or to close.
        self._lock.acquire()
        if self.is_closed:
            self._lock.release()
            self.check_open()
        self._owner = owner
        self._depth += 1
        if self.concurrent:
            self._lock.release()
        return owner

    def end_step(self) -> None:
        """Leaves after ``begin_step``."""
        self._depth -= 1
        if not self.concurrent:
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
            if not self._depth:
                self.admission.holder = ticket
            return not self._depth
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

    @contextlib.contextmanager
    def closing(self) -> Iterator[None]:
        """Keeps threads out while the context is closed; refused while one is inside or an invocation is in flight."""
        if not self._lock.acquire(False):
            raise self._in_use()
        try:
            self._is_closing = True
            if self._depth:
                raise self._in_use()
            count = self.admission.in_flight
            if count:
                raise FailedPreconditionError(
                    f"{count} invocation{'s' * (count != 1)} of this {self.kind} {'are' if count != 1 else 'is'} in "
                    "flight: end, await, cancel or abort them before close"
                )
            yield
        finally:
            self._is_closing = self.is_closed
            self._unlock()

    def _unlock(self) -> None:
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
