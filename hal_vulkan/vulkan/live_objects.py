"""How many native objects are alive, by kind: what the leak tests compare with their baseline.

Counts are kept where a native handle is made and destroyed, not where a Python object is, so that a
handle lost by a bug still counts.
"""

from __future__ import annotations

import threading
from collections import Counter

__all__ = ["live_objects"]

_counts: Counter[str] = Counter()
# Taken again by the same thread where the garbage collector runs a host view's finaliser inside a count.
_lock = threading.RLock()


def created(kind: str, count: int = 1) -> None:
    """A native object of this kind was made."""
    with _lock:
        _counts[kind] += count


def destroyed(kind: str, count: int = 1) -> None:
    """A native object of this kind was destroyed."""
    with _lock:
        _counts[kind] -= count


def live_objects() -> dict[str, int]:
    """Live native objects of the whole process by kind (``"buffer"``, ``"pipeline"``, …); kinds at zero are left out."""
    with _lock:
        counts = dict(_counts)
    return {kind: count for kind, count in sorted(counts.items()) if count}


def reset_after_fork() -> None:
    """In a forked child: the parent's objects are not ours."""
    global _lock
    _lock = threading.RLock()
    _counts.clear()
