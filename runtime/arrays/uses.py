"""The submitted work that uses the memory of an array or an image.

A view shares the ``Uses`` of its array or image. Payloads are those of the device's stream and only increase. All
changes hold the device's ``mark_lock``: threads note their work in any order, and the latest payload stays.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ...hal.timeouts import deadline_after
from ...status import PumiceError

if TYPE_CHECKING:
    from ...waits.source import WaitSource


class Uses:
    """Payloads and fences of the work on one piece of memory.

    Attributes:
        ready: the payload at which the last write is done; 0 if it is known to be done.
        last: the payload at which the last use of any kind is done.
        fences: the fences of programs in flight that write it.

    Thread rule: any thread; attributes are changed by the methods and ``note_uses`` only.
    """

    __slots__ = ("_lock", "fences", "last", "ready")

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock
        self.ready: int = 0
        self.last: int = 0
        self.fences: tuple[WaitSource, ...] = ()

    def note(self, payload: int, *, written: bool) -> None:
        """Notes a use by submitted work."""
        with self._lock:
            if self.last < payload:
                self.last = payload
            if written and self.ready < payload:
                self.ready = payload

    def forget_write(self, payload: int) -> None:
        """Forgets a finished write, unless a later write was noted."""
        with self._lock:
            if self.ready == payload:
                self.ready = 0

    def replace_fences(self, fences: tuple[WaitSource, ...]) -> None:
        """Notes the program that writes all of the memory; none once it is done."""
        with self._lock:
            self.fences = fences

    def add_fence(self, fence: WaitSource) -> None:
        """Notes a program that writes a part of the memory."""
        with self._lock:
            self.fences = (*[known for known in self.fences if not _is_reached(known)], fence)

    def wait_for_fences(self, timeout: float | None) -> float | None:
        """Blocks until the programs are done; returns the rest of ``timeout``, in seconds.

        Raises:
            PumiceError: a program failed; this is the first failure.
        """
        deadline = deadline_after(timeout)
        for fence in self.fences:
            fence.wait_until(deadline)
        return None if deadline is None else max(0.0, deadline - time.monotonic())

    def settle_fences(self) -> None:
        """Blocks until the programs are done or have failed, and forgets them, as their results are overwritten."""
        for fence in self.fences:
            with contextlib.suppress(PumiceError):
                fence.wait_until()
        self.replace_fences(())


class HasUses(Protocol):
    """An array, or a view of one."""

    @property
    def uses(self) -> Uses: ...


def note_uses(lock: threading.Lock, arrays: Sequence[HasUses], written: Sequence[int], payload: int) -> None:
    """Notes one submission in its arrays; ``written`` are the indices of the arrays that it writes.

    ``lock`` is the device's ``mark_lock``, taken once for all of them (benchmarks/submit_wait.py).
    """
    with lock:
        for array in arrays:
            uses = array.uses
            if uses.last < payload:
                uses.last = payload
        for index in written:
            uses = arrays[index].uses
            if uses.ready < payload:
                uses.ready = payload


def note_all(lock: threading.Lock, used: Sequence[Uses], written: Sequence[Uses], payload: int) -> None:
    """Notes one submission in all the memory that it uses and writes."""
    with lock:
        for uses in used:
            if uses.last < payload:
                uses.last = payload
        for uses in written:
            if uses.ready < payload:
                uses.ready = payload


def _is_reached(fence: WaitSource) -> bool:
    try:
        return fence.query()
    except PumiceError:
        return False  # a failed fence is kept, so that readers of the array get the error
