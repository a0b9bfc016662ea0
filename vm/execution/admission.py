"""Admission to a context: turns, tickets, the gate, and the threads inside.

Each use of a context has a ``Turn``. A context that is not concurrent admits one turn at a time, from its beginning to
its end, including waits; in a concurrent context turns overlap, unless a policy says otherwise. A use that must wait
for its turn gets a ``Ticket``, a wait source that is ready when the turn has come.

Steps go through ``begin_step``, which takes the turn at the first step, and ``end_step``, which gives it back at the
last. All of a gate's state changes under its single lock; callbacks come after its release.

Thread rule: every method from any thread.
"""

from __future__ import annotations

import contextlib
import heapq
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from queue import SimpleQueue
from threading import get_ident
from typing import TYPE_CHECKING, Final

from ...base.locks import RLock
from ...status import ClosedError, FailedPreconditionError, PumiceError
from ...waits.latch import Latch
from .policy import InvocationPolicy

if TYPE_CHECKING:
    from .watchdog import Guard


CLOSED: Final = -1
"""The ``closer`` of a closed gate: no thread's identifier."""


class Turn:
    """One use of a context.

    Attributes:
        policy: the order among others; ``None`` for a synchronous call, which is rejected instead of waiting, or joins
            its thread's current turn.
        stays: whether its thread stays inside from the first step to the end, since it blocks during waits.
        has_turn: whether the turn was admitted and has not ended.
        ticket: the turn's place in line, while it waits.
        thread: the thread inside with it, or 0.
        ending: the error that ends it; no step begins after it is set.
        guard: a guard that interrupts the current step.
    """

    __slots__ = ("ending", "guard", "has_turn", "policy", "stays", "thread", "ticket")

    def __init__(self, policy: InvocationPolicy | None, stays: bool) -> None:
        self.policy: InvocationPolicy | None = policy
        self.stays: bool = stays
        self.has_turn: bool = False
        self.thread: int = 0
        self.ticket: Ticket | None = None
        self.ending: PumiceError | None = None
        self.guard: Guard | None = None


class Ticket(Latch):
    """A turn's place in line; ready when the turn has come."""

    __slots__ = ("_gate", "_key", "turn")

    def __init__(self, gate: ContextGate, turn: Turn, key: tuple[int, int]) -> None:
        super().__init__()
        self._gate = gate
        self._key = key
        self.turn: Turn | None = turn  # until it leaves the line

    def __lt__(self, other: Ticket) -> bool:
        return self._key < other._key

    def _poll(self) -> None:
        self._gate.release_dropped()

    def wait_until(self, deadline: float | None = None) -> None:
        """Blocks until the turn has come; rejected in a thread that would wait for itself."""
        if not self.is_settled and self._gate.runs_here():
            raise FailedPreconditionError(
                "waiting for a turn in a context whose function this thread is running would never end; call the "
                "function with context.invoke instead"
            )
        super().wait_until(deadline)


