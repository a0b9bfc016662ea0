"""Policies: the order of a context's invocations.

A context runs one invocation at a time, from its beginning to its end, waits included, because its modules' globals are
one state; only a context made ``concurrent`` lets them overlap. A policy says what an invocation does while another one
is under way.
"""

from __future__ import annotations

from typing import Final

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class InvocationPolicy:
    """The order of an invocation among the others of its context.

    ``InvocationPolicy()`` (``FIFO``) waits for its turn, in the order of beginning. ``InvocationPolicy(priority=1)``
    goes before those of smaller priority that have not begun to run, and never interrupts one that has.
    ``InvocationPolicy(refuse=True)`` (``REFUSE``) fails with FAILED_PRECONDITION where it would have to wait.
    ``InvocationPolicy(concurrent=True)`` (``CONCURRENT``) overlaps with all others, in a context made for it.

    In a concurrent context an invocation that is not ``concurrent`` overlaps with those that are, and runs one at a
    time with those that are not. ``None`` stands for ``CONCURRENT`` in a concurrent context, and elsewhere for
    ``FIFO`` with asynchronous invocations and ``REFUSE`` with synchronous and staged ones.

    Attributes:
        priority: the rank among waiting invocations: larger ones are first, equal ones in order.
        refuse: whether to fail instead of waiting for a turn.
        concurrent: whether to overlap.

    Raises:
        InvalidArgumentError: values have other types, or ``concurrent`` is given with ``priority`` or ``refuse``.
    """

    priority: int = 0
    refuse: bool = False
    concurrent: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.priority, int) or isinstance(self.priority, bool):
            raise InvalidArgumentError(f"priority is an int, larger ones first; got {self.priority!r}")
        if self.concurrent and (self.priority or self.refuse):
            raise InvalidArgumentError(
                "a concurrent invocation waits for no turn: give it neither priority nor refuse, or leave concurrent "
                "out"
            )


FIFO: Final = InvocationPolicy()
"""Waits for its turn, in the order of beginning."""
REFUSE: Final = InvocationPolicy(refuse=True)
"""Fails with FAILED_PRECONDITION where it would have to wait."""
CONCURRENT: Final = InvocationPolicy(concurrent=True)
"""Overlaps with all others, in a context made for it."""


def checked_policy(policy: object, default: InvocationPolicy, *, concurrent: bool) -> InvocationPolicy:
    """Returns a caller's policy, or the one that ``None`` stands for in a context; raises InvalidArgumentError."""
    if policy is None:
        return CONCURRENT if concurrent else default
    if not isinstance(policy, InvocationPolicy):
        raise InvalidArgumentError(f"policy is an InvocationPolicy such as pumice.vm.FIFO, or None; got {policy!r}")
    return policy
