"""Turns: which invocation of a context may run.

Each staged or asynchronous invocation has a ``Turn`` from its beginning to its end. A turn is a wait source, ready when it is the
invocation's: one that has to wait for its turn is suspended like any other wait, on top of its stack before anything ran.

Thread rule: every method from any thread.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from typing import TYPE_CHECKING, Final

from ...status import FailedPreconditionError, InvalidArgumentError
from ..wait.latch import Latch
from .policy import CONCURRENT, InvocationPolicy

if TYPE_CHECKING:
    from .context import Context

__all__ = ["Admission", "Turn"]

_order: Final = itertools.count()


class Turn(Latch):
    """An invocation's place in the order of its context.

    Attributes:
        policy: the policy that it has.
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

    def __lt__(self, other: Turn) -> bool:
        return self._key < other._key

    def wait_until(self, deadline: float | None = None) -> None:
        """Blocks until it is this invocation's turn.

        Raises:
            FailedPreconditionError: this thread runs a function of the context: its turn would never come.
            DeadlineExceededError: the deadline passed first.
        """
        if not self.is_settled and self._admission.runs_here():
            raise FailedPreconditionError(
                "waiting for a turn in a context whose function this thread is running would never end; call the function with "
                "context.invoke instead"
            )
        super().wait_until(deadline)

    def release(self) -> None:
        """Ends it, whether it came or not, and lets the next one in; idempotent."""
        self._admission.release(self)


class Admission:
    """The turns of one context.

    A turn is held, not the thread: an invocation that is suspended in a wait still has it. ``holder`` is looked at by synchronous
    calls, which take no turn.
    """

    __slots__ = ("_context", "_lock", "holder", "in_flight", "waiting")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._lock = threading.RLock()
        self.holder: Turn | None = None
        self.in_flight = 0
        self.waiting: list[Turn] = []

    def enter(self, policy: InvocationPolicy) -> Turn:
        """A turn for a new invocation, settled where it may run at once.

        Raises:
            FailedPreconditionError: the policy refuses to wait and would have to, or it is ``CONCURRENT`` in a context that is not.
        """
        context = self._context
        turn = Turn(self, policy)
        if policy.concurrent:
            if not context.concurrent:
                raise FailedPreconditionError(
                    f"this {context.kind} was not made for concurrent invocations: make it with {context.concurrent_option}, or give another policy"
                )
            with self._lock:
                self.in_flight += 1
            turn.settle()
            return turn
        with self._lock:
            if policy.refuse and (
                self.waiting or self.holder is not None or not (context.concurrent or context.is_idle())
            ):
                raise FailedPreconditionError(
                    f"this {context.kind} is running another invocation, which ends first: end or await that one, give policy=FIFO to "
                    f"wait for a turn, or make the {context.kind} with {context.concurrent_option}"
                )
            self.in_flight += 1
            heapq.heappush(self.waiting, turn)
        self.admit()
        if policy.refuse and not turn.is_settled:  # somebody was quicker
            self.release(turn)
            raise FailedPreconditionError(
                f"this {context.kind} has just begun to run another invocation: give policy=FIFO to wait for a turn, or make the "
                f"{context.kind} with {context.concurrent_option}"
            )
        return turn

    def admit(self) -> None:
        """Gives the turn to whose it is, if nobody has it. Called wherever somebody may have ended."""
        with self._lock:
            if not self.waiting or self.holder is not None or not self._context.give_to(self.waiting[0]):
                return
            turn = heapq.heappop(self.waiting)
        turn.settle()

    def release(self, turn: Turn) -> None:
        """Ends a turn."""
        with self._lock:
            if turn._released:
                return
            turn._released = True
            self.in_flight -= 1
            if self.holder is turn:
                self.holder = None
            elif self.waiting and turn in self.waiting:
                self.waiting.remove(turn)
                heapq.heapify(self.waiting)
        self.admit()

    def runs_here(self) -> bool:
        """Whether this thread is in a function of the context that ends before the next turn comes."""
        holder = self.holder
        return self._context.is_running_here() or (holder is not None and holder.thread == threading.get_ident())


def checked_policy(policy: object, context: Context, default: InvocationPolicy) -> InvocationPolicy:
    """A caller's policy, or what none means.

    Raises:
        InvalidArgumentError: it is none.
    """
    if policy is None:
        return CONCURRENT if context.concurrent else default
    if not isinstance(policy, InvocationPolicy):
        raise InvalidArgumentError(f"policy is an InvocationPolicy such as pumice.vm.FIFO, or None; got {policy!r}")
    return policy
