"""The host memory of a program's buffers and lists, where its context limits it.

Buffers and lists are made by functions that know no context, so the budget is that of the invocation under way in the
thread. Without any limit in the process this costs a look at an empty table.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from threading import get_ident
from typing import Final

from ...base.memory_budget import MemoryBudget, Share

OBJECT_BYTES: Final = 256
"""Bytes that a buffer or a list takes besides its contents."""

ELEMENT_BYTES: Final = 48
"""Bytes that an element of a list takes: a reference, its kind, and a number."""

budgets: Final[dict[int, MemoryBudget]] = {}
"""The budget of the invocation under way in each thread, if it has one."""


@contextlib.contextmanager
def limited_to(budget: MemoryBudget | None) -> Iterator[None]:
    """Counts what is made in this thread within the block; None counts for nobody."""
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
    """Takes bytes for an object from the budget of this thread; None if it has none.

    Raises:
        ResourceExhaustedError: the budget is spent.
    """
    budget = budgets.get(get_ident())
    return None if budget is None else budget.share(size)