class ContextGate:
    """The turns of a context, and the threads inside it.

    Attributes:
        kind: the name of the context's kind in messages.
        concurrent: whether its invocations may overlap.
        is_closed: whether the context was closed, or a close of it was interrupted.
        is_released: whether ``close`` has nothing left to do.
        closing: the close in progress.
        closer: the thread of the close in progress; CLOSED afterwards.
        lock: a lock that is held for a few statements at a time. Reentrant: signal handlers may abort an invocation.
        holder: the turn for which others wait.
        waiting: the tickets in line, as a heap.
    """

    __slots__ = (
        "_dropped",
        "_ended",
        "_inside",
        "_serial",
        "_turns",
        "_watchers",
        "closer",
        "closing",
        "concurrent",
        "concurrent_option",
        "holder",
        "is_closed",
        "is_released",
        "kind",
        "lock",
        "waiting",
    )

    def __init__(self, kind: str, *, concurrent: bool) -> None:
        self.kind: str = kind
        self.concurrent: bool = concurrent
        # The way to make it concurrent, for messages.
        self.concurrent_option = "options=SessionOptions(concurrent=True)" if kind == "session" else "concurrent=True"
        self.is_closed: bool = False
        self.is_released: bool = False
        self.closing: object = None
        self.lock: threading.RLock = RLock()
        self.holder: Turn | None = None
        self.waiting: list[Ticket] = []
        self._ended = threading.Condition(self.lock)  # notified when a turn has ended, if a thread waits for it
        self._watchers = 0
        self._serial = 0  # the last ticket's
        self._turns = 0  # including those in line
        self._inside = 0  # current steps, including nested ones
        self.closer: int = 0
        self._dropped: deque[Turn] = deque()

    def check_open(self) -> None:
        """Raises ClosedError if the context was closed."""
        if self.is_closed:
            raise ClosedError(f"this {self.kind} was closed")

    # -- steps ---------------------------------------------------------------------------------------

    def begin_step(self, turn: Turn) -> Ticket | None:
        """Enters for a step; ``end_step`` follows.

        Returns:
            ``None``, or a ticket to wait for before the first step, which then has not begun.

        Raises:
            FailedPreconditionError: the policy does not allow waiting, or does not fit the context.
            ClosedError: the context was closed.
            PumiceError: ``turn.ending``, which was set before.
        """
        # This and ``end_step`` avoid calls, as every invocation runs them (benchmarks/call_latency.py).
        thread = get_ident()
        if turn.thread == thread:
            return None
        if self._dropped:
            self.release_dropped()
        with self.lock:  # unlike after acquire(), an interrupt cannot leave it locked
            if self.closer and self.closer != thread:
                raise ClosedError(f"this {self.kind} was closed")
            if turn.ending is not None:
                raise turn.ending.again()
            ticket = None
            if not turn.has_turn:
                policy = turn.policy
                overlaps = self.concurrent if policy is None else policy.concurrent
                if self.concurrent if overlaps else self.holder is None:
                    turn.has_turn = True
                    self._turns += 1
                    if not overlaps:
                        self.holder = turn
                elif policy is not None or self.holder is None or self.holder.thread != thread:
                    ticket = turn.ticket or self._line_up(turn, policy)
                # else a call within this thread's turn
            if ticket is None:
                turn.thread = thread
                self._inside += 1
                return None
        _Releaser.start()
        self.release_dropped()  # dropped before the releaser ran
        return ticket

    def _line_up(self, turn: Turn, policy: InvocationPolicy | None) -> Ticket:
        """Puts a turn in line; raises if it does not wait. The lock is held."""
        if policy is None or policy.refuse or policy.concurrent:
            raise self._refusal(policy)
        self._serial += 1
        ticket = turn.ticket = Ticket(self, turn, (-policy.priority, self._serial))
        heapq.heappush(self.waiting, ticket)
        self._turns += 1
        return ticket

    def end_step(self, turn: Turn, is_over: bool) -> None:
        """Leaves after ``begin_step``, if that began a step; gives the turn back if it is over."""
        guard = ticket = None
        with self.lock:
            if turn.thread and (is_over or not turn.stays):
                turn.thread = 0
                self._inside -= 1
                if turn.guard is not None:
                    guard, turn.guard = turn.guard, None
            if is_over:
                if self.waiting or turn.ticket is not None:
                    ticket = self._give_back(turn)
                elif turn.has_turn:
                    turn.has_turn = False
                    self._turns -= 1
                    if self.holder is turn:
                        self.holder = None
                if self._watchers:
                    self._ended.notify_all()
        if guard is not None:
            guard.leave()
        if ticket is not None:
            ticket.settle()

    # -- turns ---------------------------------------------------------------------------------------

    def give_back(self, turn: Turn) -> None:
        """Ends a turn, or removes it from the line, and admits the next; idempotent."""
        with self.lock:
            ticket = self._give_back(turn)
            if self._watchers:
                self._ended.notify_all()
        if ticket is not None:
            ticket.settle()

    def _give_back(self, turn: Turn) -> Ticket | None:
        """Ends a turn as ``give_back`` does, and returns the ticket to settle. The lock is held."""
        ticket = turn.ticket
        if ticket is not None:
            self.waiting.remove(ticket)
            heapq.heapify(self.waiting)
            turn.ticket = ticket.turn = None
        elif not turn.has_turn:
            return None
        turn.has_turn = False
        self._turns -= 1
        if self.holder is not turn:
            return None
        self.holder = None
        if not self.waiting:
            return None
        ticket = heapq.heappop(self.waiting)
        following = self.holder = ticket.turn
        assert following is not None
        following.has_turn = True
        following.ticket = ticket.turn = None
        return ticket

    def drop(self, turn: Turn) -> None:
        """Performs ``give_back`` for finalizers, which may run at any point and under any lock, so it only appends to a
        list.
        """
        self._dropped.append(turn)
        _Releaser.wake(self)

    def release_dropped(self) -> None:
        """Ends the dropped turns."""
        while self._dropped:
            with contextlib.suppress(IndexError):  # another thread took the last
                self.give_back(self._dropped.popleft())

    @property
    def in_flight(self) -> int:
        """The number of unfinished turns, including those in line."""
        self.release_dropped()
        return self._turns

    def runs_here(self) -> bool:
        """Whether this thread is in a function that must end before the next turn."""
        holder = self.holder
        return holder is not None and holder.thread == get_ident()

    # -- threads -------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Keeps other threads out of a context that is not concurrent, like a call."""
        turn = Turn(None, True)
        try:
            self.begin_step(turn)
            yield
            self.end_step(turn, True)
        except BaseException:  # also for Ctrl-C at the beginning of end_step
            self.end_step(turn, True)
            raise

    def is_idle(self) -> bool:
        """Whether no thread is inside."""
        return not self._inside

    def wait_until_ended(self, turns: Iterable[Turn], timeout: float) -> None:
        """Waits until these turns have ended, except those in a step in this thread; for some seconds at most.

        It is not enough that a thread has left its step: after a suspension, its driver must still give the turn back.
        """
        here = get_ident()

        def is_over(turn: Turn) -> bool:
            return turn.thread == here or not (turn.thread or turn.has_turn or turn.ticket is not None)

        with self.lock:
            self._watchers += 1
            try:
                self._ended.wait_for(lambda: all(map(is_over, turns)), timeout)
            finally:
                self._watchers -= 1

    def begin_close(self, closing: object) -> None:
        """Keeps other threads out during a close; rejected while a thread is inside or an invocation is in flight.

        If ``closing`` is then its own, the caller sets ``closer`` to CLOSED and ``is_closed`` in a ``finally``, by
        assignments, which an interrupt cannot prevent.
        """
        self.release_dropped()
        with self.lock:
            if self._inside or self.closer > 0:
                raise FailedPreconditionError(
                    f"this {self.kind} is in use by thread {self._user()}; close it when its calls have returned"
                )
            count = self._turns
            if count:
                raise FailedPreconditionError(
                    f"{count} invocation{'s' * (count != 1)} of this {self.kind} {'are' if count != 1 else 'is'} in "
                    "flight: end, await, cancel or abort them before close"
                )
            thread = get_ident()
            self.closer = thread
            self.closing = closing

    # -- messages ------------------------------------------------------------------------------------

    def _refusal(self, policy: InvocationPolicy | None) -> FailedPreconditionError:
        """Returns the error for a turn that was not admitted, by its policy."""
        if policy is not None and policy.concurrent:
            return FailedPreconditionError(
                f"this {self.kind} was not made for concurrent invocations: make it with {self.concurrent_option}, or "
                "give another policy"
            )
        if policy is not None:
            return FailedPreconditionError(
                f"this {self.kind} is running another invocation, which ends first: end or await that one, give "
                f"policy=FIFO to wait for a turn, or make the {self.kind} with {self.concurrent_option}"
            )
        if self.holder is not None and self.holder.thread:
            return FailedPreconditionError(
                f"this {self.kind} is in use by thread {_name_of(self.holder.thread)}: use it from one thread at a "
                f"time (hold a lock, or make one {self.kind} a thread), or make it with {self.concurrent_option}"
            )
        return FailedPreconditionError(
            f"an invocation of this {self.kind} is running, suspended or about to run: end or await it, wait for a "
            f"turn with an asynchronous call, or make the {self.kind} with {self.concurrent_option}"
        )

    def _user(self) -> str:
        """Returns the thread inside, if it is known."""
        thread = self.closer or (self.holder.thread if self.holder is not None else 0)
        return _name_of(thread) if thread else "of a concurrent call"


def _name_of(ident: int) -> str:
    for thread in threading.enumerate():
        if thread.ident == ident:
            return repr(thread.name)
    return str(ident)


class _Releaser:
    """A thread that gives dropped turns back while others wait for theirs.

    It is started when a turn must wait, never in a finalizer, as starting a thread takes locks. Otherwise the next call
    that uses the gate gives them back.
    """

    _lock: Final = threading.Lock()
    _queue: Final[SimpleQueue[ContextGate]] = SimpleQueue()  # its put() may be called in finalizers
    _thread: threading.Thread | None = None

    @classmethod
    def start(cls) -> None:
        with cls._lock:
            if cls._thread is None or not cls._thread.is_alive():  # no thread yet, or none in a forked child
                cls._thread = threading.Thread(target=cls._run, name="pumice releaser", daemon=True)
                cls._thread.start()

    @classmethod
    def wake(cls, gate: ContextGate) -> None:
        if cls._thread is not None:
            cls._queue.put(gate)

    @classmethod
    def _run(cls) -> None:
        while True:
            cls._queue.get().release_dropped()
