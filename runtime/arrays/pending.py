"""Programs under way that write an array: the fences that they signal, where the call has returned before."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, TypeAlias

from ...hal.timeouts import deadline_after
from ...status import PumiceError

if TYPE_CHECKING:
    from ...waits.source import WaitSource

Fences: TypeAlias = "tuple[WaitSource, ...]"


def wait_for(fences: Fences, timeout: float | None) -> float | None:
    """Blocks until all are reached; returns what is left of ``timeout``, in seconds. Raises the first failure."""
    deadline = deadline_after(timeout)
    for fence in fences:
        fence.wait_until(deadline)
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def settle(fences: Fences) -> None:
    """Blocks until all are reached or failed: what they write is overwritten."""
    for fence in fences:
        with contextlib.suppress(PumiceError):
            fence.wait_until()


def unreached(fences: Fences) -> Fences:
    """Those that are not reached, failed ones included."""
    return tuple([fence for fence in fences if not _is_reached(fence)])


def _is_reached(fence: WaitSource) -> bool:
    try:
        return fence.query()
    except PumiceError:
        return False
