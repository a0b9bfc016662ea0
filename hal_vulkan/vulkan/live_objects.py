"""Counts of live native objects by kind, which the leak tests compare with their baseline.

A native handle is counted where it is made and destroyed, not with its Python object: a handle that is lost by a bug
still counts.
"""

from __future__ import annotations

import threading
from collections import Counter

_counts: Counter[str] = Counter()
# Reentrant: the garbage collector may run a host view's finaliser inside a count.
_lock = threading.RLock()


def created(kind: str) -> None:
    """Counts a new native object of this kind."""
    with _lock:
        _counts[kind] += 1


def destroyed(kind: str, count: int = 1) -> None:
    """Counts the destruction of a native object of this kind."""
    with _lock:
        _counts[kind] -= count


def live_objects() -> dict[str, int]:
    """Returns the live native objects of the process by kind (``"buffer"``, ``"pipeline"``, …),
    without kinds at zero.
    """
    with _lock:
        counts = dict(_counts)
    return {kind: count for kind, count in sorted(counts.items()) if count}


def forget_objects() -> None:
    """Forgets the parent's objects in a forked child."""
    global _lock
    _lock = threading.RLock()
    _counts.clear()
