"""Policies: the order of a context's invocations.

A context runs one invocation at a time, from beginning to end including waits, because its modules' globals are one
state; only in a ``concurrent`` context may they overlap. A policy determines the behaviour of an invocation while
another is running.
"""

from __future__ import annotations

from typing import Final

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class InvocationPolicy:
    """The order of an invocation among the others of its context.

    ``InvocationPolicy()`` (``FIFO``) waits for its turn, in the order of beginning. ``InvocationPolicy(priority=1)``
    runs before waiting invocations of smaller priority, and never interrupts a running one.
    ``InvocationPolicy(refuse=True)`` (``REFUSE``) fails with FAILED_PRECONDITION instead of waiting.
    ``InvocationPolicy(concurrent=True)`` (``CONCURRENT``) overlaps with all others, in a concurrent context.

    In a concurrent context, an invocation that is not ``concurrent`` overlaps with ``concurrent`` invocations, but not
    with others. ``None`` means ``CONCURRENT`` in a concurrent context; elsewhere it means ``FIFO`` for asynchronous
    invocations and ``REFUSE`` for synchronous and staged ones.

    Attributes:
        priority: the rank among waiting invocations: higher first, equal priorities in order.
        refuse: whether to fail instead of waiting for a turn.
        concurrent: whether to overlap.

    Raises:
        InvalidArgumentError: values have other types, or ``concurrent`` is combined with ``priority`` or ``refuse``.
    """

    priority: int = 0
    refuse: bool = False
    concurrent: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.priority, int) or isinstance(self.priority, bool):
            raise InvalidArgumentError(f"priority is an int, larger numbers first; got {self.priority!r}")
        if self.concurrent and (self.priority or self.refuse):
            raise InvalidArgumentError(
                "a concurrent invocation waits for no turn: give it neither priority nor refuse, or leave concurrent "
                "out"
            )


FIFO: Final = InvocationPolicy()
"""Waits for its turn, in the order of beginning."""
REFUSE: Final = InvocationPolicy(refuse=True)
"""Fails with FAILED_PRECONDITION instead of waiting."""
CONCURRENT: Final = InvocationPolicy(concurrent=True)
"""Overlaps with all others, in a concurrent context."""


def checked_policy(policy: object, default: InvocationPolicy, *, concurrent: bool) -> InvocationPolicy:
    """Returns a caller's policy, or the meaning of ``None`` in a context; raises InvalidArgumentError."""
    if policy is None:
        return CONCURRENT if concurrent else default
    if not isinstance(policy, InvocationPolicy):
        raise InvalidArgumentError(f"policy is an InvocationPolicy such as pumice.vm.FIFO, or None; got {policy!r}")
    return policy
