"""Counts the host memory of a program's buffers and lists, if its context limits it.

Buffers and lists are created without access to a context, so the budget is that of the current invocation in the
thread. Without a limit in the process the cost is a lookup in an empty table.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from threading import get_ident
from typing import Final

from ...base.memory_budget import MemoryBudget, Share

OBJECT_BYTES: Final = 256
"""The size of a buffer or a list without its contents, in bytes."""

ELEMENT_BYTES: Final = 48
"""The size of a list element in bytes: a reference, its kind, and a number."""

budgets: Final[dict[int, MemoryBudget]] = {}
"""The budget of the current invocation in each thread, if it has a budget."""


@contextlib.contextmanager
def limited_to(budget: MemoryBudget | None) -> Iterator[None]:
    """Counts objects created in this thread within the block against a budget; ``None`` means no limit."""
    thread = get_ident()
    outer = budgets.pop(thread, None)
    if budget is not None:
        budgets[thread] = budget
    try:
        yield
    finally:
        if outer is not None:
            budgets[thread] = outer
        else:
            budgets.pop(thread, None)


def share_of(size: int) -> Share | None:
    """Reserves bytes for an object in this thread's budget; returns ``None`` if the thread has no budget.

    Raises:
        ResourceExhaustedError: the budget is spent.
    """
    budget = budgets.get(get_ident())
    return None if budget is None else budget.share(size)
