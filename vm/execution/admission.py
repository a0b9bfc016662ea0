"""Tickets: which invocation of a context may run.

Each staged or asynchronous invocation has a ``Ticket`` from its beginning to its end. A ticket is a wait source that is
ready when the invocation may run: one that has to wait is suspended as in any other wait, on top of its stack, before
anything ran.

Thread rule: every method from any thread.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections import deque
from queue import SimpleQueue
from typing import Final, Protocol

from ...status import FailedPreconditionError, InvalidArgumentError
from ..wait.latch import Latch
from .policy import CONCURRENT, InvocationPolicy

_order: Final = itertools.count()


class Gate(Protocol):
    """What keeps the invocations of a context apart, as ``Admission`` uses it.

    Attributes:
        kind: what messages call the context.
        concurrent: whether its invocations may overlap.
    """

    kind: str
    concurrent: bool

    @property
    def concurrent_option(self) -> str:
        """How a context is made concurrent, for messages."""

    def is_idle(self) -> bool:
        """Whether no thread is in a function of the context."""

    def is_running_here(self) -> bool:
        """Whether this thread is in a function of a context that is not concurrent."""

    def give_to(self, ticket: Ticket) -> bool:
        """Makes a ticket the holder if no thread uses the context; whether it did."""


class Ticket(Latch):
    """An invocation's place in the order of its context.

    Attributes:
        policy: the invocation's.
        thread: that is in a step of the invocation, or 0.
    """

    __slots__ = ("_admission", "_key", "_released", "policy", "thread")

    def __init__(self, admission: Admission, policy: InvocationPolicy) -> None:
        super().__init__()
        self._admission = admission
        self._key = (-policy.priority, next(_order))
        self._released = False
        self.policy = policy
        self.thread = 0

    def __lt__(self, other: Ticket) -> bool:
        return self._key < other._key

    def _poll(self) -> None:
        self._admission.release_dropped()

    def wait_until(self, deadline: float | None = None) -> None:
        """Blocks until the invocation may run.

        Raises:
            FailedPreconditionError: this thread runs a function of the context, so the wait would never end.
            DeadlineExceededError: the deadline passed first.
        """
        if not self.is_settled and self._admission.runs_here():
            raise FailedPreconditionError(
                "waiting for a turn in a context whose function this thread is running would never end; call the "
                "function with context.invoke instead"
            )
        super().wait_until(deadline)

    def release(self) -> None:
        """Ends it, whether it was admitted or not, and admits the next one; idempotent."""
        self._admission.release(self)

    def drop(self) -> None:
        """``release`` for finalizers, which may run at any point and under any lock: only takes a note."""
        self._admission.drop(self)


class Admission:
    """The tickets of one context.

    A ticket is held by an invocation, not by a thread: one that is suspended in a wait still holds it. Synchronous
    calls take no ticket but look at ``holder``.

    Attributes:
        holder: the admitted ticket, where the context runs one invocation at a time.
        waiting: tickets that are not admitted, as a heap.
    """

    __slots__ = ("__weakref__", "_dropped", "_gate", "_in_flight", "_lock", "holder", "waiting")

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._lock = threading.RLock()
        self._dropped: deque[Ticket] = deque()
        self._in_flight = 0
        self.holder: Ticket | None = None
        self.waiting: list[Ticket] = []

    @property
    def in_flight(self) -> int:
        """How many tickets have not ended."""
        self.release_dropped()
        return self._in_flight

    def enter(self, policy: InvocationPolicy) -> Ticket:
        """A ticket for a new invocation, settled where it may run at once.

        Raises:
            FailedPreconditionError: the policy refuses to wait and would have to, or it is ``CONCURRENT`` in a context
                that is not.
        """
        gate = self._gate
        self.release_dropped()
        ticket = Ticket(self, policy)
        if policy.concurrent:
            if not gate.concurrent:
                raise FailedPreconditionError(
                    f"this {gate.kind} was not made for concurrent invocations: make it with {gate.concurrent_option}, "
                    "or give another policy"
                )
            with self._lock:
                self._in_flight += 1
            ticket.settle()
            return ticket
        with self._lock:
            if policy.refuse and (self.waiting or self.holder is not None or not (gate.concurrent or gate.is_idle())):
                raise FailedPreconditionError(
                    f"this {gate.kind} is running another invocation, which ends first: end or await that one, give "
                    f"policy=FIFO to wait for a turn, or make the {gate.kind} with {gate.concurrent_option}"
                )
            self._in_flight += 1
            heapq.heappush(self.waiting, ticket)
        self.admit()
        if not ticket.is_settled:
            if policy.refuse:  # another one was admitted meanwhile
                self.release(ticket)
                raise FailedPreconditionError(
                    f"this {gate.kind} has just begun to run another invocation: give policy=FIFO to wait for a "
                    f"turn, or make the {gate.kind} with {gate.concurrent_option}"
                )
            _Releaser.start()
            self.release_dropped()  # dropped before the releaser ran
        return ticket

    def admit(self) -> None:
        """Admits the first waiting ticket if none is held. Called wherever one may have ended."""
        with self._lock:
            if not self.waiting or self.holder is not None or not self._gate.give_to(self.waiting[0]):
                return
            ticket = heapq.heappop(self.waiting)
        ticket.settle()

    def release(self, ticket: Ticket) -> None:
        """Ends a ticket."""
        with self._lock:
            if ticket._released:
                return
            ticket._released = True
            self._in_flight -= 1
            if self.holder is ticket:
                self.holder = None
            elif self.waiting and ticket in self.waiting:
                self.waiting.remove(ticket)
                heapq.heapify(self.waiting)
        self.admit()

    def drop(self, ticket: Ticket) -> None:
        """Notes a ticket whose invocation is gone; takes no lock and calls no callback."""
        self._dropped.append(ticket)
        _Releaser.wake(self)

    def release_dropped(self) -> None:
        """Ends the tickets that were dropped."""
        while self._dropped:
            try:
                ticket = self._dropped.popleft()
            except IndexError:  # another thread was quicker
                return
            self.release(ticket)

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


def checked_policy(policy: object, default: InvocationPolicy, *, concurrent: bool) -> InvocationPolicy:
    """A caller's policy, or the one that ``None`` stands for in a context.

    Raises:
        InvalidArgumentError: it is none.
    """
    if policy is None:
        return CONCURRENT if concurrent else default
    if not isinstance(policy, InvocationPolicy):
        raise InvalidArgumentError(f"policy is an InvocationPolicy such as pumice.vm.FIFO, or None; got {policy!r}")
    return policy
